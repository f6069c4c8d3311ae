"""Three real steps of each algorithm by verl's own trainer on a CPU, and their advantages computed anew."""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest

import needs

pytest.importorskip("verl", reason=needs.reason("verl"))

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import torch

from credit_formulas import gae, gigpo, grpo, reinforce_plus_plus, remax, rloo, turn_gae
from guessing_env import TEXTS
from training_rows import training_row
from verl_bridge.cpu.overrides import cpu_overrides
from verl_bridge.cpu.tiny import make_tiny
from verl_bridge.recipes import ALGORITHMS
from verl_run import Run, measured

pytestmark = pytest.mark.slow  # a minute for each algorithm: `make algorithms`

MINOR = ".".join(metadata.version("verl").split(".")[:2])
STEPS, ROWS, SAMPLES = 3, 4, 4
GAMMA, LAMBDA = 0.99, 0.9
IN_GROUPS = {"grpo", "rloo", "gigpo"}
WITH_REFERENCE = {"grpo", "ppo"}
WITH_CRITIC = {"ppo", "turn_ppo"}
HERE = [name for name in ALGORITHMS if not (name == "remax" and MINOR == "0.7")]
BY_TURN = ["ppo by turn", "reinforce_plus_plus by turn"]
IN_ROWS = [f"{name} in rows" for name in HERE if name != "remax"] if MINOR == "0.9" else []
PENALIZED = ["gigpo penalized"]
MORE = {
    "by turn": "  turn_rewards: true\n",
    "in rows": "  rows: turn\n  history: turns:2\n",
    "penalized": "  invalid_action_penalty: 0.1\n  format_penalty: 0.2\n",
    "": "",
}

LOOP = """\
- name: gym_env
  _target_: verl_bridge.agent_loop.GymAgentLoop
  max_tokens_per_turn: 8
  fault_budget: 0
"""

Batch = dict[str, Any]


def row(number: int, algorithm: str) -> dict[str, Any]:
    """A task; those of ReMax are all the same but for the first, in which the environment always fails."""
    kind, options = "Guessing", {"secret": 5 if algorithm == "remax" else number % 9 + 1}
    if (algorithm, number) == ("remax", 0):
        kind, options = "Failing", {"fails": "step"}
    return training_row(number, f"guessing_env:test/{kind}-v0", system=TEXTS[0], options=options)


def settings(algorithm: str, folder: Path) -> list[str]:
    samples = SAMPLES if algorithm in IN_GROUPS else 1
    return [
        f"algorithm.adv_estimator={ALGORITHMS[algorithm]}",
        f"algorithm.gamma={GAMMA}",
        f"algorithm.lam={LAMBDA}",
        *(["critic.enable=True"] if algorithm == "turn_ppo" else []),
        *(["trainer.use_v1=False"] if (algorithm, MINOR) == ("remax", "0.9") else []),
        f"data.train_files={folder}/rows.parquet",
        f"data.val_files={folder}/rows.parquet",
        f"data.train_batch_size={ROWS}",
        "data.max_prompt_length=64",
        "data.max_response_length=64",
        f"actor_rollout_ref.model.path={folder}/tiny",
        f"actor_rollout_ref.actor.ppo_mini_batch_size={ROWS}",
        "actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu=2",
        "actor_rollout_ref.actor.optim.lr=1e-3",
        f"actor_rollout_ref.actor.use_kl_loss={algorithm in WITH_REFERENCE}",
        "actor_rollout_ref.ref.log_prob_micro_batch_size_per_gpu=2",
        f"actor_rollout_ref.rollout.n={samples}",
        "actor_rollout_ref.rollout.log_prob_micro_batch_size_per_gpu=2",
        f"actor_rollout_ref.rollout.agent.agent_loop_config_path={folder}/loop.yaml",
        f"critic.model.path={folder}/tiny",
        "critic.ppo_micro_batch_size_per_gpu=2",
        "critic.optim.lr=1e-3",
        "trainer.logger=[console,file]",
        "trainer.project_name=verl_bridge",
        f"trainer.experiment_name={algorithm}",
        "trainer.val_before_train=False",
        "trainer.test_freq=-1",
        "trainer.save_freq=-1",
        "trainer.total_epochs=9",
        f"trainer.total_training_steps={STEPS}",
        "trainer.resume_mode=disable",
        f"trainer.rollout_data_dir={folder}/rollouts",
        f"trainer.default_local_dir={folder}/checkpoints",
    ]


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_tiny(tmp_path_factory.mktemp("tiny"), TEXTS * 20, TEXTS)


