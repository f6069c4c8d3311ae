"""Check the environments of a folder by the episodes that were played in them."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from agentgym_gym.rollout import split_id
from verl_bridge.recipes._absent import absent_package
from verl_bridge.recipes._check_played import NO_ROOM, Case, FirstTurns, Played, is_drawn
from verl_bridge.recipes._finding import Finding, ok, problem, skipped, warning

if TYPE_CHECKING:
    from verl_bridge.recipes._check_data import RowTask

__all__ = ["SLOW_STEP", "check_episodes", "check_tasks"]

SLOW_STEP = 1.0
"""Minimum seconds of a step that causes a warning."""

_CHECK = "environment"
_START = "start its server before the training, or write the folder with --server"
_FAILED = "start its server, or correct env_kwargs and reset_options"
_NOT_TEXT = "wrap it as docs/adapters.md shows, and register the wrapped environment"
_NOT_HERE = ("NoServer", "MissingExtra")  # no server is configured, and a program or package is missing


def check_tasks(tasks: Mapping[str, Collection[RowTask]]) -> Iterator[Finding]:
    """Report the first row of each part whose task cannot be played."""
    for of_part in tasks.values():
        wrong = next((each for each in of_part if isinstance(each.task, str)), None)
        if wrong is not None:
            yield problem(_CHECK, f"{wrong.place}: {wrong.task}", "write the row again")


def check_episodes(played: Sequence[Played]) -> Iterator[Finding]:
    """Check whether each environment can be played, also by two episodes at once, and how fast."""
    left_out = sum(not each.tried for each in played)
    if left_out:
        left = f"{left_out} of {len(played)} environments with different arguments"
        yield skipped(_CHECK, f"{left} were not started")
    for each in played:
        if each.tried:
            yield from _of_first_turns(each)
            yield from _of_whole_episodes(each)


def _of_first_turns(played: Played) -> Iterator[Finding]:
    case, single = played.case, played.single
    if played.unregistered is not None:
        yield _unregistered(case, played.unregistered)
        return
    for each, turns in zip(played.cases, played.each_single, strict=True):
        if turns.fault:
            yield _failure(each, turns)
            return
    yield from _speed(case, [single, *([played.other_single] if played.other_single else [])])
    env_id = case.task.env_id
    faults = [turns.fault for turns in played.at_once if turns.fault]
    if played.stopped_after:
        seconds = f"{played.stopped_after:g} s"
        text = f"{case.place}: two episodes of {env_id} at once did not finish in {seconds}"
        yield warning(_CHECK, text, f"{_isolate(case, single)}; or raise --timeout")
    elif any(fault.startswith(NO_ROOM) for fault in faults):
        yield skipped(_CHECK, f"the server of {env_id} had no room for two episodes at once")
    elif faults:
        text = f"{case.place}: {env_id} fails when two episodes run at once, but not one by one: {faults[0]}"
        yield problem(_CHECK, text, _isolate(case, single))
    elif played.room_for_one:
        yield skipped(_CHECK, f"{env_id} has room for one: two episodes at once were not played")
    if played.again is not None and not played.stopped_after:
        yield from _of_repeated(played, played.again)


def _of_repeated(played: Played, again: FirstTurns) -> Iterator[Finding]:
    """Check a task that was played twice, one episode at a time."""
    case, before = played.cases[played.repeated], played.each_single[played.repeated]
    if again.fault:
        yield _failure(case, again)
    elif played.mixes_up:
        text = (
            f"{case.place}: two episodes of {case.task.env_id} at once mix up: one observes "
            f"{_difference(before, played.at_once[played.repeated])}"
        )
        yield problem(_CHECK, text, _isolate(case, played.single))
    elif not played.is_reproducible and not is_drawn(case.task):
        yield warning(
            _CHECK,
            f"{case.place}: {case.task.env_id} is not reproducible: with the same seed, options and replies "
            f"it observes {_difference(before, again)}",
            "GRPO compares episodes of one task: have reset(seed=...) seed all random generators, also those "
            "of modules such as random, which needs isolate: process",
        )


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
        return skipped(_CHECK, f"{place}: {task.env_id} was not played: {message}", _START)
    package = absent_package(message, named=split_id(task.env_id)[0] or "")
    if package is not None:
        return _unplayed(case, package)
    advice = _FAILED
    if "TextAdapter" in fault or "should be text" in fault:
        advice = _NOT_TEXT
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


def _of_whole_episodes(played: Played) -> Iterator[Finding]:
    env_id = played.case.task.env_id
    if played.player_error:
        text = f"{env_id}: no whole episode could be played: {played.player_error}"
        yield warning("episodes", text, "the lengths below are estimates from answers to empty replies")
    for episode in played.episodes:
        if episode.fault:
            yield warning(
                "episodes",
                f"{env_id} faulted in turn {len(episode.replies)} of {episode.player}: {episode.fault}",
                "such episodes are excluded from training: repair the environment, or its server",
            )
