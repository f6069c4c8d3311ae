"""Rescores a saved run with another parser, action format or score rule.

Rescoring parses the stored replies again and plays nothing. The rewards remain valid as long as each reply
parses to the action that was played. From the first turn with another action on, the server's response is
unknown, so such an episode has no score: neither the old one nor 0.
"""

from __future__ import annotations

import contextlib
import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from agentgym_gym._imports import import_object
from agentgym_gym.catalogue import find
from agentgym_gym.env import AgentGymEnv
from agentgym_gym.errors import ActionError, BadFile, BadOption, UnknownEnvironment
from agentgym_gym.rollout._records import EpisodeRecord, StepRecord

if TYPE_CHECKING:
    from agentgym_gym._env_options import FormatName
    from agentgym_gym.actions import StepAction
    from agentgym_gym.catalogue import OnUnknown
    from agentgym_gym.evaluate._runs import RunResult
    from agentgym_gym.formats import Format

__all__ = ["DIVERGED", "Difference", "Rescored", "ScoreRule", "load_rule", "rescore"]

DIVERGED = "diverged"
"""The ending of an episode in which a reply now parses to another action than the played one."""

ScoreRule: TypeAlias = "Callable[[EpisodeRecord], float | tuple[float, bool]]"
"""Returns the score of an episode, or a tuple of the score and success."""

MOST_EXAMPLES = 20


@dataclass(frozen=True)
class Difference:
    """A turn whose reply now parses to another action than the played one.

    Attributes:
        task_id: The task id.
        sample: The sample.
        turn: The turn, from 1.
        reply: The agent's reply.
        played: The action text that was sent to the server; None if nothing was sent.
        read: The action text that would be sent now; None if nothing would be sent.
        parse_error: The kind of the new parse error, or None.
    """

    task_id: int
    sample: int
    turn: int
    reply: str
    played: str | None
    read: str | None
    parse_error: str | None = None

    def __str__(self) -> str:
        now = self.parse_error or "nothing to send" if self.read is None else f"{self.read!r:.200}"
        before = "nothing" if self.played is None else f"{self.played!r:.200}"
        return f"turn {self.turn} sent {before} when it was played, and is now read as {now}"

    def to_json(self) -> dict[str, Any]:
        """Return a JSON object, with long texts truncated."""
        return {name: value[:500] if isinstance(value, str) else value for name, value in vars(self).items()}


@dataclass(frozen=True)
class Rescored:
    """Result of rescoring a run.

    Attributes:
        records: The rescored episodes.
        options: The parse options; the run's own if the replies were not parsed again.
        replies: Number of replies that were parsed again.
        errors_before: Parse errors in these replies when they were played, by kind.
        errors_after: Parse errors in these replies now, by kind.
        different: Number of replies that now parse to another action, in all episodes without a fault.
        examples: The first of these replies.
        not_as_played: Number of replies that parse to another action than the played one even with the
            options of the run, because this version parses them differently, or because the agent played
            something else than its reply.
    """

    records: tuple[EpisodeRecord, ...]
    options: Mapping[str, Any]
    replies: int = 0
    errors_before: Mapping[str, int] = field(default_factory=dict)
    errors_after: Mapping[str, int] = field(default_factory=dict)
    different: int = 0
    examples: tuple[Difference, ...] = ()
    not_as_played: int = 0

    @property
    def diverged(self) -> int:
        """Number of episodes that lost their score because a reply parses to another action."""
        return sum(record.ending == DIVERGED for record in self.records)

    @property
    def success_bounds(self) -> tuple[float, float] | None:
        """Lower and upper bound of the success rate over all possible outcomes of the diverged episodes.

        None if no episode reports success or failure.
        """
        known = [record.success for record in self.records if record.success is not None]
        episodes = len(known) + self.diverged
        if not known:
            return None
        return sum(known) / episodes, (sum(known) + self.diverged) / episodes

    def to_json(self) -> dict[str, Any]:
        """Return the counts as a JSON object."""
        names = ("replies", "errors_before", "errors_after", "different", "not_as_played")
        return {
            **{name: getattr(self, name) for name in names},
            "diverged": self.diverged,
            "success_bounds": self.success_bounds,
            "examples": [each.to_json() for each in self.examples],
        }


