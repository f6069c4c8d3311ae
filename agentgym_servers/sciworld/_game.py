"""A task being played, as AgentGym's server counts it; without Java."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from agentgym_servers.sciworld._simulator import MAX_MOVES, SimulatorReply

if TYPE_CHECKING:
    from agentgym_gym.envs.sciworld_tasks import SciWorldTask

__all__ = ["FIRST_ACTION", "MAX_ACTIONS", "MAX_ACTION_CHARS", "Plays", "SciWorldGame", "cleaned", "replay"]

FIRST_ACTION = "look around"
"""The action whose observation is the first one of a task."""

MAX_ACTIONS = 500
"""The number of actions that one task may have; about a tenth of this is usual."""

MAX_ACTION_CHARS = 1024
"""Maximum number of characters of an action; the rest is ignored. Usual actions have less than 100."""


class Plays(Protocol):
    """The part of a simulator that a game uses."""

    def load(self, task: str, variation: int) -> str:
        """Start a task and return its description."""

    def step(self, action: str) -> SimulatorReply:
        """Play an action."""


@dataclass(eq=False)
class SciWorldGame:
    """A task with its actions so far: any simulator can restore it from them.

    Attributes:
        task: The task.
        description: The task in words.
        actions: The actions so far.
        last: The simulator's reply to the last one.
        reward: The change of the score by the last one.
    """

    task: SciWorldTask
    description: str
    last: SimulatorReply
    reward: int
    actions: list[str] = field(default_factory=list)

    @classmethod
    def start(cls, task: SciWorldTask, simulator: Plays) -> SciWorldGame:
        """Start a task in a simulator."""
        description = simulator.load(task.kind, task.variation)
        first = simulator.step(FIRST_ACTION)
        return cls(task, description, first, first.score)

    @property
    def done(self) -> bool:
        """Whether the episode is over: completed, failed, or out of moves."""
        return self.last.completed or self.last.moves > MAX_MOVES or self.last.score < 0

    def play(self, action: str, simulator: Plays) -> None:
        """Play an action in the simulator of this game."""
        action = cleaned(action)
        reply = simulator.step(action)
        self.actions.append(action)
        self.last, self.reward = reply, reply.score - self.last.score


def cleaned(action: str) -> str:
    """Return an action that can be sent to Java: of limited length, without halves of surrogate pairs."""
    return action[:MAX_ACTION_CHARS].encode("utf-8", "replace").decode("utf-8")


def replay(game: SciWorldGame, simulator: Plays) -> bool:
    """Restore a game in another simulator; return whether it reached the same observation and score."""
    again = SciWorldGame.start(game.task, simulator)
    for action in game.actions:
        again.play(action, simulator)
    return again.last == game.last
