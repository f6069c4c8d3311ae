"""Play the validation rows of a folder of ``agentgym verl init`` at once by the agent loop, without verl.

    PYTHONPATH=envs:stand_in:../support python play_episodes.py FOLDER POLICY [ISOLATE]

prints a JSON object for each row: seed, messages, rewards and fault. ISOLATE is the option of the agent loop.
"""

from __future__ import annotations

import asyncio
import json
import re
import sys
from pathlib import Path
from types import SimpleNamespace
from uuid import uuid4

import yaml
from pyarrow import parquet

import library_policies as policies
from verl_bridge.agent_loop import GymAgentLoop

START, END = "<|im_start|>", "<|im_end|>"
LENGTHS = {"prompt_length": 1 << 20, "response_length": 1 << 22}


class Characters:
    """A tokenizer whose tokens are characters, and the two marks of its chat template."""

    chat_template = "chatml"
    name_or_path = "characters"
    unk_token, unk_token_id = None, None
    eos_token_id, all_special_ids = 1, [0, 1]
    added_tokens_decoder = {  # noqa: RUF012 - as transformers has it
        0: SimpleNamespace(content=START, special=True),
        1: SimpleNamespace(content=END, special=True),
    }

    def encode(self, text, add_special_tokens=False):
        parts = re.split(r"(<\|im_start\|>|<\|im_end\|>)", text)
        marks = {START: [0], END: [1]}
        return [token for part in parts for token in marks.get(part) or [ord(letter) + 2 for letter in part]]

    def decode(self, tokens, **options):
        return "".join((START, END)[token] if token < 2 else chr(token - 2) for token in tokens)

    def apply_chat_template(self, messages, *, add_generation_prompt, tokenize):
        written = [f"{START}{message['role']}\n{message['content']}{END}\n" for message in messages]
        return "".join([*written, f"{START}assistant\n" if add_generation_prompt else ""])


class ScriptedServer:
    """Generates the replies of a policy."""

    def __init__(self, policy, tokenizer):
        self.policy = policy
        self.tokenizer = tokenizer

    async def generate(self, request_id, *, prompt_ids, sampling_params):
        await asyncio.sleep(0.01)
        reply = self.policy(messages_of(self.tokenizer.decode(prompt_ids)))
        return SimpleNamespace(token_ids=[*self.tokenizer.encode(reply), 1], log_probs=None, extra_fields={})


class Settings(dict):
    """Settings by attribute, as omegaconf has them."""

    __getattr__ = dict.__getitem__


def messages_of(text):
    """Return the messages of a conversation, without that of the system and without the generation prompt."""
    text = text.removesuffix(f"{START}assistant\n")
    turns = [turn.partition("\n") for turn in text.split(START)[1:]]
    messages = [{"role": role, "content": content.partition(END)[0]} for role, _, content in turns]
    return [message for message in messages if message["role"] != "system"]


async def play(folder, policy, **more):
    (options,) = yaml.safe_load((folder / "agent_loop.yaml").read_text("utf-8"))
    options = {name: value for name, value in options.items() if name not in ("name", "_target_")}
    options |= {"fault_budget": 0, **more}
    tokenizer = Characters()
    settings = Settings(LENGTHS, agent={"agent_loop_config_path": str(folder / "agent_loop.yaml")})
    loop = GymAgentLoop(settings, ScriptedServer(policy, tokenizer), tokenizer, **options)
    rows = parquet.read_table(folder / "data/val.parquet").to_pylist()
    played = [loop.run({}, raw_prompt=row["prompt"], uid=uuid4().hex, **row) for row in rows]
    for row, output in zip(rows, await asyncio.gather(*played), strict=True):
        text = tokenizer.decode([*output.prompt_ids, *output.response_ids])
        yield {
            "seed": row["extra_info"]["interaction_kwargs"]["seed"],
            "messages": messages_of(text),
            "rewards": output.extra_fields["turn_scores"],
            "fault": output.extra_fields["env_fault"],
        }


async def main():
    folder, policy, *isolate = sys.argv[1:]
    more = {"isolate": isolate[0]} if isolate else {}
    async for episode in play(Path(folder), getattr(policies, policy), **more):
        print(json.dumps(episode))  # noqa: T201 - it is the output


if __name__ == "__main__":
    asyncio.run(main())
