"""Replay, reuse, seeds and side effects in small environments with one defect each."""

from __future__ import annotations

from pathlib import Path

import pytest

import audit_envs_replay as envs
from agentgym_gym.testing import audit
from audit_results import check_defect

pytestmark = pytest.mark.slow  # they play for half a minute a file

PROPERTIES = ("replay", "reuse", "copies", "threads", "processes", "seeds", "global-state", "snapshots")


@pytest.fixture(autouse=True)
def _restored(monkeypatch: pytest.MonkeyPatch) -> None:
    """Restore the working directory and the variables that careless environments change."""
    monkeypatch.chdir(Path.cwd())
    monkeypatch.setenv("WALKING", "")
    monkeypatch.delenv("WALKING")


@pytest.mark.parametrize(
    ("name", "env", "text"),
    [
        ("replay", envs.RandomGoal, "played twice, task "),
        ("replay", envs.TimeGoal, "played twice, 1.1 s apart, task "),
        ("reuse", envs.KeptTurns, "the truncated is False and then True"),
        ("reuse", envs.KeptPrize, "the reward is 1.0 and then 0.0"),
        ("seeds", envs.NoSeed, "20 seeds begin with the same observation and continue alike"),
        ("global-state", envs.Reseeding, "reset changes the global generator of random"),
        ("global-state", envs.Careless, "the constructor changes os.environ: WALKING"),
        ("global-state", envs.Loud, "reset changes the level of the root logger: 10"),
        ("snapshots", envs.LiveInfo, "after later steps"),
        ("snapshots", envs.LiveHistory, "after the next reset"),
        ("snapshots", envs.LiveCount, "after steps of another copy"),
        ("snapshots", envs.LiveGrid, "the observation of the reset was array("),
    ],
)
def test_defect(name: str, env: type, text: str) -> None:
    """A defect is found; its program fails with it, and passes in the sound environment."""
    check_defect(name, env, text)


@pytest.mark.parametrize("env", [envs.Walk, envs.SoundGrid, envs.AwaitedWalk])
def test_sound(env: type) -> None:
    """A sound environment passes all checks."""
    found = {
        each.name: (each.status, each.defects) for each in audit(env, only=PROPERTIES, budget=15).results
    }
    assert found == dict.fromkeys(PROPERTIES, ("passed", ()))