@pytest.fixture(scope="module", params=[*HERE, *BY_TURN, *PENALIZED, *IN_ROWS])
def trained(request: pytest.FixtureRequest, tiny: Path, tmp_path_factory: pytest.TempPathFactory):
    """The name of an algorithm, and three steps of it."""
    algorithm, _, how = request.param.partition(" ")
    folder = tmp_path_factory.mktemp(request.param.replace(" ", "_"))
    (folder / "tiny").symlink_to(tiny)
    (folder / "advantages").mkdir()
    (folder / "loop.yaml").write_text(LOOP + MORE[how])
    rows = [row(number, algorithm) for number in range(ROWS)]
    pq.write_table(pa.Table.from_pylist(rows), folder / "rows.parquet")
    more = ["+algorithm.gym_episode_weight=verl", "data.max_prompt_length=128"] if how == "in rows" else []
    modules = "verl_bridge.cpu,verl_bridge.trainer,advantage_log"
    variables = {
        "VERL_USE_EXTERNAL_MODULES": modules,
        "GUESSING_LOG": f"{folder}/paid.jsonl",
        "ADVANTAGES": f"{folder}/advantages",
    }
    run = Run(
        ["-m", "verl.trainer.main_ppo", *cpu_overrides(), *settings(algorithm, folder), *more],
        variables,
        folder,
    )
    assert run.code == 0, f"verl {'took too long' if run.code is None else 'failed'}:\n{run.text[-6000:]}"
    return algorithm, run


def batch_of(run: Run, step: int) -> Batch:
    """What the estimator was given in a step, and the advantages that it returned, as arrays."""
    kept = torch.load(run.log.parent / "advantages" / f"{step}.pt", weights_only=True)
    return {key: value.double().numpy() if torch.is_tensor(value) else value for key, value in kept.items()}


def gigpo_of_batch(batch: Batch) -> np.ndarray:
    """The comparison of episodes, and of turns from the same state (arXiv 2505.10978)."""
    played = [place for place, turns in enumerate(batch["turns"]) if turns is not None]  # without padding
    result = np.zeros_like(batch["response_mask"])
    result[played] = gigpo(
        batch["token_level_rewards"][played],
        batch["response_mask"][played],
        [batch["index"][place] for place in played],
        [batch["turns"][place] for place in played],
        gamma=GAMMA,
        omega=1.0,
        by_std=True,
    )
    return result


def gae_of_turns(batch: Batch) -> np.ndarray:
    """The errors of the critic, one for each turn (arXiv 2512.17008)."""
    rewards, values = batch["token_level_rewards"], batch["values"]
    return turn_gae(rewards, values, batch["turns"], gamma=GAMMA, lam=LAMBDA)[0]


def gae_of_tokens(batch: Batch) -> np.ndarray:
    return gae(batch, gamma=GAMMA, lam=LAMBDA)


def reinforce_plus_plus_of_batch(batch: Batch) -> np.ndarray:
    # verl 0.7 and 0.8 begin anew at each observation, so that only the last reply is credited.
    return reinforce_plus_plus(batch, gamma=GAMMA, over_observations=MINOR == "0.9")


INDEPENDENT = {
    "turn_ppo": gae_of_turns,
    "gigpo": gigpo_of_batch,
    "grpo": grpo,
    "ppo": gae_of_tokens,
    "rloo": rloo,
    "reinforce_plus_plus": reinforce_plus_plus_of_batch,
    "remax": remax,
}


def test_advantages_equal_the_formulas_of_the_papers(trained, report_at_end):
    algorithm, run = trained
    largest, biggest = 0.0, 0.0
    for step in range(1, STEPS + 1):
        batch = batch_of(run, step)
        assert batch["estimator"] == ALGORITHMS[algorithm]
        assert batch["token_level_rewards"].any()
        mask = batch["response_mask"].astype(bool)
        expected = INDEPENDENT[algorithm](batch)[mask]
        biggest = max(biggest, np.abs(expected).max())
        largest = max(largest, np.abs(expected - batch["advantages"][mask]).max())
        assert largest < 1e-5
        # And these are what the trainer went on with.
        logged = measured(run, step)
        assert logged["critic/advantages/mean"] == pytest.approx(expected.mean(), abs=1e-5)
        assert logged["critic/advantages/max"] == pytest.approx(expected.max(), abs=1e-5)
        assert logged["critic/advantages/min"] == pytest.approx(expected.min(), abs=1e-5)
    assert biggest > 0.1
    report_at_end(
        f"advantages of {algorithm}, verl {MINOR}: {largest:.1e} from an independent computation at most"
    )


def test_rewards_are_where_they_are_credited(trained):
    """By turn, at the last token of a reply; otherwise at the last token of the episode."""
    _, run = trained
    by_turn = "turn_rewards" in (run.log.parent / "loop.yaml").read_text()
    several = 0
    for step in range(1, STEPS + 1):
        batch = batch_of(run, step)
        for rewards, mask in zip(batch["token_level_rewards"], batch["response_mask"], strict=True):
            ends = np.flatnonzero(mask * (1 - np.append(mask[1:], 0)))
            if not len(ends):
                continue  # verl's padding, to whole updates
            places = np.flatnonzero(rewards)
            assert {*places} <= ({*ends} if by_turn else {ends[-1]})
            several += len(places) > 1
    assert (several > 0) is by_turn


