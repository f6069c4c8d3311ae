"""Play the first turns of an environment as in training: one episode by itself, and two at once."""

from __future__ import annotations

import asyncio
import contextlib
import math
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from agentgym_gym.rollout import Unregistered, split_id
from verl_bridge.recipes._absent import absent_package
from verl_bridge.recipes._finding import Finding, ok, problem, skipped, warning

if TYPE_CHECKING:
    from agentgym_gym.rollout import EnvFacts, Episode
    from verl_bridge.tasks import EnvTask

__all__ = ["SLOW_STEP", "TURNS", "Case", "CheckedEpisode", "examine"]

TURNS = 2
"""Turns that are played in each episode."""

SLOW_STEP = 1.0
"""Minimum seconds of a step that causes a warning."""

_CHECK = "environment"
_START = "start its server before the training, or write the folder with --server"
_FAILED = "start its server, or correct env_kwargs and reset_options"
_NOT_TEXT = "wrap it as docs/adapters.md shows, and register the wrapped environment"
_NOT_HERE = ("NoServer", "MissingExtra")  # no server is configured, and a program or package is missing
_NO_ROOM = "ServerFull"  # AgentGym's error when other processes use the server


class Case(NamedTuple):
    """A task, and where its row is."""

    place: str
    task: EnvTask


@dataclass
class CheckedEpisode:
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


async def examine(
    case: Case, timeout: float, *, other: Case | None = None, at_once: bool = True
) -> tuple[list[Finding], CheckedEpisode]:
    """Play a task by itself, and then at the same time as another one.

    Three or four episodes are played, at most two of them at once. Each call of the environment may take
    `timeout` seconds, and so may everything after the episodes that are played one by one.

    Args:
        case: The task, and where its row is.
        timeout: Seconds.
        other: Another task of the same environment, to be played at the same time.
        at_once: Whether to play two at once.

    Returns:
        The findings, and the episode of the task by itself.
    """
    place, task = case
    try:
        (alone,) = await _play([task], timeout)
    except Unregistered as error:
        package = absent_package(error, named=split_id(task.env_id)[0] or "")
        if package is not None:
            return [_unplayed(place, task, package)], CheckedEpisode()
        advice = "put the module before a colon in env_id; install it, or run this in its folder"
        return [problem(_CHECK, f"{place}: {error}", advice)], CheckedEpisode()
    if alone.fault:
        return [_failure(place, task, alone)], alone
    trials = [alone]
    if at_once and other is not None:
        trials += await _play([other.task], timeout)
        if trials[1].fault:
            return [_failure(other.place, other.task, trials[1])], alone
    findings = [*_speed(place, task, trials)]
    if at_once:
        work = _compare([case, other or case], [alone, trials[-1]], timeout)
        try:
            findings += await asyncio.wait_for(work, timeout)
        except asyncio.TimeoutError:
            text = f"{place}: two episodes of {task.env_id} at once did not finish in {timeout:g} s"
            findings.append(warning(_CHECK, text, f"{_isolate(task, alone)}; or raise --timeout"))
    return findings, alone


async def _play(tasks: Sequence[EnvTask], timeout: float) -> list[CheckedEpisode]:
    """Play tasks at once, turn by turn.

    Raises:
        Unregistered: The environment id of a task is not registered.
    """
    episodes = [task.episode(timeout=timeout) for task in tasks]
    trials = [CheckedEpisode() for _ in tasks]
    async with contextlib.AsyncExitStack() as stack:
        for episode in episodes:
            stack.push_async_callback(episode.end)
        await asyncio.gather(*map(_start, episodes, trials))
        for _ in range(TURNS):
            await asyncio.gather(*map(_step, episodes, trials))
    return trials


async def _start(episode: Episode, trial: CheckedEpisode) -> None:
    began = time.perf_counter()
    await episode.begin()
    trial.reset_seconds = time.perf_counter() - began
    trial.facts, trial.tools = episode.facts, episode.tools
    trial.action_format = _format_of(episode.env)
    _record(episode, trial)


def _format_of(env: Any) -> str | None:
    with contextlib.suppress(Exception):  # an attribute of any library
        find = getattr(env, "get_wrapper_attr", None)  # asynchronous environments have no wrappers
        found = env.action_format if find is None else find("action_format")
        name = getattr(found, "name", found)
        return name if isinstance(name, str) else None
    return None


async def _step(episode: Episode, trial: CheckedEpisode) -> None:
    if episode.over:
        return
    began = time.perf_counter()
    await episode.step("")
    seconds = time.perf_counter() - began
    trial.step_seconds = seconds if math.isnan(trial.step_seconds) else max(seconds, trial.step_seconds)
    _record(episode, trial)


def _record(episode: Episode, trial: CheckedEpisode) -> None:
    if episode.fault is None:
        trial.observations.append(episode.observation)
    else:
        trial.fault = f"{episode.fault['kind']}: {episode.fault['message']}"


