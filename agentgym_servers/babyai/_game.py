"""One task of BabyAI in play, without a server.

The observations equal those of AgentGym's server to the letter; `agentgym_gym.envs.babyai` lists the
differences. Rules, reward and move limit are those of `minigrid`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from agentgym_servers.babyai._choices import Choices
from agentgym_servers.babyai._levels import new_level
from agentgym_servers.babyai._sight import look_around

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    import numpy as np
    from numpy.typing import NDArray

    from agentgym_servers.babyai._choices import MinigridMove

__all__ = ["Game", "GameTurn"]

_OVER = "\n The task is completed."  # also follows a failure
_LEAST_END_REWARD = 0.5  # AgentGym's server takes back an end with this reward or less


@dataclass(frozen=True)
class GameTurn:
    """The result of one action.

    Attributes:
        observation: The observation, without the list of available actions.
        reward: 1 - 0.9 * moves / limit when the goal is reached, as in `minigrid`; else 0. As a twin, the
            last reward again for an action that makes no move.
        done: Whether the game is over: won, failed, or out of moves. As a twin, only if it is won with a
            reward above 0.5.
    """

    observation: str
    reward: float = 0
    done: bool = False


class Game:
    """One task in play.

    Args:
        task: The task id, 0 or greater.
        seed: The seed of the world.
        twin: Whether rewards and the end are those of AgentGym's server.

    Attributes:
        level: Its level in the current state.
        goal: The instruction.
        last: The outcome of the last action; before the first action, the initial observation.

    Raises:
        ValueError: There is no such task.
    """

    def __init__(self, task: int, seed: int = 0, *, twin: bool = False) -> None:
        self._twin = twin
        self.level, self._image = new_level(task, seed)
        # AgentGym's server drops the order of the parts, which an instruction expresses in one of two forms.
        self.goal: str = self.level.mission.replace("then", "and").replace("after you", "and")
        self._see()
        self.last = GameTurn(str(self._sight))

    @property
    def actions(self) -> Sequence[str]:
        """The actions that are available now."""
        return list(self._choices.moves)

    @property
    def text(self) -> str:
        """The last observation, with the list of available actions."""
        listed = ", ".join(f'"{action}"' for action in self.actions)
        return f"{self.last.observation}\nAvailable actions: [{listed}]"

    def moves_of(self, action: str) -> Sequence[MinigridMove]:
        """Return the moves of one of `actions`."""
        return self._choices.moves[action]

    def play(self, action: str) -> GameTurn:
        """Play one action, which may be any text.

        Args:
            action: One of `actions`, in any case. Any other text costs no move and changes nothing.

        Raises:
            ValueError: The game is over.
        """
        if self.last.done:
            raise ValueError("the game is over")
        action = action.lower().strip()
        moves = self._choices.moves.get(action)
        if moves:
            self.last = self._move_as_twin(moves) if self._twin else self._move(moves)
        elif "check" in action:
            self.last = self._without_move("You can take the following actions: " + ", ".join(self.actions))
        elif moves is not None or not action:
            self.last = self._without_move("No change in state.")
        else:
            unknown = "The action is not recognized. Please check valid actions."
            self.last = self._without_move(self._choices.refusals.get(action, unknown))
        return self.last

    def picture(self) -> NDArray[np.uint8]:
        """Draw the level: rows of pixels of red, green and blue."""
        level = self.level
        return level.get_frame(highlight=level.highlight, tile_size=level.tile_size)

    def _without_move(self, observation: str) -> GameTurn:
        return GameTurn(observation, self.last.reward if self._twin else 0)

    def _move(self, moves: Iterable[MinigridMove]) -> GameTurn:
        """Make moves until one changes nothing visible, or no move is left.

        The remaining moves are made even if one of them ends the game: it may be a step through the door that
        the task requires to open. The outcome is that of the first end, because a goal that is reached stays
        reached.
        """
        reward: Any = 0
        ended = lost = truncated = False
        for move in moves:
            seen, paid, terminated, truncated, _ = self.level.step(move)
            if terminated and not lost:
                ended, lost, reward = True, not paid, paid
            before, self._image = self._image, seen["image"]
            if truncated or (self._image == before).all():
                break
        self._see()
        return GameTurn(str(self._sight) + (_OVER if ended else ""), reward, ended or truncated)

    def _move_as_twin(self, moves: Iterable[MinigridMove]) -> GameTurn:
        """Make moves until one changes nothing visible, or no move is left; only the last one counts."""
        paid: Any = 0
        terminated = False
        for move in moves:
            seen, paid, terminated, _, _ = self.level.step(move)
            before, self._image = self._image, seen["image"]
            if (self._image == before).all():
                break
        self._see()
        done = terminated and paid > _LEAST_END_REWARD
        return GameTurn(str(self._sight) + (_OVER if terminated else ""), paid, done)

    def _see(self) -> None:
        self._sight = look_around(self.level, self._image.tolist())
        self._choices = Choices(self._sight, twin=self._twin)
