"""Check the environments by playing them: first turns, two episodes at once, and whole episodes.

The episodes are kept: the checks of lengths measure them.
"""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import itertools
import json
import math
import time
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeAlias

from agentgym_gym.rollout import Unregistered, close_all, drop_blank_system, split_id
from verl_bridge.recipes._absent import absent_package
from verl_bridge.recipes._finding import Finding, Missing, ok, problem, skipped, warning

if TYPE_CHECKING:
    from agentgym_gym.rollout import EnvFacts, Episode
    from verl_bridge.recipes._check_data import RowTask
    from verl_bridge.tasks import EnvTask

__all__ = [
    "SLOW_STEP",
    "Played",
    "PlayedEpisode",
    "Players",
    "check_episodes",
    "check_tasks",
    "play_environments",
    "start_environments",
]

MAX_STARTS = 16
"""Maximum number of environments, with different arguments, that are started with one task each."""

TURNS = 2
"""First turns that are played in each episode."""

SLOW_STEP = 1.0
"""Minimum seconds of a step that causes a warning."""

_CHECK = "environment"
_NO_ROOM = "ServerFull"  # AgentGym's error when other processes use the server
_NOT_HERE = ("NoServer", "MissingExtra")  # no server is configured, and a program or package is missing


class ReplySource(Protocol):
    """Plays one episode. Both methods may be coroutine functions.

    Attributes:
        name: The name in findings, such as ``"oracle"``.
    """

    name: str

    def begin(self, env: Any, observation: str, info: Mapping[str, Any]) -> Any:
        """Begin an episode."""

    def reply(self, observation: str, info: Mapping[str, Any]) -> Any:
        """Return the next reply as text, or None to give up."""


Players: TypeAlias = Callable[[str], Sequence[Callable[[], ReplySource]]]
"""Returns the makers of players for whole episodes of an environment by its id."""


class Case(NamedTuple):
    """A task, and where its row is."""

    place: str
    task: EnvTask

    @property
    def is_drawn(self) -> bool:
        """Whether the environment chooses the task, so that two episodes may differ."""
        return self.task.seed is None and not self.task.options


@dataclass
class FirstTurns:
    """The first turns of an episode.

    Attributes:
        facts: The properties of the environment; None if it could not be made.
        observations: The first observation, and the responses to empty replies.
        fault: Kind and message of the fault that ended it, or empty.
        reset_seconds: Seconds until the first observation.
        step_seconds: Seconds of the slowest step; NaN if none was played.
        tools: The functions that the model may call.
        action_format: The name of the format of replies, if the environment has one.
        summarizes: Whether a step had ``info["history_summary"]``.
    """

    facts: EnvFacts | None = None
    observations: list[str] = field(default_factory=list)
    fault: str = ""
    reset_seconds: float = math.nan
    step_seconds: float = math.nan
    tools: list[dict[str, Any]] = field(default_factory=list)
    action_format: str | None = None
    summarizes: bool = False


@dataclass
class PlayedEpisode:
    """A whole episode, or its beginning if the time was up.

    Attributes:
        player: The name of the player.
        replies: The replies.
        observations: The observations after them.
        fault: Kind and message of the fault that ended it, or empty.
    """

    player: str
    replies: list[str] = field(default_factory=list)
    observations: list[str] = field(default_factory=list)
    fault: str = ""


@dataclass
class Played:
    """An environment with certain arguments, and the episodes that were played in it.

    Attributes:
        case: A task of it.
        system: The messages of the row; the longest among the rows with the same environment and arguments.
        other: Another task of it, if there is one.
        first: The first turns of the task.
        episodes: Whole episodes, and their beginnings.
        findings: The findings about them.
    """

    case: Case
    system: list[dict[str, Any]]
    other: Case | None = None
    first: FirstTurns = field(default_factory=FirstTurns)
    episodes: list[PlayedEpisode] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)


