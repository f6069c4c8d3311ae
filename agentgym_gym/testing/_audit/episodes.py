"""Episodes of an audit: actions to play, the returned values, and the comparison of two plays."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from gymnasium.utils.env_checker import data_equivalence

from agentgym_gym._text import shown

__all__ = ["ActionSequence", "Trace", "Transition", "difference", "differing_turn", "same", "shown_value"]

_COMPARED_INFO = ("success", "goal", "task_id", "available_actions", "fault", "parse_error")
"""The keys of an info that two plays of an episode have in common; others may be counters or times."""


@dataclass(frozen=True)
class ActionSequence:
    """Actions to play in a task.

    Attributes:
        task: Number of the task: the value of the environment's reset option, otherwise the seed.
        actions: The actions as text.
    """

    task: int
    actions: tuple[str, ...] = ()

    def first(self, turns: int) -> ActionSequence:
        """Return the sequence with its first actions only."""
        return replace(self, actions=self.actions[:turns])


@dataclass(frozen=True)
class Transition:
    """The values that a step returned, unchanged, with copies of the observation and the info.

    Attributes:
        action: The action as text.
        observation: The observation.
        reward: The reward; may be of any type.
        terminated: The end by the task; may be of any type.
        truncated: The end by a limit; may be of any type.
        info: The info.
        seconds: Duration of the step.
    """

    action: str
    observation: Any
    reward: Any
    terminated: Any
    truncated: Any
    info: Any
    seconds: float = 0.0

    @property
    def ends(self) -> bool:
        """Whether the episode ends with it."""
        return bool(self.terminated) or bool(self.truncated)

    @property
    def value(self) -> float:
        """The reward as a number; 0 if it is not a finite number."""
        try:
            number = float(self.reward)
        except (TypeError, ValueError, OverflowError):
            return 0.0
        return number if math.isfinite(number) else 0.0


@dataclass(frozen=True)
class Trace:
    """An episode as it was played.

    Attributes:
        task: Number of the task.
        observation: The first observation.
        info: The info of the reset.
        transitions: The steps, in order.
        error: Kind and message of the exception that ended it, or empty.
        timed_out: Whether that exception is a timeout of the audit.
        reset_seconds: Duration of the reset.
    """

    task: int
    observation: Any = None
    info: Any = None
    transitions: tuple[Transition, ...] = ()
    error: str = ""
    timed_out: bool = False
    reset_seconds: float = 0.0
    unplayed: tuple[str, ...] = ()
    """The action that raised the error, if a step did."""

    @property
    def sequence(self) -> ActionSequence:
        """The actions, with the one that raised an error."""
        return ActionSequence(self.task, (*(step.action for step in self.transitions), *self.unplayed))

    def first(self, turns: int) -> Trace:
        """Return the trace with its first turns only."""
        if turns > len(self.transitions):
            return self
        error = self.error if not self.transitions and not self.unplayed else ""
        return replace(self, transitions=self.transitions[:turns], error=error, unplayed=())

    @property
    def over(self) -> bool:
        """Whether the environment ended the episode, or failed."""
        return bool(self.error) or bool(self.transitions and self.transitions[-1].ends)

    @property
    def faulted(self) -> bool:
        """Whether an info reports a fault of a server, or a call timed out."""
        infos = [self.info, *(step.info for step in self.transitions)]
        return self.timed_out or any(isinstance(info, Mapping) and bool(info.get("fault")) for info in infos)

    @property
    def returned(self) -> float:
        """The sum of the rewards."""
        return math.fsum(step.value for step in self.transitions)

    @property
    def last_info(self) -> Mapping[str, Any]:
        """The info of the last step, or of the reset; empty if it is not a mapping."""
        info = self.transitions[-1].info if self.transitions else self.info
        return info if isinstance(info, Mapping) else {}


def differing_turn(one: Trace, other: Trace) -> int:
    """Return the number of the first turn that differs in two plays; 0 for the reset."""
    turns = max(len(one.transitions), len(other.transitions))
    return next((turn for turn in range(turns) if difference(one.first(turn), other.first(turn))), turns)


def same(one: Any, other: Any) -> bool:
    """Return whether two values are equal, also arrays and nested values; NaN equals NaN."""
    try:
        if isinstance(one, float) and isinstance(other, float) and math.isnan(one) and math.isnan(other):
            return True
        return bool(data_equivalence(one, other))
    except Exception:  # noqa: BLE001 - a comparison of any library
        return repr(one) == repr(other)


def difference(one: Trace, other: Trace) -> str:
    """Return the first difference of two plays of the same sequence in a sentence, or an empty text."""
    if one.error != other.error and (not one.transitions or not other.transitions):
        return f"reset {_outcome(one)} in one play and {_outcome(other)} in another"
    return next(_differences(one, other), "")


def _differences(one: Trace, other: Trace) -> Iterator[str]:
    if not same(one.observation, other.observation):
        yield f"the first observation is {_apart(one.observation, other.observation)}"
    if found := _info_difference(one.info, other.info):
        yield f"the info of the reset has {found}"
    for turn, (before, after) in enumerate(zip(one.transitions, other.transitions, strict=False), 1):
        for name in ("observation", "reward", "terminated", "truncated"):
            first, second = getattr(before, name), getattr(after, name)
            if not same(first, second):
                yield f"in turn {turn} the {name} is {_apart(first, second)}"
        if found := _info_difference(before.info, after.info):
            yield f"the info of turn {turn} has {found}"
    if len(one.transitions) != len(other.transitions) or one.error != other.error:
        turn = min(len(one.transitions), len(other.transitions)) + 1
        yield f"turn {turn} {_outcome(one)} in one play and {_outcome(other)} in another"


def shown_value(value: Any, most: int = 80) -> str:
    """Return a value for a sentence, shortened."""
    text = shown(value) if isinstance(value, str) else repr(value)
    return text if len(text) <= most else f"{text[: most - 1]}…"


def _info_difference(one: Any, other: Any) -> str:
    if not isinstance(one, Mapping) or not isinstance(other, Mapping):
        return ""
    for key in _COMPARED_INFO:
        if (key in one) != (key in other) or not same(one.get(key), other.get(key)):
            return f"{key!r} {_apart(one.get(key), other.get(key))}"
    return ""


def _outcome(trace: Trace) -> str:
    return f"raises {trace.error[:120]}" if trace.error else "returns"


def _apart(one: Any, other: Any) -> str:
    """Return two values for a sentence, from where they differ."""
    if isinstance(one, str) and isinstance(other, str):
        at = next(
            (i for i, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other))
        )
        start = max(0, at - 20)
        cut = "…" if start else ""
        return f"{cut}{shown_value(one[start:])} and then {cut}{shown_value(other[start:])}"
    return f"{shown_value(one)} and then {shown_value(other)}"
