"""A few steps of verl 0.9's own asynchronous trainers, on a CPU."""

from __future__ import annotations

import re
from collections import Counter
from importlib import metadata

import pytest

import needs

pytest.importorskip("verl", reason=needs.reason("verl"))
if metadata.version("verl") < "0.9":
    pytest.skip("only verl 0.9 has asynchronous trainers", allow_module_level=True)

import pyarrow as pa
import pyarrow.parquet as pq

from guessing_env import TEXTS
from guessing_training import lines, row, step_of
from verl_bridge.cpu.overrides import cpu_overrides
from verl_bridge.cpu.tiny import make_tiny
from verl_run import Run, measured

pytestmark = pytest.mark.slow  # minutes of training: `make trainings`

STEPS, REPLY = 4, 96

LOOP = f"""\
- name: gym_env
  _target_: verl_bridge.agent_loop.GymAgentLoop
  max_tokens_per_turn: {REPLY}
  episodes_dir: episodes
"""

MODES = {
    "colocate_async": ["data.train_batch_size=4"],
    "separate_async": ["data.train_batch_size=8", "trainer.v1.separate_async.parameter_sync_step=2"],
}
"""The settings of each trainer: both make updates of four groups of four episodes."""


@pytest.fixture(scope="module", params=MODES)
def trained(request, tmp_path_factory):
    """A run of some steps, with validations, in which replies are long enough to be aborted."""
    folder = tmp_path_factory.mktemp(request.param)
    make_tiny(folder / "tiny", TEXTS * 20, TEXTS)
    (folder / "loop.yaml").write_text(LOOP)
    pq.write_table(pa.Table.from_pylist([row(n, "agent_loop") for n in range(16)]), folder / "rows.parquet")
    pq.write_table(pa.Table.from_pylist([row(n, "agent_loop") for n in range(2)]), folder / "val.parquet")
    others = {
        "data.val_files": f"{folder}/val.parquet",
        "data.max_response_length": 512,
        "actor_rollout_ref.rollout.max_num_seqs": 16,
        "algorithm.rollout_correction.rollout_is": "token",
        "trainer.total_training_steps": STEPS,
        "trainer.total_epochs": 9,
        "trainer.save_freq": -1,
        "trainer.test_freq": 2,
        "trainer.v1.trainer_mode": request.param,
    }
    changed = {*others, *(setting.split("=")[0] for setting in MODES[request.param])}
    settings = [setting for setting in step_of(folder) if setting.split("=")[0] not in changed]
    settings += [f"{key}={value}" for key, value in others.items()] + MODES[request.param]
    run = Run(
        ["-m", "verl.trainer.main_ppo", *cpu_overrides(trainer=request.param), *settings],
        {
            "GUESSING_LOG": f"{folder}/paid.jsonl",
            "GUESSING_OPEN": f"{folder}/open.txt",
            "VERL_USE_EXTERNAL_MODULES": "verl_bridge.cpu,verl_bridge.trainer",
        },
        folder,
    )
    assert run.code == 0, f"verl {'took too long' if run.code is None else 'failed'}:\n{run.text[-6000:]}"
    run.mode, run.folder = request.param, folder
    return run


def played(trained):
    """The games of the run as the agent loop wrote them: validations, and also those that were not used."""
    files = (trained.folder / "episodes").glob("episodes-*.jsonl")
    return [episode for file in files for episode in lines(file)]


def test_it_trains_on_each_episode_once(trained, report_at_end):
    updates = 2 if trained.mode == "separate_async" else 1
    dumps = [lines(trained.folder / f"rollouts/{step}.jsonl") for step in range(1, STEPS + 1)]
    assert [len(dump) for dump in dumps] == [16 * updates] * STEPS
    keys = [line["uid"] for dump in dumps for line in dump]
    assert len(keys) == len(set(keys))
    metrics = [measured(trained, step) for step in range(1, STEPS + 1)]
    assert all(step["actor/grad_norm"] > 0 for step in metrics)
    assert [step["env/test/Guessing-v0/episodes"] for step in metrics] == [16 * updates] * STEPS
    spans = max(step["training/off_policy/trajectory_spans/max"] for step in metrics)
    stale = max(step["training/off_policy/trajectory_staleness_worst/max"] for step in metrics)
    aborted = sum(map(int, re.findall(r"verl_bridge.cpu: (\d+) requests aborted", trained.text)))
    assert all("val-env/test/Guessing-v0/score" in measured(trained, step) for step in (2, 4))
    report_at_end(
        f"{STEPS} steps of {trained.mode}, verl {metadata.version('verl')} on the CPU: "
        f"{trained.seconds:.0f} s, {trained.peak / 2**30:.1f} GiB, {aborted} requests "
        f"aborted, up to {spans:.0f} weights in an episode, weights at most {stale:.0f} steps old"
    )


def test_episodes_equal_episodes_of_the_environment(trained):
    """What the loop wrote of each game is what the environment was told and paid, also after aborts."""
    paid = lines(trained.folder / "paid.jsonl")
    games = Counter((tuple(game["said"]), sum(game["paid"])) for game in paid)
    told = Counter(
        (
            tuple(message["content"] for message in game["messages"] if message["role"] == "assistant"),
            game["score"],
        )
        for game in played(trained)
        if game["ending"] in {"terminated", "truncated"}
    )
    assert told == games
    scores = Counter(sum(game["paid"]) for game in paid)
    trained_on = Counter(
        line["score"] for dump in trained.folder.glob("rollouts/*.jsonl") for line in lines(dump)
    )
    assert trained_on <= scores


def test_servers_get_the_weights_of_each_step(trained):
    loaded = re.findall(r"weights of step (\d+) loaded", trained.text)
    servers = 2 if trained.mode == "separate_async" else 1
    steps = Counter(map(int, loaded))
    assert set(steps) == set(range(STEPS + 1))
    assert all(1 <= count <= servers for count in steps.values())


def test_nothing_is_left_open(trained):
    events = Counter((trained.folder / "open.txt").read_text().split())
    assert events["made"] == events["closed"] > 0
    assert not trained.left
