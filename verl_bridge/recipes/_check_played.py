"""Play the environments of a folder for the checks: first turns, and whole episodes."""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import itertools
import json
import math
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeAlias

from agentgym_gym.rollout import Unregistered, close_all, drop_blank_system

if TYPE_CHECKING:
    from agentgym_gym.rollout import EnvFacts, Episode
    from verl_bridge.recipes._check_data import RowTask
    from verl_bridge.tasks import EnvTask

__all__ = [
    "NO_ROOM",
    "Case",
    "FirstTurns",
    "Played",
    "PlayedEpisode",
    "Players",
    "ReplySource",
    "choose_starts",
    "is_drawn",
    "play",
    "without_tools",
]

MAX_STARTS = 16
"""Maximum number of environments, with different arguments, that are started with one task each."""

TURNS = 2
"""First turns that are played in each episode."""

EPISODES = 2
"""Whole episodes of each environment."""

NO_ROOM = "ServerFull"
"""AgentGym's error when other processes use the server."""


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
    """

    facts: EnvFacts | None = None
    observations: list[str] = field(default_factory=list)
    fault: str = ""
    reset_seconds: float = math.nan
    step_seconds: float = math.nan
    tools: list[dict[str, Any]] = field(default_factory=list)
    action_format: str | None = None


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
        tried: Whether episodes were to be played.
        unregistered: The error of an id that gymnasium does not know, or None.
        single: The first turns of the task, played by one episode at a time.
        other_single: The same of the other task; None if they were not played.
        room_for_one: Whether the environment cannot run twice at once.
        at_once: The first turns of both tasks, or twice of the one, played at once; empty if they were not.
        again: The first turns of one of the tasks, played once more by one episode at a time, or None.
        repeated: Which of the tasks that was.
        stopped_after: Seconds after which two episodes at once were stopped; 0 if they ended in time.
        episodes: Whole episodes, and their beginnings.
        player_error: The error of a player that failed, or empty.
    """

    case: Case
    system: list[dict[str, Any]]
    other: Case | None = None
    tried: bool = False
    unregistered: Unregistered | None = None
    single: FirstTurns = field(default_factory=FirstTurns)
    other_single: FirstTurns | None = None
    room_for_one: bool = False
    at_once: list[FirstTurns] = field(default_factory=list)
    again: FirstTurns | None = None
    repeated: int = 0
    stopped_after: float = 0.0
    episodes: list[PlayedEpisode] = field(default_factory=list)
    player_error: str = ""

    @property
    def cases(self) -> list[Case]:
        """Two tasks to play at once; the same one twice if there is no other."""
        return [self.case, self.other or self.case]

    @property
    def each_single(self) -> list[FirstTurns]:
        """The first turns of these tasks, played by one episode at a time."""
        return [self.single, self.other_single or self.single]

    @property
    def is_reproducible(self) -> bool:
        """Whether a task that was repeated had the same observations again."""
        before = self.each_single[self.repeated]
        return self.again is None or self.again.observations == before.observations

    @property
    def mixes_up(self) -> bool:
        """Whether two episodes at once had other observations than one at a time."""
        return bool(self.at_once) and self.again is not None and self.is_reproducible

    @property
    def is_playable(self) -> bool:
        """Whether nothing failed, so that whole episodes can be played."""
        turns = [*self.each_single, *self.at_once, *([self.again] if self.again is not None else [])]
        faults = [each.fault for each in turns if not each.fault.startswith(NO_ROOM)]
        return bool(self.single.observations) and not any(faults) and not self.mixes_up


def choose_starts(tasks: Mapping[str, Iterable[RowTask]]) -> list[Played]:
    """Choose a task of each environment, with each of its arguments.

    Args:
        tasks: The tasks of each part of the data.

    Returns:
        The environments, in the order in which they are to be played.
    """
    starts: dict[str, Played] = {}
    for place, row, _, task in itertools.chain.from_iterable(tasks.values()):
        if isinstance(task, str):
            continue  # the error of an invalid row
        prompt = row.get("prompt")
        messages = prompt if isinstance(prompt, list) else []
        known = [message for message in messages if isinstance(message, Mapping) and "content" in message]
        system = [dict(message) for message in drop_blank_system(known)]  # as in the agent loop
        roles = [message.get("role") for message in known]
        key = json.dumps([task.env_id, task.env_kwargs, roles], sort_keys=True, default=str)
        before = starts.get(key)
        if before is None:
            starts[key] = Played(Case(place, task), system)
        elif _characters(system) > _characters(before.system):
            starts[key] = Played(Case(place, task), system, other=before.case)
        elif before.other is None and task != before.case.task:
            before.other = Case(place, task)
    return _interleave(starts.values())


def _characters(messages: Iterable[Mapping[str, Any]]) -> int:
    return sum(len(str(message["content"])) for message in messages)


