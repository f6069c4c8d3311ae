"""One task in play, without a server: texts in, observations out, until the task is done or time is up."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from agentgym_servers.alfworld._texts import NOTHING, feedback, welcome

if TYPE_CHECKING:
    from agentgym_servers.alfworld._tasks import HouseTask

__all__ = ["MAX_STEPS", "HouseGame", "HouseTurn"]

MAX_STEPS = 50
"""The number of actions after which a game ends."""


@dataclass(frozen=True)
class HouseTurn:
    """The result of one action.

    Attributes:
        observation: The observation.
        available_actions: The texts that would be executed next, in alphabetical order.
        reward: 1 for the action that did the task, else 0.
        done: Whether the game is over.
    """

    observation: str
    available_actions: tuple[str, ...]
    reward: float = 0.0
    done: bool = False


class HouseGame:
    """One game in play.

    Args:
        task: The task.

    Attributes:
        last: The result of the last action; before the first action, the first observation.
    """

    def __init__(self, task: HouseTask) -> None:
        self._house = task.house
        self._goal = task.goal
        self._state = task.start
        self._commands = task.house.commands(task.start)
        self._steps = 0
        self.last = HouseTurn(welcome(task.house, task.goal.text), tuple(self._commands))

    def play(self, action: str) -> HouseTurn:
        """Play one action, which may be any text.

        Args:
            action: One of the available actions, with or without white space around it. Any other text costs
                a step and changes nothing.

        Raises:
            ValueError: The game is over.
        """
        if self.last.done:
            raise ValueError("the game is over")
        self._steps += 1
        command = self._commands.get(action.strip())
        observation = NOTHING
        if command is not None:
            self._state = self._house.after(self._state, command)
            self._commands = self._house.commands(self._state)
            observation = feedback(self._house, self._state, command)
        won = self._goal.is_met(self._house, self._state)
        done = won or self._steps >= MAX_STEPS
        self.last = HouseTurn(observation, tuple(self._commands), float(won), done)
        return self.last