def _failure(place: str, task: EnvTask, trial: CheckedEpisode) -> Finding:
    kind, _, message = trial.fault.partition(": ")
    if kind in _NOT_HERE:
        return skipped(_CHECK, f"{place}: {task.env_id} was not played: {message}", _START)
    package = absent_package(message, named=split_id(task.env_id)[0] or "")
    if package is not None:
        return _unplayed(place, task, package)
    advice = _FAILED
    if "TextAdapter" in trial.fault or "should be text" in trial.fault:
        advice = _NOT_TEXT
    if "main thread" in trial.fault and task.isolate != "process":
        advice = _isolate(task, trial)
    return problem(_CHECK, f"{place}: {task.env_id} failed: {trial.fault}", advice)


def _unplayed(place: str, task: EnvTask, package: str) -> Finding:
    text = f"{package} is not installed here: {place}: {task.env_id} was not played"
    return skipped(_CHECK, text, f"check again where {package} is installed")


def _speed(place: str, task: EnvTask, trials: Sequence[CheckedEpisode]) -> Iterator[Finding]:
    """Yield the duration of resets and steps; the first reset includes making the environment."""
    reset = min(trial.reset_seconds for trial in trials)
    step = max(trial.step_seconds for trial in trials)
    size = len(trials[0].observations[0])
    took = f"reset {reset:.2f} s, step {step:.2f} s" if math.isfinite(step) else f"reset {reset:.2f} s"
    yield ok(_CHECK, f"{task.env_id} begins and answers; {size} characters at first; {took}")
    if step >= SLOW_STEP:
        yield warning(
            _CHECK,
            f"{place}: a step of {task.env_id} takes {step:.2f} s, a reset {reset:.2f} s",
            "every turn of a training step waits for it: play more episodes at once, or "
            + _isolate(task, trials[0]),
        )


async def _compare(cases: Sequence[Case], alone: Sequence[CheckedEpisode], timeout: float) -> list[Finding]:
    """Compare two episodes at once with the same tasks played by themselves."""
    place, task = cases[0]
    limit = _capacity(task, alone[0])
    if limit is not None and limit < 2:  # noqa: PLR2004 - two would wait for each other
        (again,) = await _play([task], timeout)
        no_room = skipped(_CHECK, f"{task.env_id} has room for one: two episodes at once were not played")
        return [no_room, *_repeated(place, task, alone[0], again)]
    both = await _play([case.task for case in cases], timeout)
    faults = [trial.fault for trial in both if trial.fault]
    if any(fault.startswith(_NO_ROOM) for fault in faults):
        return [skipped(_CHECK, f"the server of {task.env_id} had no room for two episodes at once")]
    if faults:
        text = f"{place}: {task.env_id} fails when two episodes run at once, but not one by one: {faults[0]}"
        return [problem(_CHECK, text, _isolate(task, alone[0]))]
    findings: list[Finding] = []
    for (place, task), before, after in zip(cases, alone, both, strict=True):
        if not _is_drawn(task) and before.observations != after.observations:
            (again,) = await _play([task], timeout)
            findings += _repeated(place, task, before, again)
            if not findings:
                text = (
                    f"{place}: two episodes of {task.env_id} at once mix up: one observes "
                    f"{_difference(before, after)}"
                )
                findings.append(problem(_CHECK, text, _isolate(task, alone[0])))
            break
    return findings


def _repeated(place: str, task: EnvTask, first: CheckedEpisode, second: CheckedEpisode) -> Iterator[Finding]:
    if second.fault:
        yield _failure(place, task, second)
    elif not _is_drawn(task) and first.observations != second.observations:
        yield warning(
            _CHECK,
            f"{place}: {task.env_id} is not reproducible: with the same seed, options and replies it "
            f"observes {_difference(first, second)}",
            "GRPO compares episodes of one task: have reset(seed=...) seed all random generators, also those "
            "of modules such as random, which needs isolate: process",
        )


def _difference(first: CheckedEpisode, second: CheckedEpisode) -> str:
    """Describe the first difference between the observations of two episodes."""
    for one, another in zip(first.observations, second.observations, strict=False):
        if one != another:
            at = next(
                (at for at, pair in enumerate(zip(one, another, strict=False)) if pair[0] != pair[1]), 0
            )
            cut = slice(max(0, at - 20), at + 40)
            return f"{another[cut]!r} where it observed {one[cut]!r}"
    return f"{len(second.observations)} times where it observed {len(first.observations)} times"


def _is_drawn(task: EnvTask) -> bool:
    """Return whether the environment chooses the task, so that two episodes may differ."""
    return task.seed is None and not task.options


def _capacity(task: EnvTask, trial: CheckedEpisode) -> int | None:
    limits = [task.env_kwargs.get("max_envs_per_server"), trial.facts.capacity if trial.facts else None]
    return min((limit for limit in limits if isinstance(limit, int)), default=None)


def _isolate(task: EnvTask, trial: CheckedEpisode) -> str:
    """Return the advice for an environment that cannot run twice at once."""
    if task.isolate == "process":
        return "its processes share something, such as a file or port: give it an attribute capacity"
    now = task.isolate or ("loop" if trial.facts is not None and trial.facts.awaited else "thread")
    return f"set isolate: process beside env_id (it is {now} now), or write the recipe with --isolate process"