def _interleave(starts: Iterable[Played]) -> list[Played]:
    """Return the first of each environment, then the second of each, and so on."""
    of: dict[str, list[Played]] = defaultdict(list)
    for start in starts:
        of[start.case.task.env_id].append(start)
    rounds = itertools.zip_longest(*of.values())
    return [start for each in rounds for start in each if start is not None]


async def play(starts: Sequence[Played], timeout: float, players: Players, max_turns: int | None) -> None:
    """Play in each environment, the first time with each id also two episodes at once and whole episodes.

    At most two episodes run at once.

    Args:
        starts: The environments; the episodes are added to the first ``MAX_STARTS`` of them.
        timeout: Seconds for each call of an environment, for everything after the episodes that run one at a
            time, and for all whole episodes.
        players: Returns the makers of players for whole episodes of an environment by its id.
        max_turns: Turn limit of the training.
    """
    seen: set[str] = set()
    try:
        for played in starts[:MAX_STARTS]:
            env_id, played.tried = played.case.task.env_id, True
            await _play_first_turns(played, timeout, at_once=env_id not in seen)
            if env_id not in seen and played.is_playable:
                await _play_whole(played, players(env_id), timeout, max_turns)
            seen.add(env_id)
    finally:
        await asyncio.to_thread(close_all)


async def _play_first_turns(played: Played, timeout: float, *, at_once: bool) -> None:
    try:
        (played.single,) = await _first_turns([played.case], timeout)
    except Unregistered as error:
        played.unregistered = error
        return
    if played.single.fault or not at_once:
        return
    if played.other is not None:
        (played.other_single,) = await _first_turns([played.other], timeout)
        if played.other_single.fault:
            return
    try:
        await asyncio.wait_for(_play_at_once(played, timeout), timeout)
    except asyncio.TimeoutError:
        played.stopped_after = timeout


async def _play_at_once(played: Played, timeout: float) -> None:
    """Play two episodes at once; if the observations of one differ from before, play that task again."""
    limit = _capacity(played.case.task, played.single)
    if limit is not None and limit < 2:  # noqa: PLR2004 - two would wait for each other
        played.room_for_one = True
        (played.again,) = await _first_turns([played.case], timeout)
        return
    played.at_once = await _first_turns(played.cases, timeout)
    if any(turns.fault for turns in played.at_once):
        return
    for at, case in enumerate(played.cases):
        differs = played.at_once[at].observations != played.each_single[at].observations
        if differs and not is_drawn(case.task):
            played.repeated = at
            (played.again,) = await _first_turns([case], timeout)
            return


def _capacity(task: EnvTask, turns: FirstTurns) -> int | None:
    limits = [task.env_kwargs.get("max_envs_per_server"), turns.facts.capacity if turns.facts else None]
    return min((limit for limit in limits if isinstance(limit, int)), default=None)


def is_drawn(task: EnvTask) -> bool:
    """Return whether the environment chooses the task, so that two episodes may differ."""
    return task.seed is None and not task.options


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
    _record(episode, turns)


def _record(episode: Episode, turns: FirstTurns) -> None:
    if episode.fault is None:
        turns.observations.append(episode.observation)
    else:
        turns.fault = _fault_of(episode)


def _fault_of(episode: Episode) -> str:
    return "" if episode.fault is None else f"{episode.fault['kind']}: {episode.fault['message']}"


async def _play_whole(
    played: Played, makers: Sequence[Callable[[], ReplySource]], timeout: float, max_turns: int | None
) -> None:
    """Play whole episodes one after another; those not finished in time are kept as far as they were played.

    Args:
        played: The environment, to which the episodes are added.
        makers: Each makes the player of an episode; the last is repeated. Without any, nothing is played.
        timeout: Seconds for each call of the environment, and for all episodes.
        max_turns: Turn limit of the training.
    """

    async def play_all() -> None:
        for at in range(EPISODES if makers else 0):
            await _play_one(played, at, makers[min(at, len(makers) - 1)](), timeout, max_turns)

    try:
        await asyncio.wait_for(play_all(), timeout)
    except (asyncio.TimeoutError, TimeoutError):
        pass
    except Exception as error:  # noqa: BLE001 - a player of any library; the other checks do not need it
        played.player_error = " ".join(f"{type(error).__name__}: {error}".split())[:200]
        played.episodes = []


async def _play_one(
    played: Played, at: int, player: ReplySource, timeout: float, max_turns: int | None
) -> None:
    task = played.cases[at].task
    episode = task.episode(timeout=timeout, max_turns=max_turns)
    async with episode:
        if episode.over:
            return  # the check of the environment reports it
        record = PlayedEpisode(player.name)
        played.episodes.append(record)
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


def without_tools(played: Played) -> Played:
    """Return an environment without the functions that a model may call."""
    return replace(played, single=replace(played.single, tools=[]))
