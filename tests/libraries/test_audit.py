"""The audit of other libraries' games: their known defects are found, and sound games have none."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

import needs
import programs

pytest.importorskip("textarena", reason=needs.reason("textarena"))

ENVS = Path(__file__).parent / "envs"
BUDGET = 60

CASES = {
    # TextArena and GEM seed Python's global random generator, and draw from it.
    "textarena_games:textarena/Blackjack-v0": ("textarena", {"copies", "threads", "global-state"}),
    "gem_games:gem/Game2048-v0": ("gem", {"copies", "threads", "global-state"}),
    # TextWorld has one parser for all games.
    "textworld_games:textworld/CoinCollector-v0": ("textworld", {"threads"}),
    "reasoning_gym_tasks:reasoning_gym/ChainSum-v0": ("reasoning_gym", set()),
    "minigrid_games:minigrid_text/DoorKey-v0": ("minigrid", set()),
    "frozen_lake_games:frozen_lake/FrozenLake-v0": ("gymnasium", set()),
}
"""What each needs, and properties of which at least one fails; none fails for a sound game."""


@pytest.mark.parametrize(
    ("env", "expected"),
    [pytest.param(env, names, marks=pytest.mark.needs(need)) for env, (need, names) in CASES.items()],
)
def test_known_defects_are_found_and_no_others(env, expected):
    command = [sys.executable, "-m", "agentgym_gym", "audit", env, "--json", f"--budget={BUDGET}"]
    ended = programs.run(
        command,
        env=programs.environment(PYTHONPATH=str(ENVS)),
        timeout=BUDGET * 6,
        capture_output=True,
        text=True,
    )
    assert ended.returncode in {0, 1}, ended.stderr
    results = json.loads(ended.stdout)["results"]
    failed = {each["name"]: each["defects"] for each in results if each["status"] == "failed"}
    assert bool(failed.keys() & expected) == bool(expected), failed
    assert not failed.keys() - expected, failed
