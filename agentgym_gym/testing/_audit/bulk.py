"""Plays many episodes fast: each one whole, in a single call of the environment's thread."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from agentgym_gym.testing._audit.episodes import Trace, Transition, shown_value
from agentgym_gym.testing._audit.subject import reset_arguments

if TYPE_CHECKING:
    from agentgym_gym.rollout import EnvFacts
    from agentgym_gym.testing._audit.subject import Subject

__all__ = ["action_pool", "fault_note", "many_tasks", "play_at_once", "understood"]


def play_at_once(env: Any, facts: EnvFacts, task: int, actions: Iterable[str]) -> Trace:
    """Play actions until the episode is over; its values are not copied.

    Args:
        env: The environment, with blocking methods.
        facts: Its properties.
        task: Number of the task.
        actions: The actions.

    Returns:
        The episode. An exception of the environment becomes its error.
    """
    steps: list[Transition] = []
    observation = info = None
    error = ""
    unplayed: tuple[str, ...] = ()
    try:
        observation, info = env.reset(**reset_arguments(facts, task))
        for action in actions:
            unplayed = (action,)
            steps.append(Transition(action, *env.step(action)))
            unplayed = ()
            if steps[-1].ends:
                break
    except Exception as raised:  # noqa: BLE001 - an environment may raise anything
        error = f"{type(raised).__name__}: {raised}"
    return Trace(task, observation, info, tuple(steps), error, unplayed=unplayed)


def fault_note(traces: Iterable[Trace]) -> str:
    """Return a sentence on the episodes that were left out because a server failed; empty if none was."""
    faults = [trace.last_info.get("fault", "a timeout") for trace in traces if trace.faulted]
    if not faults:
        return ""
    return f"{len(faults)} episodes with a fault were left out, such as {shown_value(faults[0])}"


def understood(step: Transition) -> bool:
    """Return whether a step has no parse error."""
    return not (isinstance(step.info, Mapping) and step.info.get("parse_error"))


async def action_pool(subject: Subject) -> list[str]:
    """Return the different actions of the explored episodes, without those that were not understood."""
    steps = [step for trace in await subject.explored() for step in trace.transitions]
    legal = [step for step in steps if understood(step)]
    return list(dict.fromkeys(step.action for step in legal or steps)) or [""]


def many_tasks(subject: Subject) -> Iterator[int]:
    """Return the tasks of the audit, then further ones: all of the splits, or more seeds; without end."""
    tasks = dict.fromkeys(itertools.chain(subject.tasks, *subject.splits.values()))
    if subject.splits or subject.facts.task_option is not None:
        return itertools.cycle(tasks)
    return itertools.chain(tasks, (seed for seed in itertools.count() if seed not in tasks))
