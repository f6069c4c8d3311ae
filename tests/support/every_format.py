"""What is promised of every format over every grammar, and how it is checked of one reply."""

from __future__ import annotations

import pytest
from hypothesis import settings

import agentgym_gym
from agentgym_gym import FORMATS, errors
from agentgym_gym.actions import MAX_ACTION_CHARS, Thought
from agentgym_gym.formats import get_format

ENVIRONMENTS = agentgym_gym.environments()
THOROUGH = settings.default.max_examples >= 100  # HYPOTHESIS_PROFILE=thorough
EVERY_FORMAT = (*FORMATS.values(), get_format("tool_calls"))
TEXT_FORMATS = frozenset({"react", "tags", "adapt", "bare"})

each_environment = pytest.mark.parametrize("environment", ENVIRONMENTS, ids=lambda e: e.name)


# Their actions carry marks of their own as the formats of text write them: a fence, or tags.
MARKED = frozenset({"SearchQA", "SQLGym", "WebArena", "MiniWoB"})


def _pairs(formats):
    """Return each environment with each format, as they seldom interact.

    A plain run has each environment in one format, `make test` a third of the pairs, and `make properties`
    and `make exhaustive` all.
    """
    return [
        pytest.param(
            environment,
            action_format,
            id=f"{environment.name}-{action_format.name}",
            marks=_marks(environment, action_format, number - place - 2, len(formats)),
        )
        for number, environment in enumerate(ENVIRONMENTS)
        for place, action_format in enumerate(formats)
    ]


def _marks(environment, action_format, turn, formats):
    if turn % formats == 0:
        return []
    interact = action_format.name == "bare" and environment.name in MARKED
    return pytest.mark.slow if interact or turn % 3 == 0 else pytest.mark.exhaustive


each_pair = pytest.mark.parametrize(("environment", "action_format"), _pairs(FORMATS.values()))
each_pair_and_native = pytest.mark.parametrize(("environment", "action_format"), _pairs(EVERY_FORMAT))


def verdict(action_format, reply, grammar, wanted):
    """Return ``read`` for the wanted action, the name of the error, or what was read instead."""
    try:
        action = action_format.read(reply, grammar).action
    except errors.ActionError as error:
        return type(error).__name__
    return "read" if action == wanted else f"another action: {str(action)[:60]!r}"


def failed(failures, of):
    """Return the message of a test that looks at many replies: how many failed, and the first of them."""
    shown = "\n".join(f"{verdict}: {reply[:400]!r}" for verdict, reply in failures[:8])
    return f"{len(failures)} of {of}, among them\n{shown}"


def read(action_format, reply, grammar):
    """Read a reply, and check all that holds of any reading; None for one that is refused."""
    try:
        reading = action_format.parse(reply, grammar)
    except errors.ActionError as error:
        check_refusal(error)
        return None
    assert type(reading) in {*grammar.actions, Thought}
    if not isinstance(reading, Thought):
        assert grammar.parse(str(reading)) == reading
        assert grammar.from_call(reading.name(), reading.to_json()) == reading
    return reading


def check_refusal(error):
    """Check that it is one of the four kinds, with a message that fits into an observation."""
    assert type(error) in {errors.NoAction, errors.ManyActions, errors.UnknownAction, errors.BadArguments}
    assert 0 < len(str(error)) < 1_000
    assert len(getattr(error, "text", None) or "") <= MAX_ACTION_CHARS
