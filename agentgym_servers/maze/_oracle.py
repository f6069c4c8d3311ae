"""The oracle of Maze: finds paths from the positions and walls in the observations."""

from __future__ import annotations

import re
from collections import deque
from typing import TYPE_CHECKING, Any, TypeAlias

from agentgym_gym.envs.maze import Move

if TYPE_CHECKING:
    import gymnasium

    from agentgym_gym.actions import Action

__all__ = ["MazeOracle"]

_Place: TypeAlias = tuple[int, int]

_PLACES = re.compile(
    r"The goal is at position (\d+), (\d+)\. Your current position is at position (\d+), (\d+)\."
)
# In order of preference: of two equally long paths, the search takes the one that changes the row first.
_SIDES = {
    "below you": ("down", (1, 0)),
    "above you": ("up", (-1, 0)),
    "to your right": ("right", (0, 1)),
    "to your left": ("left", (0, -1)),
}
_FAR = 100  # the maximum length of a path, so that the search terminates in an unbounded open area


class MazeOracle:
    """Takes the shortest path that may be open: it treats a cell as open until it observes a wall."""

    name = "oracle"
    blocking = False

    def __init__(self) -> None:
        self._walls: set[_Place] = set()

    def reset(self, env: gymnasium.Env[str, Any], observation: str, info: dict[str, Any]) -> None:
        """Forget the walls of the previous task."""
        self._walls = set()

    def act(self, observation: str, info: dict[str, Any]) -> Action | None:
        """Return the first move of the path; None without a path or without a position."""
        told = _PLACES.search(observation)
        if told is None:
            return None
        goal, here = (int(told[1]), int(told[2])), (int(told[3]), int(told[4]))
        walls = observation[told.end() :]
        self._walls |= {_beside(here, step) for side, (_, step) in _SIDES.items() if side in walls}
        return self._first_move(here, goal)

    def _first_move(self, here: _Place, goal: _Place) -> Move | None:
        first: dict[_Place, str] = {here: ""}
        ways = deque([(here, 0)])
        while ways and goal not in first:
            place, length = ways.popleft()
            for direction, step in _SIDES.values():
                following = _beside(place, step)
                if following not in first and following not in self._walls and length < _FAR:
                    first[following] = first[place] or direction
                    ways.append((following, length + 1))
        return Move(first[goal]) if first.get(goal) else None


def _beside(place: _Place, step: _Place) -> _Place:
    return place[0] + step[0], place[1] + step[1]
