"""Maze: reach the goal of a small maze (LMRL-Gym; Abdulhai et al., 2023, arXiv:2311.18232).

The server has a single maze; a task is a start position in it. An action that is not one of its four moves
costs a step and changes nothing. The server fails an episode at the fifty-first step, with reward -1.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Annotated, ClassVar

from agentgym_gym.actions import Action, Grammar
from agentgym_gym.arguments import Choice
from agentgym_gym.catalogue import Environment, make_splits
from agentgym_gym.envs.lmrl import LMRLWire, read_as_agentgym
from agentgym_gym.wire import Outcome, Score, Start

__all__ = ["MAZE", "MazeWire", "Move"]

_DIRECTIONS = ("up", "down", "left", "right")


@dataclass(frozen=True)
class Move(Action):
    """Go to the next position in a direction; if there is a wall, you stay where you are.

    ``up`` and ``go up`` are read too: there is nothing else to do in a maze.
    """

    template: ClassVar[str] = "move {direction}"
    accepts: ClassVar[Mapping[str, Mapping[str, str]]] = {
        "go {direction}": {},
        **{direction: {"direction": direction} for direction in _DIRECTIONS},
    }
    direction: Annotated[str, Choice(*_DIRECTIONS), "where to"]


_GRAMMAR = Grammar([Move("right")])

_RULES = """\
You are in a maze and must reach its goal in as few moves as possible. After each move you are told the \
position of the goal, your own position, and on which sides of you there is a wall.

- A position is two numbers, the row and the column. Moving down adds 1 to the row and moving up takes 1 \
from it; moving right adds 1 to the column and moving left takes 1 from it.
- A side that is not named as a wall is open. A move into a wall changes nothing, but counts.
- The shortest way may lead away from the goal at first, and some passages are dead ends.
- At the goal you are told of your success, and the game is over."""


class MazeWire(LMRLWire):
    """Protocol of the Maze server, where a task is the number of a start position."""

    prefix = "/maze"
    task = "game"
    routes: ClassVar[Mapping[str, Collection[str]]] = {"/maze/reset": ("id", "game")}

    def judge(self, start: Start, score: float, action: str, outcome: Outcome) -> Score:
        """Score the reward at the end of the episode: 1 at the goal, -1 at the server's step limit."""
        success = outcome.done and outcome.reward > 0
        return Score(outcome.reward if outcome.done else score, success, outcome.done, outcome.reward)


_QUIRKS = """\
- AgentGym's server serves Maze and Wordle. Its address may end in `/maze`, which AgentGym's client requires.
- A task id is one of 25 start positions in the same maze with the same goal. Id 25 is the goal itself, which
  the server refuses with an empty error.
- At the fifty-first step the server ends an episode as failed, with reward -1, which is then its score. The
  turn limit of 15 comes first unless `max_turns` is raised.
- Text that is not one of the four moves counts as a step and changes nothing.
- AgentGym's client puts rules and an example before the first observation; here the rules are in the prompt,
  and the observation is the server's.
- The server cannot free an environment.
- The local server (`agentgym serve maze`) has the same protocol and the same games. It does not serve Wordle,
  has a text for each error, refuses negative task ids, and deletes the least recently used environment when
  it is full."""

_LOCAL_QUIRKS = """\
- It serves only Maze. AgentGym's server also serves Wordle.
- A negative task id is refused like any other task that does not exist. On AgentGym's it counts from the end.
- Each error describes the failure. On AgentGym's some are empty or name a part of the program."""

MAZE = Environment(
    name="Maze",
    summary="Find the way to the goal of a maze (LMRL-Gym; Abdulhai et al., 2023, arXiv:2311.18232).",
    wire=MazeWire(),
    grammar=_GRAMMAR,
    rules=_RULES,
    max_turns=15,
    splits=make_splits(range(25), test=range(20, 25)),
    cheap_wins=dict.fromkeys(
        ("repeat last", "random valid"), "some of LMRL-Gym's mazes start a few steps from the goal"
    ),
    score_range=(-1.0, 1.0),
    agentgym_readers={"react": read_as_agentgym},
    local_server="agentgym_servers.maze:SERVER",
    local_quirks=_LOCAL_QUIRKS,
    oracle="agentgym_servers.maze._oracle:MazeOracle",
    quirks=_QUIRKS,
    launch=(
        "git submodule update --init agentenv-lmrlgym/lmrlgym && cd agentenv-lmrlgym && "
        "conda env create --name agentenv-lmrlgym -f lmrlgym/environment.yml && "
        "conda activate agentenv-lmrlgym && bash setup.sh && lmrlgym --host 127.0.0.1 --port 36001"
    ),
    transcript=(
        "The goal is at position 8, 6. Your current position is at position 1, 1. There are walls …",
        "move right",
        "The goal is at position 8, 6. Your current position is at position 1, 2. There are walls …",
        "move right",
        "The goal is at position 8, 6. Your current position is at position 1, 3. There is a wall above you.",
    ),
)
