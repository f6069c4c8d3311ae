"""Whether success, rewards and ends agree, and whether tasks are won by knowledge only."""

from __future__ import annotations

import asyncio
import itertools
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeAlias

from agentgym_gym.errors import AgentGymError
from agentgym_gym.evaluate import validate
from agentgym_gym.evaluate._figures.intervals import wilson
from agentgym_gym.evaluate._validate import MOST_WON, OTHERS_WON, policy_result
from agentgym_gym.rollout._check_results import stated_success
from agentgym_gym.testing._audit.episodes import ActionSequence, Trace, shown_value
from agentgym_gym.testing._audit.findings import Checked, Defect, NotApplicable
from agentgym_gym.testing._audit.programs import actions_text, program, reset_call
from agentgym_gym.testing._audit.shrinking import Case, shrink

if TYPE_CHECKING:
    from agentgym_gym.evaluate import EpisodeRecord
    from agentgym_gym.testing._audit.subject import Subject

__all__ = [
    "SENSELESS",
    "check_credit",
    "check_floors",
    "check_solutions",
    "check_success",
    "played_traces",
    "require_text_actions",
    "steps_lines",
]

SENSELESS = "xqzvk wjpfy"
"""An action without meaning."""

_BATCH = 4
"""Tasks that `validate` plays between two looks at the time."""

_SEEDS = 100
"""Seeds that cheap policies play at most, in an environment without splits."""

_Rule: TypeAlias = Callable[[Trace], str]
"""Returns what is wrong with an episode, or an empty text."""

_CLOSE = 1e-6


async def played_traces(subject: Subject) -> Sequence[Trace]:
    """Return the solved and the explored episodes, without faults."""
    return [trace for trace in (*await subject.solved(), *await subject.explored()) if not trace.faulted]


def require_text_actions(subject: Subject) -> None:
    """Raise if a text without meaning never reaches the environment.

    Raises:
        NotApplicable: It does not.
    """
    try:
        subject.native_literal(SENSELESS)
    except ValueError as error:
        raise NotApplicable("a text that is not an action never reaches this environment") from error


async def check_success(subject: Subject) -> Checked:
    """Compare success, rewards and ends of solved and explored episodes."""
    traces = [*await played_traces(subject), *await _prolonged(subject)]
    defects: list[Defect] = []
    for rule, advice, condition in _success_rules(subject, traces):
        trace = next((trace for trace in traces if rule(trace)), None)
        if trace is None or len(defects) == _MOST:
            continue

        async def fails(case: Case, rule: _Rule = rule) -> str:
            return rule(await subject.play(case[0]))

        text = rule(trace)
        (case,), shrunk = await shrink((trace.sequence,), fails, seconds=max(1.0, subject.seconds_left / 3))
        lines = [*steps_lines(subject, case), f"assert {condition}, {text.partition(':')[0]!r}"]
        shown = f"task {case.task}: {shrunk or text}"
        defects.append(Defect(shown, advice, (case.task,), await program(subject, lines)))
    stated = sum(_outcome(trace) is not None for trace in traces)
    return Checked(defects, {"episodes": len(traces), "with_success": stated})


async def _prolonged(subject: Subject) -> list[Trace]:
    """Return won episodes that go on after the win, and ones that win in the last turn, if they can."""
    won = [trace for trace in await subject.solved() if _outcome(trace) and not trace.faulted][:_MOST]
    explored = [trace for trace in await subject.explored() if trace.transitions]
    limit = max((len(each.transitions) for each in explored if each.transitions[-1].truncated), default=0)
    idle = (subject.choices.reply(SENSELESS),)
    cases = [
        replace(trace.sequence, actions=(*trace.sequence.actions, *idle * _BEYOND))
        for trace in won
        if not trace.over
    ]
    cases += [
        replace(trace.sequence, actions=(*idle * spare, *trace.sequence.actions))
        for trace in won
        if (spare := limit - len(trace.transitions)) > 0
    ]
    if subject.source.adapted:
        return []
    traces = [await subject.play(case) for case in cases]
    return [trace for trace in traces if not trace.faulted]


_BEYOND = 3
"""Turns after a win."""

_MOST = 3
"""Defects of a property at most."""


def steps_lines(subject: Subject, case: ActionSequence) -> list[str]:
    """Return the lines of a program that play a sequence to its end; ``steps`` begins with the reset."""
    return [
        "env = make()",
        f"steps = [(None, 0, False, False, env.{reset_call(subject, case.task)}[1])]",
        f"steps += (env.step(each) for each in {actions_text(subject, case)} if not any(steps[-1][2:4]))",
    ]


