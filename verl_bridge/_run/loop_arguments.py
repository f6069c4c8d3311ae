"""The arguments of the agent loop, for its constructor, ``agentgym verl check`` and the docs.

Nothing here needs verl. Each message has the argument, its value and what to write instead.
"""

from __future__ import annotations

import difflib
import math
import sys
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, fields
from typing import Annotated, Any, Literal, get_args, get_type_hints

from agentgym_gym.errors import BadOption
from agentgym_gym.options import Option, members_of
from agentgym_gym.rollout import History
from verl_bridge._credit.estimators import BY_TURN
from verl_bridge._run.replays import FAULT_BUDGET, budget_of
from verl_bridge.horizon import Horizon
from verl_bridge.tasks import ENV_TIMEOUT, EnvTask

__all__ = [
    "ARGUMENTS",
    "LOOP",
    "LoopOptions",
    "Rows",
    "loop_errors",
    "require_trainer",
    "turn_credit",
    "unknown_arguments",
]

Rows = Literal["episode", "turn"]
"""The part of an episode in a row of verl's batch."""

_PENALTIES = ("invalid_action_penalty", "format_penalty")

LOOP = "verl_bridge.agent_loop.GymAgentLoop"
"""The import path of the loop."""


@dataclass(frozen=True, kw_only=True)
class LoopOptions:
    """The arguments of `GymAgentLoop` in its yaml.

    Raises:
        ValueError: An argument is invalid, or two arguments exclude each other.
    """

    env_id: Annotated[
        str | None, Option("environment of rows without one, with its module: package:namespace/Name-v0")
    ] = None
    env_kwargs: Annotated[
        Mapping[str, Any] | str | None,
        Option("arguments of that environment; a row's own override them key by key"),
    ] = None
    reset_options: Annotated[
        Mapping[str, Any] | str | None,
        Option("options of its reset; a row's own override them key by key"),
    ] = None
    max_turns: Annotated[
        int | None,
        Option("maximum number of replies in an episode", default="the environment's", least=1),
    ] = None
    horizon: Annotated[
        Mapping[str, Any] | None,
        Option("in place of max_turns: turns, a list of limits, and every, the training steps of each"),
    ] = None
    max_tokens_per_turn: Annotated[
        int | None, Option("maximum tokens of a reply", default="response_length", least=1)
    ] = None
    rows: Annotated[
        Rows,
        Option(
            "what a row of verl's batch is: a whole episode, or a turn, whose prompt is rendered from the "
            "messages that history keeps; turn requires verl 0.9",
        ),
    ] = "episode"
    history: Annotated[
        str,
        Option(
            "with rows: turn, the part of the conversation in a prompt: all, turns:K, tokens:N or both, with "
            "or without summary, as in agentgym eval --history"
        ),
    ] = "all"
    max_observation_tokens: Annotated[
        int | None,
        Option(
            "maximum tokens of an observation, whose middle is left out if it has more",
            default="a quarter of response_length, at least 128; the first observation may fill the prompt",
            least=1,
        ),
    ] = None
    hide_reasoning: Annotated[
        bool, Option("whether the environment gets only the part of a reply after the reasoning")
    ] = False
    drop_reasoning: Annotated[
        bool,
        Option(
            "whether the reasoning of earlier replies is removed from the model's context; only the last "
            "reply of each episode is then trained on"
        ),
    ] = False
    turn_rewards: Annotated[
        bool,
        Option(
            "whether verl gets each turn's reward at the last token of the turn, for estimators with a "
            "discount, instead of their sum at the end; needs verl_bridge.trainer"
        ),
    ] = False
    invalid_action_penalty: Annotated[
        float,
        Option(
            "subtracted in training from the reward of each turn whose reply has no action, or whose action "
            "the environment rejects; needs verl_bridge.trainer",
            least=0,
        ),
    ] = 0.0
    format_penalty: Annotated[
        float,
        Option(
            "subtracted in training from the reward of each turn whose reply has no action, in addition; "
            "needs verl_bridge.trainer",
            least=0,
        ),
    ] = 0.0
    tool_calls: Annotated[
        bool,
        Option(
            "whether the model calls functions in the notation of its own chat template: the prompt has the "
            "environment's tools, and an observation is the result of a call; action_format of AgentGym's "
            "environments should then be tool_calls"
        ),
    ] = False
    fault_budget: Annotated[
        float,
        Option(
            "seconds from its first fault within which a faulted episode is retried from the reset with new "
            "replies, before it is excluded; 0 for no retry",
            least=0,
        ),
    ] = FAULT_BUDGET
    env_timeout: Annotated[
        float | None, Option("timeout of each reset and step, in seconds; null for no limit")
    ] = ENV_TIMEOUT
    episodes_dir: Annotated[
        str | None,
        Option(
            "folder to which each episode is written as it ends, for agentgym report; a relative path starts "
            "at the folder of the yaml"
        ),
    ] = None
    isolate: Annotated[
        str | None,
        Option(
            "where each environment runs: loop, thread or process",
            default="loop for coroutines, else thread",
        ),
    ] = None
    success_at: Annotated[
        float | None,
        Option("return that counts as success if none is reported", default="the registered threshold"),
    ] = None

    def __post_init__(self) -> None:
        for name in ARGUMENTS:
            _RULES[name](name, getattr(self, name))
        for message in _contradictions(vars(self)):
            raise BadOption(message)

    def task_of(self, row: Mapping[str, Any]) -> EnvTask:
        """Read the task of a row; the arguments apply to what it does not have.

        Raises:
            ValueError: The row is wrong.
        """
        return EnvTask.of(
            row,
            env_id=self.env_id,
            env_kwargs=self.env_kwargs,
            reset_options=self.reset_options,
            isolate=self.isolate,
            success_at=self.success_at,
        )