def check_tasks(tasks: Mapping[str, Collection[RowTask]]) -> Iterator[Finding]:
    """Report the first row of each part whose task cannot be played."""
    for of_part in tasks.values():
        wrong = next((each for each in of_part if each.error), None)
        if wrong is not None:
            yield problem(_CHECK, f"{wrong.place}: {wrong.error}", "write the row again")


def check_episodes(played: Sequence[Played]) -> Iterator[Finding]:
    """Report whether each environment can be played, also by two episodes at once, and how fast."""
    left_out = len(played) - MAX_STARTS
    if left_out > 0:
        left = f"{left_out} of {len(played)} environments with different arguments"
        yield skipped(_CHECK, f"{left} were not started")
    for each in played:
        yield from each.findings


def start_environments(arguments: Mapping[str, Any], played: Sequence[Played] = ()) -> list[Played] | Missing:
    """Return the environments with a first observation, with tools if the loop lets the model call them."""
    started = [each for each in played if each.first.observations]
    if arguments.get("tool_calls") is not True:
        started = [replace(each, first=replace(each.first, tools=[])) for each in started]
    return started or Missing()


def play_environments(
    tasks: Mapping[str, Iterable[RowTask]], timeout: float, players: Players, turn_limit: int | None
) -> list[Played]:
    """Play in each environment: with each id first one episode at a time, then two at once, then whole ones.

    Of an id with several arguments, only the first is played at once and as a whole. At most two episodes run
    at once.

    Args:
        tasks: The tasks of each part of the data.
        timeout: Seconds for each call of an environment, for everything after the episodes that run one at a
            time, and for all whole episodes.
        players: Returns the makers of players for whole episodes of an environment by its id.
        turn_limit: Turn limit of the training.

    Returns:
        The environments; at most ``MAX_STARTS`` were played.
    """

    async def play() -> None:
        seen: set[str] = set()
        try:
            for played in chosen[:MAX_STARTS]:
                env_id = played.case.task.env_id
                playable = await _play_first_turns(played, timeout, at_once=env_id not in seen)
                if env_id not in seen and playable:
                    await _play_whole(played, players(env_id), timeout, turn_limit)
                seen.add(env_id)
        finally:
            await asyncio.to_thread(close_all)

    chosen = _choose(tasks)
    if chosen:
        asyncio.run(play())
    return chosen


def _choose(tasks: Mapping[str, Iterable[RowTask]]) -> list[Played]:
    """Return a task of each environment, with each of its arguments, in the order in which to play them."""
    chosen: dict[str, Played] = {}
    for row_task in itertools.chain.from_iterable(tasks.values()):
        task, prompt = row_task.task, row_task.row.get("prompt")
        if task is None:
            continue
        messages = prompt if isinstance(prompt, list) else []
        known = [message for message in messages if isinstance(message, Mapping) and "content" in message]
        system = [dict(message) for message in drop_blank_system(known)]  # as in the agent loop
        roles = [message.get("role") for message in known]
        key = json.dumps([task.env_id, task.env_kwargs, roles], sort_keys=True, default=str)
        before, case = chosen.get(key), Case(row_task.place, task)
        if before is None:
            chosen[key] = Played(case, system)
        elif _characters(system) > _characters(before.system):
            chosen[key] = Played(case, system, other=before.case)
        elif before.other is None and task != before.case.task:
            before.other = case
    return _interleave(chosen.values())


def _characters(messages: Iterable[Mapping[str, Any]]) -> int:
    return sum(len(str(message["content"])) for message in messages)


def _interleave(chosen: Iterable[Played]) -> list[Played]:
    """Return the first of each environment, then the second of each, and so on."""
    of: dict[str, list[Played]] = defaultdict(list)
    for each in chosen:
        of[each.case.task.env_id].append(each)
    rounds = itertools.zip_longest(*of.values())
    return [each for one_round in rounds for each in one_round if each is not None]


# First turns