def _success_rules(subject: Subject, traces: Sequence[Trace]) -> Iterator[tuple[_Rule, str, str]]:
    """Yield each rule with its advice and the condition that a program asserts."""
    won, total = 'steps[-1][4].get("success")', "sum(step[1] for step in steps)"
    yield (
        _not_bool,
        'set info["success"] to True or False',
        'all(step[4].get("success") in (True, False, None) for step in steps)',
    )
    yield (
        _revoked,
        'keep info["success"] true until the end of the episode, or set it only at the end',
        '(wins := [bool(step[4].get("success")) for step in steps]) == sorted(wins)',
    )
    ended = [trace for trace in traces if trace.transitions and trace.transitions[-1].ends]
    returns = [trace.returned for trace in ended if _outcome(trace)]
    if max(returns, default=0) > 0:
        yield _unpaid, "pay every success", f"not {won} or {total} > 0"
    top = _full_return(ended)
    if top is not None:
        yield (
            lambda trace: _paid_in_vain(trace, top),
            "decide success and reward by the same condition",
            f"{won} or {total} < {top - _CLOSE!r}",
        )
    if any(_outcome(trace) is not None for trace in ended):
        yield _unstated, 'set info["success"] in each episode', 'steps[-1][4].get("success") is not None'
    elif subject.facts.success_at is None and not subject.source.adapted and _has_partial_credit(ended):
        yield (
            _partial,
            'set info["success"], or register a reward_threshold: readers take any positive return for a win',
            f"{won} is not None or not 0 < {total} < 1",
        )
    at = subject.facts.success_at
    if at is not None:
        yield (
            lambda trace: _misses_threshold(trace, at),
            "register the return of a solved task as reward_threshold",
            f"{won} or {total} < (env.spec.reward_threshold or 1e9)",
        )
        if subject.solver is not None and max((trace.returned for trace in ended), default=at) < at:
            yield (
                lambda trace: _stays_below(trace, at),
                "register the return of a solved task as reward_threshold",
                f"not {won} or {total} >= (env.spec.reward_threshold or 0)",
            )


def _outcome(trace: Trace) -> bool | None:
    return stated_success(trace.last_info.get("success"))


def _ends(trace: Trace) -> bool:
    return bool(trace.transitions) and trace.transitions[-1].ends and not trace.faulted


def _infos(trace: Trace) -> Iterator[tuple[str, Mapping[str, Any]]]:
    for turn, info in enumerate([trace.info, *(step.info for step in trace.transitions)]):
        if isinstance(info, Mapping):
            yield f"turn {turn}" if turn else "the reset", info


def _not_bool(trace: Trace) -> str:
    for when, info in _infos(trace):
        value = info.get("success")
        plain: Any = value.item() if getattr(value, "ndim", None) == 0 else value  # type: ignore[union-attr]
        if plain is not None and not (isinstance(plain, (bool, int, float)) and plain in {0, 1}):
            return f'info["success"] is no bool: {shown_value(value)} in {when}'
    return ""


def _revoked(trace: Trace) -> str:
    since = ""
    for when, info in _infos(trace):
        success = stated_success(info.get("success"))
        if success:
            since = since or when
        elif since and success is False:
            return f"success is revoked: it is true after {since} and false after {when}"
    return ""


def _unpaid(trace: Trace) -> str:
    unpaid = _ends(trace) and _outcome(trace) and not any(step.value for step in trace.transitions)
    return "a success pays nothing: the return is 0, and other successes have more" if unpaid else ""


def _full_return(ended: Sequence[Trace]) -> float | None:
    """Return the return of a success, if all successes have the same one and no episode has more."""
    returns = [trace.returned for trace in ended if _outcome(trace) and trace.returned > 0]
    if not returns or max(returns) - min(returns) > _CLOSE:
        return None
    top = max(returns)
    return top if all(trace.returned <= top + _CLOSE for trace in ended) else None


def _paid_in_vain(trace: Trace, top: float) -> str:
    if _ends(trace) and _outcome(trace) is False and trace.returned >= top - _CLOSE:
        return f"the full return without success: {trace.returned:g}, as in successful episodes"
    return ""


def _unstated(trace: Trace) -> str:
    if _ends(trace) and _outcome(trace) is None and trace.last_info.get("success") is None:
        return "the episode ends without info['success']: other episodes have it"
    return ""


