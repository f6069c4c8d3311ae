"""The properties of a sound environment, in the order in which they are checked."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from agentgym_gym.testing._audit.contract import (
    check_close,
    check_ends,
    check_interface,
    check_reset,
    check_rewards,
)
from agentgym_gym.testing._audit.copies import check_copies
from agentgym_gym.testing._audit.faults import check_faults
from agentgym_gym.testing._audit.forgery import check_forgery
from agentgym_gym.testing._audit.limits import check_turn_limit
from agentgym_gym.testing._audit.processes import check_processes
from agentgym_gym.testing._audit.prompts import check_legal, check_prompt
from agentgym_gym.testing._audit.replay import check_replay, check_reuse, check_seeds
from agentgym_gym.testing._audit.resources import check_instances, check_leaks
from agentgym_gym.testing._audit.scores import check_credit, check_floors, check_solutions, check_success
from agentgym_gym.testing._audit.side_effects import check_global_state, check_snapshots
from agentgym_gym.testing._audit.tasks import check_duplicates, check_leakage, check_splits
from agentgym_gym.testing._audit.texts import check_texts
from agentgym_gym.testing._audit.threads import check_threads
from agentgym_gym.testing._audit.timing import check_blocking, check_capacity, check_speed

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
    Property(
        "interface",
        "Each returned value has its type, and gymnasium's own checks pass.",
        "Wrappers and trainers fail in the middle of a run, or read a wrong value silently.",
        check_interface,
    ),
    Property(
        "rewards",
        "Rewards are finite and within the declared range.",
        "One NaN makes a whole batch NaN; a score outside of its range spoils every mean.",
        check_rewards,
        share=2,
    ),
    Property(
        "ends",
        "An episode ends once, and a step after the end pays nothing.",
        "An agent can collect rewards after the end, or play forever.",
        check_ends,
    ),
    Property(
        "reset",
        "Reset works after any action, before the end and after it.",
        "A worker that cannot reset its environment loses every later episode.",
        check_reset,
    ),
    Property(
        "close",
        "Close works before the reset, in an episode, and twice.",
        "A run that fails cannot clean up, and its own error is hidden by another.",
        check_close,
        share=0.5,
    ),
    Property(
        "turn-limit",
        "An episode ends at the declared number of turns.",
        "Prompts promise turns that do not exist, and scores differ from published ones.",
        check_turn_limit,
    ),
    Property(
        "texts",
        "Any text gets an answer, without an exception, a hang or a fault.",
        "An agent learns to escape a bad score with a text that breaks the environment.",
        check_texts,
        share=1.5,
    ),
    Property(
        "leaks",
        "Many episodes leave memory, descriptors, threads, processes and temporary files as they were.",
        "A run of days ends with a process out of memory, or out of descriptors.",
        check_leaks,
        share=2,
    ),
    Property(
        "instances",
        "Creating, playing and closing environments leaves nothing open.",
        "Workers replace environments after errors: each one would cost a descriptor or a process.",
        check_instances,
        share=1.5,
    ),
    Property(
        "speed",
        "No step takes a second.",
        "A batch waits for its slowest episode, and the GPU with it.",
        check_speed,
        "warning",
        share=0.5,
    ),
    Property(
        "blocking",
        "An environment with coroutine functions does not block the event loop.",
        "One blocking call stops all episodes of the process.",
        check_blocking,
    ),
    Property(
        "capacity",
        "The declared number of copies can be open, and copies run at once.",
        "A rollout fails on its first batch, or plays one episode at a time.",
        check_capacity,
        "warning",
    ),
)
