"""The audit finds each defect of the contract of gymnasium, and none in a sound environment."""

from __future__ import annotations

import pytest

from agentgym_gym.testing import audit
from audit_programs import check_found, id_of

pytestmark = pytest.mark.slow  # they play for half a minute a file

PROPERTIES = ("interface", "rewards", "ends", "reset", "close")

DEFECTS = [
    ("InfoNone", "interface", "which is not a dict"),
    ("FourValues", "interface", "returns 4 values"),
    ("TextReward", "interface", "'1' of type str"),
    ("IntegerEnd", "interface", "as terminated, which is not a bool"),
    ("NoInfo", "interface", "instead of an observation and an info"),
    ("SeedOnly", "interface", "check_env"),
    ("RareNaN", "rewards", "nan"),
    ("SeedNaN", "rewards", "inf"),
    ("Generous", "rewards", "outside of reward_range"),
    ("PaysSteps", "rewards", "outside of score_range"),
    ("NumbersOutside", "interface", "which is not in Box"),
    ("NumbersNaN", "rewards", "nan"),
    ("PaysAgain", "ends", "pays 1"),
    ("Revives", "ends", "returns neither terminated nor truncated"),
    ("Endless", "ends", "has no end"),
    ("StuckReset", "reset", "the south gate is open"),
    ("StaysOver", "reset", "the episode is over"),
    ("CloseEarly", "close", "before the first reset"),
    ("CloseTwice", "close", "a second time"),
]


@pytest.mark.parametrize(("name", "of_property", "text"), DEFECTS)
def test_defect_is_found(name, of_property, text):
    check_found(name, of_property, text)


@pytest.mark.parametrize("name", ["Sound", "Awaited", "Numbers"])
def test_sound_environment_passes(name):
    result = audit(id_of(name), only=PROPERTIES, budget=8)
    assert not result.failed("warning"), result.failed("warning")
