"""Three steps of GRPO by verl's own trainer on a CPU, over local servers."""

from __future__ import annotations

import json
from importlib import metadata
from pathlib import Path

import pytest

import needs

pytest.importorskip("verl", reason=needs.reason("verl"))
if not metadata.version("verl").startswith("0.9."):
    pytest.skip(
        "what servers answer does not depend on verl; the newest plays on these", allow_module_level=True
    )

import pyarrow as pa
import pyarrow.parquet as pq
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

from agentgym_gym import AgentGymEnv
from agentgym_gym.evaluate import evaluate, load_oracle
from agentgym_gym.local_servers import LocalServer
from verl_bridge.cpu.overrides import cpu_overrides
from verl_bridge.cpu.tiny import make_tiny
from verl_run import Run, measured, row

pytestmark = pytest.mark.slow  # minutes of training: `make trainings`

STEPS, BATCH, SAMPLES = 3, 2, 8
LOGIT = 12.0  # of a phrase, where that of any other token is about 0
LOOP = """\
- name: gym_env
  _target_: verl_bridge.agent_loop.GymAgentLoop
  max_turns: 10
  max_tokens_per_turn: 1
  max_observation_tokens: 96
"""


def likely(folder: Path, phrases: list[str]) -> None:
    """Have a random model begin its replies by some phrases, each a token, and all about as likely."""
    model, tokenizer = AutoModelForCausalLM.from_pretrained(folder), AutoTokenizer.from_pretrained(folder)
    begins = tokenizer("<|im_start|>assistant\n", return_tensors="pt", add_special_tokens=False)
    with torch.no_grad():
        state = model(**begins, output_hidden_states=True).hidden_states[-1][0, -1]
        for phrase in phrases:
            (token,) = tokenizer.encode(phrase, add_special_tokens=False)
            model.lm_head.weight[token] = LOGIT * state / state.square().sum()
    model.save_pretrained(folder)


def settings(folder: Path) -> list[str]:
    return [
        "algorithm.adv_estimator=grpo",
        f"data.train_files={folder}/rows.parquet",
        f"data.val_files={folder}/rows.parquet",
        f"data.train_batch_size={BATCH}",
        "data.max_prompt_length=256",
        "data.max_response_length=1200",
        f"actor_rollout_ref.model.path={folder}/tiny",
        f"actor_rollout_ref.actor.ppo_mini_batch_size={BATCH}",
        "actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu=8",
        "actor_rollout_ref.actor.optim.lr=1e-5",
        f"actor_rollout_ref.rollout.n={SAMPLES}",
        "actor_rollout_ref.rollout.log_prob_micro_batch_size_per_gpu=8",
        f"actor_rollout_ref.rollout.agent.agent_loop_config_path={folder}/loop.yaml",
        "trainer.logger=[console]",
        "trainer.val_before_train=False",
        "trainer.test_freq=-1",
        "trainer.save_freq=-1",
        "trainer.total_epochs=9",
        f"trainer.total_training_steps={STEPS}",
        "trainer.resume_mode=disable",
        f"trainer.rollout_data_dir={folder}/rollouts",
        f"trainer.default_local_dir={folder}/checkpoints",
    ]


@pytest.mark.parametrize(("environment", "task"), [("WebShop", 0), ("BabyAI", 0), ("ALFWorld", 666)])
def test_the_score_reaches_the_log(environment, task, tmp_path, report_at_end):
    server = LocalServer(environment.lower())
    try:
        url = server.start()
        with AgentGymEnv(environment, server=url, action_format="bare") as env:
            records = evaluate(env, load_oracle(env.environment), [task])
            advice = [env.reset(options={"task_id": task})[0], env.step("nothing")[0]]
        # Of one task the first two and the last: search, open and buy, which is worth something by itself.
        # The task of ALFWorld takes three: go to the CD, take it, and use the lamp there.
        said = records[0].replies
        phrases = list(dict.fromkeys((*said[:2], said[-1])))
        texts = [message["content"] for record in records for message in record.messages]
        make_tiny(tmp_path / "tiny", [*texts, *advice, "Act."] * 4, phrases, context=4096)
        likely(tmp_path / "tiny", phrases)
        (tmp_path / "loop.yaml").write_text(LOOP)
        rows = [row(environment, task, url, told="Act.") for _ in range(BATCH)]
        pq.write_table(pa.Table.from_pylist(rows), tmp_path / "rows.parquet")
        modules = {"VERL_USE_EXTERNAL_MODULES": "verl_bridge.cpu,verl_bridge.trainer"}
        run = Run(["-m", "verl.trainer.main_ppo", *cpu_overrides(), *settings(tmp_path)], modules, tmp_path)
    finally:
        server.stop()
    assert run.code == 0, f"verl {'took too long' if run.code is None else 'failed'}:\n{run.text[-6000:]}"
    means = []
    for step in range(1, STEPS + 1):
        lines = (tmp_path / "rollouts" / f"{step}.jsonl").read_text().splitlines()
        scores = [json.loads(line)["score"] for line in lines]
        assert len(scores) == BATCH * SAMPLES
        means.append(sum(scores) / len(scores))
        logged = measured(run, step)
        assert logged["critic/score/mean"] == pytest.approx(means[-1])
        of_env = {name: logged[f"env/agentgym/{environment}-v0/{name}"] for name in ("score", "faults")}
        assert of_env == {"score": pytest.approx(means[-1]), "faults": 0}
    assert max(means) > 0
    report_at_end(f"three steps of GRPO on the local {environment} server: mean scores {means}")
