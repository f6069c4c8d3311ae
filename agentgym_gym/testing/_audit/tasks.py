"""Whether tasks differ, splits are disjoint, and prompts contain no answers."""

from __future__ import annotations

import contextlib
import itertools
import re
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from agentgym_gym.actions import Action
from agentgym_gym.catalogue import is_for_evaluation
from agentgym_gym.errors import ActionError
from agentgym_gym.rollout._records import goal_of
from agentgym_gym.testing._audit.episodes import Trace, shown_value
from agentgym_gym.testing._audit.findings import Checked, Defect, NotApplicable
from agentgym_gym.testing._audit.programs import program, reset_call

if TYPE_CHECKING:
    from agentgym_gym.testing._audit.subject import Subject

__all__ = ["check_duplicates", "check_leakage", "check_splits"]

_SAMPLED = 120
_MOST_COMPARED = 2000
"""Tasks of each split whose beginnings are compared, unless thorough."""

_GOAL = 12
"""Fewest characters of a goal that another task's prompt may not contain."""

_SOLUTION = 3
"""Fewest actions of a solution that a prompt may not list."""

_PAIRS = 30
_MOST_ALIKE = 3
"""Tasks that may begin alike where no solution shows their difference."""

_PLAYS = 3
_CONTEXT = 8
"""Characters before a goal that show where a prompt states it."""

_SENTENCE = 30
_SENTENCE_WORDS = 5
_TASK_KEYS = ("task", "question", "instruction", "problem", "query")
_ANSWER_KEYS = ("answer", "solution", "expected", "gold", "ground_truth")
_LABEL = re.compile(
    r"\b(?:answer|solution|ground truth|debug|(?:secret|hidden|correct|expected|gold)(?:\s+\w+)?"
    r"|target (?:word|answer|number|code))"
    r"\s*(?:\b(?:is|was)\b\s*:?|[:=(\[]+)\s*[\"'`]?$",
    re.IGNORECASE,
)
_ANSWERING = re.compile(
    r"\b(?:answer|submit|finish|guess|respond|solve)\b\W*(.*?)\W*$", re.IGNORECASE | re.DOTALL
)


async def check_splits(subject: Subject) -> Checked:
    """Compare the tasks of different splits: their numbers, their beginnings, and plays of equal ones."""
    parts = _parts(subject)
    if len(parts) < 2:  # noqa: PLR2004 - a pair
        raise NotApplicable("the environment has no splits to compare")
    for (one, tasks), (other, others) in itertools.combinations(parts.items(), 2):
        if is_for_evaluation(one) != is_for_evaluation(other) and (shared := {*tasks} & {*others}):
            text = f"the splits {one!r} and {other!r} share {len(shared)} tasks, such as {min(shared)}"
            lines = [
                "splits = make().get_wrapper_attr('splits')",
                f"assert not {{*splits[{one!r}]}} & {{*splits[{other!r}]}}, 'the splits share tasks'",
            ]
            both = tuple(sorted(shared))[:10]
            return Checked([Defect(text, _DIVIDE, both, await program(subject, lines))])
    return await _compare(subject, parts, within=False)


async def check_duplicates(subject: Subject) -> Checked:
    """Compare the tasks of each split with each other."""
    if not subject.splits and subject.facts.task_option is None:
        raise NotApplicable("the environment has seeds instead of numbered tasks")
    return await _compare(subject, _parts(subject) or {"": list(subject.tasks)}, within=True)


_DIVIDE = "divide the tasks by their content, and remove repeated ones"


def _parts(subject: Subject) -> dict[str, Sequence[int]]:
    """Return the splits, without one of all tasks."""
    return {name: tasks for name, tasks in subject.splits.items() if name != "all" and len(tasks)}


