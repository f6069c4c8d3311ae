"""What verl's own trainer logs, dumps and raises where environments fail, on a CPU."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest

import needs

pytest.importorskip("verl", reason=needs.reason("verl"))

import pyarrow as pa
import pyarrow.parquet as pq
import torch

from guessing_env import TEXTS
from verl_bridge.cpu.overrides import cpu_overrides
from verl_bridge.cpu.tiny import make_tiny
from verl_run import Run, measured

BATCH, SAMPLES = 4, 3
AT = "env/test/Failing-v0"
FAILS = [None, "step", "one", "reset", *["reset", "step"] * 2]
"""Two of the four tasks of the first step fail, and one episode of a third; all tasks of the second fail."""

PLAYED, FAULTED = 5, 7

LOOP = """\
- name: gym_env
  _target_: verl_bridge.agent_loop.GymAgentLoop
  max_tokens_per_turn: 8
  fault_budget: 0
  success_at: 1
"""


def row(number: int, fails: str | None, part: str) -> dict[str, object]:
    options = {"secret": number + 1} | ({"fails": fails, "mark": part} if fails else {})
    return {
        "prompt": [{"role": "system", "content": TEXTS[0]}],
        "agent_name": "gym_env",
        "data_source": "test/Failing-v0",
        "reward_model": {"style": "rule", "ground_truth": ""},
        "extra_info": {
            "index": number,
            "interaction_kwargs": {
                "name": "gym_env",
                "env_id": "guessing_env:test/Failing-v0",
                "env_kwargs": "{}",
                "reset_options": json.dumps(options),
                "seed": None,
            },
        },
    }


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """A validation, a step of which a part is left, and one of which nothing is."""
    folder = tmp_path_factory.mktemp("run")
    (folder / "advantages").mkdir()
    make_tiny(folder / "tiny", TEXTS * 20, TEXTS)
    (folder / "loop.yaml").write_text(LOOP)
    for part, fails in (("train", FAILS), ("val", FAILS[:BATCH])):
        rows = [row(number, each, part) for number, each in enumerate(fails)]
        pq.write_table(pa.Table.from_pylist(rows), folder / f"{part}.parquet")
    rollout = "actor_rollout_ref.rollout"
    arguments = [
        *("-m", "verl.trainer.main_ppo", *cpu_overrides()),
        "algorithm.adv_estimator=grpo",
        "algorithm.rollout_correction.rollout_is=token",
        f"data.train_files={folder}/train.parquet",
        f"data.val_files={folder}/val.parquet",
        f"data.train_batch_size={BATCH}",
        "data.shuffle=False",
        "data.max_prompt_length=64",
        "data.max_response_length=64",
        f"actor_rollout_ref.model.path={folder}/tiny",
        f"actor_rollout_ref.actor.ppo_mini_batch_size={BATCH}",
        "actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu=12",
        f"{rollout}.n={SAMPLES}",
        f"{rollout}.calculate_log_probs=True",
        f"{rollout}.log_prob_micro_batch_size_per_gpu=12",
        f"{rollout}.agent.agent_loop_config_path={folder}/loop.yaml",
        f"{rollout}.val_kwargs.n={SAMPLES}",
        f"{rollout}.val_kwargs.do_sample=True",
        f"{rollout}.val_kwargs.temperature=1.0",
        "trainer.logger=[console,tensorboard]",
        "trainer.val_before_train=True",
        "trainer.test_freq=-1",
        "trainer.save_freq=-1",
        "trainer.total_epochs=1",
        "trainer.total_training_steps=2",
        "trainer.resume_mode=disable",
        f"trainer.rollout_data_dir={folder}/rollouts",
        f"trainer.validation_data_dir={folder}/validations",
        f"trainer.default_local_dir={folder}/checkpoints",
    ]
    variables = {
        "VERL_USE_EXTERNAL_MODULES": "verl_bridge.cpu,verl_bridge.trainer,advantage_log",
        "ADVANTAGES": f"{folder}/advantages",
        "GUESSING_LOG": f"{folder}/paid.jsonl",
        "TENSORBOARD_DIR": f"{folder}/tensorboard",
        "HYDRA_FULL_ERROR": "1",
    }
    return Run(arguments, variables, folder)


def lines(file: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in file.read_text().splitlines()]


def played(file: Path) -> list[dict[str, object]]:
    return [line for line in lines(file) if not line["fault"]]


def test_a_step_has_metrics_of_each_environment(run):
    metrics = {name: value for name, value in measured(run).items() if name.startswith(AT)}
    half = played(run.log.parent / "rollouts" / "1.jsonl")
    assert len(half) == PLAYED
    means = {"score": "return", "success": "success", "turns": "turns", "parse_errors": "parse_errors"}
    for name, key in means.items():
        assert metrics[f"{AT}/{name}"] == pytest.approx(sum(line[key] for line in half) / len(half)), name
    faults = {f"{AT}/fault/ConnectionRefusedError": 3, f"{AT}/fault/TimeoutError": 4}
    counts = {f"{AT}/episodes": 12, f"{AT}/faults": FAULTED, f"{AT}/retries": 0, **faults}
    assert {name: metrics.get(name) for name in counts} == counts


def test_faulted_episodes_are_left_out_of_verls_own_means(run):
    """They count as 0 in verl."""
    metrics, folder = measured(run), run.log.parent
    scores = [line["score"] for line in played(folder / "rollouts" / "1.jsonl")]
    for name in ("critic/score", "critic/rewards"):
        assert metrics[f"{name}/mean"] == pytest.approx(sum(scores) / len(scores))
        assert (metrics[f"{name}/max"], metrics[f"{name}/min"]) == (max(scores), min(scores))
    found = tensorboard(run)
    scores = [line["score"] for line in played(folder / "validations" / "0.jsonl")]
    assert len(scores) == PLAYED
    groups = Counter(line["env_task"] for line in played(folder / "validations" / "0.jsonl"))
    weights = {task: 1 / count / len(groups) for task, count in groups.items()}  # a mean over prompts
    mean = sum(
        line["score"] * weights[line["env_task"]] for line in played(folder / "validations" / "0.jsonl")
    )
    assert found["val-core/test/Failing-v0/reward/mean@3"] == {0: pytest.approx(mean)}
    assert found["val-aux/test/Failing-v0/fault/mean@3"] == {0: pytest.approx(FAULTED / 12)}


def test_faulted_episodes_are_left_out_of_verls_perplexities(run):
    """With random weights, a log perplexity is about the entropy; 7 zeros of 12 would halve it."""
    metrics = measured(run)
    entropy = metrics["actor/entropy"]
    assert metrics["rollout_corr/training_log_ppl"] == pytest.approx(entropy, rel=0.2)
    assert metrics["rollout_corr/rollout_log_ppl"] == pytest.approx(entropy, rel=0.2)
    assert metrics["rollout_corr/rollout_is_seq_min"] == pytest.approx(1, abs=0.05)


def test_faulted_episodes_are_left_out_of_their_groups(run):
    """The estimator gets the played ones only, and the two groups without any are counted."""
    folder = run.log.parent
    given = torch.load(folder / "advantages" / "1.pt", weights_only=True)
    assert sorted(Counter(given["index"]).values()) == [2, 3]
    rewards = given["token_level_rewards"].sum(1).tolist()
    assert sorted(rewards) == sorted(line["score"] for line in played(folder / "rollouts" / "1.jsonl"))
    assert given["response_mask"].any(1).all()
    metrics = measured(run)
    assert metrics["env/lost_groups"] == 2
    within = given["advantages"][given["response_mask"].bool()]
    assert metrics["critic/advantages/mean"] == pytest.approx(within.mean().item(), abs=1e-6)
    assert metrics["critic/advantages/max"] == pytest.approx(within.max().item(), abs=1e-6)


def tensorboard(run: Run) -> dict[str, dict[int, float]]:
    """Return what stands in the file of a run: name, step, value."""
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    events = EventAccumulator(str(run.log.parent / "tensorboard"))
    events.Reload()
    return {
        name: {event.step: event.value for event in events.Scalars(name)} for name in events.Tags()["scalars"]
    }


def test_tensorboard_has_the_metrics(run):
    found = tensorboard(run)
    for prefix, step in (("env", 1), ("val-env", 0)):
        at = f"{prefix}/test/Failing-v0"
        assert found[f"{at}/episodes"] == {step: 12}
        assert found[f"{at}/fault/TimeoutError"] == {step: 4}
        assert {"score", "success", "turns", "parse_errors"} <= {
            name.removeprefix(f"{at}/") for name in found if name.startswith(at)
        }


@pytest.mark.parametrize("dump", ["rollouts/1", "validations/0"])
def test_a_dump_has_the_records_of_an_episode(run, dump):
    found = lines(run.log.parent / f"{dump}.jsonl")
    kinds = {None: "", "step": "TimeoutError", "reset": "ConnectionRefusedError"}
    turns = {"step": 1, "reset": 0}
    assert Counter(line["fault_kind"] for line in found) == {
        "": PLAYED,
        "TimeoutError": 4,
        "ConnectionRefusedError": 3,
    }
    for line in found:
        fails = json.loads(line["env_task"]).get("fails")
        if fails == "one":
            fails = "step" if line["fault"] else None
        assert line["env_id"] == "test/Failing-v0"
        assert line["fault_kind"] == kinds[fails]
        assert line["turns"] == turns.get(fails, line["turns"])
        assert {"success", "parse_errors", "invalid_actions", "retries", "return"} <= set(line)


def test_a_step_without_valid_groups_ends_the_run_with_the_reason(run):
    """As the last thing on the console, and without the password of a server."""
    assert run.code not in (0, None)
    last = run.text.rstrip().rpartition("\n\n")[2]
    assert last.startswith("None of the 12 episodes of this step could be played")
    assert "test/Failing-v0 at http://127.0.0.1:9: 12 episodes failed\n" in last
    assert (
        "ConnectionRefusedError, 6 times, such as: POST http://***@127.0.0.1:9/reset could not connect"
        in last
    )
    assert "TimeoutError, 6 times, such as: POST http://127.0.0.1:9/step was not answered in 5 s" in last
    assert "start the run again" in last
    assert "secret@" not in run.text
    assert not run.left
