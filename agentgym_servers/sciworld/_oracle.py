"""The oracle of SciWorld: plays the simulator's own solutions, which a Java process of this program finds."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from agentgym_gym.envs.sciworld import SCIWORLD
from agentgym_servers._frame.solution_oracle import SolutionOracle
from agentgym_servers.sciworld._thoughts import thoughts

if TYPE_CHECKING:
    from agentgym_gym.actions import Action

__all__ = ["SciWorldOracle"]


class SciWorldOracle(SolutionOracle):
    """Plays the solutions on this project's own server; elsewhere they may take another course."""

    blocking = True  # a reset searches for a second or more

    def __init__(self) -> None:
        super().__init__(SCIWORLD, _solution)


def _solution(_seed: int, task_id: int) -> Iterator[tuple[Action, str]]:
    # Imported here because it needs the packages of the extra.
    from agentgym_servers.sciworld._solutions import solution  # noqa: PLC0415

    path = solution(task_id)
    return zip(map(SCIWORLD.grammar.parse, path), thoughts(path), strict=True)
