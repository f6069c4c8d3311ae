"""How fast an environment is, and whether copies of it run at once."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import statistics
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from agentgym_gym.rollout._call_thread import CallThread
from agentgym_gym.testing._audit.bulk import fault_note
from agentgym_gym.testing._audit.episodes import shown_value
from agentgym_gym.testing._audit.findings import Checked, Defect, NotApplicable
from agentgym_gym.testing._audit.programs import actions_text, program, reset_call
from agentgym_gym.testing._audit.shrinking import Case, shrink
from agentgym_gym.testing._audit.subject import reset_arguments

if TYPE_CHECKING:
    from agentgym_gym.testing._audit.episodes import ActionSequence
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
_OFTEN = 3
"""Slow steps that are a defect although they are not slow when they are repeated."""

_COPIES = 8
_MOST_COPIES = 32

_WAITING_STEP = 0.004
"""Median seconds of a step from which copies are expected to run at once, if they are idle in it."""

_GAIN = 1.5
"""Least ratio of the throughput of 8 copies to one copy's, if steps are idle."""


# --- speed -------------------------------------------------------------------------------------------


async def check_speed(subject: Subject) -> Checked:
    """Measure the steps and resets of the explored episodes, and repeat the slowest."""
    traces = [trace for trace in await subject.explored() if not trace.faulted]
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
        return Checked(measured=measured, note=fault_note(await subject.explored()))

    async def fails(case: Case) -> str:
        played = await subject.play(case[0])
        times = [step.seconds for step in played.transitions]
        if not times or max(times) < limit:
            return ""
        at = times.index(max(times))
        action = shown_value(case[0].actions[at], 60)
        return f"in task {case[0].task}, the step {action} in turn {at + 1} takes {times[at]:.2g} s"

    case: Case = (trace.sequence.first(turn + 1),)
    if not await fails(case) or not await fails(case):
        durations = [each for each, *_ in steps] + await _more_durations(subject)
        slow = [each for each in durations if each >= limit]
        if len(slow) < _OFTEN:  # the machine was busy
            return Checked(measured=measured)
        times = f"{len(slow)} of {len(durations)} steps take {min(slow):.2g} s or more"
        text = f"{times}; the median step takes {median:.2g} s"
        advice = "let steps return early, and do work that is due now and then between episodes"
        return Checked([Defect(text, advice, (trace.task,))], measured)
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


async def _more_durations(subject: Subject) -> list[float]:
    """Play the explored episodes again, in one environment, and return the durations of their steps."""
    durations: list[float] = []
    async with subject.open() as env:
        for number, trace in enumerate(await subject.explored()):
            if subject.enough(number):
                break
            durations += (step.seconds for step in (await env.play(trace.sequence)).transitions)
    return durations


