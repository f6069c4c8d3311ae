"""Whether the same task and actions give the same episode: again, and in an environment that was used."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from agentgym_gym.testing._audit.episodes import ActionSequence, Trace, difference, shown_value
from agentgym_gym.testing._audit.findings import Checked, Defect, NotApplicable
from agentgym_gym.testing._audit.programs import actions_text, equal_lines, play_lines, program, reset_call
from agentgym_gym.testing._audit.references import IRREPRODUCIBLE, PAUSE, deviation, references
from agentgym_gym.testing._audit.shrinking import Case, shrink

if TYPE_CHECKING:
    from agentgym_gym.testing._audit.subject import Subject

__all__ = ["check_replay", "check_reuse", "check_seeds"]

_AGAIN = 4
"""How often an episode is played again, since a random one may be the same by chance."""

_ROUNDS = 4
_SEEDS = 20
_FEWEST = 3
_SHOWN = 12


async def check_replay(subject: Subject) -> Checked:
    """Play explored episodes again, each in a new environment."""
    explored = await subject.explored()
    played, pause = 0, 0.0

    async def fails(case: Case) -> str:
        first, text = await subject.play(case[0]), ""
        for _ in range(1 if pause else _AGAIN):
            await asyncio.sleep(pause)
            text = text or deviation(first, await subject.play(case[0]))
        return text

    for number, trace in enumerate((*explored, *explored[:_FEWEST])):
        if subject.enough(number):
            break
        if number == len(explored):
            await asyncio.sleep(PAUSE)
        played += number < len(explored)
        if not deviation(trace, await subject.play(trace.sequence)):
            continue
        for pause in (0.0, PAUSE):
            if text := await fails((trace.sequence,)):
                (case,), shrunk = await shrink((trace.sequence,), fails, seconds=subject.seconds_left / 2)
                defect = await _irreproducible(subject, case, shrunk or text, pause)
                return Checked([defect], {"episodes": played})
        # otherwise `reuse` explains it
    return Checked(measured={"episodes": played})


async def _irreproducible(subject: Subject, sequence: ActionSequence, text: str, pause: float) -> Defect:
    message = "the same task and actions give different episodes"
    lines, plays = play_lines(subject, sequence), "len({play(make()) for _ in range(20)})"
    if pause:
        plays = f"len({{(play(make()), time.sleep({pause})) for _ in range(3)}})"
    lines += equal_lines(plays, "1", message, raises=" raises " in text)
    apart = f"twice, {pause} s apart" if pause else "twice"
    first = ["import time"] if pause else []
    return Defect(
        f"played {apart}, task {sequence.task} differs: {text}",
        "let reset(seed=...) or the task decide everything: use self.np_random, never the random module, "
        "numpy's global generator, the time or the order of a set",
        (sequence.task,),
        await program(subject, lines, first=first),
    )


async def check_reuse(subject: Subject) -> Checked:
    """Play references in one environment, each after other episodes, whole or abandoned midway."""
    alone = await references(subject)
    played, history = 0, list[ActionSequence]()
    async with subject.open() as env:
        for number in range(_ROUNDS * len(alone) * (4 if subject.thorough else 1)):
            if subject.enough(played, 2 * len(alone)):
                break
            reference = alone[number % len(alone)]
            other = alone[(number + 1 + number // len(alone)) % len(alone)].sequence
            own = reference.sequence
            for before in ((other,), (_half(other),), (_half(own),), (own,))[number // len(alone) % _ROUNDS]:
                await env.play(before)
                history.append(before)
            trace = await env.play(own)
            played += 1
            if deviation(reference, trace):
                defect = await _carried(subject, history, own)
                if defect is not None:
                    return Checked([defect], {"episodes": played})
            history.append(own)
    return Checked(measured={"episodes": played})


def _half(sequence: ActionSequence) -> ActionSequence:
    return sequence.first((len(sequence.actions) + 1) // 2)


async def _carried(subject: Subject, history: Sequence[ActionSequence], own: ActionSequence) -> Defect | None:
    """Return the defect that an episode depends on earlier ones, with as few of them as possible."""

    async def fails(case: Case) -> str:
        alone = await subject.play(case[-1])
        async with subject.open() as env:
            for before in case[:-1]:
                await env.play(before)
            text = deviation(alone, await env.play(case[-1]))
        return text if text and not deviation(alone, await subject.play(case[-1])) else ""

    case = await _fewest((*history, own), fails, subject)
    if case is None:
        return None
    case, text = await shrink(case, fails, seconds=max(1.0, subject.seconds_left / 2))
    if not text:
        return None
    lines = [*play_lines(subject, case[-1]), "used = make()"]
    for before in case[:-1]:
        lines.append(f"used.{reset_call(subject, before.task)}")
        if before.actions:
            lines.append(f"for action in {actions_text(subject, before)}: used.step(action)")
    message = "an environment that was used gives another episode than a new one"
    lines += equal_lines("play(used)", "play(make())", message, raises=" raises " in text)
    tasks = tuple(dict.fromkeys(each.task for each in case))
    return Defect(
        f"after {_episodes(case[:-1])}, task {case[-1].task} differs from its play in a new environment, "
        f"given first: {text}",
        "set every attribute that an episode changes in reset, also counters, flags and caches",
        tasks,
        await program(subject, lines),
    )


async def _fewest(
    whole: Case, fails: Callable[[Case], Coroutine[Any, Any, str]], subject: Subject
) -> Case | None:
    """Return a case with few of the episodes before the last one; None if none fails."""
    count = 1
    while not await fails(whole[-1 - count :]):
        count *= 2
        if count >= 2 * len(whole):
            return None
    case = whole[-1 - count :]
    for index in reversed(range(len(case) - 1)):
        fewer = case[:index] + case[index + 1 :]
        if len(fewer) > 1 and subject.seconds_left > 0 and await fails(fewer):
            case = fewer
    return case


def _episodes(case: Case) -> str:
    parts = []
    for each in case[:_FEWEST]:
        actions = [*(shown_value(action, 30) for action in each.actions[:_FEWEST]), "…"]
        shown = ", ".join(actions[: len(each.actions)]) or "no action"
        parts.append(f"task {each.task} with {shown}")
    more = f" and {len(case) - _FEWEST} more" if len(case) > _FEWEST else ""
    return " and ".join(parts) + more


async def check_seeds(subject: Subject) -> Checked:
    """Compare the beginnings of tasks; if all are alike, play the same actions in each."""
    starts = await _starts(subject)
    tasks = [trace.task for trace in starts]
    kind = "tasks" if subject.facts.task_option is not None or subject.splits else "seeds"
    if len(tasks) < _FEWEST:
        raise NotApplicable(f"fewer than {_FEWEST} {kind} were played")
    if "replay" in subject.failed:
        raise NotApplicable(IRREPRODUCIBLE)
    measured = {"compared": len(tasks)}
    if _vary(starts):
        return Checked(measured=measured)
    solved = [trace.sequence for trace in await subject.solved() if not trace.faulted][:2]
    explored = [trace for trace in await subject.explored() if not trace.faulted]
    longest = sorted(explored, key=lambda trace: -len(trace.transitions))[:_FEWEST]
    outcomes = set[tuple[float, bool]]()
    sequences = [*solved, *(trace.sequence for trace in longest)]
    for sequence in sequences:
        plays: list[Trace] = []
        for task in tasks:
            if subject.seconds_left < 0:
                return Checked(measured=measured, note=f"the {kind} begin alike; the time was used")
            plays.append(await subject.play(replace(sequence, task=task)))
            if _vary(plays[-2:]):
                return Checked(measured=measured)
        outcomes |= {(step.value, step.ends) for step in plays[0].transitions}
    if len(outcomes) < 2:  # noqa: PLR2004 - what a task hides may need the right action to show
        return Checked(measured=measured, note=f"the {kind} begin alike, and no drawn action earned anything")
    return Checked([await _no_effect(subject, tasks, sequences[0].first(_SHOWN), kind)], measured)


async def _starts(subject: Subject) -> list[Trace]:
    """Return the beginnings of tasks, in order, without faults."""
    starts = {trace.task: trace.first(0) for trace in await subject.explored()}
    async with subject.open() as env:
        for task in subject.tasks[:_SEEDS]:
            if task not in starts and subject.seconds_left > 0:
                starts[task] = await env.begin(task)
    return sorted((each for each in starts.values() if not each.faulted), key=lambda each: each.task)[:_SEEDS]


def _vary(traces: Sequence[Trace]) -> bool:
    """Return whether traces of different tasks differ in more than the number of the task."""
    first, *others = [
        replace(
            trace,
            info=_unnumbered(trace.info),
            transitions=tuple(replace(step, info=_unnumbered(step.info)) for step in trace.transitions),
        )
        for trace in traces
    ]
    return any(difference(first, other) for other in others)


def _unnumbered(info: Any) -> Any:
    return {**info, "task_id": None} if isinstance(info, Mapping) else None


async def _no_effect(subject: Subject, tasks: Sequence[int], sequence: ActionSequence, kind: str) -> Defect:
    played = (await subject.play(sequence)).sequence
    lines = [
        "def play(env, task):",
        f"    start = env.{reset_call(subject, 'task')}[0]",
        f"    return str([start, *(env.step(action)[:4] for action in {actions_text(subject, played)})])",
        f"episodes = {{play(make(), task) for task in {list(tasks)}}}",
        f"assert len(episodes) > 1, 'all {kind} give the same episode'",
    ]
    return Defect(
        f"{len(tasks)} {kind} begin with the same observation and continue alike under the same actions",
        "draw the start from self.np_random after super().reset(seed=seed), or select the task by the reset "
        "option named in metadata['task_option']",
        tuple(tasks),
        await program(subject, lines),
    )
