"""Whether an environment plays the same alongside other copies, stepped in turns."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from agentgym_gym.testing._audit.episodes import ActionSequence, Trace, differing_turn
from agentgym_gym.testing._audit.findings import Checked, Defect, NotApplicable
from agentgym_gym.testing._audit.programs import actions_text, equal_lines, program, reset_call
from agentgym_gym.testing._audit.references import deviation, references
from agentgym_gym.testing._audit.shrinking import Case, shrink

if TYPE_CHECKING:
    import numpy as np

    from agentgym_gym.testing._audit.subject import Subject

__all__ = ["MOST", "alongside", "check_copies", "crosstalk", "leak", "marked_actions", "most_copies"]

MOST = 8
"""Most copies at once."""

_MARK = "zqmark7x"
"""A word that no environment uses: where it appears, another copy's action was seen."""

_ROUNDS = 12


async def check_copies(subject: Subject) -> Checked:
    """Step several copies in turns; each has to play as a single copy does."""
    most, alone, rng, played = most_copies(subject), await references(subject), subject.rng(3), 0
    stuck = 0
    for number in range(_ROUNDS * (4 if subject.thorough else 1)):
        if subject.enough(number):
            break
        count = 2 if number < 4 else int(rng.integers(2, most + 1))  # noqa: PLR2004
        chosen = [alone[int(index)] for index in rng.integers(len(alone), size=count)]
        if number % 4 == 0:
            chosen = [chosen[0]] * count
        sequences = [reference.sequence for reference in chosen]
        marked = number % 2 == 1 and not subject.source.adapted
        if marked:
            sequences[-1] = marked_actions(sequences[-1])
        try:
            traces = await _in_turns(subject, sequences, rng, closing=number % 4 > 1)
        except Exception as error:  # noqa: BLE001 - of a constructor
            return await _only_one(subject, error)
        played += count
        compared = list(zip(chosen, traces, strict=True))[: count - marked]
        stuck += sum(trace.timed_out for _, trace in compared)
        if stuck > 1:
            return Checked([_stuck(subject, chosen)], {"episodes": played})
        if (defect := await _mixture(subject, compared, sequences)) is not None:
            return Checked([defect], {"episodes": played})
    return Checked(measured={"episodes": played})


async def _mixture(
    subject: Subject, compared: Sequence[tuple[Trace, Trace]], sequences: Sequence[ActionSequence]
) -> Defect | None:
    """Return the defect that episodes which were played in turns show, if any.

    Args:
        subject: The audited environment.
        compared: The reference and the trace of each episode, without the marked one.
        sequences: The sequences of all, also the marked one, which is the last.
    """
    for own, (reference, trace) in enumerate(compared):
        if deviation(reference, trace):
            defect = await _mixed(subject, reference, trace, [*sequences[:own], *sequences[own + 1 :]])
            if defect is not None:
                return defect
    text = leak(trace for _, trace in compared)
    return await crosstalk(subject, sequences[:-1], sequences[-1:], text) if text else None


def most_copies(subject: Subject) -> int:
    """Return how many copies may be open.

    Raises:
        NotApplicable: It is one.
    """
    most = min(subject.facts.capacity or MOST, MOST)
    if most < 2:  # noqa: PLR2004
        raise NotApplicable("it declares a capacity of one copy")
    return most


def marked_actions(sequence: ActionSequence) -> ActionSequence:
    actions = [f"{action} {_MARK}" if turn % 2 else _MARK for turn, action in enumerate(sequence.actions)]
    return replace(sequence, actions=tuple(actions))


def leak(traces: Iterable[Trace], mark: str = _MARK) -> str:
    """Return where an episode shows the mark of another one, or an empty text."""
    for trace in traces:
        for turn, step in enumerate((trace, *trace.transitions)):
            for name in ("observation", "info"):
                if mark in repr(getattr(step, name)):
                    where = f"turn {turn}" if turn else "the reset"
                    return f"the {name} of {where} in task {trace.task} contains {mark!r}"
    return ""


