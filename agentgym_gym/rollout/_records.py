"""The record of an episode, and the file of records: JSON lines."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias, TypedDict

from agentgym_gym._text import shown
from agentgym_gym.errors import BadOption

__all__ = ["EpisodeRecord", "StepRecord", "goal_of", "read_records"]

_Check: TypeAlias = Callable[[Any], bool]


class StepRecord(TypedDict, total=False):
    """What is known of one reply, in `EpisodeRecord.steps`. What does not apply is left out.

    Attributes:
        action: The action that was played, as text; None where the reply holds none.
        parse_error: The kind of the parse error.
        ignored_actions: The calls of the reply that were not played, in order, each cut to 200 characters: as
            an action if the environment's grammar reads it, else as JSON.
        agent_seconds: Wall-clock seconds until the agent replied.
        env_seconds: Wall-clock seconds until the environment answered.
        reasoning: What the model thought, where the server gives it apart from the reply.
        tool_calls: The calls the model made, each with ``name`` (str), ``arguments`` (str, JSON) and ``id``.
        finish_reason: Why the model stopped, in the words of its server.
        prompt_tokens: Tokens of the request, as the server counted them.
        completion_tokens: Tokens of the reply, those of the reasoning included.
        reasoning_tokens: How many of these are reasoning.
        cached_tokens: How many tokens of the request the server had at hand.
        retries: How often the model was asked again after a fault of its own.
    """

    action: str | None
    parse_error: str
    ignored_actions: list[str]
    agent_seconds: float
    env_seconds: float
    reasoning: str
    tool_calls: list[dict[str, str]]
    finish_reason: str
    prompt_tokens: int
    completion_tokens: int
    reasoning_tokens: int
    cached_tokens: int
    retries: int


@dataclass(frozen=True)
class EpisodeRecord:
    """One episode, whole.

    Attributes:
        env_id: The environment's gymnasium id.
        agent: The agent's name.
        task_id: Which task, or which seed where the environment numbers no tasks.
        goal: The task in a few words, where the server states one.
        score: The final score, by default the sum of the rewards; None where a fault ended the episode, which
            therefore has none.
        success: Whether the task was solved; None where a fault ended the episode or the environment does not
            say.
        return_: The sum of the rewards; ``return`` in JSON.
        turns: Turns played.
        terminated: Whether the environment ended the episode.
        truncated: Whether the turn limit or a fault did. Where neither is true, the agent ended it.
        parse_errors: Number of parse errors, by kind.
        fault: Kind and message of the environment's fault that ended the episode, or None.
        seconds: Wall-clock seconds, the agent's thinking included.
        rewards: The reward of each turn.
        messages: The observations (role ``user``) and replies (``assistant``) in order. The system prompt is
            the same for all episodes of a run and is not among them.
        counters: What `AgentGymEnv.stats` counted while it was played, the release of a faulted environment
            before it included; None if that is not known, as in files of earlier versions.
        sample: Which of several episodes of the task, from 0.
        agent_fault: Kind and message of the agent's fault that ended the episode, or None. Such an episode
            has no score either.
        ending: How it ended: ``terminated``, ``truncated``, ``fault``, ``agent_fault``, or by the agent:
            ``gave_up``, ``context_overflow``, ``reply_cut``, or a word of an agent's own.
        agent_seconds: Wall-clock seconds in which the agent was waited for.
        env_seconds: Likewise the environment, its reset included.
        steps: What is known of each reply; one for each, also for one that ended the episode and was not
            played.
        step: The training step it was played for, from 1, 0 before the first; None where it was played for no
            training, or the step is not known. This and what follows is of `verl_bridge`.
        validation: Whether it was played for a validation; None as above.
        session: Which start of the training it is of: a resumed one has another. None if that is not known.
        ended: When it ended, in ISO 8601.
    """

    env_id: str
    agent: str
    task_id: int
    goal: str | None
    score: float | None
    success: bool | None
    return_: float
    turns: int
    terminated: bool
    truncated: bool
    parse_errors: Mapping[str, int]
    fault: Mapping[str, str] | None
    seconds: float
    rewards: tuple[float, ...]
    messages: tuple[Mapping[str, str], ...]
    counters: Mapping[str, Any] | None = None
    sample: int = 0
    agent_fault: Mapping[str, str] | None = None
    ending: str = ""
    agent_seconds: float = 0.0
    env_seconds: float = 0.0
    steps: tuple[StepRecord, ...] = ()
    step: int | None = None
    validation: bool | None = None
    session: str | None = None
    ended: str | None = None

    def __post_init__(self) -> None:
        if not self.ending:  # as in files of earlier versions
            object.__setattr__(self, "ending", self._usual_ending())

    def _usual_ending(self) -> str:
        if self.fault is not None or self.agent_fault is not None:
            return "fault" if self.agent_fault is None else "agent_fault"
        if self.terminated or self.truncated:
            return "terminated" if self.terminated else "truncated"
        return "gave_up"

    @property
    def scored(self) -> bool:
        """Whether it says something about the agent: nobody's fault ended it."""
        return self.fault is None and self.agent_fault is None

    @property
    def replies(self) -> tuple[str, ...]:
        """What the agent wrote, turn by turn."""
        return tuple(message["content"] for message in self.messages if message["role"] == "assistant")

    def to_json(self) -> dict[str, Any]:
        """Return a JSON object, the inverse of :meth:`from_json`."""
        values = {name: getattr(self, name) for name in _CHECKS}
        return {
            name.rstrip("_"): _plain(value)
            for name, value in values.items()
            if value is not None or name not in _OF_TRAINING
        }

    @classmethod
    def from_json(cls, value: Any) -> EpisodeRecord:
        """Read a record; unknown keys are ignored.

        Raises:
            BadOption: The value is not the record of an episode.
        """
        if not isinstance(value, dict):
            raise BadOption(f"an episode should be a JSON object, not {shown(value)}")
        fields: dict[str, Any] = {}
        for name, check in _CHECKS.items():
            key = name.rstrip("_")
            if key not in value:
                if name in _ADDED:
                    continue
                raise BadOption(f"the episode lacks {key!r}")
            if not check(value[key]):
                raise BadOption(f"{key!r} cannot be {shown(value[key])}")
            fields[name] = tuple(value[key]) if isinstance(value[key], list) else value[key]
        return cls(**fields)


