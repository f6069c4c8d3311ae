"""The options of an environment, declared once."""

from __future__ import annotations

import dataclasses
import inspect
from typing import get_args

import pytest

from agentgym_gym import FORMATS, AgentGymEnv, FormatName
from agentgym_gym._options import EnvOptions


def test_options_are_declared_once():
    """Each argument has its default from the dataclass, which has a field for each argument."""
    parameters = list(inspect.signature(AgentGymEnv).parameters.values())
    assert [parameters[0].name, parameters[-1].name] == ["environment", "own_options"]
    given = {each.name: (each.annotation, each.default) for each in parameters[1:-1]}
    declared = {each.name: (each.type, each.default) for each in dataclasses.fields(EnvOptions)}
    del declared["own"]
    assert given == declared
    assert set(get_args(FormatName)) == {*FORMATS, "tool_calls"}


def test_what_differs_from_the_defaults_is_kept():
    assert EnvOptions().non_default == {}
    assert EnvOptions(action_format="react", max_turns=None, own={"answers": 1}).non_default == {
        "max_turns": None,
        "answers": 1,
    }
    with pytest.raises(dataclasses.FrozenInstanceError):
        EnvOptions().server = "http://127.0.0.1:1"


@pytest.mark.parametrize(
    ("environment", "timeout", "close"),
    [
        ("TextCraft", 300.0, 5),
        ("TextCraft", 2, 2),
        ("WebArena", 300.0, 30),
        ("WebArena", 4, 30),  # a number of seconds for replies does not make each close a fault
        ("WebArena", {"step": 1}, 30),
        ("WebArena", {"close": 3}, 3),
        ("SciWorld", 60, 15),
    ],
)
def test_an_environment_has_time_limits_of_its_own(environment, timeout, close):
    assert AgentGymEnv(environment, server="http://127.0.0.1:9", timeout=timeout)._limits.close == close
