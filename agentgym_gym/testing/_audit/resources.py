"""Whether playing and creating environments leaves memory, descriptors, threads or files in use."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import itertools
import os
import statistics
import tempfile
import threading
import time
import tracemalloc
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agentgym_gym.testing._audit.bulk import play_at_once
from agentgym_gym.testing._audit.findings import Checked, Defect, NotApplicable
from agentgym_gym.testing._audit.programs import actions_text, program, reset_call

if TYPE_CHECKING:
    from agentgym_gym.testing._audit.episodes import ActionSequence
    from agentgym_gym.testing._audit.subject import Subject

__all__ = ["check_instances", "check_leaks"]

_EPISODES = 1000
_LEAST_EPISODES = 100
_INSTANCES = 60
_SEQUENCES = 8
_TURNS = 12
"""Turns after which an episode is abandoned."""

_POINTS = 12
_WARM_UP = 4
_LEAST_POINTS = 9
"""Measurements of a leak, of which the first ones are the warm-up."""

_BYTES_PER_EPISODE = 150
"""Growth of Python's memory for each episode that counts as a leak."""

_RESIDENT_PER_EPISODE = 8192
"""Growth of the process for each episode that counts as a leak."""

_LEAST_GROWTH = {"memory": 50_000, "resident": 3_000_000}
"""Total growth in bytes that counts as a leak."""

_PER_EPISODE = 0.3
"""Descriptors, threads, processes or files left by an episode, on average, that count as a leak."""

_SETTLE_SECONDS = 2.0
"""Time for threads and processes to end."""

_NAMES = {
    "memory": "bytes of memory",
    "resident": "bytes of resident memory",
    "descriptors": "file descriptors",
    "threads": "threads",
    "processes": "child processes",
    "files": "files in the folder for temporary files",
}

_COUNTS = {
    "descriptors": ("import os", "len(os.listdir('/dev/fd'))"),
    "threads": ("import threading", "threading.active_count()"),
    "processes": (
        "import os, subprocess",
        "subprocess.getoutput(f'ps -o pid= --ppid {os.getpid()}').count('\\n')",
    ),
    "files": ("import os, tempfile", "len(os.listdir(tempfile.gettempdir()))"),
}
"""How a program counts what is open: its import, and the expression."""

_ADVICE = {
    "memory": "clear in reset what the environment keeps of an episode, such as lists of the past",
    "resident": "release native memory, such as images and simulators, at the next reset",
    "descriptors": "close files, sockets and pipes in reset and close",
    "threads": "stop threads in reset and close, or use one for the life of the environment",
    "processes": "end processes in reset and close, and wait for them",
    "files": "delete temporary files in reset and close, or use tempfile.TemporaryDirectory",
}


@dataclass(frozen=True)
class _Usage:
    """Resources of this process at one moment, by the names of `_NAMES`."""

    values: Mapping[str, float]

    def since(self, earlier: _Usage) -> dict[str, float]:
        return {name: value - earlier.values[name] for name, value in self.values.items()}


def _usage() -> _Usage:
    values: dict[str, float] = {"threads": threading.active_count()}
    with contextlib.suppress(OSError):
        values["descriptors"] = len(os.listdir("/dev/fd"))  # noqa: PTH208 - a name each
        values["files"] = len(os.listdir(tempfile.gettempdir()))  # noqa: PTH208
    process = _process()
    if process is not None:
        values["resident"] = process.memory_info().rss
        values["processes"] = len(process.children(recursive=True))
    if tracemalloc.is_tracing():
        values["memory"] = tracemalloc.get_traced_memory()[0]
    return _Usage(values)


def _process() -> Any:
    try:
        import psutil  # noqa: PLC0415 - not a dependency
    except ImportError:
        return None
    return psutil.Process()


@contextlib.contextmanager
def _tracing() -> Iterator[None]:
    """Trace Python's memory, unless this program does so already."""
    tracing = tracemalloc.is_tracing()
    if not tracing:
        tracemalloc.start(1)
    try:
        yield
    finally:
        if not tracing:
            tracemalloc.stop()


