"""How fast an environment is, and whether copies of it run at once."""

from __future__ import annotations

import asyncio
import itertools
import statistics
import threading
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from agentgym_gym.rollout._call_thread import CallThread
from agentgym_gym.testing._audit.bulk import faulted
from agentgym_gym.testing._audit.episodes import shown_value
from agentgym_gym.testing._audit.findings import Checked, Defect, NotApplicable
from agentgym_gym.testing._audit.programs import actions_text, program, reset_call
from agentgym_gym.testing._audit.shrinking import Case, shrink
from agentgym_gym.testing._audit.subject import reset_arguments

if TYPE_CHECKING:
    from agentgym_gym.testing._audit.episodes import ActionSequence, Trace
    from agentgym_gym.testing._audit.subject import OpenEnv, Subject

__all__ = ["check_blocking", "check_capacity", "check_speed"]

_SLOW = 1.0
"""Seconds of a step that are a defect."""

_OUTLIER = 0.5
"""Seconds of a step that are a defect if it takes many times as long as the median."""

_TIMES = 50

_TICK = 0.005
_BLOCKED = 0.03
"""Seconds for which a call may keep the event loop from running other tasks."""

_REPEATS = 4
_COPIES = 8
_MOST_COPIES = 32

_WAITING_STEP = 0.004
"""Median seconds of a step from which copies are expected to run at once, if they are idle in it."""

_GAIN = 1.5
"""Least ratio of the throughput of 8 copies to one copy's, if steps are idle."""


# --- speed -------------------------------------------------------------------------------------------


async def check_speed(subject: Subject) -> Checked:
    """Measure the steps and resets of the explored episodes, and repeat the slowest."""
    traces = [trace for trace in await subject.explored() if not faulted(trace)]
    steps = [(step.seconds, trace, turn) for trace in traces for turn, step in enumerate(trace.transitions)]
    if not steps:
        raise NotApplicable("no step was played without a fault")
    seconds, trace, turn = max(steps, key=lambda each: each[0])
    median = statistics.median(each[0] for each in steps)
    measured = {
        "steps": len(steps),
        "step": _percentiles([each[0] for each in steps]),
        "reset": _percentiles([trace.reset_seconds for trace in traces]),
        "slowest": {"seconds": round(seconds, 4), "task": trace.task, "turn": turn + 1},
    }
    limit = _SLOW if median * _TIMES >= _SLOW else max(_OUTLIER, median * _TIMES)
    if seconds < limit:
        return Checked(measured=measured)

    async def fails(case: Case) -> str:
        played = await subject.play(case[0])
        times = [step.seconds for step in played.transitions]
        if not times or max(times) < limit:
            return ""
        at = times.index(max(times))
        action = shown_value(case[0].actions[at], 60)
        return f"in task {case[0].task}, the step {action} in turn {at + 1} takes {times[at]:.2g} s"

    case: Case = (trace.sequence.first(turn + 1),)
    if not await fails(case) or not await fails(case):  # the machine was busy
        return Checked(measured=measured)
    (sequence,), text = await shrink(case, fails, seconds=max(2 * limit, subject.seconds_left / 2))
    lines = [
        "import time",
        "env, times = make(), []",
        f"env.{reset_call(subject, sequence.task)}",
        f"for action in {actions_text(subject, sequence)}:",
        "    began = time.perf_counter()",
        "    env.step(action)",
        "    times.append(time.perf_counter() - began)",
        f'assert max(times) < {limit:.2g}, f"steps take {{times}} seconds"',
    ]
    defect = Defect(
        f"{text or await fails(case)}; the median step takes {median:.2g} s",
        "let the step return early, cache what it computes, or give the search in it a limit",
        (sequence.task,),
        await program(subject, lines),
    )
    return Checked([defect], measured)


