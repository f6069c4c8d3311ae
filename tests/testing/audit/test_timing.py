"""The audit finds each defect of times and of copies, and none in a sound environment."""

from __future__ import annotations

import pytest

from agentgym_gym.testing import audit
from audit_programs import check_found, id_of

pytestmark = pytest.mark.slow  # they play for half a minute a file

PROPERTIES = ("speed", "blocking", "capacity")

DEFECTS = [
    ("SlowStep", "speed", "takes 1.1 s"),
    ("Blocks", "blocking", "keeps other tasks"),
    ("OverPromised", "capacity", "the declared capacity is 4"),
    ("Serial", "capacity", "a lock lets only one step run"),
]


@pytest.mark.parametrize(("name", "of_property", "text"), DEFECTS)
def test_defect_is_found(name, of_property, text):
    check_found(name, of_property, text)


@pytest.mark.parametrize("name", ["Sound", "Awaited", "Limited", "Waits"])
def test_sound_environment_passes(name):
    result = audit(id_of(name), only=PROPERTIES, budget=8)
    assert not result.failed("warning"), result.failed("warning")
