"""Games of Wordle and the world they are drawn from, without a server.

A task is a seed, as on AgentGym's server, and any whole number is one. The hidden word stays the same through
a game. Observations are, to the letter, those of AgentGym's server.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from agentgym_gym.errors import BadOption
from agentgym_gym.servers.draw import Draw
from agentgym_gym.servers.wordle_words import WORDS

__all__ = [
    "MAX_TRIES",
    "MAX_WORDS",
    "START",
    "Game",
    "Outcome",
    "World",
    "marks",
    "world_of",
    "world_of_data",
]

MAX_TRIES = 6
"""How many guesses a game lasts."""

MAX_WORDS = 20_000
"""Most words that are loaded from a file."""

START = "Let's start Wordle!"
"""What AgentGym's server says at the start of a game."""

_WORD = re.compile(r"[a-z]{5}", re.ASCII)
_WON = "g g g g g"


@dataclass(frozen=True)
class Outcome:
    """The result of one guess.

    Attributes:
        observation: What the agent is told.
        reward: 1 for the hidden word, else 0.
        done: Whether the game is over.
    """

    observation: str
    reward: float = 0
    done: bool = False


class World:
    """The words that are known, in an order that is drawn.

    Args:
        words: The words, each once.
        seed: What the order is drawn from.

    Attributes:
        words: The words.
    """

    def __init__(self, words: tuple[str, ...], seed: int) -> None:
        self.words = words
        self.known = frozenset(words)
        self._order = Draw("wordle", seed).shuffled(words)

    def hidden(self, task: int) -> str:
        """Return the hidden word of a task: another one for each of as many tasks as there are words.

        Args:
            task: Any whole number.
        """
        return self._order[task % len(self._order)]


@lru_cache(maxsize=4)
def world_of(seed: int) -> World:
    """Return the world of a seed, whose words are those of `WORDS`."""
    return World(WORDS, seed)


def world_of_data(folder: Path) -> World:
    """Return the world of a folder's ``words.txt``, which has words of five letters, one a line.

    Raises:
        BadOption: There is no such file, it cannot be read, or a line of it is anything else.
    """
    path = folder / "words.txt"
    try:
        lines = path.read_text("utf-8").split()
    except (OSError, ValueError) as error:
        raise BadOption(f"cannot read {path}: {error}; it has a word of five letters in each line") from error
    words = tuple(dict.fromkeys(line.lower() for line in lines))
    wrong = next((word for word in words if not _WORD.fullmatch(word)), None)
    if wrong is not None:
        raise BadOption(f"{path} holds {wrong[:40]!r}, which is no word of the letters a to z, five of them")
    if not 1 <= len(words) <= MAX_WORDS:
        raise BadOption(f"{path} holds {len(words)} words; there must be 1 to {MAX_WORDS}")
    return World(words, 0)


class Game:
    """One task being played.

    Args:
        world: The words.
        task: Which task.

    Attributes:
        reward: What all guesses so far have earned.
        last: What came of the last guess; None before the first.
    """

    def __init__(self, world: World, task: int) -> None:
        self._world = world
        self._hidden = world.hidden(task)
        self._tries = 0
        self._answers: list[tuple[str, str]] = []
        self.reward: float = 0
        self.last: Outcome | None = None

    @property
    def done(self) -> bool:
        """Whether the game is over."""
        return self.last is not None and self.last.done

    def play(self, action: str) -> Outcome:
        """Play one guess, whatever the text.

        Args:
            action: A word, with or without blanks between its letters. Anything that is not one of the
                world's words is a try as well.

        Raises:
            ValueError: The game is over.
        """
        if self.done:
            raise ValueError("the game is over")
        self._tries += 1
        guess = "".join(action.split())
        last_try = self._tries == MAX_TRIES
        if guess in self._world.known:
            answer = marks(guess, self._hidden)
            self._answers.append((guess, answer))
            won = answer == _WON
            self.last = Outcome(f"{answer}\n", reward=1 if won else 0, done=won or last_try)
        else:
            self.last = Outcome("invalid word", reward=0.0, done=last_try)
        self.reward += self.last.reward
        return self.last

    def possible(self) -> list[str]:
        """Return the words that fit all answers so far. It may be called from any thread."""
        answers = tuple(self._answers)
        return [
            word
            for word in self._world.words
            if all(marks(guess, word) == answer for guess, answer in answers)
        ]


def marks(guess: str, hidden: str) -> str:
    """Return the game's answer to a guess: each letter is marked by itself."""
    return " ".join(
        "g" if letter == right else "y" if letter in hidden else "b"
        for letter, right in zip(guess, hidden, strict=True)
    )
