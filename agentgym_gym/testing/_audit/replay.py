"""Whether the same task and actions give the same episode: again, in used environments, beside others."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from agentgym_gym.testing._audit.episodes import ActionSequence, difference
from agentgym_gym.testing._audit.findings import Checked, Defect
from agentgym_gym.testing._audit.programs import actions_text, program, reset_call
from agentgym_gym.testing._audit.shrinking import Case, shrink

if TYPE_CHECKING:
    from agentgym_gym.testing._audit.subject import Subject

__all__ = ["check_replay"]


async def check_replay(subject: Subject) -> Checked:
    """Play explored episodes again, each in a new environment."""
    played = 0

    async def fails(case: Case) -> str:
        first, second = await asyncio.gather(*(subject.play(case[0]) for _ in range(2)))
        return difference(first, second)

    for trace in await subject.explored():
        if subject.seconds_left < 0:
            break
        played += 1
        if not difference(trace, await subject.play(trace.sequence)):
            continue
        if not await fails((trace.sequence,)):
            continue  # `reuse` explains it
        (case,), text = await shrink((trace.sequence,), fails, seconds=subject.seconds_left / 2)
        return Checked([await _defect(subject, case, text)], {"episodes": played})
    return Checked(measured={"episodes": played})


async def _defect(subject: Subject, sequence: ActionSequence, text: str) -> Defect:
    lines = [
        "def play(env):",
        f"    start = env.{reset_call(subject, sequence.task)}[0]",
        f"    return [start, *(env.step(action)[:4] for action in {actions_text(subject, sequence)})]",
        'assert play(make()) == play(make()), "the same task and actions give different episodes"',
    ]
    return Defect(
        f"played twice, task {sequence.task} differs: {text}",
        "let reset(seed=...) or the task decide everything: use self.np_random, never the random module, "
        "numpy's global generator, the time or the order of a set",
        (sequence.task,),
        await program(subject, lines),
    )