async def _play_first_turns(played: Played, timeout: float, *, at_once: bool) -> bool:
    """Play the first turns of both tasks, one by one, and also at once on request.

    Returns:
        Whether whole episodes can be played.
    """
    cases, findings = [played.case, played.other or played.case], played.findings
    singles: list[FirstTurns] = []
    for case in cases if at_once and played.other else cases[:1]:
        try:
            (turns,) = await _first_turns([case], timeout)
        except Unregistered as error:
            findings.append(_unregistered(case, error))
            return False
        if case is played.case:
            played.first = turns
        if turns.fault:
            findings.append(_failure(case, turns))
            return False
        singles.append(turns)
    findings += _speed(played.case, singles)
    if not at_once:
        return False
    try:
        more, playable = await asyncio.wait_for(_play_at_once(cases, singles, timeout), timeout)
    except asyncio.TimeoutError:
        env_id, seconds = played.case.task.env_id, f"{timeout:g} s"
        text = f"{played.case.place}: two episodes of {env_id} at once did not finish in {seconds}"
        findings.append(warning(_CHECK, text, f"{_isolate(played.case, singles[0])}; or raise --timeout"))
        return True
    findings += more
    return playable


async def _play_at_once(
    cases: Sequence[Case], singles: Sequence[FirstTurns], timeout: float
) -> tuple[list[Finding], bool]:
    """Play two episodes at once; if the observations of one differ from before, play that task again.

    Args:
        cases: Two tasks, or one task twice.
        singles: The first turns of these tasks, played by one episode at a time; one if they are the same.
        timeout: Seconds for each call of the environment.

    Returns:
        The findings, and whether whole episodes can be played.
    """
    case, task = cases[0], cases[0].task
    limits = [
        task.env_kwargs.get("max_envs_per_server"),
        singles[0].facts.capacity if singles[0].facts else None,
    ]
    if any(isinstance(limit, int) and limit < 2 for limit in limits):  # noqa: PLR2004 - two would wait for each other
        text = f"{task.env_id} has room for one: two episodes at once were not played"
        findings, playable = await _repeat(case, singles[0], None, singles[0], timeout)
        return [skipped(_CHECK, text), *findings], playable
    both = await _first_turns(cases, timeout)
    faults = [turns.fault for turns in both if turns.fault]
    if any(fault.startswith(_NO_ROOM) for fault in faults):
        text = f"the server of {task.env_id} had no room for two episodes at once"
        return [skipped(_CHECK, text)], all(fault.startswith(_NO_ROOM) for fault in faults)
    if faults:
        fails = "fails when two episodes run at once, but not one by one"
        text = f"{case.place}: {task.env_id} {fails}: {faults[0]}"
        return [problem(_CHECK, text, _isolate(case, singles[0]))], False
    for each, before, turns in zip(cases, [singles[0], singles[-1]], both, strict=True):
        if turns.observations != before.observations and not each.is_drawn:
            return await _repeat(each, before, turns, singles[0], timeout)
    return [], True


async def _repeat(
    case: Case, before: FirstTurns, at_once: FirstTurns | None, first: FirstTurns, timeout: float
) -> tuple[list[Finding], bool]:
    """Play a task once more, by one episode at a time.

    Args:
        case: The task.
        before: Its first turns, by one episode at a time.
        at_once: Its first turns during another episode, with other observations; None if not played.
        first: The first turns of the environment.
        timeout: Seconds for each call of the environment.

    Returns:
        The findings, and whether whole episodes can be played.
    """
    (again,) = await _first_turns([case], timeout)
    env_id = case.task.env_id
    if again.fault:
        return [_failure(case, again)], False
    if again.observations != before.observations and not case.is_drawn:
        finding = warning(
            _CHECK,
            f"{case.place}: {env_id} is not reproducible: with the same seed, options and replies it "
            f"observes {_difference(before, again)}",
            "GRPO compares episodes of one task: have reset(seed=...) seed all random generators, also those "
            "of modules such as random, which needs isolate: process",
        )
        return [finding], True
    if at_once is not None:
        mixed = f"{case.place}: two episodes of {env_id} at once mix up: one observes"
        return [problem(_CHECK, f"{mixed} {_difference(before, at_once)}", _isolate(case, first))], False
    return [], True


