"""One task of BabyAI in play, without a server.

The observations equal AgentGym's to the letter; `agentgym_gym.envs.babyai` lists the differences. `minigrid`
defines the rules, the reward and the move limit.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from agentgym_servers._frame.game_turn import GameTurn
from agentgym_servers.babyai._available_actions import AvailableActions
from agentgym_servers.babyai._levels import new_level
from agentgym_servers.babyai._sight import look_around

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from agentgym_servers.babyai._available_actions import MinigridMove

__all__ = ["BabyAIGame"]

_OVER = "\n The task is completed."  # also follows a failure
_LEAST_END_REWARD = 0.5  # AgentGym's server takes back an end with this reward or less


class BabyAIGame:
    """One task in play.

    Args:
        task: The task id, 0 or greater.
        seed: The seed of the world.
        twin: Whether rewards and the end follow AgentGym's server.

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
        return list(self._available.moves)

    @property
    def text(self) -> str:
        """The last observation, with the list of available actions."""
        listed = ", ".join(f'"{action}"' for action in self.actions)
        return f"{self.last.observation}\nAvailable actions: [{listed}]"

    def moves_of(self, action: str) -> Sequence[MinigridMove]:
        """Return the moves of one of `actions`."""
        return self._available.moves[action]

    def play(self, action: str) -> GameTurn:
        """Play one action, which may be any text.

        Args:
            action: One of `actions`, in any case. Any other text costs no move and changes nothing.

        Returns:
            The result. Its observation lacks the list of available actions. Its reward is 1 - 0.9 * moves /
            limit when the goal is reached, as in `minigrid`; else 0. The game is over when it is won, failed
            or out of moves. As a twin, an action that makes no move repeats the last reward, and the game is
            over only when it is won with a reward above 0.5.

        Raises:
            ValueError: The game is over.
        """
        if self.last.done:
            raise ValueError("the game is over")
        action = action.lower().strip()
        moves = self._available.moves.get(action)
        if moves:
            self.last = self._move_as_twin(moves) if self._twin else self._move(moves)
        elif "check" in action:
            self.last = self._without_move("You can take the following actions: " + ", ".join(self.actions))
        elif moves is not None or not action:
            self.last = self._without_move("No change in state.")
        else:
            unknown = "The action is not recognized. Please check valid actions."
            self.last = self._without_move(self._available.refusals.get(action, unknown))
        return self.last

    def _without_move(self, observation: str) -> GameTurn:
        return GameTurn(observation, self.last.reward if self._twin else 0)

    def _move(self, moves: Iterable[MinigridMove]) -> GameTurn:
        """Make moves until one changes nothing visible, or no move is left.

        The remaining moves are made even if one of them ends the game: it may be a step through the door that
        the task requires to open. The first end decides the outcome, because a goal that is reached stays
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
        self._available = AvailableActions(self._sight, twin=self._twin)
