"""Episodes that are reproducible in a single copy: the other checks compare with them."""

from __future__ import annotations

import asyncio
import itertools
import time
from typing import TYPE_CHECKING

from agentgym_gym.testing._audit.episodes import ActionSequence, Trace, difference
from agentgym_gym.testing._audit.findings import NotApplicable

if TYPE_CHECKING:
    from agentgym_gym.testing._audit.subject import Subject

__all__ = ["IRREPRODUCIBLE", "PAUSE", "deviation", "references"]

IRREPRODUCIBLE = "the environment is not reproducible: see replay"

PAUSE = 1.1
"""Seconds between two plays, for environments that depend on the time in seconds."""

_LONGEST = 1.0
"""Seconds after which a reference is cut."""

_EXPLORED = 8
_SOLVED = 3


async def references(subject: Subject) -> list[Trace]:
    """Return episodes, each played twice with the same result in a new environment.

    They are explored episodes, the ones with the highest return, and known solutions.

    Raises:
        NotApplicable: An episode is not reproducible, or none can be played.
    """
    if "replay" in subject.failed:
        raise NotApplicable(IRREPRODUCIBLE)
    if subject.references:
        return subject.references
    began, ends = time.monotonic(), time.monotonic() + max(1.0, subject.seconds_left / 3)
    alone = list[Trace]()
    for sequence in await _chosen(subject):
        if alone and time.monotonic() > ends:
            break
        first = _brief(await subject.play(sequence))
        sequence = first.sequence  # noqa: PLW2901 - only what is compared
        if deviation(first, await subject.play(sequence)):
            raise NotApplicable(IRREPRODUCIBLE)
        if not first.faulted:
            alone.append(first)
    if not alone:
        raise NotApplicable("no episode is free of faults and timeouts")
    await asyncio.sleep(max(0.0, began + PAUSE - time.monotonic()))
    if deviation(alone[0], await subject.play(alone[0].sequence)):
        raise NotApplicable(IRREPRODUCIBLE)
    subject.references = alone
    return alone


def _brief(trace: Trace) -> Trace:
    """Return the first turns of a trace that take at most a second together."""
    used = itertools.accumulate(step.seconds for step in trace.transitions)
    turns = sum(seconds <= _LONGEST for seconds in used)
    return trace if turns == len(trace.transitions) else trace.first(max(1, turns))


async def _chosen(subject: Subject) -> list[ActionSequence]:
    explored = [trace for trace in await subject.explored() if not trace.faulted]
    best = sorted(explored, key=lambda trace: -trace.returned)[:2]
    chosen = [trace.sequence for trace in (*explored[: _EXPLORED - len(best)], *best)]
    solved = [trace.sequence for trace in await subject.solved() if not trace.faulted]
    return list(dict.fromkeys([*solved[:_SOLVED], *chosen]))


def deviation(reference: Trace, trace: Trace) -> str:
    """Return the first difference of a play from its reference; empty if there is none, or a fault."""
    return "" if reference.faulted or trace.faulted else difference(reference, trace)