def _has_partial_credit(ended: Sequence[Trace]) -> bool:
    returns = {round(trace.returned, 6) for trace in ended}
    between = [value for value in returns if 0 < value < 1]
    return len(between) > 1 and all(0 <= value <= 1 for value in returns)


def _partial(trace: Trace) -> str:
    if _ends(trace) and _outcome(trace) is None and 0 < trace.returned < 1:
        return f"only partial credit and no success: the return is {trace.returned:g}, perhaps not a win"
    return ""


def _misses_threshold(trace: Trace, at: float) -> str:
    if _ends(trace) and _outcome(trace) is False and trace.returned >= at:
        return f"no success at the reward_threshold: the return {trace.returned:g} reaches {at:g}"
    return ""


def _stays_below(trace: Trace, at: float) -> str:
    if _ends(trace) and _outcome(trace) and trace.returned < at:
        return f"a success below the reward_threshold: a success has {trace.returned:g}, none has {at:g}"
    return ""


async def check_credit(subject: Subject) -> Checked:
    """Replace paid actions by a senseless one: a reward that is paid again does not depend on the action."""
    require_text_actions(subject)
    senseless = [SENSELESS, subject.choices.reply(SENSELESS)]
    paid = 0
    async with subject.open() as env:
        for sequence, reward in _paid_turns(await played_traces(subject)):
            if subject.enough(paid):
                break
            paid += 1
            prefix, action = sequence.actions[:-1], sequence.actions[-1]
            for text in dict.fromkeys(senseless):
                again = await env.play(replace(sequence, actions=(*prefix, text)))
                if action == text or not _pays(again, len(prefix), reward):
                    continue
                if not _pays(await subject.play(again.sequence), len(prefix), reward):  # by chance
                    continue
                late = await env.play(replace(sequence, actions=(*prefix[:-1], text, text)))
                earned = bool(prefix) and not _pays(late, len(prefix), reward)
                defect = await _credit_defect(subject, again.sequence, reward, action, earned=earned)
                return Checked([defect], {"paid_turns": paid})
    if not paid:
        raise NotApplicable("no episode has a positive reward for a single turn")
    return Checked(measured={"paid_turns": paid})


def _paid_turns(traces: Sequence[Trace]) -> Iterator[tuple[ActionSequence, float]]:
    """Yield the beginnings of episodes up to a positive reward, unless it is paid at a turn limit."""
    rewards = Counter(round(step.value, 6) for trace in traces for step in trace.transitions)
    usual = max(
        rewards, key=rewards.__getitem__, default=0.0
    )  # paid for each turn, such as for staying alive
    for trace in traces:
        paid = [
            turn
            for turn, step in enumerate(trace.transitions, 1)
            if step.value > 0 and not step.truncated and round(step.value, 6) != usual
        ]
        for turn in paid[:2]:
            yield trace.sequence.first(turn), trace.transitions[turn - 1].value


def _pays(trace: Trace, turn: int, reward: float) -> bool:
    steps = trace.transitions
    return not trace.faulted and len(steps) > turn and abs(steps[turn].value - reward) < _CLOSE


async def _credit_defect(
    subject: Subject, case: ActionSequence, reward: float, action: str, *, earned: bool
) -> Defect:
    turn = len(case.actions)
    reason = (
        f"it belongs to turn {turn - 1}, {shown_value(case.actions[-2])}"
        if earned
        else "it is paid for nothing"
    )
    lines = [
        *steps_lines(subject, case),
        f'assert sum(step[1] for step in steps[{turn}:]) < {reward - _CLOSE!r}, "a senseless action is paid"',
    ]
    return Defect(
        f"task {case.task} pays {reward:g} in turn {turn} for {shown_value(action)}, and as much for "
        f"{shown_value(case.actions[-1])}: {reason}",
        "pay a reward in the turn of the action that earns it",
        (case.task,),
        await program(subject, lines),
    )