def goal_of(info: Mapping[str, Any]) -> str | None:
    """Return the task in a few words, where the info of a reset or step has it as ``goal``."""
    goal = info.get("goal")
    return goal if isinstance(goal, str) else None


def read_records(path: Path, *, torn_end: bool = False) -> tuple[list[EpisodeRecord], int]:
    """Read a file of episodes.

    Args:
        path: The file.
        torn_end: Whether to leave out an incomplete last line, which a killed run leaves. Else such a line
            is an error.

    Returns:
        The episodes, and how many bytes of the file hold them.

    Raises:
        BadOption: The file cannot be read, or a line of it is not an episode; the message names the line.
    """
    try:
        content = path.read_bytes()
    except OSError as error:
        raise BadOption(f"cannot read {path}: {error.strerror or error}") from error
    whole = content.rfind(b"\n") + 1 if torn_end else len(content)
    records = []
    for number, line in enumerate(content[:whole].split(b"\n"), start=1):
        if not line.strip():
            continue
        try:
            records.append(EpisodeRecord.from_json(json.loads(line)))
        except (ValueError, RecursionError) as error:
            raise BadOption(f"{path}, line {number}: {error}") from None
    return records, whole


def _plain(value: Any) -> Any:
    if isinstance(value, tuple):
        return [_plain(part) for part in value]
    return dict(value) if isinstance(value, Mapping) else value


def _is(*types: type) -> _Check:
    return lambda value: isinstance(value, types) and (bool in types or not isinstance(value, bool))


def _number(value: Any) -> bool:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return False
    return abs(value) <= sys.float_info.max  # an int of JSON may be more than any float; and NaN is not


def _or_none(check: _Check) -> _Check:
    return lambda value: value is None or check(value)


def _each(check: _Check) -> _Check:
    return lambda value: isinstance(value, list) and all(map(check, value))


def _values(check: _Check) -> _Check:
    return lambda value: isinstance(value, dict) and all(map(check, value.values()))


def _message(value: Any) -> bool:
    return _values(_is(str))(value) and {"role", "content"} <= set(value)


def _counted(value: Any) -> bool:
    if not isinstance(value, dict):
        return False
    numbers = [number for key, number in value.items() if key in _COUNTERS]
    return all(map(_number, numbers)) and _values(_is(int))(value.get("faults", {}))


def _step(value: Any) -> bool:
    return isinstance(value, dict) and all(
        _STEP_CHECKS[key](each) for key, each in value.items() if key in _STEP_CHECKS
    )


def _call(value: Any) -> bool:
    return _values(_is(str))(value) and {"name", "arguments"} <= set(value)


_COUNTERS = frozenset(
    {"requests", "retries", "connections", "reconnects", "looks", "queued", "seconds"}
)  # of `agentgym_gym._http.limits.Stats`

_STEP_CHECKS: dict[str, _Check] = {
    "action": _or_none(_is(str)),
    "parse_error": _is(str),
    "ignored_actions": _each(_is(str)),
    "agent_seconds": _number,
    "env_seconds": _number,
    "reasoning": _is(str),
    "tool_calls": _each(_call),
    "finish_reason": _is(str),
    "prompt_tokens": _is(int),
    "completion_tokens": _is(int),
    "reasoning_tokens": _is(int),
    "cached_tokens": _is(int),
    "retries": _is(int),
}

_CHECKS: dict[str, _Check] = {
    "env_id": _is(str),
    "agent": _is(str),
    "task_id": _is(int),
    "goal": _or_none(_is(str)),
    "score": _or_none(_number),
    "success": _or_none(_is(bool)),
    "return_": _number,
    "turns": _is(int),
    "terminated": _is(bool),
    "truncated": _is(bool),
    "parse_errors": _values(_is(int)),
    "fault": _or_none(_values(_is(str))),
    "seconds": _number,
    "rewards": _each(_number),
    "messages": _each(_message),
    "counters": _or_none(_counted),
    "sample": _is(int),
    "agent_fault": _or_none(_values(_is(str))),
    "ending": _is(str),
    "agent_seconds": _number,
    "env_seconds": _number,
    "steps": _each(_step),
    "step": _or_none(_is(int)),
    "validation": _or_none(_is(bool)),
    "session": _or_none(_is(str)),
    "ended": _or_none(_is(str)),
}
"""What each field of a record may hold in JSON."""

_OF_TRAINING = frozenset({"step", "validation", "session", "ended"})
"""Fields that only the episodes of a training have."""

_ADDED = _OF_TRAINING | {
    *("counters", "sample", "agent_fault", "ending", "agent_seconds", "env_seconds", "steps"),
}
"""Fields that a file may lack: those of a training, and what earlier versions did not write."""
