"""A kept run read again: with another parser, another format, or another rule for the score.

Nothing is played, so only what the kept replies say of it is known. As long as the words that go to the
server are the ones that were played, the rewards stand. From the first turn with other words on, nobody knows
what the server would have answered: such an episode has no score then, neither the kept one nor 0.
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
from agentgym_gym.errors import ActionError, BadOption, UnknownEnvironment
from agentgym_gym.rollout._records import EpisodeRecord, StepRecord

if TYPE_CHECKING:
    from agentgym_gym._options import FormatName
    from agentgym_gym.actions import StepAction
    from agentgym_gym.catalogue import OnUnknown
    from agentgym_gym.evaluate._runs import Run
    from agentgym_gym.formats import Format

__all__ = ["DIVERGED", "Difference", "Rescored", "ScoreRule", "load_rule", "rescore"]

DIVERGED = "diverged"
"""The ending of an episode in which another action was read than was played."""

ScoreRule: TypeAlias = "Callable[[EpisodeRecord], float | tuple[float, bool]]"
"""Returns the score of an episode, or the score and whether the task was solved."""

MOST_EXAMPLES = 20


@dataclass(frozen=True)
class Difference:
    """A turn whose reply is read otherwise than it was played.

    Attributes:
        task_id: The task.
        sample: The sample.
        turn: The turn, from 1.
        reply: What the agent wrote.
        played: The words that went to the server; None where nothing did.
        read: The words that would go there now.
        parse_error: The kind of the parse error now, or None.
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
        """Return a JSON object, with long texts cut."""
        return {name: value[:500] if isinstance(value, str) else value for name, value in vars(self).items()}


@dataclass(frozen=True)
class Rescored:
    """What became of a run.

    Attributes:
        records: Its episodes, rescored.
        options: The options by which the replies were read; those of the run where they were not read again.
        replies: How many replies were read again.
        errors_before: Parse errors in them as they were played, by kind.
        errors_after: Parse errors in them as they are read now, by kind.
        different: How many of them send other words now, in all episodes that nobody's fault ended.
        examples: The first of these.
        not_as_played: How many replies are read otherwise than they were played even by the options of the
            run: this version reads them otherwise, or the agent did not play what it wrote.
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
        """How many episodes have lost their score because another action was read."""
        return sum(record.ending == DIVERGED for record in self.records)

    @property
    def success_bounds(self) -> tuple[float, float] | None:
        """Least and greatest success rate, whatever the diverged episodes would have come to.

        None where no episode says whether it succeeded.
        """
        known = [record.success for record in self.records if record.success is not None]
        episodes = len(known) + self.diverged
        if not known:
            return None
        return sum(known) / episodes, (sum(known) + self.diverged) / episodes

    def to_json(self) -> dict[str, Any]:
        """Return what was counted, as a JSON object."""
        names = ("replies", "errors_before", "errors_after", "different", "not_as_played")
        return {
            **{name: getattr(self, name) for name in names},
            "diverged": self.diverged,
            "success_bounds": self.success_bounds,
            "examples": [each.to_json() for each in self.examples],
        }


def rescore(
    run: Run,
    *,
    parser: Literal["default", "agentgym"] | None = None,
    action_format: FormatName | Format | None = None,
    on_unknown: OnUnknown | None = None,
    score: ScoreRule | None = None,
) -> Rescored:
    """Read the replies of a run again, score its episodes by another rule, or both.

    What is not given is as it was in the run. The replies are not read again where a rule for the score is
    all that is given.

    An episode keeps its score if all its turns send the words that were played. Any other ends before the
    first turn that differs. It has no score, the ending `DIVERGED` and an ``agent_fault`` of the kind
    ``Diverged``, so that it is counted and left out of every average. Episodes that a fault had ended stay as
    they are.

    Args:
        run: The run.
        parser: As of `AgentGymEnv`.
        action_format: Likewise.
        on_unknown: Likewise.
        score: Called with each episode that has a score. The rewards stay what the environment paid; so does
            ``success`` where only a number is returned.

    Raises:
        BadOption: The environment is not in the catalogue, the run does not say how its replies were read,
            an option does not fit the environment, or ``score`` failed or returned something else.
    """
    given = {"parser": parser, "action_format": action_format, "on_unknown": on_unknown}
    given = {name: value for name, value in given.items() if value is not None}
    before = dict(run.facts.get("options") or {})
    if score is not None and not given:
        rescored = Rescored(run.records, before)
    else:
        rescored = _read_again(run, before, {**before, **given})
    if score is None:
        return rescored
    return replace(rescored, records=tuple(_scored(record, score) for record in rescored.records))


def load_rule(path: str) -> ScoreRule:
    """Return the function of an import path such as ``my_rules:strict``.

    Raises:
        BadOption: It leads to no function.
    """
    try:
        found: Any = import_object(path)
    except (Exception, SystemExit) as error:  # a module may raise anything
        raise BadOption(f"score={path!r:.200} cannot be imported: {type(error).__name__}: {error}") from error
    if not callable(found):
        raise BadOption(f"score={path!r:.200} should be a function of an episode, not {type(found).__name__}")
    rule: ScoreRule = found
    return rule


@dataclass(frozen=True)
class _Reading:
    """What a reply says: the words to be sent, or the kind of the parse error, or neither of a thought."""

    words: str | None
    error: str | None


def _read_again(run: Run, before: Mapping[str, Any], after: Mapping[str, Any]) -> Rescored:
    if not before:
        raise BadOption(
            f"{run.path} has no summary.json that says how its replies were read, so that they cannot be "
            "read again; only another rule for the score can be applied to it"
        )
    old_errors: Counter[str] = Counter()
    new_errors: Counter[str] = Counter()
    records: list[EpisodeRecord] = []
    examples: list[Difference] = []
    replies = different = strange = 0
    with contextlib.ExitStack() as readers:
        old = readers.enter_context(_reader(run.env_id, before))
        new = old if after == before else readers.enter_context(_reader(run.env_id, after))
        for record in run.records:
            if record.turns > len(record.replies):
                raise BadOption(f"{run.path}: task {record.task_id} has fewer replies than turns")
            kept = _readings(old, record)
            was = [_played(record, turn, reading) for turn, reading in enumerate(kept)]
            now = kept if new is old else _readings(new, record)
            replies += len(now)
            strange += sum(a.words != b.words for a, b in zip(kept, was, strict=True))
            old_errors.update(each.error for each in was if each.error)
            new_errors.update(each.error for each in now if each.error)
            if not record.scored:
                records.append(record)
                continue
            turns = [turn for turn in range(record.turns) if was[turn].words != now[turn].words]
            different += len(turns)
            found = [_difference(record, turn, was[turn], now[turn]) for turn in turns[:MOST_EXAMPLES]]
            examples += found[: MOST_EXAMPLES - len(examples)]
            read = _with_readings(record, now)
            records.append(_diverged(read, found[0], now) if found else read)
    return Rescored(
        tuple(records),
        after,
        replies,
        dict(sorted(old_errors.items())),
        dict(sorted(new_errors.items())),
        different,
        tuple(examples),
        strange,
    )


@contextlib.contextmanager
def _reader(env_id: str, options: Mapping[str, Any]) -> Iterator[AgentGymEnv]:
    """Make the environment for its reading alone; it speaks to no server."""
    try:
        environment = find(env_id)
    except UnknownEnvironment:
        raise BadOption(
            f"{env_id} is not in the catalogue, so that its replies cannot be read again: one of your own is "
            "known when its module is imported, and another library's has no parser; only another rule for "
            "the score can be applied to it"
        ) from None
    named = {name: options.get(name) for name in ("parser", "action_format", "on_unknown")}
    own = {name: options[name] for name in environment.options if name in options}
    given: dict[str, Any] = {name: value for name, value in named.items() if value is not None} | own
    with contextlib.closing(AgentGymEnv(environment.id, **given)) as env:
        yield env


def _readings(env: AgentGymEnv, record: EpisodeRecord) -> list[_Reading]:
    """Read the replies that were played."""
    return [
        _reading(env, _tool_calls(record, turn) or reply)
        for turn, reply in enumerate(record.replies[: record.turns])
    ]


def _tool_calls(record: EpisodeRecord, turn: int) -> list[dict[str, str]] | None:
    return record.steps[turn].get("tool_calls") if turn < len(record.steps) else None


def _reading(env: AgentGymEnv, reply: StepAction) -> _Reading:
    try:
        return _Reading(env.read(reply), None)
    except ActionError as error:
        return _Reading(None, error.kind)


def _played(record: EpisodeRecord, turn: int, reading: _Reading) -> _Reading:
    """Return what was played: what the record says of it, else what the run's own options read."""
    step = record.steps[turn] if turn < len(record.steps) else StepRecord()
    return _Reading(step["action"], step.get("parse_error")) if "action" in step else reading