async def check_solutions(subject: Subject) -> Checked:
    """Play the known solutions with `validate`: each wins, except for tasks listed as unwinnable."""
    if subject.solver is None:
        raise NotApplicable("there is no solver: give one as solver=")
    unwinnable = subject.environment.unwinnable if subject.environment is not None else {}
    best = {trace.task: trace.returned for trace in sorted(await played_traces(subject), key=_returned)}
    records = await _validate(subject, subject.tasks, solver=True)
    lost = [record for record in records if record.scored and _is_lost(record, best.get(record.task_id, 0.0))]
    failed = [record for record in lost if record.task_id not in unwinnable]
    defects = [
        Defect(f"the known solution does not win task {each.task_id}", "", (each.task_id,), known=reason)
        for each in lost
        if (reason := unwinnable.get(each.task_id))
    ]
    if failed:
        defects.insert(0, await _lost_defect(subject, failed, best.get(failed[0].task_id, 0.0)))
    faults = Counter(fault["kind"] for each in records if (fault := each.fault or each.agent_fault))
    note = ", ".join(f"{number} episodes ended by {kind}" for kind, number in faults.items())
    return Checked(defects, {"played": len(records), "not_won": len(failed)}, note)


def _returned(trace: Trace) -> float:
    return trace.returned


def _is_lost(record: EpisodeRecord, best: float) -> bool:
    """Return whether an episode is no success, or, if the environment does not report it, not the best."""
    return record.return_ < best - _CLOSE if record.success is None else not record.success


async def _validate(
    subject: Subject, tasks: Sequence[int], *, solver: bool = False, success_at: float | None = None
) -> list[EpisodeRecord]:
    """Return the episodes that `validate` plays until the time is used.

    Args:
        subject: The audited environment.
        tasks: Numbers of the tasks.
        solver: Whether the solver plays; otherwise the cheap policies.
        success_at: Minimum return for success.

    Raises:
        NotApplicable: The tasks cannot be played.
    """
    records: list[EpisodeRecord] = []
    for start in range(0, len(tasks), _BATCH):
        if start and subject.seconds_left < 0:
            break
        work = validate(
            subject.make,
            subject.solver if solver else None,
            tasks[start : start + _BATCH],
            null=not solver,
            policies=not solver,
            concurrency=2,
            on_episode=records.append,
            timeout=subject.timeout,
            success_at=success_at,
        )
        try:
            await asyncio.wait_for(work, 2 * max(1.0, subject.seconds_left))
        except (TimeoutError, asyncio.TimeoutError):
            break
        except AgentGymError as error:
            raise NotApplicable(f"the tasks cannot be played: {error}") from error
    return records


async def _lost_defect(subject: Subject, failed: Sequence[EpisodeRecord], best: float) -> Defect:
    record = failed[0]
    won = _WON.format(at=_threshold(subject) if record.success is False else best - _CLOSE)
    lines = [
        *steps_lines(subject, ActionSequence(record.task_id, record.replies[: record.turns])),
        f'assert {won}, "the known solution does not win"',
    ]
    return Defect(
        f"the known solution does not win {len(failed)} tasks, such as task {record.task_id}: "
        f"the return is {record.return_:g}, {record.ending} after {record.turns} turns",
        "repair the tasks, the solver or the turn limit, or list the tasks as unwinnable",
        tuple(each.task_id for each in failed),
        await program(subject, lines),
    )


_WON = 'steps[-1][4].get("success", sum(step[1] for step in steps) >= {at!r})'
"""An expression of programs: whether the episode was won."""


def _threshold(subject: Subject) -> float:
    return _CLOSE if subject.facts.success_at is None else subject.facts.success_at


async def check_floors(subject: Subject) -> Checked:
    """Play cheap policies with `validate`: they win next to nothing."""
    at = await _winning_return(subject)
    tasks: Sequence[int] = subject.tasks
    if not subject.splits and tasks == tuple(range(len(tasks))) and subject.facts.task_option is None:
        tasks = range(max(len(tasks), _SEEDS))
    known = subject.environment.cheap_wins if subject.environment is not None else {}
    by_policy: dict[str, list[EpisodeRecord]] = {}
    for record in await _validate(subject, tasks, success_at=at):
        by_policy.setdefault(record.agent, []).append(record)
    results = {name: policy_result(name, of, known.get(name, "")) for name, of in by_policy.items()}
    defects = []
    for name, one in results.items():
        most = max(
            one.most, MOST_WON.get("random valid", 0.0) if name == "repeat last" else 0.0
        )  # it draws one
        if one.won > 1 and (interval := one.interval) and interval[0] > most:
            won = [each for each in by_policy[name] if each.scored and each.success]
            text = (
                f"the policy {name!r} wins {one.won} of {one.played} tasks ({one.share:.0%}), "
                f"above {one.most:.0%}"
            )
            if one.reason:
                tasks_won = tuple(sorted(each.task_id for each in won))
                defects.append(Defect(text, tasks=tasks_won, known=one.reason))
                continue
            sequences = [ActionSequence(each.task_id, each.replies[: each.turns]) for each in won]
            defects.append(await _floor_defect(subject, name, text, sequences, at or _threshold(subject)))
    constants, defects_of_constants = await _constants(subject, tasks, at or _threshold(subject))
    defects = [*defects_of_constants, *defects]
    unknown = [each for each in defects if not each.known]
    measured = {name: {"played": one.played, "won": one.won} for name, one in results.items()} | constants
    return Checked([*unknown[:_MOST], *(each for each in defects if each.known)], {"policies": measured})


