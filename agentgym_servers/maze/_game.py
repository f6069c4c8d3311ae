"""One game of Maze, without a server.

There is one maze, LMRL-Gym's double T, with one goal. A task is a starting cell. The agent goes up, down,
left or right until it reaches the goal or has used its 50 steps: the next step fails the game, with any
action.

Every observation equals AgentGym's to the letter.
"""

from __future__ import annotations

from typing import TypeAlias

from agentgym_servers._frame.game_turn import GameTurn

__all__ = ["ACTIONS", "MAX_STEPS", "TASKS", "MazeGame", "Position", "beside"]

Position: TypeAlias = tuple[int, int]
"""Row and column, both from 0."""

_MAP = (
    "#############",
    "#.....#.....#",
    "###.#####.###",
    "###.#####.###",
    "###.#####.###",
    "###.......###",
    "######.######",
    "######.######",
    "######.######",
    "#############",
)

_GOAL = (8, 6)

# By task id. The order is AgentGym's: the top row, the path from its left half to the goal, and the path from
# its right half to the junction of the two, in this direction.
_STARTS: tuple[Position, ...] = (
    *((1, column) for column in (1, 2, 3, 4, 5, 7, 8, 9, 10, 11)),
    *((row, 3) for row in (2, 3, 4, 5)),
    *((5, column) for column in (4, 5, 6)),
    *((row, 6) for row in (6, 7)),
    *((5, column) for column in (7, 8, 9)),
    *((row, 9) for row in (4, 3, 2)),
)

_MOVES: dict[str, Position] = {
    "move left": (0, -1),
    "move right": (0, 1),
    "move up": (-1, 0),
    "move down": (1, 0),
}

_SIDES: dict[str, Position] = {
    "to your right": (0, 1),
    "to your left": (0, -1),
    "above you": (-1, 0),
    "below you": (1, 0),
}

ACTIONS = tuple(_MOVES)
"""All actions, in the order in which AgentGym's server lists them."""

TASKS = len(_STARTS)
"""The number of tasks: one for each open cell except the goal."""

MAX_STEPS = 50
"""The maximum number of steps; the next one fails the game."""


class MazeGame:
    """One game in play.

    Args:
        task: The task id, from 0 to `TASKS` - 1.

    Attributes:
        last: The result of the last action; before the first action, the initial observation.
    """

    def __init__(self, task: int) -> None:
        if task not in range(TASKS):
            raise ValueError(f"there is no task {task}: task ids are 0 to {TASKS - 1}")
        self._position = _STARTS[task]
        self._steps = 0
        self.last = GameTurn(_description(self._position))

    def play(self, action: str) -> GameTurn:
        """Play one action, which may be any text.

        Args:
            action: One of `ACTIONS`, to the letter. Any other text costs a step, like a move into a wall, and
                changes nothing.

        Returns:
            The result. Its reward is 1 at the goal, -1 for the step that fails the game, else 0.

        Raises:
            ValueError: The game is over.
        """
        if self.last.done:
            raise ValueError("the game is over")
        self.last = self._result_of(action)
        return self.last

    def _result_of(self, action: str) -> GameTurn:
        if self._steps == MAX_STEPS:
            return GameTurn("Failure\n", reward=-1.0, done=True)
        self._steps += 1
        there = beside(self._position, _MOVES.get(action, (0, 0)))
        if not _is_wall(there):
            self._position = there
        if self._position == _GOAL:
            return GameTurn("Success\n", reward=1.0, done=True)
        return GameTurn(_description(self._position))


def _description(position: Position) -> str:
    walls = [side for side, step in _SIDES.items() if _is_wall(beside(position, step))]
    near = f"There is a wall {walls[0]}." if len(walls) == 1 else f"There are walls {', '.join(walls)}."
    goal, here = (f"at position {row}, {column}" for row, column in (_GOAL, position))
    return f"The goal is {goal}. Your current position is {here}. {near}"


def _is_wall(position: Position) -> bool:
    return _MAP[position[0]][position[1]] == "#"


def beside(position: Position, step: Position) -> Position:
    """Return the position that a step leads to."""
    return position[0] + step[0], position[1] + step[1]