async def _played_sequences(subject: Subject) -> list[ActionSequence]:
    """Return some explored episodes, and their first halves: those are abandoned by the next reset.

    Raises:
        NotApplicable: Each explored episode ended with an error.
    """
    sound = [each.sequence for each in await subject.explored() if not each.error and each.transitions]
    if not sound:
        raise NotApplicable("each explored episode ends with an error")
    sound = sorted((each.first(_TURNS) for each in sound[:_SEQUENCES]), key=lambda each: len(each.actions))
    return [part for each in sound for part in (each, each.first((len(each.actions) + 1) // 2))]


async def check_leaks(subject: Subject) -> Checked:
    """Play the same few episodes again and again with one environment, and measure what grows."""
    sequences = await _played_sequences(subject)
    with _tracing():
        played, growth, grown = await _play_and_measure(subject, sequences)
    measured = {
        "episodes": played,
        **{f"{name} per episode": round(rate, 3) for name, rate in growth.items()},
    }
    if played < _LEAST_EPISODES and not growth:
        note = f"only {played} episodes could be played in time, and {_LEAST_EPISODES} are needed"
        return Checked(measured=measured, note=note)
    if "memory" in growth:
        growth.pop("resident", None)
    defects = []
    for name, rate in list(growth.items())[:3]:
        text = await _leak_program(subject, name, rate, sequences[-2]) or await _leak_program(
            subject, name, rate, sequences[-1]
        )
        if name in {"memory", "files"} and subject.source.expression and not text:
            continue  # other threads and programs allocate memory and make files, too
        defects.append(
            Defect(
                f"each episode leaves {rate:.3g} more {_NAMES[name]}{grown if name == 'memory' else ''} "
                f"({played} episodes, the same {len(sequences)} again and again)",
                _ADVICE[name],
                (sequences[-2].task,),
                text,
            )
        )
    return Checked(defects, measured, _note(subject))


async def _play_and_measure(
    subject: Subject, sequences: Sequence[ActionSequence]
) -> tuple[int, dict[str, float], str]:
    """Return the number of episodes, the growth per episode, and which lines and types grow."""
    most, seconds = _EPISODES * (5 if subject.thorough else 1), max(1.0, subject.seconds_left * 0.8)
    points: list[tuple[int, _Usage]] = []
    episodes, played, started = itertools.cycle(sequences), 0, time.monotonic()
    errors: list[str] = []  # such as too many open files

    def batch(env: Any) -> int:
        """Play episodes, and return their number."""
        until, count = time.monotonic() + seconds / _POINTS, 0
        while count < most // _POINTS and time.monotonic() < until:
            sequence = next(episodes)
            trace = play_at_once(env, subject.facts, sequence.task, sequence.actions)
            errors.extend([trace.error] if trace.error else [])
            if errors:
                break
            count += 1
        return count

    def few() -> bool:
        return played < _LEAST_EPISODES or len(points) < _LEAST_POINTS

    async with subject.open() as env:
        while not errors and played < most and time.monotonic() - started < seconds * (1 + few()):
            played += await env.run(batch)
            gc.collect()
            points.append((played, _usage()))
            if len(points) == _WARM_UP:
                snapshot, objects = tracemalloc.take_snapshot(), _objects()
        if few():
            return played, {}, ""
        growth = _growth(points)
        since = played - points[_WARM_UP - 1][0]
        return played, growth, _grown(snapshot, objects, since) if "memory" in growth else ""


def _note(subject: Subject) -> str:
    parts = [] if _process() else ["install psutil to measure resident memory and child processes"]
    if subject.environment is not None:
        parts.append("only the client is measured, not the server")
    return "; ".join(parts)


def _growth(points: Sequence[tuple[int, _Usage]]) -> dict[str, float]:
    """Return the growth per episode of what grows steadily, by the median slope after the warm-up."""
    late = points[_WARM_UP - 1 :]
    limits = {"memory": _BYTES_PER_EPISODE, "resident": _RESIDENT_PER_EPISODE}
    found = {}
    for name in set.intersection(*(set(usage.values) for _, usage in late)):
        values = [(at, usage.values[name]) for at, usage in late]
        rises = sum(after > before for (_, before), (_, after) in itertools.pairwise(values))
        slope = statistics.median(
            (after - before) / (later - at)
            for (at, before), (later, after) in itertools.combinations(values, 2)
            if later > at
        )
        enough = slope * (late[-1][0] - late[0][0]) >= _LEAST_GROWTH.get(name, 10)
        if enough and slope >= limits.get(name, _PER_EPISODE) and rises >= 0.8 * (len(values) - 1):
            found[name] = slope
    return found


def _objects() -> Counter[str]:
    return Counter(type(each).__name__ for each in gc.get_objects())


def _grown(before: tracemalloc.Snapshot, objects: Counter[str], episodes: int) -> str:
    """Return which lines and types grow, for a sentence."""
    more = _objects()
    more.subtract(objects)
    types = [
        f"{count / episodes:.2g} more {name}" for name, count in more.most_common(3) if count > episodes / 3
    ]
    own = tracemalloc.take_snapshot().compare_to(before, "lineno")
    for line in own:
        frame = line.traceback[0]
        if line.size_diff > 0 and "tracemalloc" not in frame.filename and "_audit" not in frame.filename:
            types.insert(0, f"allocated in {Path(frame.filename).name}:{frame.lineno}")
            break
    return f", {', '.join(types)}" if types else ""


async def _leak_program(subject: Subject, name: str, rate: float, sequence: ActionSequence) -> str:
    """Return a program that plays one episode many times, and measures."""
    play = f"[env.step(action) for action in {actions_text(subject, sequence)}]"
    if name == "resident":
        return ""
    if name in _COUNTS:
        head, count = _COUNTS[name]
        most = max(5, round(25 * rate))
        lines = [
            f"{head}",
            f"env, count = make(), lambda: {count}",
            f"before = env.{reset_call(subject, sequence.task)} and count()",
            "for _ in range(50):",
            f"    env.{reset_call(subject, sequence.task)}, {play}",
            f'assert count() - before < {most}, f"{{before}} {_NAMES[name]}, then {{count()}}"',
        ]
    else:
        lines = [
            "import gc, tracemalloc",
            "env, used = make(), []",
            "for number in range(400):",
            f"    env.{reset_call(subject, sequence.task)}, {play}",
            "    if number % 100 == 99:",
            "        gc.collect(), tracemalloc.start()",
            "        used.append(tracemalloc.get_traced_memory()[0])",
            f'assert used[-1] - used[1] < {round(100 * rate)}, f"memory grows: {{used}}"',
        ]
    return await program(subject, lines)


async def check_instances(subject: Subject) -> Checked:
    """Create, play and close environments one after another, and count what stays open."""
    sequence = (await _played_sequences(subject))[0]

    async def once() -> None:
        async with subject.open() as env:
            await env.play(sequence)

    await once()
    await once()
    before, created, ends = _usage(), 0, time.monotonic() + max(1.0, subject.seconds_left * 0.7)
    while created < _INSTANCES and time.monotonic() < ends:
        await once()
        created += 1
    least = max(3, created // 2)
    open_still = await _settled(before, least)
    defects = [
        Defect(
            f"{created} environments, each created, played and closed, leave {count:g} {_NAMES[name]} open",
            _ADVICE[name].replace("reset and close", "close"),
            (sequence.task,),
            await _instance_program(subject, name, sequence),
        )
        for name, count in list(open_still.items())[:3]
    ]
    return Checked(defects, {"instances": created}, _note(subject))


async def _settled(before: _Usage, least: int) -> dict[str, float]:
    """Return what is open in addition, after threads and processes had time to end."""
    ends = time.monotonic() + _SETTLE_SECONDS
    while True:
        gc.collect()
        since = _usage().since(before)
        more = {name: count for name, count in since.items() if name in _COUNTS and count >= least}
        if not more or time.monotonic() > ends:
            return more
        await asyncio.sleep(0.1)


async def _instance_program(subject: Subject, name: str, sequence: ActionSequence) -> str:
    head, count = _COUNTS[name]
    play = f"[env.step(action) for action in {actions_text(subject, sequence)}]"
    lines = [
        f"{head}, time",
        f"count = lambda: {count}",
        "for number in range(22):",
        "    before = count() if number == 2 else None if number < 2 else before",
        "    env = make()",
        f"    env.{reset_call(subject, sequence.task)}, {play}, env.close()",
        "time.sleep(1)",
        f'assert count() - before < 8, f"{{before}} {_NAMES[name]}, then {{count()}}"',
    ]
    return await program(subject, lines)