def test_penalties_are_a_metric_and_in_no_score(trained):
    """A reply without a digit costs 0.3; that the environment pays -0.5 for it is another thing."""
    _, run = trained
    folder = run.log.parent
    penalized = "penalty" in (folder / "loop.yaml").read_text()
    found = 0.0
    for step in range(1, STEPS + 1):
        logged, batch = measured(run, step), batch_of(run, step)
        played = [sum(turns["penalties"]) for turns in batch["turns"] if turns]
        assert ("env/test/Guessing-v0/penalty" in logged) is penalized
        if penalized:
            assert logged["env/test/Guessing-v0/penalty"] == pytest.approx(np.mean(played))
            errors = logged["env/test/Guessing-v0/parse_errors"]
            assert logged["env/test/Guessing-v0/penalty"] == pytest.approx(0.3 * errors)
        found += sum(played)
    assert (found > 0) is penalized


def lines(file: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in file.read_text().splitlines()]


def test_scores_are_what_the_environment_paid(trained):
    """Of a run of ReMax, greedy episodes too: their scores are the baselines."""
    algorithm, run = trained
    folder = run.log.parent
    paid = Counter(sum(episode["paid"]) for episode in lines(folder / "paid.jsonl"))
    seen: Counter[float] = Counter()
    for step in range(1, STEPS + 1):
        played = [line["score"] for line in lines(folder / "rollouts" / f"{step}.jsonl")]
        batch = batch_of(run, step)
        seen += Counter(batch["token_level_rewards"][batch["response_mask"].any(1)].sum(1))
        if algorithm == "remax":
            assert measured(run, step)["env/test/Failing-v0/faults"] == 1
            seen += Counter(batch["reward_baselines"])
            played.remove(0.0)  # the failed one, which the estimator does not get
        scores = Counter(batch["token_level_rewards"][batch["response_mask"].any(1)].sum(1))
        assert measured(run, step)["critic/score/mean"] == pytest.approx(np.mean([*scores.elements()]))
        if "rows: turn" in (folder / "loop.yaml").read_text():  # each row has the score of its episode
            assert measured(run, step)["env/test/Guessing-v0/episodes"] == scores.total()
            assert {*played} - {0.0} == {*scores} - {0.0}  # verl's padding has 0
            assert len(played) > len(paid) / STEPS
        else:
            assert Counter(played) == scores
    assert +seen == paid
    assert len(paid) > 1


def test_baselines_are_played_greedily(trained):
    """By the same weights the greedy episodes of a task are the same, word for word; sampled ones differ."""
    algorithm, run = trained
    if algorithm != "remax":
        pytest.skip("of ReMax alone")
    told = Counter(tuple(episode["said"]) for episode in lines(run.log.parent / "paid.jsonl"))
    played = ROWS - 1  # the environment fails in the other
    greedy = {said: count for said, count in told.items() if count >= played}
    assert sum(greedy.values()) == STEPS * played
    assert len(told) - len(greedy) == STEPS * played


def test_each_step_changes_the_weights(trained):
    _, run = trained
    taken = re.findall(r"weights of step (\w+) loaded, \d+ tensors, largest change (\S+)", run.text)
    changes = {int(step): float(change) for step, change in taken}
    assert {step for step, change in changes.items() if change > 0} >= set(range(1, STEPS + 1))


def test_losses_are_numbers(trained, report_at_end):
    algorithm, run = trained
    names = ["actor/pg_loss", "actor/grad_norm"]
    names += ["critic/vf_loss", "critic/grad_norm", "critic/values/mean"] if algorithm in WITH_CRITIC else []
    names += ["actor/kl_loss"] if algorithm in WITH_REFERENCE else []
    steps = [measured(run, step) for step in range(1, STEPS + 1)]
    kept = lines(run.log.parent / "verl_bridge" / f"{algorithm}.jsonl")
    assert [line["step"] for line in kept] == [1, 2, 3]
    assert kept[0]["data"]["actor/pg_loss"] == pytest.approx(steps[0]["actor/pg_loss"], rel=1e-6)
    for logged in steps:
        assert all(math.isfinite(logged[name]) for name in names)
        assert all(logged[name] > 0 for name in names if name.endswith("grad_norm"))
        assert ("actor/kl_loss" in logged) is (algorithm in WITH_REFERENCE)
        assert ("critic/vf_loss" in logged) is (algorithm in WITH_CRITIC)
    if algorithm in WITH_REFERENCE:
        # The policy begins as the reference, and goes away from it.
        in_rows = "rows: turn" in (run.log.parent / "loop.yaml").read_text()  # in several updates
        assert in_rows or abs(steps[0]["actor/kl_loss"]) < 1e-6
        assert steps[-1]["actor/kl_loss"] > 1e-6
    assert not run.left
    report_at_end(
        f"three steps of {algorithm}, verl {MINOR} on the CPU: {run.seconds:.0f} s, "
        f"{run.peak / 2**30:.1f} GiB at most"
    )