async def _constants(
    subject: Subject, tasks: Sequence[int], at: float
) -> tuple[dict[str, dict[str, int]], list[Defect]]:
    """Play constant answers in an environment without a grammar, whose policies know none.

    Args:
        subject: The audited environment.
        tasks: Numbers of the tasks.
        at: Minimum return for success, if the environment does not report it.

    Returns:
        The results by name, and the defects.
    """
    results: dict[str, dict[str, int]] = {}
    defects: list[Defect] = []
    if subject.choices.grammar is not None or subject.source.adapted:
        return results, defects
    last = [trace.transitions[-1].action for trace in await subject.solved() if trace.transitions]
    texts = dict.fromkeys([*_CONSTANTS, *(text for text, _ in Counter(last).most_common(_ANSWERS))])
    more = itertools.islice(dict.fromkeys(itertools.chain(tasks, *subject.splits.values())), _CONSTANT_TASKS)
    of_tasks = list(more)
    async with subject.open() as env:
        for text in texts:
            won, played = [], 0
            for task in of_tasks:
                if subject.enough(played, _BATCH):
                    break
                trace = await env.play(ActionSequence(task, (text,) * _CONSTANT_TURNS))
                played += not trace.faulted
                if not trace.faulted and (
                    trace.returned >= at if _outcome(trace) is None else _outcome(trace)
                ):
                    won.append(trace)
            results[f"always {text!r}"] = {"played": played, "won": len(won)}
            if len(won) > 1 and (interval := wilson(len(won), played)) and interval[0] > OTHERS_WON:
                name = f"the constant {text!r}"
                share = f"{len(won)} of {played} tasks ({len(won) / played:.0%}), above {OTHERS_WON:.0%}"
                sequences = [trace.sequence for trace in won]
                defects.append(await _floor_defect(subject, name, f"{name} wins {share}", sequences, at))
    return results, defects


_CONSTANTS = ("yes", "no", "0", "1", "A", "done")
_CONSTANT_TURNS = 5
_CONSTANT_TASKS = 60
_ANSWERS = 8
"""Last actions of solutions that are played as constants."""


async def _winning_return(subject: Subject) -> float | None:
    """Return the return that counts as a success; None if the environment decides it.

    Raises:
        NotApplicable: The returns of the episodes do not show a success.
    """
    traces = [trace for trace in await played_traces(subject) if _ends(trace)]
    if subject.facts.success_at is not None or any(_outcome(trace) is not None for trace in traces):
        return None
    solved = [trace.returned for trace in await subject.solved() if not trace.faulted]
    if solved and max(solved) > min((trace.returned for trace in traces), default=0.0):
        return max(solved) - _CLOSE
    returns = {round(trace.returned, 6) for trace in traces}
    if len(returns) == 2 and min(returns) == 0.0:  # noqa: PLR2004 - lost or won
        return max(returns)
    raise NotApplicable('success is unknown: the environment sets no info["success"], give solver=')


async def _floor_defect(
    subject: Subject, name: str, text: str, won: Sequence[ActionSequence], at: float
) -> Defect:
    shortest = sorted(won, key=lambda each: (len(each.actions), each.task))[:_MOST]
    played = ", ".join(f"{each.task}: {actions_text(subject, each)}" for each in shortest)
    lines = [
        "def win(task, actions, env):",
        f"    env.{reset_call(subject, 0).replace('0', 'task')}",
        "    steps = [env.step(action) for action in actions]",
        f"    return {_WON.format(at=at)}",
        f"played = {{{played}}}",
        f"assert not all(win(*each, make()) for each in played.items()), {f'{name} wins'!r}",
    ]
    advice = "let every task need knowledge: check answers exactly, and pay only for the goal"
    return Defect(text, advice, tuple(sorted(each.task for each in won)), await program(subject, lines))
