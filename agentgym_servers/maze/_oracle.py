"""The oracle of Maze: finds paths from the positions and walls in the observations."""

from __future__ import annotations

import re
from collections import deque
from itertools import groupby
from typing import TYPE_CHECKING, Any

from agentgym_gym.envs.maze import Move
from agentgym_servers.maze._game import Position, beside

if TYPE_CHECKING:
    import gymnasium

    from agentgym_gym.actions import Action

__all__ = ["MazeOracle"]

_POSITIONS = re.compile(
    r"The goal is at position (\d+), (\d+)\. Your current position is at position (\d+), (\d+)\."
)
# In order of preference: of two equally long paths, the search takes the one that changes the row first.
_SIDES = {
    "below you": ("down", (1, 0)),
    "above you": ("up", (-1, 0)),
    "to your right": ("right", (0, 1)),
    "to your left": ("left", (0, -1)),
}
_MAX_LENGTH = 100  # the maximum length of a path, so that the search terminates in an unbounded open area


class MazeOracle:
    """Takes the shortest path that may be open: it treats a cell as open until it observes a wall."""

    name = "oracle"
    blocking = False

    def __init__(self) -> None:
        self._walls: set[Position] = set()
        self._thought = ""

    def reset(self, env: gymnasium.Env[str, Any], observation: str, info: dict[str, Any]) -> None:
        """Forget the walls of the previous task."""
        self._walls = set()

    def act(self, observation: str, info: dict[str, Any]) -> Action | None:
        """Return the first move of the path; None without a path or without a position."""
        self._thought = ""
        match = _POSITIONS.search(observation)
        if match is None:
            return None
        goal, here = (int(match[1]), int(match[2])), (int(match[3]), int(match[4]))
        walls = observation[match.end() :]
        self._walls |= {beside(here, step) for side, (_, step) in _SIDES.items() if side in walls}
        path = self._path(here, goal)
        if not path:
            return None
        free = ", ".join(direction for side, (direction, _) in _SIDES.items() if side not in walls)
        runs = ", ".join(f"{direction} {len(list(moves))}" for direction, moves in groupby(path))
        self._thought = f"The goal is {_offset(here, goal)}. Free: {free}. My way: {runs}."
        return Move(path[0])

    def thought(self) -> str:
        """Return where the goal is, which directions are free, and the path around the known walls."""
        return self._thought

    def _path(self, here: Position, goal: Position) -> list[str]:
        """Return the directions of a shortest path; empty without one."""
        came: dict[Position, tuple[Position, str]] = {here: (here, "")}
        queue = deque([(here, 0)])
        while queue and goal not in came:
            position, length = queue.popleft()
            for direction, step in _SIDES.values():
                neighbour = beside(position, step)
                if neighbour not in came and neighbour not in self._walls and length < _MAX_LENGTH:
                    came[neighbour] = (position, direction)
                    queue.append((neighbour, length + 1))
        path = []
        while goal in came and goal != here:
            goal, direction = came[goal]
            path.append(direction)
        return path[::-1]


def _offset(here: Position, goal: Position) -> str:
    """Return in which directions a goal is, such as ``7 down, 5 right``."""
    down, right = goal[0] - here[0], goal[1] - here[1]
    parts = [
        f"{abs(down)} {'down' if down > 0 else 'up'}" * (down != 0),
        f"{abs(right)} {'right' if right > 0 else 'left'}" * (right != 0),
    ]
    return ", ".join(filter(None, parts))