def _difference(record: EpisodeRecord, turn: int, was: _Reading, now: _Reading) -> Difference:
    return Difference(
        record.task_id, record.sample, turn + 1, record.replies[turn], was.words, now.words, now.error
    )


def _with_readings(record: EpisodeRecord, now: list[_Reading]) -> EpisodeRecord:
    """Return an episode with what is read now in its steps and among its parse errors."""
    steps = list(record.steps)
    for turn, reading in enumerate(now[: len(steps)]):
        step = StepRecord(**{**steps[turn], "action": reading.words})
        step.pop("parse_error", None)
        if reading.words != steps[turn].get("action"):
            step.pop("ignored_actions", None)  # another action was read, or none
        if reading.error:
            step["parse_error"] = reading.error
        steps[turn] = step
    errors = Counter(reading.error for reading in now if reading.error)
    return replace(record, steps=tuple(steps), parse_errors=dict(errors))


def _diverged(record: EpisodeRecord, first: Difference, now: list[_Reading]) -> EpisodeRecord:
    """Return an episode as far as it is known: up to the first reply that differs, which was not played."""
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
        truncated=False,  # as where an agent failed
        parse_errors=dict(Counter(reading.error for reading in now[:turns] if reading.error)),
        rewards=rewards,
        messages=record.messages[: replies[turns] + 1],
        steps=record.steps[: turns + 1],
        agent_fault={"kind": "Diverged", "message": f"{first}; what would have followed is not known"},
        ending=DIVERGED,
    )


def _scored(record: EpisodeRecord, rule: ScoreRule) -> EpisodeRecord:
    if not record.scored:
        return record
    where = f"the score rule, of task {record.task_id}, sample {record.sample},"
    try:
        said: Any = rule(record)
    except Exception as error:  # the rule is another's code
        raise BadOption(f"{where} raised {type(error).__name__}: {error}") from error
    try:
        score, success = said if isinstance(said, tuple) else (said, record.success)
        number = math.nan if isinstance(score, (bool, str)) else float(score)
        solved = None if success is None else bool(success)
    except (TypeError, ValueError, OverflowError):
        number, solved = math.nan, None
    if not math.isfinite(number):
        raise BadOption(
            f"{where} returned {said!r:.200}; it should return a number, or a number and True or False"
        )
    return replace(record, score=number, success=solved)