async def _first_turns(cases: Sequence[Case], timeout: float) -> list[FirstTurns]:
    """Play tasks at once, turn by turn.

    Raises:
        Unregistered: The environment id of a task is not registered.
    """
    episodes = [case.task.episode(timeout=timeout) for case in cases]
    turns = [FirstTurns() for _ in cases]
    async with contextlib.AsyncExitStack() as stack:
        for episode in episodes:
            stack.push_async_callback(episode.end)
        await asyncio.gather(*map(_begin, episodes, turns))
        for _ in range(TURNS):
            await asyncio.gather(*map(_step, episodes, turns))
    return turns


async def _begin(episode: Episode, turns: FirstTurns) -> None:
    began = time.perf_counter()
    await episode.begin()
    turns.reset_seconds = time.perf_counter() - began
    turns.facts, turns.tools = episode.facts, episode.tools
    turns.action_format = _format_of(episode.env)
    _record(episode, turns)


def _format_of(env: Any) -> str | None:
    with contextlib.suppress(Exception):  # an attribute of any library
        find = getattr(env, "get_wrapper_attr", None)  # asynchronous environments have no wrappers
        found = env.action_format if find is None else find("action_format")
        name = getattr(found, "name", found)
        return name if isinstance(name, str) else None
    return None


async def _step(episode: Episode, turns: FirstTurns) -> None:
    if episode.over:
        return
    began = time.perf_counter()
    await episode.step("")
    seconds = time.perf_counter() - began
    turns.step_seconds = seconds if math.isnan(turns.step_seconds) else max(seconds, turns.step_seconds)
    turns.summarizes |= isinstance(episode.info.get("history_summary"), str)
    _record(episode, turns)


def _record(episode: Episode, turns: FirstTurns) -> None:
    if episode.fault is None:
        turns.observations.append(episode.observation)
    else:
        turns.fault = _fault_of(episode)


def _fault_of(episode: Episode) -> str:
    return "" if episode.fault is None else f"{episode.fault['kind']}: {episode.fault['message']}"


def _unregistered(case: Case, error: Exception) -> Finding:
    package = absent_package(error, named=split_id(case.task.env_id)[0] or "")
    if package is not None:
        return _unplayed(case, package)
    advice = "put the module before a colon in env_id; install it, or run this in its folder"
    return problem(_CHECK, f"{case.place}: {error}", advice)


def _failure(case: Case, turns: FirstTurns) -> Finding:
    (place, task), fault = case, turns.fault
    kind, _, message = fault.partition(": ")
    if kind in _NOT_HERE:
        advice = "start its server before the training, or write the folder with --server"
        return skipped(_CHECK, f"{place}: {task.env_id} was not played: {message}", advice)
    package = absent_package(message, named=split_id(task.env_id)[0] or "")
    if package is not None:
        return _unplayed(case, package)
    advice = "start its server, or correct env_kwargs and reset_options"
    if "TextAdapter" in fault or "should be text" in fault:
        advice = "wrap it as docs/adapters.md shows, and register the wrapped environment"
    if "main thread" in fault and task.isolate != "process":
        advice = _isolate(case, turns)
    return problem(_CHECK, f"{place}: {task.env_id} failed: {fault}", advice)


def _unplayed(case: Case, package: str) -> Finding:
    text = f"{package} is not installed here: {case.place}: {case.task.env_id} was not played"
    return skipped(_CHECK, text, f"check again where {package} is installed")


def _speed(case: Case, trials: Sequence[FirstTurns]) -> Iterator[Finding]:
    """Yield the duration of resets and steps; the first reset includes making the environment."""
    env_id = case.task.env_id
    reset = min(turns.reset_seconds for turns in trials)
    step = max(turns.step_seconds for turns in trials)
    size = len(trials[0].observations[0])
    took = f"reset {reset:.2f} s, step {step:.2f} s" if math.isfinite(step) else f"reset {reset:.2f} s"
    yield ok(_CHECK, f"{env_id} begins and answers; {size} characters at first; {took}")
    if step >= SLOW_STEP:
        yield warning(
            _CHECK,
            f"{case.place}: a step of {env_id} takes {step:.2f} s, a reset {reset:.2f} s",
            "every turn of a training step waits for it: play more episodes at once, or "
            + _isolate(case, trials[0]),
        )


