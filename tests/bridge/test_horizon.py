"""The turn limit by the step of the training, only as numbers."""

import pytest

from verl_bridge.horizon import Horizon, Moment


def test_each_stage_has_as_many_steps():
    horizon = Horizon.of({"turns": [10, 20, 30], "every": 100})
    at = {0: 10, 1: 10, 100: 10, 101: 20, 200: 20, 201: 30, 300: 30, 301: 30, 10**9: 30}
    assert {step: horizon.limit(Moment(step, validation=False)) for step in at} == at
    assert horizon.longest == 30


def test_validations_have_the_last_limit_by_default():
    given = {"turns": [10, 20], "every": 5}
    early = Moment(1, validation=True)
    assert Horizon.of(given).limit(early) == 20
    assert Horizon.of({**given, "validation": True}).limit(early) == 10


def test_a_limit_that_does_not_depend_on_the_step_needs_none():
    assert Horizon.of({"turns": 7}).limit(None) == Horizon.of({"turns": [7, 7], "every": 3}).limit(None) == 7
    assert Horizon.of(None) is None


def test_where_the_step_is_not_known_nothing_is_guessed():
    with pytest.raises(ValueError, match=r"VERL_USE_EXTERNAL_MODULES=verl_bridge\.trainer"):
        Horizon.of({"turns": [1, 2], "every": 1}).limit(None)


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({}, "turns and every"),
        ({"turns": []}, "one turn limit or more"),
        ({"turns": [1, 2]}, "require every"),
        ({"turns": [1, 0], "every": 1}, "turns=0"),
        ({"turns": [True, 2], "every": 1}, "turns=True"),
        ({"turns": ["10", 20], "every": 1}, "turns='10'"),
        ({"turns": [1, 2], "every": 0}, "every=0"),
        ({"turns": [1], "steps": 3}, "steps"),
        ([1, 2], "turns and every"),
    ],
)
def test_impossible_choices_are_named(given, says):
    with pytest.raises(ValueError, match=says):
        Horizon.of(given)
