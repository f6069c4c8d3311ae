"""The audit on forty environments with a seeded defect, and on the sound ones: `make exhaustive`.

Twenty of the defects were written before the checks, and all of them without knowledge of these.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

import programs
from seeded_defects import ALL, SOUND

SUPPORT = Path(__file__).resolve().parents[2] / "support"
BUDGET = 100

MISSED = {
    "AnswerShown": "the answer is in the name of a file: games with choices show answers, too",
    "ClosedKept": "the client reuses the environment that it closed, so that the server never gets full",
    "RefusedAdmissible": "'There is a wall.' is an answer, not a refusal",
}
"""Defects that the audit does not find, each with the reason."""

EFFECTS: dict[str, set[str]] = {
    "CarriedReward": {"rewards"},
    "WallClock": {"duplicates"},
}
"""Properties that fail besides those of a defect, because of it."""

pytestmark = pytest.mark.exhaustive


def audited(env_id, solver):
    """Return the audit of an environment by the command, in a process of its own."""
    command = ["-m", "agentgym_gym", "audit", f"seeded_defects:{env_id}", "--json", f"--budget={BUDGET}"]
    if solver is not None:
        command.append(f"--solver={solver.__module__}:{solver.__qualname__}")
    variables = programs.environment(PYTHONPATH=str(SUPPORT))
    ended = programs.run(
        [sys.executable, *command], env=variables, timeout=BUDGET * 6, capture_output=True, text=True
    )
    assert ended.returncode in {0, 1}, ended.stderr
    return json.loads(ended.stdout)


def failed(audit):
    return {result["name"]: result["defects"] for result in audit["results"] if result["status"] == "failed"}


@pytest.mark.parametrize("defect", ALL, ids=lambda defect: defect.name)
def test_a_seeded_defect_is_found_and_rightly_explained(defect):
    found = failed(audited(defect.env_id, defect.solver))
    assert (not found.keys() & defect.properties) == (defect.name in MISSED), found
    others = found.keys() - defect.properties - EFFECTS.get(defect.name, set())
    assert not others, {name: found[name] for name in others}


@pytest.mark.parametrize("name", SOUND)
def test_a_sound_environment_has_no_defect(name):
    sound = SOUND[name]
    assert failed(audited(sound.env_id, sound.solver)) == {}


def test_at_least_36_of_40_are_found():
    assert len(ALL) == 40
    assert len(MISSED) <= 4