def _difference(first: FirstTurns, second: FirstTurns) -> str:
    """Describe the first difference between the observations of two episodes."""
    for one, another in zip(first.observations, second.observations, strict=False):
        if one != another:
            at = next(
                (at for at, pair in enumerate(zip(one, another, strict=False)) if pair[0] != pair[1]), 0
            )
            cut = slice(max(0, at - 20), at + 40)
            return f"{another[cut]!r} where it observed {one[cut]!r}"
    return f"{len(second.observations)} times where it observed {len(first.observations)} times"


def _isolate(case: Case, turns: FirstTurns) -> str:
    """Return the advice for an environment that cannot run twice at once."""
    isolate = case.task.isolate
    if isolate == "process":
        return "its processes share something, such as a file or port: give it an attribute capacity"
    now = isolate or ("loop" if turns.facts is not None and turns.facts.awaited else "thread")
    return f"set isolate: process beside env_id (it is {now} now), or write the recipe with --isolate process"


# Whole episodes


async def _play_whole(
    played: Played, makers: Sequence[Callable[[], ReplySource]], timeout: float, turn_limit: int | None
) -> None:
    """Play whole episodes one after another; if the time is up, keep the turns that were played.

    Args:
        played: The environment, to which the episodes are added.
        makers: Each makes the player of an episode; the last is repeated. Without any, nothing is played.
        timeout: Seconds for each call of the environment, and for all episodes.
        turn_limit: Turn limit of the training.
    """

    async def play() -> None:
        for at, case in enumerate([played.case, played.other or played.case]):
            player = makers[min(at, len(makers) - 1)]()
            await _play_one(case.task, player, played.episodes, timeout, turn_limit)

    env_id = played.case.task.env_id
    if not makers:
        return
    try:
        await asyncio.wait_for(play(), timeout)
    except (asyncio.TimeoutError, TimeoutError):
        pass
    except Exception as error:  # noqa: BLE001 - a player of any library; the other checks do not need it
        played.episodes.clear()
        reason = " ".join(f"{type(error).__name__}: {error}".split())[:200]
        text = f"{env_id}: no whole episode could be played: {reason}"
        advice = "the lengths below are estimates from answers to empty replies"
        played.findings.append(warning("episodes", text, advice))
    for episode in played.episodes:
        if episode.fault:
            text = f"{env_id} faulted in turn {len(episode.replies)} of {episode.player}: {episode.fault}"
            advice = "such episodes are excluded from training: repair the environment, or its server"
            played.findings.append(warning("episodes", text, advice))


async def _play_one(
    task: EnvTask, player: ReplySource, episodes: list[PlayedEpisode], timeout: float, turn_limit: int | None
) -> None:
    """Play an episode, and add it to the others as soon as it begins."""
    async with task.episode(timeout=timeout, max_turns=turn_limit) as episode:
        if episode.over:
            return  # the first turns have the same fault
        record = PlayedEpisode(player.name)
        episodes.append(record)
        number = task.options.get("task_id", task.seed)
        task_id = {} if number is None else {"task_id": number}
        await _call(player.begin, episode.env, episode.observation, {**episode.info, **task_id})
        while not episode.over:
            reply = await _call(player.reply, episode.observation, {**episode.info, **task_id})
            if reply is None:
                return
            record.replies.append(reply)
            await episode.step(reply)
            record.fault = _fault_of(episode)
            if record.fault:
                return
            record.observations.append(episode.observation)


async def _call(method: Callable[..., Any], *arguments: Any) -> Any:
    if inspect.iscoroutinefunction(method):
        return await method(*arguments)
    result = await asyncio.to_thread(method, *arguments)
    return await result if inspect.isawaitable(result) else result
