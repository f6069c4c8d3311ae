"""One game of Wordle, without a server.

The hidden word does not change during a game, except as a twin of AgentGym's server. Observations equal
AgentGym's to the letter.
"""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

from agentgym_servers._frame.game_turn import GameTurn

if TYPE_CHECKING:
    from agentgym_servers.wordle._world import WordleWorld

__all__ = ["MAX_TRIES", "START", "TwinGame", "WordleGame", "marks"]

MAX_TRIES = 6
"""The maximum number of guesses."""

START = "Let's start Wordle!"
"""The first observation, as on AgentGym's server."""

_WON = "g g g g g"


class WordleGame:
    """One game in play.

    Args:
        world: The words.
        task: The task id.

    Attributes:
        reward: The sum of the rewards so far.
        last: The outcome of the last guess; None before the first.
    """

    def __init__(self, world: WordleWorld, task: int) -> None:
        self._world = world
        self._hidden = world.hidden(task)
        self._tries = 0
        self._answers: list[tuple[str, str]] = []
        self.reward: float = 0
        self.last: GameTurn | None = None

    @property
    def done(self) -> bool:
        """Whether the game is over."""
        return self.last is not None and self.last.done

    def play(self, action: str) -> GameTurn:
        """Play one guess, which may be any text.

        Args:
            action: A word, with or without blanks between its letters. A text that is not one of the world's
                words also counts as a guess.

        Returns:
            The result. Its reward is 1 for the hidden word, else 0.

        Raises:
            ValueError: The game is over.
        """
        if self.done:
            raise ValueError("the game is over")
        self._tries += 1
        guess = self._guess(action)
        last_try = self._tries == MAX_TRIES
        if guess in self._world.known:
            answer = marks(guess, self._hidden_word())
            self._answers.append((guess, answer))
            won = answer == _WON
            self.last = GameTurn(f"{answer}\n", reward=1 if won else 0, done=won or last_try)
        else:
            self.last = GameTurn("invalid word", reward=0.0, done=last_try)
        self.reward += self.last.reward
        return self.last

    def possible(self) -> list[str]:
        """Return the words that are consistent with all answers so far; thread-safe."""
        answers = tuple(self._answers)
        return [
            word
            for word in self._world.words
            if all(marks(guess, word) == answer for guess, answer in answers)
        ]

    def _guess(self, action: str) -> str:
        return "".join(action.split())

    def _hidden_word(self) -> str:
        return self._hidden


class TwinGame(WordleGame):
    """One game by the rules of AgentGym's server: each guess draws the hidden word from all possible words.

    The draws equal AgentGym's for the same task.

    Args:
        world: The words, in the order of AgentGym's server.
        task: The task id; None for random draws.
    """

    def __init__(self, world: WordleWorld, task: int | None) -> None:
        super().__init__(world, 0)
        self._random = random.Random(task)  # noqa: S311 - nothing secret

    def _guess(self, action: str) -> str:
        return action.strip().replace(" ", "")

    def _hidden_word(self) -> str:
        return self._random.choice(self.possible())


def marks(guess: str, hidden: str) -> str:
    """Return the answer to a guess; each letter is marked independently of the others."""
    return " ".join(
        "g" if letter == right else "y" if letter in hidden else "b"
        for letter, right in zip(guess, hidden, strict=True)
    )
