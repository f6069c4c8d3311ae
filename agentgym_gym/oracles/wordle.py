"""The oracle of Wordle: plays by the answers to its guesses and the words in the rules."""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING, Any

from agentgym_gym.envs.wordle import WORDS, Guess

if TYPE_CHECKING:
    import gymnasium

    from agentgym_gym.actions import Action

__all__ = ["WordleOracle", "marks"]

_MARKS = re.compile(r"[gyb](?: [gyb]){4}")


class WordleOracle:
    """Guesses the one of the possible words whose answer separates the others best."""

    name = "oracle"
    blocking = False

    def __init__(self) -> None:
        self._possible: tuple[str, ...] = WORDS
        self._guessed: str | None = None

    def reset(self, env: gymnasium.Env[str, Any], observation: str, info: dict[str, Any]) -> None:
        """Begin with all the words."""
        self._possible, self._guessed = WORDS, None

    def act(self, observation: str, info: dict[str, Any]) -> Action | None:
        """Return the next guess; None if no word is possible any more."""
        guessed, said = self._guessed, observation.strip()
        if guessed is not None:
            # What the game does not know as a word is not the hidden one, and tells no more than that.
            self._possible = tuple(
                word
                for word in self._possible
                if (marks(guessed, word) == said if _MARKS.fullmatch(said) else word != guessed)
            )
        self._guessed = max(self._possible, key=self._worth, default=None)
        return None if self._guessed is None else Guess(self._guessed)

    def _worth(self, guess: str) -> int:
        """Return how well the answer to a guess would separate the possible words."""
        return -sum(count**2 for count in Counter(marks(guess, word) for word in self._possible).values())


def marks(guess: str, hidden: str) -> str:
    """Return the game's answer to a guess: each letter is marked by itself."""
    return " ".join(
        "g" if letter == right else "y" if letter in hidden else "b"
        for letter, right in zip(guess, hidden, strict=True)
    )
