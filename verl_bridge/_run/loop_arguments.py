"""Check the arguments of the agent loop, for its constructor and for ``agentgym verl check``.

Nothing here needs verl. Each message has the argument, its value and what to write instead.
"""

from __future__ import annotations

import difflib
import math
import sys
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any

from verl_bridge._credit.estimators import GIGPO
from verl_bridge._run.replays import budget_of
from verl_bridge.horizon import Horizon
from verl_bridge.tasks import EnvTask

__all__ = ["LOOP", "RULES", "check_arguments", "loop_errors", "require_trainer", "unknown_arguments"]

LOOP = "verl_bridge.agent_loop.GymAgentLoop"
"""The import path of the loop."""

_DEFAULTS = ("env_kwargs", "reset_options", "isolate", "success_at")


def _count(name: str, value: Any) -> None:
    if value is not None and (not isinstance(value, int) or isinstance(value, bool) or value < 1):
        raise ValueError(
            f"{name}={value!r} should be an integer from 1, or null: write {_suggested(name, value)}"
        )


def _suggested(name: str, value: Any) -> str:
    """Return the line to write instead, with the number of a quoted one."""
    number = value.strip() if isinstance(value, str) else ""
    return f"{name}: {int(number)}" if number.isdecimal() and int(number) else f"{name}: null for no limit"


def _flag(name: str, value: Any) -> None:
    if not isinstance(value, bool):
        raise ValueError(f"{name}={value!r} should be true or false")  # noqa: TRY004 - as for other values


def _text(name: str, value: Any) -> None:
    if value is not None and (not isinstance(value, str) or not value):
        raise ValueError(f"{name}={value!r} should be text, or null")


def _seconds(name: str, value: Any) -> None:
    if value is None:
        return
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < math.inf:
        raise ValueError(f"{name}={value!r} should be a number of seconds above 0, or null for no limit")


def _budget(_: str, value: Any) -> None:
    budget_of(value)


def _horizon(name: str, value: Any) -> None:
    try:
        Horizon.of(value)
    except TypeError:
        raise ValueError(f"{name}={value!r}: turns should be a number, or a list of numbers") from None


def _default(name: str, value: Any) -> None:
    """Check a default for rows, as a row's own value is checked."""
    EnvTask.of({}, env_id="unnamed", **{name: value})


RULES: Mapping[str, Callable[[str, Any], None]] = {
    "env_id": _text,
    **dict.fromkeys(_DEFAULTS, _default),
    "max_turns": _count,
    "horizon": _horizon,
    "max_tokens_per_turn": _count,
    "max_observation_tokens": _count,
    "hide_reasoning": _flag,
    "drop_reasoning": _flag,
    "turn_rewards": _flag,
    "tool_calls": _flag,
    "fault_budget": _budget,
    "env_timeout": _seconds,
    "episodes_dir": _text,
}
"""The rule of each argument; it raises ValueError for an invalid value."""


def loop_errors(arguments: Mapping[str, Any]) -> Iterator[str]:
    """Yield a message for each invalid value.

    Args:
        arguments: The arguments by name; those without a rule are skipped.
    """
    for name, value in arguments.items():
        try:
            if name in RULES:
                RULES[name](name, value)
        except ValueError as error:
            yield str(error)
    if arguments.get("max_turns") is not None and arguments.get("horizon") is not None:
        yield (
            f"max_turns={arguments['max_turns']!r} and horizon both limit the turns: give one of them, "
            "and delete the other"
        )
    if arguments.get("drop_reasoning") is True and arguments.get("turn_rewards") is True:
        yield (
            "turn_rewards and drop_reasoning exclude each other: with drop_reasoning only the last reply is "
            "trained on, so rewards of earlier turns have no token; delete one of them"
        )


def check_arguments(arguments: Mapping[str, Any]) -> None:
    """Raise an error for the first invalid value.

    Raises:
        ValueError: A value is invalid.
    """
    for message in loop_errors(arguments):
        raise ValueError(message)


def require_trainer(estimator: str, *, turn_rewards: bool) -> None:
    """Raise an error if credit by turn is selected, and verl has not loaded the module that gives it.

    verl would ignore turn rewards silently, and miss the estimator only after the first episodes.

    Args:
        estimator: ``algorithm.adv_estimator``.
        turn_rewards: The argument.

    Raises:
        ValueError: The module is not loaded.
    """
    option = f"algorithm.adv_estimator={GIGPO}" if estimator == GIGPO else "turn_rewards: true"
    if (turn_rewards or estimator == GIGPO) and "verl_bridge.trainer" not in sys.modules:
        raise ValueError(
            f"{option} needs verl_bridge.trainer, which verl has not loaded: set "
            "VERL_USE_EXTERNAL_MODULES=verl_bridge.trainer in the environment of the run"
        )


def unknown_arguments(names: Collection[str], known: Collection[str], loop: str = LOOP) -> Iterator[str]:
    """Yield a message for each name that a loop does not have.

    Args:
        names: The names in the yaml.
        known: Those that it has.
        loop: The import path of the loop.
    """
    for name in names:
        if name not in known:
            near = difflib.get_close_matches(name, sorted(known), 1)
            hint = f"; did you mean {near[0]}?" if near else f"; it has {', '.join(sorted(known))}"
            yield f"{loop.rpartition('.')[2]} has no argument {name}{hint}"
