"""Checks of reproducibility on small environments: each defect is found, and its program shows it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import audit_envs_replay as envs
from agentgym_gym.testing._audit.audit import audit

if TYPE_CHECKING:
    from agentgym_gym.testing._audit.findings import PropertyResult

SUPPORT = Path(envs.__file__).parent
VARIABLES = dict(os.environ)

PROPERTIES = ("replay", "reuse", "copies", "threads", "processes", "seeds", "global-state", "snapshots")


def result_of(env: type, name: str, *, budget: float = 5.0) -> PropertyResult:
    """Return the result of one property."""
    (result,) = audit(env, only=[name], budget=budget).results
    return result


def run(program: str) -> str:
    """Run a program and return its standard error."""
    variables = {**VARIABLES, "PYTHONPATH": os.pathsep.join([str(SUPPORT), *sys.path])}
    command = [sys.executable, "-c", program]
    return subprocess.run(command, env=variables, capture_output=True, text=True, check=False).stderr


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
    result = result_of(env, name)
    assert result.status == "failed", result
    defect = result.defects[0]
    assert text in defect.text
    assert defect.advice
    assert len(defect.program.splitlines()) <= 10
    assert "AssertionError" in run(defect.program)
    repaired = envs.SoundGrid if env is envs.LiveGrid else envs.Walk
    assert run(defect.program.replace(env.__name__, repaired.__name__)) == ""


@pytest.mark.parametrize("env", [envs.Walk, envs.SoundGrid, envs.AwaitedWalk])
def test_sound(env: type) -> None:
    """A sound environment passes all checks."""
    found = {
        each.name: (each.status, each.defects) for each in audit(env, only=PROPERTIES, budget=15).results
    }
    assert found == dict.fromkeys(PROPERTIES, ("passed", ()))


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
