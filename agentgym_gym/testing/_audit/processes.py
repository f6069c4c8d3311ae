"""Whether another process, with another hash seed and a later clock, gives the same episodes."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import pickle
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from agentgym_gym.rollout._plain_data import decode, encode
from agentgym_gym.testing._audit.episodes import ActionSequence, Trace, differing_turn
from agentgym_gym.testing._audit.findings import Checked, Defect, NotApplicable
from agentgym_gym.testing._audit.makers import LaterMaker
from agentgym_gym.testing._audit.programs import actions_text, play_lines, program, reset_call
from agentgym_gym.testing._audit.references import deviation, references
from agentgym_gym.testing._audit.shrinking import Case, shrink

if TYPE_CHECKING:
    from agentgym_gym.testing._audit.subject import OpenEnv, Subject

__all__ = ["check_processes", "pickled_maker"]

_DAY = 86_400 + 3_671
"""How far the clock of another process is set forward, in seconds."""

_SEEDS = ("0", "4242", "7")
"""Values of PYTHONHASHSEED."""

_CAUSES = (
    ("another process", _SEEDS[0], 0),
    ("another hash seed", _SEEDS[1], 0),
    ("a later clock", _SEEDS[0], _DAY),
    ("another hash seed", _SEEDS[2], 0),
)
"""The causes of a difference: hash seed and clock of a process to compare with one of seed 0."""

_BEGUN = 32
"""Tasks to begin in the other process before the references."""

_ADVICE = {
    "another process": "use no number of the process, no address of an object and no temporary name",
    "another hash seed": "sort sets before their order matters, and use hashlib instead of hash()",
    "a later clock": "let the task decide the date and the time of an episode",
}


async def check_processes(subject: Subject) -> Checked:
    """Play references in another process, with another hash seed and a later clock."""
    alone, played = await references(subject), 0
    pickled = pickled_maker(subject)
    async with _other_process(subject, pickled) as child:
        for reference in alone:
            if subject.enough(played):
                break
            if played == 1:  # other tasks, in another order, show a state that episodes leave behind
                for task in reversed(subject.tasks[:_BEGUN]):
                    if subject.seconds_left > 0:
                        await child.begin(task)
            trace = await child.play(reference.sequence)
            played += 1
            if not deviation(_sent(reference), trace):
                continue
            turn = differing_turn(_sent(reference), trace)
            defect = await _elsewhere(subject, pickled, reference.sequence.first(turn), trace.first(turn))
            if defect is not None:
                return Checked([defect], {"episodes": played})
    return Checked(measured={"episodes": played})


def pickled_maker(subject: Subject) -> bytes:
    """Return the pickled maker.

    Raises:
        NotApplicable: Another process cannot make the environment.
    """
    try:
        return pickle.dumps(subject.make)
    except Exception as error:
        raise NotApplicable(
            "another process cannot import the function that makes the environment"
        ) from error


@contextlib.asynccontextmanager
async def _child(subject: Subject, pickled: bytes, hash_seed: str, later: int = 0) -> AsyncIterator[OpenEnv]:
    """Open an environment in a process with a hash seed and a later clock.

    Raises:
        NotApplicable: Another process cannot make the environment.
    """
    before = os.environ.get("PYTHONHASHSEED")
    os.environ["PYTHONHASHSEED"] = hash_seed
    async with contextlib.AsyncExitStack() as stack:
        try:
            child = await stack.enter_async_context(
                subject.open(process=True, make=LaterMaker(pickled, later))
            )
        except Exception as error:
            raise NotApplicable(f"another process cannot make the environment: {error}") from error
        finally:
            del os.environ["PYTHONHASHSEED"]
            if before is not None:
                os.environ["PYTHONHASHSEED"] = before
        yield child


@contextlib.asynccontextmanager
async def _other_process(subject: Subject, pickled: bytes) -> AsyncIterator[OpenEnv]:
    """Open an environment in a process with another hash seed, and with a later clock if that is possible.

    Raises:
        NotApplicable: Another process cannot make the environment.
    """
    async with contextlib.AsyncExitStack() as stack:
        try:
            child = await stack.enter_async_context(_child(subject, pickled, _SEEDS[1], _DAY))
        except NotApplicable:  # a library may not accept the replaced clock
            child = await stack.enter_async_context(_child(subject, pickled, _SEEDS[1]))
        yield child


def _sent(trace: Trace) -> Trace:
    """Return a trace with the values that arrive from another process."""

    def sent(value: Any) -> Any:
        try:
            return decode(json.dumps(encode(value, [])).encode())
        except (TypeError, ValueError):
            return value

    steps = [
        replace(
            step,
            **{
                name: sent(getattr(step, name))
                for name in ("observation", "reward", "terminated", "truncated", "info")
            },
        )
        for step in trace.transitions
    ]
    return replace(
        trace, observation=sent(trace.observation), info=sent(trace.info), transitions=tuple(steps)
    )


async def _elsewhere(
    subject: Subject, pickled: bytes, sequence: ActionSequence, used: Trace
) -> Defect | None:
    """Return the defect that a process gives another episode, with its cause.

    Args:
        subject: The audited environment.
        pickled: Its maker.
        sequence: The sequence that differs.
        used: Its play in the process that started other tasks before.
    """
    async with _child(subject, pickled, _SEEDS[0]) as first:
        new = await first.play(sequence)
        if text := deviation(new, await first.play(sequence)):
            return await _left_behind(subject, sequence, text)
        for cause, seed, later in _CAUSES:
            async with _child(subject, pickled, seed, later) as second:

                async def fails(case: Case, second: OpenEnv = second) -> str:
                    one, other = await asyncio.gather(first.play(case[0]), second.play(case[0]))
                    return deviation(one, other)

                text = await fails((sequence,))
                if not text:
                    continue
                if later and second.trace.error:  # the replaced clock itself may be the reason
                    return None
                (case,), shrunk = await shrink((sequence,), fails, seconds=max(2.0, subject.seconds_left / 2))
            return await _foreign(subject, case, cause, shrunk or text, (_SEEDS[0], seed))
    text = deviation(new, _sent(await subject.play(sequence))) or deviation(new, used)
    return await _left_behind(subject, sequence, text) if text else None


async def _foreign(
    subject: Subject, sequence: ActionSequence, cause: str, text: str, seeds: tuple[str, str]
) -> Defect:
    message = f"{cause} gives another episode"
    if cause == "a later clock":
        shown = await _clock_program(subject, sequence, message)
    else:
        source = subject.source
        made = [*source.imports, f"env = {source.expression}"]
        played = f"print(env.{reset_call(subject, sequence.task)}[0], [env.step(action)[:4] for action in "
        code = "; ".join([*made, f"{played}{actions_text(subject, sequence)}])"])
        lines = [
            "import os, subprocess, sys",
            f"command = [sys.executable, '-c', {code!r}]",
            "def play(seed):",
            "    variables = {**os.environ, 'PYTHONHASHSEED': seed}",
            "    return subprocess.run(command, env=variables, capture_output=True).stdout",
            f"assert play({seeds[0]!r}) == play({seeds[1]!r}), {message!r}",
        ]
        shown = await program(subject, lines)
    return Defect(
        f"{cause} gives another episode of task {sequence.task}: {text}",
        _ADVICE[cause],
        (sequence.task,),
        shown,
    )


async def _clock_program(subject: Subject, sequence: ActionSequence, message: str) -> str:
    lines = [
        *play_lines(subject, sequence),
        f"first, later[0] = play(make()), {_DAY}",
        f"assert first == play(make()), {message!r}",
    ]
    seconds = ["import time", "later, now = [0], time.time", "time.time = lambda: now() + later[0]"]
    dates = [
        "import datetime",
        "later, real, day = [0], datetime.datetime, datetime.timedelta",
        "class Later(real): now = classmethod(lambda cls, tz=None: real.now(tz) + day(seconds=later[0]))",
        "datetime.datetime = Later",
    ]
    return await program(subject, lines, first=seconds) or await program(subject, lines, first=dates)


async def _left_behind(subject: Subject, sequence: ActionSequence, text: str) -> Defect:
    """Return the defect that earlier episodes of a process change later ones in new environments."""
    shown = ""
    for other in (sequence, *(reference.sequence for reference in subject.references[:4])):
        second = [f"other.{reset_call(subject, other.task)}"]
        if other.actions:
            second.append(f"for action in {actions_text(subject, other)}: other.step(action)")
        lines = [
            *play_lines(subject, sequence),
            "first, other = play(make()), make()",
            *second,
            "assert first == play(make()), 'an earlier episode of the process changes a later one'",
        ]
        shown = await program(subject, lines)
        if shown or subject.seconds_left < 0:
            break
    return Defect(
        f"task {sequence.task} differs from its play in a new process, given first: {text}",
        "keep the state of an episode in attributes of its instance, never of the class or the module",
        (sequence.task,),
        shown,
    )
