"""Whether episodes end at the turn limit that the environment declares, or states in its texts."""

from __future__ import annotations

import re
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from agentgym_gym.rollout._env_facts import attribute_of
from agentgym_gym.testing._audit.bulk import action_pool, fault_note, play_at_once, understood
from agentgym_gym.testing._audit.episodes import ActionSequence, Trace, shown_value
from agentgym_gym.testing._audit.findings import Checked, Defect, NotApplicable
from agentgym_gym.testing._audit.programs import actions_text, program, reset_call

if TYPE_CHECKING:
    from agentgym_gym.testing._audit.subject import Subject

__all__ = ["check_turn_limit", "declared_limit", "declared_limits", "stated_limit"]

_ATTRIBUTES = ("max_turns", "max_steps")
_LONGEST_LIMIT = 2000
_REPEATED = 6
_DRAWN = 4
_SAME = 3
"""Episodes that end in the same turn, none of them won and none longer, show the real limit."""

_NUMBERS = ["one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"]
_STATED = re.compile(
    r"\b(?:you(?: will)? (?:have|get)|you are (?:given|allowed)|within|limited to|limit of|limit is"
    r"|maximum of|at most|up to|in no more than)"
    r"(?: only| exactly| a total of| at most| up to)? "
    rf"(\d+|{'|'.join(_NUMBERS)}) (turns|steps|actions|moves|guesses|attempts|tries)\b"
    r"(?! (?:at|per|for each|each|in a row|ahead|back))",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class _Limit:
    """A limit as the environment gives it.

    Attributes:
        turns: Its value.
        origin: Where it is given, in words.
        code: The Python expression that reads it from `env` or the first observation `start`.
        loose: Whether invalid actions may not count, as for guesses.
    """

    turns: int
    origin: str
    code: str
    loose: bool = False


def declared_limits(env: Any, subject: Subject) -> Iterator[_Limit]:
    """Return the limits that an environment declares: its spec, its attributes, its catalogue entry."""
    spec = getattr(env, "spec", None)
    registered = getattr(spec, "max_episode_steps", None)
    if isinstance(registered, int) and not subject.facts.awaited:
        yield _Limit(registered, "the registered max_episode_steps", "env.spec.max_episode_steps")
    for name in _ATTRIBUTES:
        value = attribute_of(env, name)
        if type(value) is int and value > 0:
            yield _Limit(value, f"the attribute {name}", f"env.get_wrapper_attr({name!r})")
    options = getattr(spec, "kwargs", None) or {}
    entry = subject.environment.max_turns if subject.environment is not None else None
    value = options.get("max_turns", entry)
    if type(value) is int:
        yield _Limit(value, "max_turns", str(value))


def declared_limit(env: Any, subject: Subject) -> int | None:
    """Return the lowest declared limit, or None."""
    return min((each.turns for each in declared_limits(env, subject)), default=None)


def stated_limit(text: str) -> tuple[int, str] | None:
    """Return the number and the unit of a sentence such as "You have 10 turns", if a text has only one."""
    found = {(_value(number), unit.lower()) for number, unit in _STATED.findall(text)}
    return found.pop() if len(found) == 1 else None


def _value(number: str) -> int:
    return int(number) if number.isdigit() else _NUMBERS.index(number.lower()) + 1


async def check_turn_limit(subject: Subject) -> Checked:
    """Compare the turn in which episodes end with each limit that the environment gives."""
    explored = await subject.explored()
    async with subject.open() as env:
        declared = list(await env.run(lambda one: list(declared_limits(one, subject))))
        limits = sorted(declared, key=lambda each: each.turns)[:1]
        limits += _stated_limits(subject, explored)
        if not limits:
            raise NotApplicable("the environment declares no turn limit")
        longest = max(each.turns for each in limits)
        if longest > _LONGEST_LIMIT:
            raise NotApplicable(f"the limit of {longest} turns is too long to be played")
        # `TextAdapter` does not pass on a text that is no action: it is not a turn of the environment.
        episodes = [
            trace
            for trace in explored
            if trace.over
            and not trace.faulted
            and not trace.error
            and all(map(understood, trace.transitions))
        ]
        for task, actions in await _strategies(subject, 2 * longest + 10):
            if subject.seconds_left < 0:
                break
            ends = time.monotonic() + max(0.2, subject.seconds_left / 2)
            trace = await env.run(
                partial(play_at_once, facts=subject.facts, task=task, actions=_until(actions, ends))
            )
            long = len(trace.transitions) >= 2 * longest + 10
            if not trace.error and not trace.faulted and (trace.over or long):
                episodes.append(trace)
    episodes = [trace for trace in episodes if not _won(trace)]
    measured: dict[str, Any] = {"episodes": len(episodes), "limits": [each.turns for each in limits]}
    defects = []
    for limit in limits:
        problem, example = _contradiction(limit, episodes)
        if example is not None:
            defects.append(await _defect(subject, limit, problem, example))
    reached = any(len(trace.transitions) >= min(each.turns for each in limits) for trace in episodes)
    notes = [fault_note(explored)]
    notes += [] if reached or defects else ["no episode of random actions reached the limit"]
    return Checked(defects[:3], measured, "; ".join(filter(None, notes)))


def _stated_limits(subject: Subject, explored: Sequence[Trace]) -> Iterator[_Limit]:
    read = "int(re.search(r'(\\d+) {}', {})[1])"
    stated = stated_limit(subject.facts.system_prompt or "")
    if stated is not None:
        code = read.format(stated[1], "env.get_wrapper_attr('system_prompt')")
        yield _limit_of(stated, "the system prompt", code)
    starts = {stated_limit(trace.observation) for trace in explored if isinstance(trace.observation, str)}
    if len(starts) == 1 and (first := starts.pop()) is not None:
        yield _limit_of(first, "the first observation", read.format(first[1], "start"))


def _limit_of(stated: tuple[int, str], origin: str, code: str) -> _Limit:
    turns, unit = stated
    return _Limit(turns, f"{origin} ({turns} {unit})", code, unit in {"guesses", "attempts", "tries"})


async def _strategies(subject: Subject, turns: int) -> list[tuple[int, Iterable[str]]]:
    """Return tasks with actions: random ones, and the same one again and again."""
    pool, rng, tasks = await action_pool(subject), subject.rng(4), subject.tasks
    drawn = [[pool[at] for at in rng.integers(len(pool), size=turns)] for _ in range(_DRAWN)]
    repeated = [[action] * turns for action in pool[:_REPEATED]]
    return [(tasks[number % len(tasks)], actions) for number, actions in enumerate([*repeated, *drawn])]


def _until(actions: Iterable[str], ends: float) -> Iterator[str]:
    for action in actions:
        if time.monotonic() > ends:
            return
        yield action


def _won(trace: Trace) -> bool:
    step = trace.transitions[-1]
    return bool(step.terminated) and (step.value > 0 or bool(trace.last_info.get("success")))


def _contradiction(limit: _Limit, episodes: Sequence[Trace]) -> tuple[str, Trace | None]:
    """Return the number of turns in words and an episode that shows it, if episodes contradict a limit."""
    ended = [trace for trace in episodes if trace.over]
    if any(len(trace.transitions) == limit.turns for trace in ended) or not episodes:
        return "", None
    endless = [trace for trace in episodes if not trace.over]
    if len(endless) >= _SAME:
        trace = endless[0]
        return ("", None) if limit.loose else (f"continues after {len(trace.transitions)} turns", trace)
    turns = max(len(trace.transitions) for trace in episodes)
    at_end = [trace for trace in ended if len(trace.transitions) == turns]
    real = len(at_end) >= _SAME and not endless
    if not real:
        return "", None
    if turns > limit.turns:
        wrong = not limit.loose or turns == limit.turns + 1
    else:
        truncated = all(trace.transitions[-1].truncated for trace in at_end)
        wrong = truncated or (turns == limit.turns - 1 and len(at_end) > _SAME)
    return f"ends in turn {turns}", _simplest(at_end) if wrong else None


def _simplest(traces: Sequence[Trace]) -> Trace:
    """Return the episode with the fewest different actions."""
    return min(traces, key=lambda trace: len(set(trace.sequence.actions)))


async def _defect(subject: Subject, limit: _Limit, problem: str, trace: Trace) -> Defect:
    actions = trace.sequence.actions
    ((action, _),) = Counter(actions).most_common(1)
    turns = max(len(actions), limit.turns) + 1
    needed = f"{actions_text(subject, ActionSequence(trace.task, (action,)))} * {turns}"
    if len(set(actions)) > 1:
        needed = f"{actions_text(subject, trace.sequence)} + {needed}"
    lines = [
        *(["import re"] if "re.search" in limit.code else []),
        "env = make()",
        f"start = env.{reset_call(subject, trace.task)}[0]",
        f"for turn, action in enumerate({needed}, 1):",
        "    if any(env.step(action)[2:4]):",
        "        break",
        f'assert turn == {limit.code}, f"the episode ends in turn {{turn}}, not {limit.turns}"',
    ]
    return Defect(
        f"in task {trace.task}, an episode of {shown_value(list(dict.fromkeys(actions)), 60)} {problem}, "
        f"and {limit.origin} is {limit.turns}",
        "count every step once, return truncated in the last turn, and state the same number everywhere",
        (trace.task,),
        await program(subject, lines),
    )
