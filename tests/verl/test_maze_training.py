"""The example that learns runs from end to end, with a recipe that is too small to learn anything."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest

import needs

pytestmark = pytest.mark.slow  # minutes of training: `make trainings`

pytest.importorskip("verl", reason=needs.reason("verl"))
if not metadata.version("verl").startswith("0.9."):
    pytest.skip("the example is for verl 0.9", allow_module_level=True)

BOTH = ["--algorithm", "grpo", "--algorithm", "gigpo"]

ROOT = Path(__file__).resolve().parents[2]
EXAMPLE = ROOT / "examples" / "maze_training"


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    folder = tmp_path_factory.mktemp("maze") / "runs"
    ray = tempfile.mkdtemp(prefix="vb", dir="/tmp")  # Ray's sockets must have short paths
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    environment |= {"RAY_TMPDIR": ray, "PYTHONPATH": str(ROOT)}
    try:
        ended = subprocess.run(
            [sys.executable, EXAMPLE / "train.py", "--quick", "--seed", "7", *BOTH, "--out", folder],
            env=environment,
            capture_output=True,
            text=True,
            check=False,
            timeout=1200,
        )
        assert ended.returncode == 0, ended.stdout + ended.stderr
        assert "mean gain" in ended.stdout
        (folder / "said.txt").write_text(ended.stdout)
        yield folder
    finally:
        shutil.rmtree(ray, ignore_errors=True)


@pytest.fixture(scope="module")
def results(trained: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (trained / "maze.jsonl").read_text().splitlines()]


def test_each_algorithm_is_reported_with_its_curve(results):
    assert [result["algorithm"] for result in results] == ["grpo", "gigpo"]
    for result in results:
        assert result["seed"] == 7
        assert result["minutes"] > 0
        assert result["episodes_a_step"] == 16
        assert [point["step"] for point in result["curve"]] == [0, 1, 2]
        for point in result["curve"][1:]:
            assert 0 <= point["success"] <= 1 <= point["turns"] <= 5
            assert 0 <= point["parse_errors"] <= point["turns"]
            assert point["faults"] == 0
        assert all(0 <= point["validation"] <= 1 for point in result["curve"])


def test_both_start_from_the_same_model(results):
    grpo, gigpo = results
    assert grpo["sft_steps"] == gigpo["sft_steps"]
    assert grpo["before"] == gigpo["before"]


def test_the_report_shows_what_happened_by_step(trained: Path, results):
    head = "step  success  turns  parse errors  faults  cut\n"
    tables = (trained / "said.txt").read_text().split(head)[1:]
    for table, result in zip(tables, results, strict=True):
        points = [point for point in result["curve"] if "success" in point]
        shown = [line.split() for line in table.splitlines() if line[:4].strip().isdigit()]
        assert [(int(row[0]), float(row[1]), float(row[2])) for row in shown] == [
            (point["step"], round(point["success"], 3), round(point["turns"], 3)) for point in points
        ]


def test_the_held_out_starts_are_measured_before_and_after(results):
    for result in results:
        for when in ("before", "after"):
            measured = result[when]
            by_start = measured["by_start"]
            assert set(by_start) == {"20", "21", "22", "23", "24"}
            assert measured["episodes"] == 5
            assert measured["success"] == pytest.approx(sum(by_start.values()) / 5, abs=1e-4)
            assert 0 <= measured["invalid"] <= 1


def test_the_curve_is_drawn(trained: Path):
    assert (trained / "maze.png").read_bytes().startswith(b"\x89PNG")


def test_it_is_drawn_again_from_the_kept_records(trained: Path, tmp_path: Path):
    drawn = subprocess.run(
        [sys.executable, EXAMPLE / "report.py", trained / "maze.jsonl", tmp_path], check=False, timeout=100
    )
    assert drawn.returncode == 0
    assert (tmp_path / "maze.png").read_bytes() == (trained / "maze.png").read_bytes()
