"""The turn limit that episodes have by the step of a training on a CPU, also after a resume."""

from __future__ import annotations

import json
from importlib import metadata
from pathlib import Path

import pytest

import needs

pytest.importorskip("verl", reason=needs.reason("verl"))
if not metadata.version("verl").startswith("0.9."):
    pytest.skip(
        "some minutes: the newest verl plays it; tests/verl/test_agent_loop.py has it in the worker of each",
        allow_module_level=True,
    )

import pyarrow as pa
import pyarrow.parquet as pq

from agentgym_gym import AgentGymEnv
from agentgym_gym.evaluate import read_training
from verl_bridge.cpu.overrides import cpu_overrides
from verl_bridge.cpu.tiny import make_tiny
from verl_run import Run, measured, row

pytestmark = pytest.mark.slow  # minutes of training: `make trainings`

BATCH, SAMPLES = 2, 2
SCHEDULE = {1: 1, 2: 1, 3: 2, 4: 2, 5: 4}
STOPPED, LAST = 3, 5  # in the midst of a stage

LOOP = """\
- name: gym_env
  _target_: verl_bridge.agent_loop.GymAgentLoop
  horizon: {turns: [1, 2, 4], every: 2}
  max_tokens_per_turn: 4
  episodes_dir: episodes
"""


def train(folder: Path, out: Path, steps: int) -> Run:
    """Train up to a step, from the last checkpoint where there is one."""
    out.mkdir()
    rollout = "actor_rollout_ref.rollout"
    arguments = [
        *("-m", "verl.trainer.main_ppo", *cpu_overrides()),
        "algorithm.adv_estimator=grpo",
        f"data.train_files={folder}/rows.parquet",
        f"data.val_files={folder}/rows.parquet",
        f"data.train_batch_size={BATCH}",
        "data.val_max_samples=2",
        "data.max_prompt_length=1536",
        "data.max_response_length=512",  # room for four turns and the parse errors between them
        f"actor_rollout_ref.model.path={folder}/tiny",
        f"actor_rollout_ref.actor.ppo_mini_batch_size={BATCH}",
        "actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu=4",
        f"{rollout}.n={SAMPLES}",
        f"{rollout}.log_prob_micro_batch_size_per_gpu=4",
        f"{rollout}.agent.agent_loop_config_path={folder}/loop.yaml",
        "trainer.logger=[console]",
        "trainer.val_before_train=True",
        "trainer.test_freq=-1",
        f"trainer.save_freq={STOPPED}",
        "trainer.total_epochs=9",
        f"trainer.total_training_steps={steps}",
        "trainer.resume_mode=auto",
        f"trainer.rollout_data_dir={folder}/rollouts",
        f"trainer.default_local_dir={folder}/checkpoints",
    ]
    run = Run(arguments, {"VERL_USE_EXTERNAL_MODULES": "verl_bridge.cpu,verl_bridge.trainer"}, out)
    assert run.code == 0, run.text[-6_000:]
    return run


def test_the_turns_of_each_step_are_the_schedules_before_and_after_a_resume(tmp_path, textcraft_url):
    with AgentGymEnv("TextCraft", server=textcraft_url) as env:
        texts = [env.reset(options={"task_id": number})[0] for number in range(4)]
    make_tiny(tmp_path / "tiny", [*texts, "You craft.", "Could not find"] * 9)
    (tmp_path / "loop.yaml").write_text(LOOP)
    # The environment itself has no limit.
    rows = [row("TextCraft", task, textcraft_url, told="You craft.", max_turns=None) for task in range(4)]
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "rows.parquet")
    first = train(tmp_path, tmp_path / "first", STOPPED)
    second = train(tmp_path, tmp_path / "second", LAST)
    assert "step:2 - " not in second.text  # it went on, and did not begin again
    for step, turns in SCHEDULE.items():
        lines = (tmp_path / "rollouts" / f"{step}.jsonl").read_text().splitlines()
        assert [json.loads(line)["turns"] for line in lines] == [turns] * BATCH * SAMPLES
        logged = measured(first if step <= STOPPED else second, step)
        assert logged["env/agentgym/TextCraft-v0/turn_limit"] == turns
    training, validation = read_training(tmp_path / "episodes")
    assert [(each.step, each.turns) for each in training.records] == [
        (step, turns) for step, turns in SCHEDULE.items() for _ in range(BATCH * SAMPLES)
    ]
    starts = {each.step: each.session for each in training.records}
    assert None not in starts.values()
    assert len({starts[step] for step in range(1, STOPPED + 1)}) == 1
    assert starts[STOPPED] != starts[STOPPED + 1] == starts[LAST]
    assert {each.turns for each in validation.records} == {max(SCHEDULE.values())}
    assert {each.step for each in validation.records} == {0, STOPPED}  # before each start
    assert measured(first, 0)["val-env/agentgym/TextCraft-v0/turn_limit"] == max(SCHEDULE.values())
