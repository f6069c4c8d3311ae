"""Copies in turns, in threads and in other processes, in small environments with one defect each."""

from __future__ import annotations

import pytest

import audit_envs_replay as envs
from agentgym_gym.testing import audit
from audit_results import check_defect, result_of

pytestmark = pytest.mark.slow  # they play for half a minute a file

PROPERTIES = ("replay", "reuse", "copies", "threads", "processes", "seeds")


@pytest.mark.parametrize(
    ("name", "env", "text"),
    [
        ("copies", envs.SharedPlace, "differs from its play in a single copy"),
        ("copies", envs.ClosingAll, "which is then closed"),
        ("copies", envs.SharedLog, "which only the actions of another copy had"),
        ("copies", envs.Single, "a second copy cannot be made while one is open: OSError: address in use"),
        ("threads", envs.SharedBuffer, "in threads at once, task "),
        ("processes", envs.HashOrder, "another hash seed gives another episode of task 0"),
        ("processes", envs.DateText, "a later clock gives another episode of task 0"),
        ("processes", envs.ClockText, "a later clock gives another episode of task 0"),
        ("processes", envs.ProcessText, "another process gives another episode of task 0"),
        ("processes", envs.FirstOfProcess, "task 0 differs from its play in a new process"),
    ],
)
def test_defect(name: str, env: type, text: str) -> None:
    """A defect is found; its program fails with it, and passes in the sound environment."""
    check_defect(name, env, text)


def test_irreproducible() -> None:
    """Copies, threads and processes are not blamed for an environment that differs even alone."""
    result = audit(envs.RandomGoal, only=PROPERTIES, budget=15)
    assert [each.name for each in result.failed()] == ["replay"]
    skipped = {each.name: each.reason for each in result.results if each.status == "skipped"}
    reason = "the environment is not reproducible: see replay"
    assert skipped == dict.fromkeys(["reuse", "copies", "threads", "processes", "seeds"], reason)
    for name in ("reuse", "processes"):
        assert result_of(envs.RandomGoal, name).reason == reason


@pytest.mark.parametrize(("env", "name"), [(envs.KeptTurns, "reuse"), (envs.SharedPlace, "copies")])
def test_one_cause(env: type, name: str) -> None:
    """A defect fails the property that explains it, and no other."""
    result = audit(env, only=["replay", "reuse", "copies", "threads", "processes"], budget=12)
    assert [each.name for each in result.failed()] == [name]


def test_capacity() -> None:
    """An environment with a capacity of one has no copies to compare."""
    assert result_of(envs.OneOnly, "copies").reason == "it declares a capacity of one copy"
    assert result_of(envs.OneOnly, "threads").status == "skipped"


def test_local_function() -> None:
    """An environment of a local function cannot be made in another process."""
    (result,) = audit(lambda: envs.Walk(), only=["processes"], budget=5).results  # noqa: PLW0108
    assert result.reason == "another process cannot import the function that makes the environment"


def test_hang() -> None:
    """A copy that waits for another one is found in turns."""
    (result,) = audit(envs.Locked, only=["copies"], budget=5, timeout=0.5).results
    assert "does not continue within 0.5 s" in result.defects[0].text
