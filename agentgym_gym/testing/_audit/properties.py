"""The properties of a sound environment, in the order in which they are checked."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from agentgym_gym.testing._audit.copies import check_copies
from agentgym_gym.testing._audit.processes import check_processes
from agentgym_gym.testing._audit.replay import check_replay, check_reuse, check_seeds
from agentgym_gym.testing._audit.side_effects import check_global_state, check_snapshots
from agentgym_gym.testing._audit.threads import check_threads

if TYPE_CHECKING:
    from agentgym_gym.testing._audit.findings import Checked, Severity
    from agentgym_gym.testing._audit.subject import Subject

__all__ = ["PROPERTIES", "Property"]


@dataclass(frozen=True)
class Property:
    """A property of a sound environment.

    Attributes:
        name: Its name.
        claim: The property in one sentence.
        cost: The damage to training or evaluation in an environment without it, in one sentence.
        check: Checks it. Raises `NotApplicable` with the reason if that is impossible.
        severity: ``"error"`` if results of training or evaluation are wrong without it.
        share: The share of the time budget, relative to the other properties.
    """

    name: str
    claim: str
    cost: str
    check: Callable[[Subject], Awaitable[Checked]]
    severity: Severity = "error"
    share: float = 1.0


PROPERTIES: tuple[Property, ...] = (
    Property(
        "replay",
        "The same task and actions give the same episode in a new environment.",
        "GRPO compares episodes of one task: their advantages would be noise.",
        check_replay,
        share=2,
    ),
    Property(
        "reuse",
        "An environment that has played other episodes, whole or abandoned, gives the same episode.",
        "Training keeps its environments: the results of a task would depend on the tasks before it.",
        check_reuse,
        share=2,
    ),
    Property(
        "copies",
        "Several copies in one process, stepped in turns, play as one copy does.",
        "A batch steps its environments in turns: its episodes would mix.",
        check_copies,
        share=2,
    ),
    Property(
        "threads",
        "Several copies in threads at once play as one copy does.",
        "Rollouts run environments in threads: some rewards would belong to no episode.",
        check_threads,
        share=2,
    ),
    Property(
        "processes",
        "Another process, with another hash seed and a later clock, gives the same episode.",
        "Results of another run, worker or day could not be compared.",
        check_processes,
        share=2,
    ),
    Property(
        "seeds",
        "Different tasks or seeds begin differently.",
        "All episodes would be the same task: an agent learns one answer by heart.",
        check_seeds,
        "warning",
    ),
    Property(
        "global-state",
        "Playing leaves the global random generators, the working directory and the variables unchanged.",
        "Sampling and shuffling of the trainer would repeat, and files would be written elsewhere.",
        check_global_state,
        "warning",
    ),
    Property(
        "snapshots",
        "A returned observation or info does not change afterwards.",
        "Trajectories are read after the episode: all turns would show the last one.",
        check_snapshots,
    ),
)
