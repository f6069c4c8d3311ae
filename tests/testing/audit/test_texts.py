"""The audit finds each defect of turn limits and texts, and none in a sound environment."""

from __future__ import annotations

import pytest

from agentgym_gym.testing import audit
from audit_programs import check_found, id_of

pytestmark = pytest.mark.slow  # they play for half a minute a file

PROPERTIES = ("texts", "turn-limit")

DEFECTS = [
    ("OneMore", "turn-limit", "ends in turn 7"),
    ("NumbersLate", "turn-limit", "ends in turn 7"),
    ("OneFewer", "turn-limit", "ends in turn 5"),
    ("WrongPrompt", "turn-limit", "the system prompt (8 turns) is 8"),
    ("Endless", "turn-limit", "continues after"),
    ("Braces", "texts", "raises KeyError"),
    ("Argument", "texts", "percent signs"),
    ("SlowPattern", "texts", "takes"),
    ("Faulty", "texts", "NUL is a fault"),
]


@pytest.mark.parametrize(("name", "of_property", "text"), DEFECTS)
def test_defect_is_found(name, of_property, text):
    check_found(name, of_property, text)


@pytest.mark.parametrize("name", ["Sound", "Awaited", "Numbers"])
def test_sound_environment_passes(name):
    result = audit(id_of(name), only=PROPERTIES, budget=8)
    assert not result.failed("warning"), result.failed("warning")
