"""The record of an episode, and files of records in JSON Lines."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias, TypedDict

from agentgym_gym._html import block, folded, paragraph
from agentgym_gym._text import shown
from agentgym_gym.errors import BadFile, BadOption

__all__ = ["EpisodeRecord", "StepRecord", "goal_of", "read_records"]

_LONGEST = 100  # characters of an action in a heading
_Check: TypeAlias = Callable[[Any], bool]


class StepRecord(TypedDict, total=False):
    """Record of one reply, in `EpisodeRecord.steps`. Keys that do not apply are missing.

    Attributes:
        action: The executed action, as text; None if the reply contains no action.
        parse_error: The kind of the parse error.
        ignored_actions: The calls in the reply that were not executed, in order, each cut to 200 characters:
            as an action if the environment's grammar accepts it, otherwise as JSON.
        played_call: Position of the executed call among all calls of the reply, from 0, if others were not
            executed.
        agent_seconds: Wall-clock seconds until the agent replied.
        env_seconds: Wall-clock seconds until the environment answered.
        reasoning: The model's reasoning, if the server returns it separately from the reply.
        tool_calls: The calls the model made, each with ``name`` (str), ``arguments`` (str, JSON) and ``id``.
        finish_reason: The finish reason reported by the model's server.
        server_error: The error by which the model's server rejected the model's own call or output. The turn
            has a parse error; the reply is the text in the error, and is not parsed.
        prompt_tokens: Tokens of the request, as counted by the server.
        completion_tokens: Tokens of the reply, including reasoning.
        reasoning_tokens: Tokens of the reasoning.
        cached_tokens: Tokens of the request that were in the server's prefix cache.
        retries: Number of times that the model request was retried after a fault.
        omitted_turns: Number of earlier turns that the history policy omitted from the request, if it omitted
            any.
    """

    action: str | None
    parse_error: str
    ignored_actions: list[str]
    played_call: int
    agent_seconds: float
    env_seconds: float
    reasoning: str
    tool_calls: list[dict[str, str]]
    finish_reason: str
    server_error: str
    prompt_tokens: int
    completion_tokens: int
    reasoning_tokens: int
    cached_tokens: int
    retries: int
    omitted_turns: int


@dataclass(frozen=True)
class EpisodeRecord:
    """A complete episode. Notebooks show its turns.

    Attributes:
        env_id: The environment's gymnasium id.
        agent: The agent's name.
        task_id: Number of the task, or the seed if the environment does not number its tasks.
        goal: Short description of the task, if the server provides one.
        score: The final score, by default the sum of the rewards; None if a fault ended the episode.
        success: Whether the task was solved; None if a fault ended the episode or the environment does not
            report it.
        return_: The sum of the rewards; ``return`` in JSON.
        turns: Number of turns.
        terminated: Whether the environment ended the episode.
        truncated: Whether the turn limit or a fault ended the episode. If neither flag is true, the agent
            ended it.
        parse_errors: Number of parse errors, by kind.
        fault: Kind and message of the environment's fault that ended the episode, or None.
        seconds: Wall-clock seconds, including the agent's.
        rewards: The reward of each turn.
        messages: The observations (role ``user``) and replies (``assistant``) in order. They do not include
            the system prompt, which is the same for all episodes of a run.
        counters: Counters of `AgentGymEnv.stats` during the episode, including the release of a faulted
            environment before it; None if unknown, as in files of earlier versions.
        sample: Index of the episode among several of the task, from 0.
        agent_fault: Kind and message of the agent's fault that ended the episode, or None. Such an episode
            has no score either.
        ending: How the episode ended: ``terminated``, ``truncated``, ``fault``, ``agent_fault``, or by the
            agent: ``gave_up``, ``context_overflow``, ``reply_cut``, or an agent's own value.
        agent_seconds: Wall-clock seconds spent waiting for the agent.
        env_seconds: Wall-clock seconds spent waiting for the environment, including its reset.
        steps: Records of the replies, including a last one that ended the episode and was not executed.
        step: The training step that the episode belongs to, from 1, or 0 before the first; None outside of
            training, or if unknown. `verl_bridge` sets this field and the following ones.
        validation: Whether the episode belongs to a validation; None outside of training, or if unknown.
        session: Id of this start of the training; a resumed training has a new one. None if unknown.
        ended: When the episode ended, in ISO 8601.
        served_by: The world of this project's server that played the episode, as ``info["served_by"]``; None
            for other servers, or if unknown.
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
    served_by: str | None = None

    def __post_init__(self) -> None:
        if not self.ending:  # missing in files of earlier versions
            object.__setattr__(self, "ending", self._usual_ending())

    def _usual_ending(self) -> str:
        if self.fault is not None or self.agent_fault is not None:
            return "fault" if self.agent_fault is None else "agent_fault"
        if self.terminated or self.truncated:
            return "terminated" if self.terminated else "truncated"
        return "gave_up"

    @property
    def scored(self) -> bool:
        """Whether the episode is evidence about the agent: no fault ended it."""
        return self.fault is None and self.agent_fault is None

    @property
    def replies(self) -> tuple[str, ...]:
        """The agent's replies, in order."""
        return tuple(message["content"] for message in self.messages if message["role"] == "assistant")

    def _repr_html_(self) -> str:
        """Return the turns of the episode for a notebook."""
        fault = self.fault or self.agent_fault
        parts = [paragraph(_heading(self))]
        if fault is not None:
            parts.append(paragraph(f"{fault['kind']}: {fault['message']}"))
        return block([*parts, *(folded(heading, texts) for heading, texts in _turns(self))])

    def to_json(self) -> dict[str, Any]:
        """Return a JSON object, the inverse of :meth:`from_json`."""
        values = {name: getattr(self, name) for name in _CHECKS}
        return {
            name.rstrip("_"): _plain(value)
            for name, value in values.items()
            if value is not None or name not in _OPTIONAL
        }

    @classmethod
    def from_json(cls, value: Any) -> EpisodeRecord:
        """Create a record from a JSON object; unknown keys are ignored.

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


def _heading(record: EpisodeRecord) -> str:
    sample = f", sample {record.sample}" if record.sample else ""
    parts = [f"{record.agent} on {record.env_id}, task {record.task_id}{sample}"]
    if record.goal:
        parts.append(record.goal)
    score = "not scored" if record.score is None else f"score {record.score:.2f}"
    solved = {None: "", True: ", solved", False: ", not solved"}[record.success]
    return f"{': '.join(parts)} ({score}{solved}; {record.turns} turns; {record.ending})"


def _turns(record: EpisodeRecord) -> Iterator[tuple[str, list[tuple[str, str]]]]:
    """Yield the first observation and each turn: a heading, and texts with their names."""
    turn, texts = 0, list[tuple[str, str]]()
    heading = "First observation"
    for message in record.messages:
        if message["role"] == "assistant":
            if texts:
                yield heading, texts
            step = record.steps[turn] if turn < len(record.steps) else {}
            reward = f", reward {record.rewards[turn]:g}" if turn < len(record.rewards) else ""
            action = step.get("parse_error") or step.get("action") or ""
            turn += 1
            heading, texts = f"Turn {turn}{reward}: {_shortened(action)}", []
            if step.get("reasoning"):
                texts.append(("Reasoning", str(step.get("reasoning"))))
            texts.append(("Reply", message["content"]))
        else:
            texts.append(("Observation", message["content"]))
    if texts:
        yield heading, texts


def _shortened(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _LONGEST else f"{line[:_LONGEST]} …"


def goal_of(info: Mapping[str, Any]) -> str | None:
    """Return the short description of the task from ``goal`` in the info of a reset or step."""
    goal = info.get("goal")
    return goal if isinstance(goal, str) else None


def read_records(path: Path, *, torn_end: bool = False) -> tuple[list[EpisodeRecord], int]:
    """Read a file of episodes.

    Args:
        path: The file.
        torn_end: Whether to skip an incomplete last line, which a killed run leaves behind. Otherwise such a
            line is an error.

    Returns:
        The episodes, and the size of the complete lines in bytes.

    Raises:
        BadOption: The file cannot be read, or a line of it is not an episode; the message contains its
            number.
    """
    try:
        content = path.read_bytes()
    except OSError as error:
        raise BadFile(f"cannot read {path}: {error.strerror or error}", path=path) from error
    whole = content.rfind(b"\n") + 1 if torn_end else len(content)
    records = []
    for number, line in enumerate(content[:whole].split(b"\n"), start=1):
        if not line.strip():
            continue
        try:
            records.append(EpisodeRecord.from_json(json.loads(line)))
        except (ValueError, RecursionError) as error:
            raise BadFile(f"{path}, line {number}: {error}", path=path) from None
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
    return abs(value) <= sys.float_info.max  # a JSON integer may exceed any float, and NaN fails too


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
    by_name = (value.get(key, {}) for key in ("faults", "server_tasks", "server_faults"))
    return all(map(_number, numbers)) and all(map(_values(_is(int)), by_name))


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
    "played_call": _is(int),
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
    "omitted_turns": _is(int),
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
    "served_by": _or_none(_is(str)),
}
"""Validation of each field of a record in JSON."""

_OPTIONAL = frozenset({"step", "validation", "session", "ended", "served_by"})
"""Fields that are left out if they are None: fields of a training, and the world of a local server."""

_ADDED = _OPTIONAL | {
    *("counters", "sample", "agent_fault", "ending", "agent_seconds", "env_seconds", "steps"),
}
"""Fields that may be missing in a file: optional ones, and the ones added in later versions."""