def _percentiles(seconds: Sequence[float]) -> dict[str, float]:
    ordered = sorted(seconds)
    return {f"p{percent}": round(ordered[(len(ordered) - 1) * percent // 100], 6) for percent in (50, 90, 99, 100)}


# --- blocking ----------------------------------------------------------------------------------------


async def check_blocking(subject: Subject) -> Checked:
    """Play an asynchronous environment in an event loop next to a ticker.

    Raises:
        NotApplicable: Its methods are not coroutine functions.
    """
    if not subject.facts.awaited:
        raise NotApplicable("its methods are not coroutine functions")
    sequences = [trace.sequence for trace in await subject.explored() if not trace.error and trace.transitions]
    thread, seconds = CallThread("agentgym-ticker"), max(1.0, subject.seconds_left * 0.7)
    try:
        slowest = await asyncio.wait_for(
            thread(lambda: asyncio.run(_longest_blocks(subject, sequences, seconds))), seconds + subject.timeout
        )
    except asyncio.TimeoutError:
        raise NotApplicable("it did not finish an episode in time") from None
    finally:
        thread.stop()
    if not slowest:
        raise NotApplicable("each explored episode ends with an error")
    measured = {"calls": len(slowest), "longest": round(max(slowest.values()), 4)}
    (call, sequence), blocked = max(slowest.items(), key=lambda each: each[1])
    if blocked < _BLOCKED:
        return Checked(measured=measured)
    lines = [
        "import asyncio, time",
        "async def ticker(times):",
        "    while not await asyncio.sleep(0.005):",
        "        times.append(time.perf_counter())",
        "async def play(env, times):",
        f"    task = asyncio.create_task(ticker(times)), await asyncio.sleep(0.05), "
        f"await env.{reset_call(subject, sequence.task)}",
        f"    return [await env.step(action) for action in {actions_text(subject, sequence)}], "
        "await asyncio.sleep(0.05)",
        "times = []; asyncio.run(play(make(), times))",
        f"assert max(b - a for a, b in zip(times, times[1:])) < {_BLOCKED}, 'the event loop is blocked'",
    ]
    lines[7:8] = ["asyncio.run(play(make(), times := []))"]
    defect = Defect(
        f"in task {sequence.task}, {call} keeps the event loop from other tasks for {blocked:.2g} s",
        "await what takes time: asyncio.sleep for time.sleep, an asynchronous client for a blocking one, "
        "asyncio.to_thread for the rest",
        (sequence.task,),
        await program(subject, lines),
    )
    return Checked([defect], measured)


async def _longest_blocks(
    subject: Subject, sequences: Sequence[ActionSequence], seconds: float
) -> dict[tuple[str, ActionSequence], float]:
    """Return for each call the longest time without a tick; suspicious calls are repeated."""
    ends, longest = time.monotonic() + seconds, 0.0
    found: dict[tuple[str, ActionSequence], float] = {}
    env = subject.make()
    last = time.perf_counter()

    async def tick() -> None:
        nonlocal last, longest
        while True:
            await asyncio.sleep(_TICK)
            now = time.perf_counter()
            longest, last = max(longest, now - last - _TICK), now

    async def blocks(call: Any) -> tuple[float, Any]:
        nonlocal last, longest
        await asyncio.sleep(2 * _TICK)
        longest = 0.0
        answer = await call
        await asyncio.sleep(2 * _TICK)
        return longest, answer

    async def play(sequence: ActionSequence) -> dict[str, float]:
        took = {}
        took["reset"], _ = await blocks(env.reset(**reset_arguments(subject.facts, sequence.task)))
        for turn, action in enumerate(sequence.actions, 1):
            name = f"step {shown_value(action, 40)} in turn {turn}"
            took[name], answer = await blocks(env.step(action))
            if answer[2] or answer[3]:
                break
        return took

    ticker = asyncio.create_task(tick())
    try:
        for sequence in sequences:
            if time.monotonic() > ends and found:
                break
            took = await play(sequence)
            if max(took.values()) >= _BLOCKED:  # unless the machine is busy, it is so each time
                again = [await play(sequence) for _ in range(_REPEATS)]
                took = {name: min(value, *(each.get(name, 0.0) for each in again)) for name, value in took.items()}
            found.update({(name, sequence): value for name, value in took.items()})
            if max(took.values()) >= _BLOCKED:
                break
    finally:
        ticker.cancel()
        closing = env.close()
        if asyncio.iscoroutine(closing):
            await closing
    return found


# --- capacity ----------------------------------------------------------------------------------------


async def check_capacity(subject: Subject) -> Checked:
    """Open the declared number of copies and play them at once; measure the throughput of 1 and 8 copies."""
    sequences = [trace.sequence for trace in await subject.explored() if not trace.error and not faulted(trace)]
    if not sequences:
        raise NotApplicable("each explored episode ends with an error")
    capacity = subject.facts.capacity
    copies = min(capacity, _MOST_COPIES) if capacity else _COPIES
    failures, open_copies = await _play_open(subject, sequences, copies)
    defects = []
    measured: dict[str, Any] = {"capacity": capacity, "copies": open_copies}
    if failures and capacity:
        sequence = sequences[0]
        lines = [
            f"envs = [make() for _ in range({copies})]",
            "problem = None",
            "try:",
            f"    [env.{reset_call(subject, sequence.task)} for env in envs]",
            f"    [env.step(action) for action in {actions_text(subject, sequence.first(1))} for env in envs]",
            "except Exception as error:",
            "    problem = error",
            f'assert not problem, f"of {copies} copies one fails: {{problem!r}}"',
        ]
        defects.append(
            Defect(
                f"the declared capacity is {capacity}, and with {copies} copies open {len(failures)} fail: {failures[0]}",
                "declare the number of copies that can be open at once in the attribute capacity",
                (sequence.task,),
                await program(subject, lines),
            )
        )
    elif not failures:
        seconds = max(0.3, min(2.0, subject.seconds_left / 4))
        one, idle = await _throughput(subject, sequences, 1, seconds)
        many, _ = await _throughput(subject, sequences, min(_COPIES, copies), seconds)
        measured["steps per second"] = {"1": round(one, 1), str(min(_COPIES, copies)): round(many, 1)}
        if idle and copies > 1 and subject.environment is None and many < _GAIN * one:
            defects.append(await _serial_defect(subject, sequences[0], one, many, min(_COPIES, copies)))
    return Checked(defects, measured)


async def _play_open(
    subject: Subject, sequences: Sequence[ActionSequence], copies: int
) -> tuple[list[str], int]:
    """Play each of several open copies; return the errors, and the number of copies that were open."""
    import contextlib  # noqa: PLC0415

    failures: list[str] = []
    async with contextlib.AsyncExitStack() as stack:
        envs: list[OpenEnv] = []
        for _ in range(copies):
            try:
                envs.append(await stack.enter_async_context(subject.open()))
            except Exception as error:  # noqa: BLE001 - of a constructor
                failures.append(f"its constructor raises {type(error).__name__}: {str(error)[:120]}")
                break
        plays = (env.play(sequence) for env, sequence in zip(envs, itertools.cycle(sequences), strict=False))
        for trace in await asyncio.gather(*plays):
            if trace.error or faulted(trace):
                failures.append(trace.error[:160] or shown_value(trace.last_info["fault"]))
    return failures, len(envs)


async def _throughput(
    subject: Subject, sequences: Sequence[ActionSequence], copies: int, seconds: float
) -> tuple[float, bool]:
    """Return the steps per second of copies in threads, and whether most steps are idle and take long."""
    import contextlib  # noqa: PLC0415

    def play(env: Any) -> tuple[int, float, list[float]]:
        steps, times, cpu, ends = 0, [], time.thread_time(), time.monotonic() + seconds
        began = time.monotonic()
        for sequence in itertools.cycle(sequences):
            env.reset(**reset_arguments(subject.facts, sequence.task))
            for action in sequence.actions:
                before = time.perf_counter()
                env.step(action)
                times.append(time.perf_counter() - before)
                steps += 1
                if time.monotonic() > ends:
                    break
            if time.monotonic() > ends:
                break
        took = time.monotonic() - began
        return steps, (time.thread_time() - cpu) / took, times

    async with contextlib.AsyncExitStack() as stack:
        envs = [await stack.enter_async_context(subject.open()) for _ in range(copies)]
        began = time.monotonic()
        results = await asyncio.gather(*(env.run(play) for env in envs), return_exceptions=True)
        took = time.monotonic() - began
    sound = [each for each in results if not isinstance(each, BaseException)]
    times = [each for _, _, times in sound for each in times]
    idle = bool(times) and statistics.median(times) >= _WAITING_STEP and all(cpu < 0.3 for _, cpu, _ in sound)  # noqa: PLR2004
    return sum(steps for steps, _, _ in sound) / took, idle


async def _serial_defect(
    subject: Subject, sequence: ActionSequence, one: float, many: float, copies: int
) -> Defect:
    actions = actions_text(subject, sequence.first(1))
    lines = [
        "import threading, time",
        "def took(copies):",
        f"    envs = [(env, env.{reset_call(subject, sequence.task)})[0] for env in (make() for _ in range(copies))]",
        "    began = time.perf_counter()",
        f"    threads = [threading.Thread(target=env.step, args=({actions[1:-1]},)) for env in envs]",
        "    [thread.start() for thread in threads], [thread.join() for thread in threads]",
        "    return time.perf_counter() - began",
        f"assert took({copies}) < {copies} / 2 * took(1), 'the copies do not run at once'",
    ]
    return Defect(
        f"{copies} copies in threads take {many:.0f} steps a second together, and one takes {one:.0f}, although "
        "the steps are idle: a lock lets only one step run at a time",
        "hold a lock only while shared data changes, not while a step waits",
        (sequence.task,),
        await program(subject, lines),
    )
