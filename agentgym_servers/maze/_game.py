"""One game of Maze, without a server.

There is one maze, LMRL-Gym's double T, with one goal. A task is a place to start from. The agent goes up,
down, left or right until it reaches the goal or has had its 50 steps: the one after them fails the game,
whatever it is.

Every observation is, to the letter, what AgentGym's Maze server says.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

__all__ = ["ACTIONS", "MAX_STEPS", "TASKS", "Game", "Outcome"]

_Place: TypeAlias = tuple[int, int]  # row and column, both from 0

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

# By task id. The order is AgentGym's: the top row, the way from its left half to the goal, and the way from
# its right half to where they meet, beginning there.
_STARTS: tuple[_Place, ...] = (
    *((1, column) for column in (1, 2, 3, 4, 5, 7, 8, 9, 10, 11)),
    *((row, 3) for row in (2, 3, 4, 5)),
    *((5, column) for column in (4, 5, 6)),
    *((row, 6) for row in (6, 7)),
    *((5, column) for column in (7, 8, 9)),
    *((row, 9) for row in (4, 3, 2)),
)

_MOVES: dict[str, _Place] = {
    "move left": (0, -1),
    "move right": (0, 1),
    "move up": (-1, 0),
    "move down": (1, 0),
}

_SIDES: dict[str, _Place] = {
    "to your right": (0, 1),
    "to your left": (0, -1),
    "above you": (-1, 0),
    "below you": (1, 0),
}

ACTIONS = tuple(_MOVES)
"""All that an agent can do, in the order in which AgentGym's server lists it."""

TASKS = len(_STARTS)
"""How many tasks there are: one for each open place but the goal."""

MAX_STEPS = 50
"""How many steps a game lasts; the next one fails it."""


@dataclass(frozen=True)
class Outcome:
    """The result of one action.

    Attributes:
        observation: What the agent is told.
        reward: 1 at the goal, -1 for the step that fails the game, else 0.
        done: Whether the game is over.
    """

    observation: str
    reward: float = 0
    done: bool = False


class Game:
    """One task being played.

    Args:
        task: Which task, from 0 to `TASKS` - 1.

    Attributes:
        last: What came of the last action; before the first, what the agent is told at the start.
    """

    def __init__(self, task: int) -> None:
        if task not in range(TASKS):
            raise ValueError(f"there is no task {task}: they go from 0 to {TASKS - 1}")
        self._place = _STARTS[task]
        self._steps = 0
        self.last = Outcome(_described(self._place))

    def play(self, action: str) -> Outcome:
        """Play one action, whatever the text.

        Args:
            action: One of `ACTIONS`, to the letter. Anything else costs a step, like a move into a wall, and
                changes nothing.

        Raises:
            ValueError: The game is over.
        """
        if self.last.done:
            raise ValueError("the game is over")
        self.last = self._outcome(action)
        return self.last

    def _outcome(self, action: str) -> Outcome:
        if self._steps == MAX_STEPS:
            return Outcome("Failure\n", reward=-1.0, done=True)
        self._steps += 1
        there = _beside(self._place, _MOVES.get(action, (0, 0)))
        if not _is_wall(there):
            self._place = there
        if self._place == _GOAL:
            return Outcome("Success\n", reward=1.0, done=True)
        return Outcome(_described(self._place))


def _described(place: _Place) -> str:
    walls = [side for side, step in _SIDES.items() if _is_wall(_beside(place, step))]
    near = f"There is a wall {walls[0]}." if len(walls) == 1 else f"There are walls {', '.join(walls)}."
    goal, here = (f"at position {row}, {column}" for row, column in (_GOAL, place))
    return f"The goal is {goal}. Your current position is {here}. {near}"


def _is_wall(place: _Place) -> bool:
    return _MAP[place[0]][place[1]] == "#"


def _beside(place: _Place, step: _Place) -> _Place:
    return place[0] + step[0], place[1] + step[1]