def _stuck(subject: Subject, chosen: Sequence[Trace]) -> Defect:
    return Defect(
        f"stepped in turns with another copy, an episode does not continue within {subject.timeout:g} s; a "
        "single copy does",
        "do not keep a lock or a connection of all copies between two calls",
        tuple(dict.fromkeys(reference.task for reference in chosen)),
    )


async def crosstalk(
    subject: Subject, own: Sequence[ActionSequence], marked: Sequence[ActionSequence], text: str
) -> Defect:
    """Return the defect that an episode shows actions of another copy; shrunk, if it does so in turns."""
    numbers = itertools.count()
    for early in (False, True):

        async def fails(case: Case, early: bool = early) -> str:
            mark = f"{_MARK}{next(numbers)}x"  # a new one, which no earlier episode has left somewhere
            other_actions = tuple(action.replace(_MARK, mark) for action in case[1].actions)
            async with subject.open() as env, subject.open() as other:
                if not early:
                    await env.begin(case[0].task)
                await other.play(replace(case[1], actions=other_actions))
                if early:
                    await env.begin(case[0].task)
                for action in case[0].actions:
                    if not env.trace.over:
                        await env.step(action)
                return leak([env.trace], mark)

        for pair in itertools.product(own[:3], marked[:3]):
            if not await fails(pair):
                continue
            case, text = await shrink(pair, fails, seconds=max(1.0, subject.seconds_left / 2))
            reset, second = (reset_call(subject, each.task) for each in case)
            actions = [actions_text(subject, each) for each in case]
            again = f"one.{reset}, " if early else ""
            lines = [
                "one, other = make(), make()",
                *([] if early else [f"one.{reset}"]),
                f"other.{second}",
                f"for action in {actions[1]}: other.step(action)",
                f"seen = [{again}*(one.step(action) for action in {actions[0]})]",
                f"assert {_MARK!r} not in str(seen), 'an episode shows the actions of another copy'",
            ]
            return _leaked(text, case, await program(subject, lines))
    return _leaked(text, (*own, *marked), "")


def _leaked(text: str, case: Case, lines: str) -> Defect:
    return Defect(
        f"{text}, which only the actions of another copy had",
        "keep what an episode returns in attributes of its instance, never of the class or the module",
        tuple(dict.fromkeys(sequence.task for sequence in case)),
        lines,
    )


async def _in_turns(
    subject: Subject, sequences: Sequence[ActionSequence], rng: np.random.Generator, *, closing: bool
) -> list[Trace]:
    """Play each sequence in its own copy; a random copy has the next turn.

    Args:
        subject: The audited environment.
        sequences: The sequence of each copy.
        rng: Source of randomness.
        closing: Whether to close a copy as soon as its sequence is played.
    """
    async with contextlib.AsyncExitStack() as stack:
        envs = [await stack.enter_async_context(subject.open()) for _ in sequences]
        begun, left = set[int](), list(range(len(envs)))
        while left:
            index = left[int(rng.integers(len(left)))]
            env, sequence = envs[index], sequences[index]
            if index not in begun:
                begun.add(index)
                await env.begin(sequence.task)
            elif env.trace.over or len(env.trace.transitions) == len(sequence.actions):
                left.remove(index)
                if closing:
                    await env.close()
            else:
                await env.step(sequence.actions[len(env.trace.transitions)])
        return [env.trace for env in envs]


async def _only_one(subject: Subject, error: Exception) -> Checked:
    """Return the defect that a second copy cannot be made, or raise NotApplicable for more copies."""
    async with subject.open():
        try:
            async with subject.open():
                pass
        except Exception as second:  # noqa: BLE001 - of a constructor
            error = second
        else:
            raise NotApplicable(f"fewer than {MOST} copies can be open: {type(error).__name__}: {error}")
    message = "a second copy cannot be made while one is open"
    lines = ["one = make()", *equal_lines("bool(make())", "True", message, raises=True)]
    defect = Defect(
        f"{message}: {type(error).__name__}: {str(error)[:200]}",
        "let each instance have its own files, ports and connections, or declare capacity = 1",
        program=await program(subject, lines),
    )
    return Checked([defect])