def rescore(
    run: RunResult,
    *,
    parser: Literal["default", "agentgym"] | None = None,
    action_format: FormatName | Format | None = None,
    on_unknown: OnUnknown | None = None,
    score: ScoreRule | None = None,
) -> Rescored:
    """Parse the replies of a run again, apply another score rule, or both.

    Options that are None default to the run's. If only ``score`` is given, the replies are not parsed
    again.

    An episode keeps its score if every reply parses to the action that was played. Any other episode is cut
    before the first turn that differs. It has no score, the ending `DIVERGED` and an ``agent_fault`` of the
    kind ``Diverged``, so that it is counted but excluded from every average. Faulted episodes are unchanged.

    Args:
        run: The run.
        parser: The parser, as for `AgentGymEnv`.
        action_format: The action format, as for `AgentGymEnv`.
        on_unknown: The handling of unknown actions, as for `AgentGymEnv`.
        score: Called with each scored episode. The rewards are unchanged, and so is ``success`` if the rule
            returns only a number.

    Raises:
        BadOption: The environment is not in the catalogue, the run does not record its parse options, an
            option does not fit the environment, or ``score`` failed or returned an invalid value.
    """
    changed = {"parser": parser, "action_format": action_format, "on_unknown": on_unknown}
    changed = {name: value for name, value in changed.items() if value is not None}
    before = dict(run.facts.get("options") or {})
    if score is not None and not changed:
        rescored = Rescored(run.records, before)
    else:
        rescored = _parse_again(run, before, {**before, **changed})
    if score is None:
        return rescored
    return replace(rescored, records=tuple(_scored(record, score) for record in rescored.records))


def load_rule(path: str) -> ScoreRule:
    """Return the function at an import path such as ``my_rules:strict``.

    Raises:
        BadOption: The import fails, or the object is not callable.
    """
    try:
        found: Any = import_object(path)
    except (Exception, SystemExit) as error:  # a module may raise anything
        raise BadOption(
            "score", path, problem=f"cannot be imported: {type(error).__name__}: {error}"
        ) from error
    if not callable(found):
        raise BadOption("score", path, f"a function of an episode, not {type(found).__name__}")
    rule: ScoreRule = found
    return rule


@dataclass(frozen=True)
class _ParsedReply:
    """Parse result of a reply: the action text or the kind of the parse error; neither for a thought."""

    text: str | None
    error: str | None


def _parse_again(run: RunResult, before: Mapping[str, Any], after: Mapping[str, Any]) -> Rescored:
    if not before:
        raise BadFile(
            f"{run.path} has no summary.json with its parse options, so its replies cannot be parsed again; "
            "only another score rule can be applied",
            path=run.path,
        )
    old_errors: Counter[str] = Counter()
    new_errors: Counter[str] = Counter()
    records: list[EpisodeRecord] = []
    examples: list[Difference] = []
    replies = different = not_as_played = 0
    with contextlib.ExitStack() as readers:
        old = readers.enter_context(_reader(run.env_id, before))
        new = old if after == before else readers.enter_context(_reader(run.env_id, after))
        for record in run.records:
            if record.turns > len(record.replies):
                raise BadFile(
                    f"{run.path}: task {record.task_id} has fewer replies than turns", path=run.path
                )
            kept = _parse_replies(old, record)
            was = [_played(record, turn, reading) for turn, reading in enumerate(kept)]
            now = kept if new is old else _parse_replies(new, record)
            replies += len(now)
            not_as_played += sum(a.text != b.text for a, b in zip(kept, was, strict=True))
            old_errors.update(each.error for each in was if each.error)
            new_errors.update(each.error for each in now if each.error)
            if not record.scored:
                records.append(record)
                continue
            turns = [turn for turn in range(record.turns) if was[turn].text != now[turn].text]
            different += len(turns)
            found = [_difference(record, turn, was[turn], now[turn]) for turn in turns[:MOST_EXAMPLES]]
            examples += found[: MOST_EXAMPLES - len(examples)]
            read = _with_parse_results(record, now)
            records.append(_diverged(read, found[0], now) if found else read)
    return Rescored(
        tuple(records),
        after,
        replies,
        dict(sorted(old_errors.items())),
        dict(sorted(new_errors.items())),
        different,
        tuple(examples),
        not_as_played,
    )


