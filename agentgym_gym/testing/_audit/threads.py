"""Whether copies in threads at once play as a single copy does."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import itertools
import random
import sys
import threading
import time
from collections.abc import Coroutine, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import gymnasium
import numpy as np

from agentgym_gym import rollout, testing
from agentgym_gym.rollout._call_thread import CallThread
from agentgym_gym.rollout._workers import CallerWorker
from agentgym_gym.testing._audit.copies import MOST, alongside, crosstalk, leak, marked_actions, most_copies
from agentgym_gym.testing._audit.episodes import ActionSequence, Trace
from agentgym_gym.testing._audit.findings import Checked, Defect, NotApplicable
from agentgym_gym.testing._audit.makers import RenewedEnv
from agentgym_gym.testing._audit.programs import actions_text, program, reset_call
from agentgym_gym.testing._audit.references import deviation, references
from agentgym_gym.testing._audit.shrinking import Case, shrink
from agentgym_gym.testing._audit.subject import OpenEnv, failed

if TYPE_CHECKING:
    from types import FrameType

    from agentgym_gym.testing._audit.subject import Subject

__all__ = ["check_threads"]

_ROUNDS = 9
_PLANNED = 3
_TURNS = 25
_SWITCHES = 0.1
"""Share of the lines after which another thread runs."""

_SLOWER = 10
"""How much slower an episode may be in a thread for each other thread, before it counts as a hang."""

_LIBRARIES = tuple(str(Path(each.__file__ or "").parent) for each in (np, gymnasium.spaces, rollout, testing))
_STANDARD = str(Path(contextlib.__file__).parent)

_PROGRAM_SECONDS = 10.0


async def check_threads(subject: Subject) -> Checked:
    """Play copies in threads at once; each has to play as a single copy does."""
    most, rng, played = most_copies(subject), subject.rng(4), 0
    alone = [reference.first(_TURNS) for reference in await references(subject)]
    by_sequence = {reference.sequence: reference for reference in alone}
    seen = 0
    for number in range(_ROUNDS * (4 if subject.thorough else 1)):
        if subject.enough(number):
            break
        order = [alone[int(index)].sequence for index in rng.permutation(len(alone))]
        rotated = [(order[thread % len(order) :] + order)[:_PLANNED] for thread in range(most)]
        plans = [order[:1]] * most if number % 3 == 0 else rotated
        marked = number % 3 == 1 and not subject.source.adapted
        if marked:
            plans[-1] = [marked_actions(sequence) for sequence in plans[-1]]
        plays = await _at_once(subject, plans, min(0.25, max(0.1, subject.seconds_left / _ROUNDS)))
        if plays is None:
            return Checked([await _hang(subject, plans)], {"episodes": played})
        traces = [trace for each in plays[: most - marked] for trace in each]
        played += len(traces)
        if marked and (text := leak(traces)):
            defect = await crosstalk(subject, order, plans[-1], text)
            return Checked([defect], {"episodes": played})
        for sequence, trace in _planned(plans[: most - marked], plays):
            if text := deviation(by_sequence[sequence], trace):
                seen += 1
                race = await _racing(subject, sequence, order, text, certain=seen > 1)
                if race is not None:
                    return Checked([race], {"episodes": played})
                break
    return Checked(measured={"episodes": played})


Plans: TypeAlias = Sequence[Sequence[ActionSequence]]
"""The sequences that each thread plays, in order."""


async def _at_once(subject: Subject, plans: Plans, seconds: float) -> list[list[Trace]] | None:
    """Play plans in threads at once, again and again; None if a thread does not finish.

    Args:
        subject: The audited environment.
        plans: A plan for each thread.
        seconds: Time after which a thread that has finished its plan stops.
    """
    gate, ends = threading.Barrier(len(plans)), time.monotonic() + seconds
    calls = [CallThread("agentgym-audit") for _ in plans]
    work = [
        asyncio.ensure_future(call(_play_all, subject, plan, gate, ends))
        for call, plan in zip(calls, plans, strict=True)
    ]
    try:
        longest = max(sum(step.seconds for step in trace.transitions) for trace in subject.references)
        patience = subject.timeout + _SLOWER * len(plans) * longest
        _, pending = await asyncio.wait(work, timeout=seconds + patience)
    finally:
        for call in calls:
            call.stop()
    return None if pending else [each.result() for each in work]


def _play_all(
    subject: Subject, plan: Sequence[ActionSequence], gate: threading.Barrier, ends: float
) -> list[Trace]:
    """Play a plan in this thread, each episode in a new environment, until the time is used."""
    with contextlib.suppress(threading.BrokenBarrierError):
        gate.wait(5)
    traces: list[Trace] = []
    try:
        env = RenewedEnv(subject.make)
    except Exception as error:  # noqa: BLE001 - of a constructor
        return [failed(Trace(plan[0].task), error)]
    try:
        opened = OpenEnv(CallerWorker(env), subject)
        for sequence in itertools.cycle(plan):
            if traces and time.monotonic() > ends:
                return traces
            with _frequent_switches():
                traces.append(_run(opened.play(sequence)))
    finally:
        env.close()
    return traces


def _run(work: Coroutine[Any, Any, Trace]) -> Trace:
    """Run a coroutine that never waits."""
    try:
        work.send(None)
    except StopIteration as stop:
        return stop.value  # type: ignore[no-any-return]
    raise RuntimeError("the environment of a caller waits for nothing")


@contextlib.contextmanager
def _frequent_switches() -> Iterator[None]:
    """Let other threads run after many lines of this thread, so that races show."""
    draw, before = random.Random().random, sys.gettrace()  # noqa: S311 - not the global generator

    def switch(frame: FrameType, event: str, _: Any) -> Any:
        if event == "call" and not _interrupted(frame.f_code.co_filename):
            return None
        if draw() < _SWITCHES:
            time.sleep(0)
        return switch

    sys.settrace(switch)
    try:
        yield
    finally:
        sys.settrace(before)


@functools.cache
def _interrupted(file: str) -> bool:
    """Return whether code may be the environment's: not of Python, numpy or this library's players."""
    standard = file.startswith((_STANDARD, "<frozen")) and "site-packages" not in file
    return not standard and not file.startswith(_LIBRARIES)


def _planned(plans: Plans, plays: Sequence[Sequence[Trace]]) -> Iterator[tuple[ActionSequence, Trace]]:
    """Yield the traces of threads, each with the sequence that was to be played."""
    for plan, traces in zip(plans, plays, strict=False):
        yield from zip(itertools.cycle(plan), traces, strict=False)


async def _racing(
    subject: Subject, own: ActionSequence, others: Sequence[ActionSequence], text: str, *, certain: bool
) -> Defect | None:
    """Return the defect that threads change an episode, shrunk; None if that was not seen again.

    Raises:
        NotApplicable: Copies in turns change it, too.
    """
    each = max(1, min(MOST, subject.facts.capacity or MOST) // 2)

    async def fails(case: Case) -> str:
        alone = await subject.play(case[0])
        plans = [[sequence] for sequence in case for _ in range(each)]
        plays = await _at_once(subject, plans, 0.3)
        if plays is None or deviation(alone, await subject.play(case[0])):
            return ""
        return next(filter(None, (deviation(alone, trace) for trace in itertools.chain(*plays[:each]))), "")

    for other in dict.fromkeys((own, *others)):
        if subject.seconds_left < 0:
            break
        case: Case = (own, other)
        if not await fails(case):
            continue
        if "copies" in subject.failed or await _in_turns_too(subject, own, other):
            raise NotApplicable("copies change each other's episodes even in turns: see copies")
        case, shrunk = await shrink(case, fails, seconds=max(2.0, subject.seconds_left / 2))
        return await _race(subject, case, shrunk or text)
    return await _race(subject, (own,), text) if certain else None


async def _in_turns_too(subject: Subject, own: ActionSequence, other: ActionSequence) -> bool:
    middle = len(own.actions) // 2
    for split in (0, 1, middle):
        rest = replace(own, actions=own.actions[split:])
        if await alongside(subject, (own.first(split), other, rest), "between"):
            return True
    return False


async def _race(subject: Subject, case: Case, text: str) -> Defect:
    message = "threads change the episodes of each other's environments"
    cases = ", ".join(f"({each.task}, {actions_text(subject, each)})" for each in case)
    reset = reset_call(subject, "case[0]")
    trace = await subject.play(case[0])
    seconds = trace.reset_seconds + sum(step.seconds for step in trace.transitions)
    repeats = int(min(200, max(20, _PROGRAM_SECONDS / len(case) / max(seconds, 1e-6))))
    copies = min(MOST, subject.facts.capacity or MOST)
    lines = [
        "def play(case):",
        "    with contextlib.closing(make()) as env:",
        f"        return str([env.{reset}[0], *(env.step(action)[:4] for action in case[1])])",
        f"cases = [{cases}]",
        "threading.settrace(switch := lambda *_: time.sleep(0) or switch)",
    ]
    pool = f"with concurrent.futures.ThreadPoolExecutor({copies}) as pool: played ="
    if " raises " in text:
        lines += [
            f"{pool} [pool.submit(play, case) for case in cases * {repeats}]",
            f"assert not any(each.exception() for each in played), {message!r}",
        ]
    else:
        lines += [
            f"{pool} list(pool.map(play, cases * {repeats}))",
            f"assert played == [play(case) for case in cases] * {repeats}, {message!r}",
        ]
    return Defect(
        f"in threads at once, task {case[0].task} differs from its play in a single copy, "
        f"given first: {text}",
        "keep parsers, caches and buffers in the instance, or use a lock or threading.local",
        tuple(dict.fromkeys(each.task for each in case)),
        await program(subject, lines, first=["import concurrent.futures, contextlib, threading, time"]),
    )


async def _hang(subject: Subject, plans: Plans) -> Defect:
    tasks = tuple(dict.fromkeys(sequence.task for plan in plans for sequence in plan))
    return Defect(
        f"{len(plans)} copies in threads at once do not finish within {subject.timeout:g} s; one copy does",
        "acquire locks in one order, and never hold a lock between two calls",
        tasks,
    )
