"""Three steps of verl 0.9's own trainers on a CPU, which drop groups without signal and replace them."""

from __future__ import annotations

import json
from collections import defaultdict
from importlib import metadata

import pytest

import needs

pytest.importorskip("verl", reason=needs.reason("verl"))
if metadata.version("verl") < "0.9":
    pytest.skip("only the trainer of verl 0.9 replaces groups", allow_module_level=True)

import pyarrow as pa
import pyarrow.parquet as pq

from guessing_env import TEXTS
from guessing_training import lines, row, step_of
from verl_bridge.cpu.overrides import cpu_overrides
from verl_bridge.cpu.tiny import make_tiny
from verl_run import Run

pytestmark = pytest.mark.slow  # minutes of training: `make trainings`

STEPS, SAMPLES = 3, 4

LOOP = """\
- name: gym_env
  _target_: verl_bridge.agent_loop.GymAgentLoop
  max_tokens_per_turn: 8
  fault_budget: 0
"""

RUNS = {
    "sync": [],
    "sync in rows": [],
    "colocate_async": [],
    "separate_async": ["data.train_batch_size=8", "trainer.v1.separate_async.parameter_sync_step=2"],
}
"""The settings of each run: all make updates of four groups of four episodes."""

KINDS = ["Guessing", "Flat", "Failing", "Guessing"] * 4
"""Half of the tasks have signal; of the others, each episode scores 0, or each faults."""


def task(number, kind):
    made = row(number, "agent_loop")
    played = made["extra_info"]["interaction_kwargs"]
    played["env_id"] = f"guessing_env:test/{kind}-v0"
    if kind == "Failing":
        played["reset_options"] = json.dumps({"fails": "step"})
    return made | {"data_source": f"test/{kind}-v0"}


@pytest.fixture(scope="module", params=RUNS)
def trained(request, tmp_path_factory):
    """A run of three steps."""
    mode, _, in_rows = request.param.partition(" ")
    folder = tmp_path_factory.mktemp(request.param.replace(" ", "_"))
    make_tiny(folder / "tiny", TEXTS * 20, TEXTS)
    (folder / "loop.yaml").write_text(LOOP + ("  rows: turn\n  history: turns:2\n" if in_rows else ""))
    rows = [task(number, kind) for number, kind in enumerate(KINDS)]
    pq.write_table(pa.Table.from_pylist(rows), folder / "rows.parquet")
    others = {
        "algorithm.filter_groups.enable": "True",
        "algorithm.filter_groups.metric": "reward",
        "data.shuffle": "False",
        "trainer.total_training_steps": STEPS,
        "trainer.total_epochs": 9,
        "trainer.save_freq": -1,
        "trainer.logger": "[console,file]",
        "trainer.project_name": "verl_bridge",
        "trainer.experiment_name": "filter",
        "trainer.v1.trainer_mode": mode,
    }
    changed = {*others, *(setting.split("=")[0] for setting in RUNS[request.param])}
    settings = [setting for setting in step_of(folder) if setting.split("=")[0] not in changed]
    settings += [f"{key}={value}" for key, value in others.items()] + RUNS[request.param]
    run = Run(
        ["-m", "verl.trainer.main_ppo", *cpu_overrides(trainer=mode), *settings],
        {
            "GUESSING_LOG": f"{folder}/paid.jsonl",
            "VERL_USE_EXTERNAL_MODULES": "verl_bridge.cpu,verl_bridge.trainer",
        },
        folder,
    )
    assert run.code == 0, f"verl {'took too long' if run.code is None else 'failed'}:\n{run.text[-6000:]}"
    run.mode, run.folder, run.updates = mode, folder, 2 if mode == "separate_async" else 1
    run.metrics = [line["data"] for line in lines(folder / "verl_bridge/filter.jsonl")]
    return run


def test_it_trains_on_whole_batches_of_groups_with_signal(trained):
    for step, metrics in enumerate(trained.metrics, 1):
        episodes: dict[str, dict[str, float]] = defaultdict(dict)
        for line in lines(trained.folder / f"rollouts/{step}.jsonl"):
            group, session, _ = str(line["uid"]).split("_")
            if group.startswith("pad"):  # with rows of turns, verl fills up the last mini-batch
                continue
            assert line["env_id"] == "test/Guessing-v0"
            assert not line["fault"]
            episodes[group][session] = line["score"]
        assert len(episodes) == 4 * trained.updates
        assert all(len({*group.values()}) > 1 for group in episodes.values())
        assert metrics["actor/grad_norm"] > 0
    assert step == STEPS


def test_metrics_name_dropped_and_refilled_groups(trained, report_at_end):
    metrics = trained.metrics
    dropped = [step["env/dropped_groups"] for step in metrics]
    refilled = [step["env/refilled_groups"] for step in metrics]
    assert dropped == [step.get("training/filter_groups/evicted_samples", 0) for step in metrics]
    assert sum(dropped) >= 2
    assert sum(step["env/lost_groups"] for step in metrics) >= 1  # of the environment that always fails
    if trained.mode == "sync":
        assert all(new > 0 for new, old in zip(refilled, dropped, strict=True) if old)
        assert sum(refilled) <= 2 * sum(dropped)
    else:
        assert refilled == dropped
    scores = [step["env/dropped_groups_score"] for step in metrics if "env/dropped_groups_score" in step]
    assert scores
    assert max(scores) <= 0  # 0 of the environment that pays nothing, -1.5 of three replies without a digit
    report_at_end(
        f"{STEPS} steps of {trained.mode} with the filter of groups: {dropped} groups dropped, "
        f"{refilled} refilled, {trained.seconds:.0f} s"
    )


def test_nothing_of_the_filter_is_logged_as_missing(trained):
    assert "could not be computed" not in trained.text
    assert "not as expected" not in trained.text