def _percentiles(seconds: Sequence[float]) -> dict[str, float]:
    ordered = sorted(seconds)
    return {
        f"p{percent}": round(ordered[(len(ordered) - 1) * percent // 100], 6) for percent in (50, 90, 99, 100)
    }


# --- blocking ----------------------------------------------------------------------------------------


async def check_blocking(subject: Subject) -> Checked:
    """Play an asynchronous environment in an event loop next to a ticker.

    Raises:
        NotApplicable: Its methods are not coroutine functions.
    """
    if not subject.facts.awaited:
        raise NotApplicable("its methods are not coroutine functions")
    sequences = [
        trace.sequence for trace in await subject.explored() if not trace.error and trace.transitions
    ]
    thread, seconds = CallThread("agentgym-ticker"), max(1.0, subject.seconds_left * 0.7)
    try:
        slowest = await asyncio.wait_for(
            thread(lambda: asyncio.run(_longest_blocks(subject, sequences, seconds))),
            seconds + subject.timeout,
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
    step = "await env.step(action); await asyncio.sleep(0.01)"
    limit = max(_BLOCKED, blocked / 2)
    lines = [
        "import asyncio, time",
        "async def longest(env):",
        "    times, loop = [time.perf_counter()], asyncio.get_running_loop()",
        "    def tick(): times.append(time.perf_counter()); loop.call_later(0.005, tick)",
        f"    tick(); await env.{reset_call(subject, sequence.task)}; await asyncio.sleep(0.01)",
        f"    for action in {actions_text(subject, sequence)}: {step}",
        "    return max(after - before for before, after in zip(times, times[1:]))",
        f'assert asyncio.run(longest(make())) < {limit:.2g}, "the event loop is blocked"',
    ]
    defect = Defect(
        f"in task {sequence.task}, {call} keeps other tasks of the event loop waiting for {blocked:.2g} s",
        "await what takes time: asyncio.sleep for time.sleep, an asynchronous client for a blocking one, "
        "asyncio.to_thread for the rest",
        (sequence.task,),
        await program(subject, lines),
    )
    return Checked([defect], measured)


class _Ticker:
    """Measures for how long the other tasks of an event loop do not run."""

    def __init__(self) -> None:
        self._last = time.perf_counter()
        self._longest = 0.0

    async def run(self) -> None:
        """Tick until cancelled."""
        while True:
            await asyncio.sleep(_TICK)
            now = time.perf_counter()
            self._longest, self._last = max(self._longest, now - self._last - _TICK), now

    async def blocked(self, call: Any) -> tuple[float, Any]:
        """Await a call; return the longest time between two ticks, and the result."""
        await asyncio.sleep(2 * _TICK)
        self._longest = 0.0
        answer = await call
        await asyncio.sleep(2 * _TICK)
        return self._longest, answer


async def _longest_blocks(
    subject: Subject, sequences: Sequence[ActionSequence], seconds: float
) -> dict[tuple[str, ActionSequence], float]:
    """Return for each call the longest time without a tick, down to the first sequence that blocks."""
    ends, env, ticker = time.monotonic() + seconds, subject.make(), _Ticker()
    ticking = asyncio.create_task(ticker.run())
    found: dict[tuple[str, ActionSequence], float] = {}
    try:
        usual, _ = await ticker.blocked(asyncio.sleep(40 * _TICK))  # the machine may be busy
        for sequence in sequences:
            if time.monotonic() > ends:
                break
            times = await _blocked_times(subject, env, ticker, sequence)
            if max(times.values()) >= _BLOCKED:
                again = [await _blocked_times(subject, env, ticker, sequence) for _ in range(_REPEATS)]
                for call in times:
                    least = min(each.get(call, 0.0) for each in (times, *again))
                    times[call] = least if least > 2 * usual else 0.0
            found.update(times)
            if max(times.values()) >= _BLOCKED:
                break
    finally:
        ticking.cancel()
        closing = env.close()
        if asyncio.iscoroutine(closing):
            await closing
    return found


async def _blocked_times(
    subject: Subject, env: Any, ticker: _Ticker, sequence: ActionSequence
) -> dict[tuple[str, ActionSequence], float]:
    blocked, _ = await ticker.blocked(env.reset(**reset_arguments(subject.facts, sequence.task)))
    times = {("reset", sequence.first(0)): blocked}
    for turn, action in enumerate(sequence.actions, 1):
        blocked, answer = await ticker.blocked(env.step(action))
        times[f"step {shown_value(action, 40)} in turn {turn}", sequence.first(turn)] = blocked
        if answer[2] or answer[3]:
            break
    return times


# --- capacity ----------------------------------------------------------------------------------------


async def check_capacity(subject: Subject) -> Checked:
    """Open the declared number of copies and play them at once; measure the throughput of 1 and 8 copies."""
    sequences = [
        trace.sequence for trace in await subject.explored() if not trace.error and not trace.faulted
    ]
    if not sequences:
        raise NotApplicable("each explored episode ends with an error")
    capacity = subject.facts.capacity
    copies = min(capacity, _MOST_COPIES) if capacity else _COPIES
    failures, open_copies = await _play_open(subject, sequences, copies)
    defects = []
    measured: dict[str, Any] = {"capacity": capacity, "copies": open_copies}
    if failures and capacity:
        sequence = sequences[0].first(1)
        actions = actions_text(subject, sequence)[1:-1]
        lines = [
            "problem = None",
            "try:",
            f"    envs = [make() for _ in range({copies})]",
            f"    [env.{reset_call(subject, sequence.task)} for env in envs]",
            f"    [env.step({actions}) for env in envs]",
            "except Exception as error:",
            "    problem = error",
            f'assert not problem, f"of {copies} copies one fails: {{problem!r}}"',
        ]
        failure = f"of {copies} open copies {len(failures)} fail: {failures[0]}"
        defects.append(
            Defect(
                f"the declared capacity is {capacity}; {failure}",
                "declare the number of copies that can be open at once in the attribute capacity",
                (sequence.task,),
                await program(subject, lines),
            )
        )
    elif not failures:
        seconds = max(0.3, min(1.0, subject.seconds_left / 4))
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
        failures += [
            trace.error[:160] or shown_value(trace.last_info["fault"])
            for trace in await asyncio.gather(*plays)
            if trace.error or trace.faulted
        ]
    return failures, len(envs)


async def _throughput(
    subject: Subject, sequences: Sequence[ActionSequence], copies: int, seconds: float
) -> tuple[float, bool]:
    """Return the steps per second of copies in threads, and whether most steps are idle and take long."""

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
    actions, reset = actions_text(subject, sequence.first(1)), reset_call(subject, sequence.task)
    lines = [
        "import threading, time",
        "def took(copies):",
        f"    envs = [make() for _ in range(copies)]; [env.{reset} for env in envs]",
        "    began = time.perf_counter()",
        f"    threads = [threading.Thread(target=env.step, args=({actions[1:-1]},)) for env in envs]",
        "    [thread.start() for thread in threads], [thread.join() for thread in threads]",
        "    return time.perf_counter() - began",
        f"assert took({copies}) < {copies} / 2 * took(1), 'the copies do not run at once'",
    ]
    return Defect(
        f"{copies} copies in threads play {many:.0f} steps a second together, and one plays {one:.0f}, "
        "although the steps are idle: a lock lets only one step run at a time",
        "hold a lock only while shared data changes, not while a step waits",
        (sequence.task,),
        await program(subject, lines),
    )