async def _mixed(
    subject: Subject, reference: Trace, trace: Trace, others: Sequence[ActionSequence]
) -> Defect | None:
    """Return the defect that other copies change an episode, with as few copies and actions as possible."""
    own, turn = reference.sequence, differing_turn(reference, trace)
    splits = list(dict.fromkeys((0, max(0, turn - 1), len(own.actions) // 2)))
    for when in ("between", "closed", "before") if turn else ("before", "between", "closed"):

        async def fails(case: Case, when: str = when) -> str:
            return await alongside(subject, case, when)

        for split in (0,) if when == "before" else splits:
            before, after = own.first(split), replace(own, actions=own.actions[split:])
            for other in dict.fromkeys(others):
                case: Case = (before, other, after)
                if await fails(case):
                    case, text = await shrink(case, fails, seconds=max(1.0, subject.seconds_left / 2))
                    if text:
                        return await _alongside_defect(subject, case, text, when)
            case = (before, *others, after)
            if len(others) > 1 and (text := await fails(case)):
                return await _alongside_defect(subject, case, text, when)
    return None


async def alongside(subject: Subject, case: Case, when: str) -> str:
    """Return how an episode differs from its play in a single copy if other copies play, too.

    Args:
        subject: The audited environment.
        case: The first actions of the episode, the episodes of the others, and its other actions.
        when: When the others play: ``"before"`` its reset, ``"between"`` its actions, or ``"closed"``:
            between its actions, and then they are closed.
    """
    before, *others, after = case
    own = replace(before, actions=before.actions + after.actions)
    alone = await subject.play(own)
    async with contextlib.AsyncExitStack() as stack:
        env = None if when == "before" else await stack.enter_async_context(subject.open())
        if env is not None:
            await env.play(before)
        for other in others:
            copy = await stack.enter_async_context(subject.open())
            await copy.play(other)
            if when == "closed":
                await copy.close()
        if env is None:
            env = await stack.enter_async_context(subject.open())
            await env.play(before)
        for action in after.actions:
            if not env.trace.over:
                await env.step(action)
        text = deviation(alone, env.trace)
    return text if text and not deviation(alone, await subject.play(own)) else ""


async def _alongside_defect(subject: Subject, case: Case, text: str, when: str) -> Defect:
    before, *others, after = case
    start = f"    seen = [env.{reset_call(subject, before.task)}[0]]"
    if before.actions:
        start = f"{start[:-1]}, *(env.step(action)[:4] for action in {actions_text(subject, before)})]"
    count, other = len(others), others[0]
    second = f"copy.{reset_call(subject, other.task)}"
    if other.actions:
        second += f", [copy.step(action) for action in {actions_text(subject, other)}]"
    if when == "closed":
        second += ", copy.close()"
    alongside = f"    for copy in [make() for _ in range(copies)]: {second}"
    opening = (
        [alongside, "    env = make()", start] if when == "before" else ["    env = make()", start, alongside]
    )
    lines = [
        "def play(copies):",
        *opening,
        f"    return str([*seen, *(env.step(action)[:4] for action in {actions_text(subject, after)})])",
        *equal_lines(
            "play(0)", f"play({count})", "a copy changes another's episode", raises=" raises " in text
        ),
    ]
    company = f"a copy in task {other.task}" if count == 1 else f"{count} copies"
    ended = ", which is then closed" if when == "closed" else ""
    return Defect(
        f"stepped in turns with {company}{ended}, task {before.task} differs from its play "
        f"in a single copy, given first: {text}",
        "keep the state of an episode in attributes of its instance, never of the class or the module",
        tuple(dict.fromkeys(each.task for each in case[:-1])),
        await program(subject, lines),
    )