async def _compare(subject: Subject, parts: Mapping[str, Sequence[int]], *, within: bool) -> Checked:
    """Find two tasks that begin equally and play equally, in one split or in two."""
    chosen = {name: _spread(subject, tasks) for name, tasks in parts.items()}
    split_of = {task: name for name, tasks in reversed(chosen.items()) for task in tasks}
    order = [task for row in itertools.zip_longest(*chosen.values()) for task in row if task is not None]
    seconds, groups = subject.seconds_left, defaultdict(list)
    for trace in await subject.begun(list(dict.fromkeys(order)), seconds * 0.7):
        groups[_content(trace)].append(trace.task)
    compared = sum(map(len, groups.values()))
    measured = {"compared": compared, "different": len(groups)}
    if subject.solver is None and max(map(len, groups.values()), default=0) > _MOST_ALIKE:
        return Checked((), measured, "the first observations do not distinguish the tasks")
    pairs = [
        pair
        for group in groups.values()
        for pair in itertools.islice(itertools.combinations(group, 2), _PAIRS)
        if _are_together(*pair, split_of) is within
    ]
    for one, other in pairs[:: len(pairs) // _PAIRS + 1]:
        if subject.seconds_left < -seconds:
            break
        if await _play_equally(subject, one, other):
            return Checked([await _equal_defect(subject, one, other, split_of, within=within)], measured)
    return Checked((), measured)


def _spread(subject: Subject, tasks: Sequence[int]) -> list[int]:
    """Return tasks to compare, the first ones evenly spaced, as there may be no time for all."""
    order = itertools.chain(tasks[:: -(-len(tasks) // _SAMPLED)], tasks)
    return list(itertools.islice(dict.fromkeys(order), None if subject.thorough else _MOST_COMPARED))


def _are_together(one: int, other: int, split_of: Mapping[int, str]) -> bool | None:
    """Return whether two tasks are of one split; None for two splits that are both for evaluation."""
    first, second = split_of[one], split_of[other]
    if first == second:
        return True
    return None if is_for_evaluation(first) and is_for_evaluation(second) else False


def _content(trace: Trace) -> str:
    """Return what an agent sees of a task at its beginning, without its number."""
    info = trace.last_info
    texts = [str(trace.observation), goal_of(info) or "", *(str(info.get(key, "")) for key in _TASK_KEYS)]
    return _normal("\n".join(texts), trace.task)


def _normal(text: str, task: int) -> str:
    words = " ".join(text.casefold().split())
    return re.sub(rf"\b(task|question|problem|episode|level|seed|id)\W{{0,3}}{task}\b", r"\1", words)


async def _play_equally(subject: Subject, one: int, other: int) -> bool:
    """Return whether drawn actions, and the solution of a task, give the same episode in another."""
    async with subject.open() as env:
        traces = [await env.explore(one, subject.rng(5, number)) for number in range(_PLAYS)]
        for trace in [*await subject.solve([one]), *traces]:
            again = await env.play(replace(trace.sequence, task=other))
            if trace.faulted or again.faulted or _steps(trace) != _steps(again):
                return False
    return True


def _steps(trace: Trace) -> list[Any]:
    return [
        _content(trace),
        *((_normal(str(step.observation), trace.task), step.value, step.ends) for step in trace.transitions),
    ]


async def _equal_defect(
    subject: Subject, one: int, other: int, split_of: Mapping[int, str], *, within: bool
) -> Defect:
    where = (
        f"of the split {split_of[one]!r}"
        if within
        else f"of the splits {split_of[one]!r} and {split_of[other]!r}"
    )
    lines = [
        "one, other = make(), make()",
        f"texts = [one.{reset_call(subject, one)}[0], other.{reset_call(subject, other)}[0]]",
        f'assert str(texts[0]) != str(texts[1]), "tasks {one} and {other} are equal"',
    ]
    return Defect(
        f"the tasks {one} and {other} {where} are equal: they begin and play alike",
        _DIVIDE,
        (one, other),
        await program(subject, lines),
    )


async def check_leakage(subject: Subject) -> Checked:
    """Search the first observations for the task's own answer and for goals of other tasks."""
    solved = {trace.task: trace for trace in await subject.solved() if not trace.faulted}
    of_splits = itertools.chain(*(_spread(subject, tasks) for tasks in _parts(subject).values()))
    tasks = list(dict.fromkeys([*solved, *subject.tasks, *of_splits]))
    begun = await subject.begun(tasks, subject.seconds_left * 0.7)
    defects = []
    leaks = {
        trace.task: text for trace in begun if (text := _own_answer(subject, trace, solved.get(trace.task)))
    }
    if len(set(leaks.values())) > 1:
        task, text = next(iter(leaks.items()))
        defects.append(
            await _leak_defect(subject, task, text, f"contains its own answer, {shown_value(text)}", leaks)
        )
    if foreign := _foreign_goals(begun):
        task, text = next(iter(foreign.items()))
        words = f"contains the goal of another task, {shown_value(text)}"
        defects.append(await _leak_defect(subject, task, text, words, foreign))
    if (taught := _taught_goal(subject, begun)) is not None:
        defects.append(taught)
    return Checked(defects, {"prompts": len(begun), "solutions": len(solved)})


def _taught_goal(subject: Subject, begun: Sequence[Trace]) -> Defect | None:
    """Return the defect that the system prompt contains the goal of a task, unless of most of them."""
    prompt = " ".join((subject.facts.system_prompt or "").split())
    goals = {trace.task: " ".join((goal_of(trace.last_info) or "").split()) for trace in begun}
    found = [
        task for task, goal in goals.items() if goal.count(" ") >= _SENTENCE_WORDS - 1 and goal in prompt
    ]
    if not found or 2 * len(found) > len(goals):
        return None
    text = f"the system prompt contains the goal of task {found[0]}, {shown_value(goals[found[0]])}"
    return Defect(text, "write examples about tasks that no split has", tuple(found[:10]))


def _own_answer(subject: Subject, trace: Trace, solved: Trace | None) -> str:
    """Return the answer of a task if its first observation names it as such, or lists a whole solution."""
    prompt = str(trace.observation)
    actions = [step.action for step in solved.transitions] if solved is not None else []
    for separator in (", ", ",", "; ", " -> ", "\n", " ") if len(set(actions)) >= _SOLUTION else ():
        if separator.join(actions) in prompt:
            return separator.join(actions)
    answers = [
        str(value) for key in _ANSWER_KEYS if isinstance(value := trace.last_info.get(key), (str, int))
    ]
    if actions:
        answers += _answers(subject, actions)
    for answer in filter(None, answers):
        for match in re.finditer(rf"(?<!\w){re.escape(answer)}(?!\w)", prompt, re.IGNORECASE):
            if _LABEL.search(prompt[: match.start()][-60:]):
                return answer
    return ""


def _answers(subject: Subject, actions: Sequence[str]) -> list[str]:
    """Return the answer in the last action of a solution."""
    last, grammar, action_format = actions[-1], subject.choices.grammar, subject.choices.action_format
    if grammar is not None and action_format is not None:
        with contextlib.suppress(ActionError):
            action = action_format.parse(last, grammar)
            if isinstance(action, Action) and action.blind_answers:
                return [str(value) for value in vars(action).values()][:1]
        return []
    match = _ANSWERING.search(last)
    return [last.strip(), last.strip().partition(" ")[2], *([match[1]] if match else [])]


def _foreign_goals(begun: Sequence[Trace]) -> dict[int, str]:
    """Return the goals of other tasks that first observations contain, by the task of the observation.

    A short goal counts only where prompts state their own goals: after the same characters.
    """
    prompts = {trace.task: " ".join(str(trace.observation).split()) for trace in begun}
    goals = {trace.task: " ".join((goal_of(trace.last_info) or "").split()) for trace in begun}
    goals = {task: goal for task, goal in goals.items() if len(goal) >= _GOAL}
    contexts = Counter(
        context
        for task, goal in goals.items()
        for context in {
            prompts[task][match.start() - _CONTEXT : match.start()]
            for match in re.finditer(re.escape(goal), prompts[task])
            if match.start() >= _CONTEXT
        }
    )
    usual = [context for context, number in contexts.items() if number > 0.8 * len(goals)]
    foreign = {}
    for task, prompt in prompts.items():
        own = goals.get(task, "")
        for goal in dict.fromkeys(goals.values()):
            if goal not in prompt or goal in own or own in goal:
                continue
            sentence = len(goal) >= _SENTENCE and goal.count(" ") >= _SENTENCE_WORDS - 1
            if sentence or any(context + goal in prompt for context in usual):
                foreign[task] = goal
                break
    return foreign


async def _leak_defect(
    subject: Subject, task: int, text: str, words: str, tasks: Mapping[int, str]
) -> Defect:
    lines = [
        f"observation = make().{reset_call(subject, task)}[0]",
        f"assert {text!r} not in ' '.join(str(observation).split()), {'the prompt leaks'!r}",
    ]
    return Defect(
        f"the first observation of task {task} {words}",
        "show a task's own question only",
        tuple(tasks),
        await program(subject, lines),
    )
