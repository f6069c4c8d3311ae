"""A small agent loop, until the bridge's own can be used here."""

from __future__ import annotations

import json
from uuid import uuid4

import gymnasium
from verl.experimental.agent_loop.agent_loop import AgentLoopBase, AgentLoopMetrics, AgentLoopOutput


class SmallLoop(AgentLoopBase):
    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)

    def _ids(self, messages, generation):
        template = self.tokenizer.apply_chat_template
        return template(messages, add_generation_prompt=generation, tokenize=True, return_dict=False)

    async def run(self, sampling_params, **row):
        task = row["extra_info"]["interaction_kwargs"]
        env = gymnasium.make(task["env_id"]).unwrapped
        observation, _ = env.reset(options=json.loads(task["reset_options"]))
        prompt = self._ids([*row["raw_prompt"], {"role": "user", "content": observation}], True)
        ids, mask, logs, rewards = [], [], [], []
        while True:
            reply = await self.server_manager.generate(
                request_id=uuid4().hex,
                prompt_ids=prompt + ids,
                sampling_params={**sampling_params, "max_tokens": 8},
            )
            ids += reply.token_ids
            mask += [1] * len(reply.token_ids)
            logs += reply.log_probs or []
            text = self.tokenizer.decode(reply.token_ids, skip_special_tokens=True)
            observation, reward, terminated, truncated, _ = env.step(text)
            rewards.append(reward)
            if terminated or truncated:
                break
            told = self._ids([{"role": "user", "content": observation}], True)
            ids += told
            mask += [0] * len(told)
            logs += [0.0] * len(told)
        return AgentLoopOutput(
            prompt_ids=prompt,
            response_ids=ids,
            response_mask=mask,
            response_logprobs=logs if reply.log_probs else None,
            multi_modal_data={},
            reward_score=sum(rewards),
            num_turns=2 * len(rewards),
            metrics=AgentLoopMetrics(),
            extra_fields={**reply.extra_fields, "turn_scores": rewards, "tool_rewards": []},
        )
