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

import pytest

pytestmark = pytest.mark.slow  # minutes of training: `make trainings`

pytest.importorskip("verl", reason="verl is not installed: see docs/training/cpu.md")
if not metadata.version("verl").startswith("0.9."):
    pytest.skip("the example is for verl 0.9", allow_module_level=True)

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
            [sys.executable, EXAMPLE / "train.py", "--quick", "--seed", "7", "--out", folder],
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


def test_a_seed_is_reported_with_its_curve(trained: Path):
    (line,) = (trained / "maze.jsonl").read_text().splitlines()
    result = json.loads(line)
    assert result["seed"] == 7
    assert result["minutes"] > 0
    assert [point["step"] for point in result["curve"]] == [0, 1, 2]
    for point in result["curve"][1:]:
        assert 0 <= point["success"] <= 1 <= point["turns"] <= 5
        assert 0 <= point["parse_errors"] <= point["turns"]
        assert point["faults"] == 0
    assert all(0 <= point["validation"] <= 1 for point in result["curve"])


def test_the_report_shows_what_happened_by_step(trained: Path):
    _, table = (trained / "said.txt").read_text().split("step  success  turns  parse errors  faults  cut\n")
    result = json.loads((trained / "maze.jsonl").read_text())
    points = [point for point in result["curve"] if "success" in point]
    shown = [line.split() for line in table.splitlines()]
    assert [(int(row[0]), float(row[1]), float(row[2])) for row in shown] == [
        (point["step"], round(point["success"], 3), round(point["turns"], 3)) for point in points
    ]


def test_every_start_is_measured_before_and_after(trained: Path):
    result = json.loads((trained / "maze.jsonl").read_text())
    for when in ("before", "after"):
        measured = result[when]
        assert measured["episodes"] == len(measured["by_start"]) == 25
        assert measured["success"] == pytest.approx(sum(measured["by_start"]) / 25, abs=1e-4)
        assert 0 <= measured["invalid"] <= 1


def test_the_curve_is_drawn(trained: Path):
    assert (trained / "maze.png").read_bytes().startswith(b"\x89PNG")


def test_a_folder_that_is_there_is_not_written_over(trained: Path):
    ended = subprocess.run(
        [sys.executable, EXAMPLE / "train.py", "--quick", "--seed", "7", "--out", trained],
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
        timeout=100,
    )
    assert ended.returncode != 0
    assert "seed_7 exists already" in ended.stderr