ARGUMENTS = tuple(each.name for each in fields(LoopOptions))
"""The names of the arguments."""


def _count(name: str, value: Any) -> None:
    if value is not None and (not isinstance(value, int) or isinstance(value, bool) or value < 1):
        raise BadOption(name, value, f"an integer from 1, or null: write {_suggested(name, value)}")


def _suggested(name: str, value: Any) -> str:
    """Return the line to write instead, with the number of a quoted one."""
    number = value.strip() if isinstance(value, str) else ""
    return f"{name}: {int(number)}" if number.isdecimal() and int(number) else f"{name}: null for no limit"


def _flag(name: str, value: Any) -> None:
    if not isinstance(value, bool):
        raise BadOption(name, value, "true or false")


def _text(name: str, value: Any) -> None:
    if value is not None and (not isinstance(value, str) or not value):
        raise BadOption(name, value, "text, or null")


def _seconds(name: str, value: Any) -> None:
    if value is None:
        return
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < math.inf:
        raise BadOption(name, value, "a number of seconds above 0, or null for no limit")


def _penalty(name: str, value: Any) -> None:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < math.inf:
        raise BadOption(name, value, "a number from 0")


def _rows(name: str, value: Any) -> None:
    if value not in get_args(Rows):
        raise BadOption(name, value, f"one of {', '.join(get_args(Rows))}")


def _history(_: str, value: Any) -> None:
    History.parse(str(value)).summarizer()


def _budget(_: str, value: Any) -> None:
    budget_of(value)


def _horizon(name: str, value: Any) -> None:
    try:
        Horizon.of(value)
    except TypeError:
        raise BadOption(f"{name}={value!r}: turns should be a number, or a list of numbers") from None


def _default(name: str, value: Any) -> None:
    """Check a default for rows, as a row's own value is checked."""
    EnvTask.of({}, env_id="unnamed", **{name: value})


_RULES: Mapping[str, Callable[[str, Any], None]] = {
    **{
        name: rule
        for name, hint in get_type_hints(LoopOptions).items()
        for kind, rule in ((int, _count), (bool, _flag), (str, _text), (float, _seconds))
        if kind in members_of(hint)
    },
    **dict.fromkeys(("env_kwargs", "reset_options", "isolate", "success_at"), _default),
    "horizon": _horizon,
    "fault_budget": _budget,
    **dict.fromkeys(_PENALTIES, _penalty),
    "rows": _rows,
    "history": _history,
}
"""The rule of each argument; it raises ValueError for an invalid value."""


def loop_errors(arguments: Mapping[str, Any]) -> Iterator[str]:
    """Yield a message for each invalid value.

    Args:
        arguments: The arguments by name; unknown ones are skipped.
    """
    for name, value in arguments.items():
        try:
            if name in _RULES:
                _RULES[name](name, value)
        except ValueError as error:
            yield str(error)
    yield from _contradictions(arguments)


def _contradictions(arguments: Mapping[str, Any]) -> Iterator[str]:
    """Yield a message for each pair of arguments that exclude each other."""
    if arguments.get("max_turns") is not None and arguments.get("horizon") is not None:
        yield (
            f"max_turns={arguments['max_turns']!r} and horizon both limit the turns: give one of them, "
            "and delete the other"
        )
    if arguments.get("rows", "episode") == "turn" and arguments.get("drop_reasoning") is True:
        yield (
            "rows: turn and drop_reasoning exclude each other: with a row for each turn the chat template "
            "decides what later prompts have of the reasoning; delete drop_reasoning"
        )
    if arguments.get("rows", "episode") == "episode" and arguments.get("history", "all") != "all":
        yield (
            f"history={arguments['history']!r} requires rows: turn: in a row with a whole episode, each "
            "prompt is the conversation so far; add rows: turn, or delete history"
        )
    if arguments.get("drop_reasoning") is True:
        for name in turn_credit(arguments):
            yield (
                f"{name} and drop_reasoning exclude each other: with drop_reasoning only the last reply is "
                "trained on, so rewards of earlier turns have no token; delete one of them"
            )


def turn_credit(arguments: Mapping[str, Any]) -> list[str]:
    """Return the names of the arguments for credit by turn that are set."""
    return [name for name in ("turn_rewards", *_PENALTIES) if arguments.get(name)]


def require_trainer(estimator: str, arguments: Mapping[str, Any]) -> None:
    """Raise an error if credit by turn is selected, and verl has not loaded the module that gives it.

    verl would ignore the arguments silently, and miss the estimator only after the first episodes.

    Args:
        estimator: ``algorithm.adv_estimator``.
        arguments: The arguments of the loop.

    Raises:
        ValueError: The module is not loaded.
    """
    named = [f"algorithm.adv_estimator={estimator}"] if estimator in BY_TURN else []
    named += [f"{name}: {str(arguments[name]).lower()}" for name in turn_credit(arguments)]
    if named and "verl_bridge.trainer" not in sys.modules:
        raise ValueError(
            f"{named[0]} needs verl_bridge.trainer, which verl has not loaded: set "
            "VERL_USE_EXTERNAL_MODULES=verl_bridge.trainer in the environment of the run"
        )


def unknown_arguments(
    names: Collection[str], known: Collection[str] = ARGUMENTS, loop: str = LOOP
) -> Iterator[str]:
    """Yield a message for each name that a loop does not have.

    Args:
        names: The names in the yaml.
        known: The names of the loop's arguments.
        loop: The import path of the loop.
    """
    for name in names:
        if name not in known:
            near = difflib.get_close_matches(name, sorted(known), 1)
            hint = f"; did you mean {near[0]}?" if near else f"; it has {', '.join(sorted(known))}"
            yield f"{loop.rpartition('.')[2]} has no argument {name}{hint}"