@contextlib.contextmanager
def _reader(env_id: str, options: Mapping[str, Any]) -> Iterator[AgentGymEnv]:
    """Make the environment only for its parser; it connects to no server."""
    try:
        environment = find(env_id)
    except UnknownEnvironment:
        raise BadOption(
            f"{env_id} is not in the catalogue, so its replies cannot be parsed again: import the module of "
            "your own environment first; an environment of another library has no parser, so only another "
            "score rule can be applied"
        ) from None
    named = {name: options.get(name) for name in ("parser", "action_format", "on_unknown")}
    own = {name: options[name] for name in environment.options if name in options}
    arguments: dict[str, Any] = {name: value for name, value in named.items() if value is not None} | own
    with contextlib.closing(AgentGymEnv(environment.id, **arguments)) as env:
        yield env


def _parse_replies(env: AgentGymEnv, record: EpisodeRecord) -> list[_ParsedReply]:
    """Parse the replies that were played."""
    return [
        _parse_reply(env, _reply_action(record, turn, reply))
        for turn, reply in enumerate(record.replies[: record.turns])
    ]


def _reply_action(record: EpisodeRecord, turn: int, reply: str) -> StepAction:
    """Return a reply as it was played: its calls, or its text unless the model's server rejected it."""
    step = record.steps[turn] if turn < len(record.steps) else StepRecord()
    return "" if "server_error" in step else step.get("tool_calls") or reply


def _parse_reply(env: AgentGymEnv, reply: StepAction) -> _ParsedReply:
    try:
        return _ParsedReply(env.read(reply), None)
    except ActionError as error:
        return _ParsedReply(None, error.kind)


def _played(record: EpisodeRecord, turn: int, reading: _ParsedReply) -> _ParsedReply:
    """Return the played action: from the record if it has one, otherwise as parsed with the run's options."""
    step = record.steps[turn] if turn < len(record.steps) else StepRecord()
    return _ParsedReply(step["action"], step.get("parse_error")) if "action" in step else reading


def _difference(record: EpisodeRecord, turn: int, was: _ParsedReply, now: _ParsedReply) -> Difference:
    return Difference(
        record.task_id, record.sample, turn + 1, record.replies[turn], was.text, now.text, now.error
    )


def _with_parse_results(record: EpisodeRecord, now: list[_ParsedReply]) -> EpisodeRecord:
    """Return an episode with the new parse results in its steps and parse errors."""
    steps = list(record.steps)
    for turn, reading in enumerate(now[: len(steps)]):
        step = StepRecord(**{**steps[turn], "action": reading.text})
        step.pop("parse_error", None)
        if reading.text != steps[turn].get("action"):
            step.pop("ignored_actions", None)  # the reply parses to another action, or to none
            step.pop("played_call", None)
        if reading.error:
            step["parse_error"] = reading.error
        steps[turn] = step
    errors = Counter(reading.error for reading in now if reading.error)
    return replace(record, steps=tuple(steps), parse_errors=dict(errors))


def _diverged(record: EpisodeRecord, first: Difference, now: list[_ParsedReply]) -> EpisodeRecord:
    """Return an episode, cut before the first turn whose reply parses to another action."""
    turns = first.turn - 1
    replies = [at for at, message in enumerate(record.messages) if message["role"] == "assistant"]
    rewards = record.rewards[:turns]
    return replace(
        record,
        score=None,
        success=None,
        return_=math.fsum(rewards),
        turns=turns,
        terminated=False,
        truncated=False,  # as for agent faults
        parse_errors=dict(Counter(reading.error for reading in now[:turns] if reading.error)),
        rewards=rewards,
        messages=record.messages[: replies[turns] + 1],
        steps=record.steps[: turns + 1],
        agent_fault={"kind": "Diverged", "message": f"{first}; the server's response is unknown"},
        ending=DIVERGED,
    )


def _scored(record: EpisodeRecord, rule: ScoreRule) -> EpisodeRecord:
    if not record.scored:
        return record
    where = f"the score rule, of task {record.task_id}, sample {record.sample},"
    try:
        value: Any = rule(record)
    except Exception as error:  # the rule is user code
        raise BadOption(f"{where} raised {type(error).__name__}: {error}") from error
    try:
        score, success = value if isinstance(value, tuple) else (value, record.success)
        number = math.nan if isinstance(score, (bool, str)) else float(score)
        solved = None if success is None else bool(success)
    except (TypeError, ValueError, OverflowError):
        number, solved = math.nan, None
    if not math.isfinite(number):
        raise BadOption(
            f"{where} returned {value!r:.200}; it should return a number, or a number and True or False"
        )
    return replace(record, score=number, success=solved)
