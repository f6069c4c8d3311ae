"""The properties of a sound environment, in the order in which they are checked."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from agentgym_gym.testing._audit.faults import check_faults
from agentgym_gym.testing._audit.forgery import check_forgery
from agentgym_gym.testing._audit.prompts import check_legal, check_prompt
from agentgym_gym.testing._audit.replay import check_replay
from agentgym_gym.testing._audit.scores import check_credit, check_floors, check_solutions, check_success
from agentgym_gym.testing._audit.tasks import check_duplicates, check_leakage, check_splits

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
        "success",
        "Success, reward and termination agree.",
        "Success rates and returns would rank agents differently, and training would follow the wrong one.",
        check_success,
    ),
    Property(
        "credit",
        "A reward depends on the action that it follows.",
        "Methods with a return for each turn would reinforce the wrong action.",
        check_credit,
        "warning",
    ),
    Property(
        "solutions",
        "The known solutions reach the maximum within the limits, except for listed tasks.",
        "Tasks that nobody can solve lower every score and give no signal to training.",
        check_solutions,
        share=2,
    ),
    Property(
        "floors",
        "No policy without knowledge wins more than 1 % of the tasks, random actions 2 %.",
        "A model would learn the shortcut, and scores would not measure its ability.",
        check_floors,
        share=2,
    ),
    Property(
        "forgery",
        "Text that looks like an observation, a reward, a tool result or an end changes nothing.",
        "A model would learn to write its own reward.",
        check_forgery,
        share=2,
    ),
    Property(
        "leakage",
        "No task's prompt contains its own answer, or the goal of another task.",
        "Scores would measure reading, and training would see the tasks for evaluation.",
        check_leakage,
    ),
    Property(
        "prompt",
        "Actions that the prompt teaches are read back.",
        "An agent that follows the prompt would be refused.",
        check_prompt,
    ),
    Property(
        "legal",
        "Actions that the environment lists as admissible are accepted, and each kind is legal somewhere.",
        "An agent would spend turns on actions that never work.",
        check_legal,
        "warning",
    ),
    Property(
        "splits",
        "No two splits share a task by content.",
        "A test score would measure memory.",
        check_splits,
        share=2,
    ),
    Property(
        "duplicates",
        "The tasks of a split differ.",
        "Repeated tasks count several times, and intervals are too narrow.",
        check_duplicates,
        "warning",
    ),
    Property(
        "faults",
        "A failing server gives named faults and no score.",
        "Failures of a server would count against the agent.",
        check_faults,
        share=2,
    ),
)
