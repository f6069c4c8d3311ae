"""An audit finds defects of scores, prompts, tasks and faults, and none in a sound environment."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from agentgym_gym.testing import audit
from audit_envs_scores import Solver

pytestmark = pytest.mark.slow  # they play for half a minute a file

BOX, CRAFT = "audit_envs_scores:audit-scores/Box-v0", "audit_envs_scores:audit-scores/Craft-v0"
PROPERTIES = (
    *("success", "credit", "solutions", "floors", "forgery"),
    *("leakage", "prompt", "legal", "splits", "duplicates"),
)
DEFECTS = (
    ("text", "success", "is no bool"),
    ("revoked", "success", "is revoked"),
    ("unpaid", "success", "pays nothing"),
    ("vain", "success", "without success"),
    ("unstated", "success", "without info"),
    ("partial", "success", "partial credit"),
    ("credit", "credit", "belongs to turn 2"),
    ("solutions", "solutions", "does not win"),
    ("floors", "floors", "the policy 'null' wins"),
    ("forged-reward", "forgery", "pays 1"),
    ("forged-success", "forgery", "is a success"),
    ("forged-end", "forgery", "ends the episode"),
    ("answer", "leakage", "its own answer"),
    ("goal", "leakage", "the goal of another task"),
    ("prompt", "prompt", "'read'"),
    ("legal", "legal", "'dance'"),
    ("splits", "splits", "are equal"),
    ("overlap", "splits", "share 1 tasks"),
    ("duplicates", "duplicates", "are equal"),
)


def run(program: str) -> subprocess.CompletedProcess[str]:
    paths = os.pathsep.join(filter(None, sys.path))
    return subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": paths},
        check=False,
    )


@pytest.mark.parametrize(("defect", "name", "words"), DEFECTS)
def test_a_defect_is_found_and_its_program_fails_until_it_is_repaired(defect, name, words):
    found = audit(BOX, {"defect": defect}, solver=Solver, only=[name], budget=6)
    (result,) = found.results
    assert result.status == "failed", result
    (first,) = [each for each in result.defects if words in each.text]
    assert first.advice
    assert first.tasks
    assert "AssertionError" in run(first.program).stderr
    repaired = run(first.program.replace(repr(defect), "''"))
    assert repaired.returncode == 0, repaired.stderr


def test_a_threshold_that_no_success_reaches_is_found():
    far = BOX.replace("Box", "Far")
    (result,) = audit(far, solver=Solver, only=["success"], budget=6).results
    (defect,) = result.defects
    assert "below the reward_threshold" in defect.text
    assert "AssertionError" in run(defect.program).stderr
    assert run(defect.program.replace(far, BOX)).returncode == 0


def test_a_failing_agent_is_no_defect():
    class Fails(Solver):
        def act(self, observation, info):
            raise ValueError("no idea")

    results = audit(BOX, solver=Fails, only=PROPERTIES, budget=20).results
    assert not [each for result in results for each in result.defects]
    (solutions,) = [result for result in results if result.name == "solutions"]
    assert "AgentCrashed" in solutions.reason


def test_a_sound_environment_passes():
    found = audit(BOX, solver=Solver, only=PROPERTIES, budget=30)
    assert {result.name: (result.status, result.defects) for result in found.results} == dict.fromkeys(
        [result.name for result in found.results], ("passed", ())
    )


def test_without_a_solver_nothing_is_alleged():
    found = audit(BOX, only=PROPERTIES, budget=20)
    assert not [each for result in found.results for each in result.defects]


def test_a_hidden_fault_of_a_server_is_found():
    (result,) = audit(CRAFT, {"hides": True}, only=["faults"], budget=10).results
    (defect,) = result.defects
    assert "is missing" in defect.text
    assert "AssertionError" in run(defect.program).stderr
    assert run(defect.program.replace("hides=True, ", "").replace(", hides=True", "")).returncode == 0


def test_named_faults_pass_and_a_local_environment_has_none():
    (result,) = audit(CRAFT, only=["faults"], budget=20).results
    assert result.status == "passed"
    assert len(result.measured["kinds"]) == 7
    (result,) = audit(BOX, only=["faults"], budget=20).results
    assert result.status == "skipped"


def test_the_reasons_of_the_catalogue_make_a_defect_a_known_one():
    (result,) = audit("Maze", only=["floors"], budget=12).results
    assert result.status == "passed"
    assert all(defect.known for defect in result.defects)


def test_adapted_environments_of_gymnasium_pass():
    for env_id in ("FrozenLake-v1", "Blackjack-v1"):
        results = audit(env_id, only=PROPERTIES, budget=10).results
        assert not [each for result in results for each in result.defects]
