"""One task of BabyAI being played, without a server.

What is said is, to the letter, what AgentGym's server says; `agentgym_gym.envs.babyai` lists what differs.
The game is `minigrid`'s: so are its rules, its reward and the number of moves it lasts.
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

    from agentgym_servers.babyai._choices import Move

__all__ = ["Game", "Outcome"]

_OVER = "\n The task is completed."  # said of a failure, too


@dataclass(frozen=True)
class Outcome:
    """The result of one action.

    Attributes:
        observation: What the agent is told, without the list of what it can do.
        reward: 1 - 0.9 * moves / limit when the goal is reached, as `minigrid` has it; else 0.
        done: Whether the game is over: won, failed for good, or out of moves.
    """

    observation: str
    reward: float = 0
    done: bool = False


class Game:
    """One task being played.

    Args:
        task: Which task, 0 or above.
        seed: Of the world.

    Attributes:
        level: Its level, as it is now.
        goal: What is to be done, in words.
        last: What came of the last action; before the first, what the agent is told at the start.

    Raises:
        ValueError: There is no such task.
    """

    def __init__(self, task: int, seed: int = 0) -> None:
        self.level, self._image = new_level(task, seed)
        # AgentGym's server gives no order to what has one, in either of two forms.
        self.goal: str = self.level.mission.replace("then", "and").replace("after you", "and")
        self._see()
        self.last = Outcome(str(self._sight))

    @property
    def actions(self) -> Sequence[str]:
        """What the agent can do now."""
        return list(self._choices.moves)

    @property
    def told(self) -> str:
        """What the agent was told last, and what it can do now."""
        listed = ", ".join(f'"{action}"' for action in self.actions)
        return f"{self.last.observation}\nAvailable actions: [{listed}]"

    def moves_of(self, action: str) -> Sequence[Move]:
        """Return the moves that one of `actions` is made of."""
        return self._choices.moves[action]

    def play(self, action: str) -> Outcome:
        """Play one action, whatever the text.

        Args:
            action: One of `actions`, in any case. Anything else costs no move and changes nothing.

        Raises:
            ValueError: The game is over.
        """
        if self.last.done:
            raise ValueError("the game is over")
        action = action.lower().strip()
        moves = self._choices.moves.get(action)
        if moves:
            self.last = self._moved(moves)
        elif "check" in action:
            self.last = Outcome("You can take the following actions: " + ", ".join(self.actions))
        elif moves is not None or not action:
            self.last = Outcome("No change in state.")
        else:
            unknown = "The action is not recognized. Please check valid actions."
            self.last = Outcome(self._choices.refusals.get(action, unknown))
        return self.last

    def picture(self) -> NDArray[np.uint8]:
        """Draw the level: rows of points of red, green and blue."""
        level = self.level
        return level.get_frame(highlight=level.highlight, tile_size=level.tile_size)

    def _moved(self, moves: Iterable[Move]) -> Outcome:
        """Make moves until one changes nothing that is seen, or there is no move left.

        The others are made even where one of them ends the game: it may be a step through the door that was
        to be opened. The end is that of the first, as the goal cannot be missed once it is reached.
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
        return Outcome(str(self._sight) + (_OVER if ended else ""), reward, ended or truncated)

    def _see(self) -> None:
        self._sight = look_around(self.level, self._image.tolist())
        self._choices = Choices(self._sight)
