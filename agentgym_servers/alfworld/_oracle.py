"""The oracle of ALFWorld: plays the solutions that look for things as a player must."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from agentgym_gym.envs.alfworld import ALFWORLD
from agentgym_servers._frame.solution_oracle import SolutionOracle
from agentgym_servers.alfworld._solution import searching
from agentgym_servers.alfworld._tasks import task_of

if TYPE_CHECKING:
    from agentgym_gym.actions import Action

__all__ = ["ALFWorldOracle"]


class ALFWorldOracle(SolutionOracle):
    """Plays the solution of each task on this project's own server, within the turn limit."""

    def __init__(self) -> None:
        super().__init__(ALFWORLD, _solution)


def _solution(seed: int, task_id: int) -> Iterator[tuple[Action, str]]:
    turns = searching(task_of(seed, task_id), ALFWORLD.max_turns)
    return ((ALFWORLD.grammar.parse(text), thought) for text, thought in turns)
