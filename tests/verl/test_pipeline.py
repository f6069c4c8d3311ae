"""The example of the pipeline runs from end to end, with a recipe that is too small to learn anything."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from importlib import metadata
from pathlib import Path

import pytest

import needs
from agentgym_gym.evaluate import find_runs, read_run

pytestmark = pytest.mark.slow  # minutes of training: `make trainings`

pytest.importorskip("verl", reason=needs.reason("verl"))
if not metadata.version("verl").startswith("0.9."):
    pytest.skip("the example is for verl 0.9", allow_module_level=True)

ROOT = Path(__file__).resolve().parents[2]
EXAMPLE = ROOT / "examples" / "pipeline"
TASKS = {"agentgym/Maze-v0": 25, "agentgym/TextCraft-v0": 20}
PARTS = {"Maze, trained": 20, "Maze, held out": 5, "TextCraft, trained": 10, "TextCraft, held out": 10}

HELD_OUT = {
    "agentgym/Maze-v0": {20, 21, 22, 23, 24},
    "agentgym/TextCraft-v0": {6, 53, 58, 68, 73, 77, 79, 88, 89, 94},
}


def run(out: Path) -> subprocess.CompletedProcess[str]:
    ray = tempfile.mkdtemp(prefix="vb", dir="/tmp")  # Ray's sockets must have short paths
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    try:
        return subprocess.run(
            [sys.executable, EXAMPLE / "pipeline.py", "--quick", "--seed", "7", "--out", out],
            env=environment | {"RAY_TMPDIR": ray, "PYTHONPATH": str(ROOT)},
            capture_output=True,
            text=True,
            check=False,
            timeout=1200,
        )
    finally:
        shutil.rmtree(ray, ignore_errors=True)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    folder = tmp_path_factory.mktemp("pipeline") / "runs"
    ended = run(folder)
    assert ended.returncode == 0, ended.stdout[-3000:] + ended.stderr[-3000:]
    return folder / "seed_7", ended.stdout


def test_each_command_is_shown(made):
    shown = [line for line in made[1].splitlines() if line.startswith("$ ")]
    parts = ["eval oracle.toml", "data sft", "tiny_model.py", "verl_bridge.cpu.sft", "data rl", "main_ppo"]
    parts += ["--out=" + os.path.relpath(made[0], EXAMPLE) + "/after", "agentgym report", "agentgym compare"]
    places = [next(place for place, line in enumerate(shown) if part in line) for part in parts]
    assert places == sorted(places)


def test_every_task_is_evaluated_before_and_after(made):
    for name in ("before", "after"):
        runs = [read_run(path) for path in find_runs(made[0] / name)]
        assert {run.env_id: len(run.records) for run in runs} == TASKS
        assert all(record.scored for run in runs for record in run.records)


def test_the_training_plays_both_environments(made):
    files = (made[0] / "episodes").glob("*.jsonl")
    lines = [line for path in files for line in path.read_text("utf-8").splitlines()]
    episodes = [json.loads(line) for line in lines]
    assert {episode["step"] for episode in episodes} == {1, 2}
    assert len(episodes) == 2 * 8 * 2
    assert {episode["env_id"] for episode in episodes} == TASKS.keys()
    evaluated = {run.env_id: run for run in map(read_run, find_runs(made[0] / "before"))}
    for env_id, run in evaluated.items():
        trained = {episode["task_id"] for episode in episodes if episode["env_id"] == env_id}
        held_out = HELD_OUT[env_id]
        assert held_out <= {record.task_id for record in run.records}
        assert not held_out & trained
    assert {episode["ending"] for episode in episodes} <= {"terminated", "truncated", "context_overflow"}


def test_the_evaluations_are_of_what_was_trained(made):
    played = {
        name: {run.facts["agent_settings"]["model_path"] for run in map(read_run, find_runs(made[0] / name))}
        for name in ("before", "after")
    }
    assert {name: len(paths) for name, paths in played.items()} == {"before": 1, "after": 1}
    assert played["before"].pop().endswith("sft/global_step_4/huggingface")
    assert played["after"].pop().endswith("grpo/global_step_2/actor/huggingface")


def test_the_seed_is_reported(made):
    folder, said = made
    (line,) = (folder.parent / "pipeline.jsonl").read_text().splitlines()
    result = json.loads(line)
    assert (result["seed"], result["sft_steps"]) == (7, 4)
    assert result["environments"].keys() == PARTS.keys()
    for name, found in result["environments"].items():
        change = found["after"]["success"] - found["before"]["success"]
        assert found["change"]["success"] == pytest.approx(change)
        assert found["before"]["episodes"] == PARTS[name]
        assert f"{name}" in said.rpartition("environment  seed")[2]
    assert "TextCraft" in (folder / "report.html").read_text("utf-8")
