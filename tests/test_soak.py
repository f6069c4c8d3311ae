"""The soak of docs/reliability.md, made short: the same program, fewer episodes."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

SOAK = Path(__file__).resolve().parents[1] / "benchmarks" / "soak.py"
CLAIMS = {
    "no_hang",
    "every_episode_once",
    "no_wrong_score",
    "every_fault_counted",
    "nothing_left",
    "memory_flat",
}


def soak(*arguments):
    command = [sys.executable, "-W", "error", str(SOAK), *map(str, arguments)]
    ended = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    return ended, json.loads(ended.stdout)


@pytest.mark.slow
def test_nothing_is_lost_in_a_short_soak(tmp_path):
    ended, result = soak("--episodes", 200, "--concurrent", 16, "--kills", 1, "--out", tmp_path / "soak.json")
    assert {name for name, claim in result.items() if isinstance(claim, dict) and "held" in claim} == CLAIMS
    assert ended.returncode == 0, json.dumps({name: result[name] for name in CLAIMS}) + ended.stderr
    assert json.loads((tmp_path / "soak.json").read_text("utf-8")) == result
    # It is a test of something: faults there were, of several kinds, and episodes that went well.
    assert len(result["counted"]["injected"]) == 5
    assert len(result["nothing_left"]["created_in_each_life"]) == 2
    assert result["every_episode_once"]["of_score_1"] > 20
    assert result["every_episode_once"]["faulted_at_a_step"] > 5


@pytest.mark.slow
def test_a_soak_that_does_not_end_has_failed():
    ended, result = soak("--episodes", 100_000, "--concurrent", 4, "--kills", 0, "--limit", 2)
    assert (ended.returncode, result["held"], result["no_hang"]["held"]) == (1, False, False)


@pytest.mark.exhaustive  # tests/test_restarted_servers.py has this of a server in this process
def test_restarts_harm_no_client():
    command = [sys.executable, "-W", "error", str(SOAK.with_name("restarts.py")), "--kills", "6"]
    ended = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    header, _, *rows, total = (line.strip("| ").split(" | ") for line in ended.stdout.splitlines())
    assert [row[:2] for row in rows] == [
        [n, w] for n in ("TextCraft", "Maze") for w in ("sync", "async", "vector")
    ]
    counted = dict(zip(header[2:], map(int, total[-len(header[2:]) :]), strict=True))
    assert counted["rounds"] == counted["idle"] + counted["waiting"] == 6
    # The test is not empty: others got the ids, and the client met a fault.
    assert counted["ids taken"] == 6
    assert counted["faulted"] > 0
    assert counted["unnoticed"] == counted["harmed"] == 0
