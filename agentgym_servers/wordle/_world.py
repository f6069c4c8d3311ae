"""The world of the Wordle server: its words, and the hidden word of each task.

A task is a seed, as on AgentGym's server; any integer is one.
"""

from __future__ import annotations

import re
from functools import lru_cache
from pathlib import Path

from agentgym_gym.errors import BadOption
from agentgym_servers._frame.data_files import read_text
from agentgym_servers._frame.draw import Draw

__all__ = ["MAX_WORDS", "TWIN_WORDS", "WORDS", "WordleWorld", "world_of", "world_of_data"]

WORDS = tuple(read_text("wordle", "words.txt").split())
"""Common English words of five letters, in alphabetical order."""

TWIN_WORDS = tuple(read_text("wordle", "lmrl_words.txt").split())
"""The words of AgentGym's server, in its order, which its draws depend on.

The file is LMRL-Gym's; its licence is in the same folder.
"""

MAX_WORDS = 20_000
"""The maximum number of words loaded from a file."""

_WORD = re.compile(r"[a-z]{5}", re.ASCII)


class WordleWorld:
    """The known words, in random order.

    Args:
        words: The words, without duplicates.
        seed: The seed of the order.

    Attributes:
        words: The words.
    """

    def __init__(self, words: tuple[str, ...], seed: int) -> None:
        self.words = words
        self.known = frozenset(words)
        self._order = Draw("wordle", seed).shuffled(words)

    def hidden(self, task: int) -> str:
        """Return the hidden word of a task; with N words, any N consecutive tasks have different ones.

        Args:
            task: Any integer.
        """
        return self._order[task % len(self._order)]


@lru_cache(maxsize=2)
def world_of(seed: int) -> WordleWorld:
    """Return the world of a seed, with the words of `WORDS`; cached."""
    return WordleWorld(WORDS, seed)


def world_of_data(folder: Path) -> WordleWorld:
    """Return the world of a folder's ``words.txt``, which has words of five letters, one per line.

    Raises:
        BadOption: There is no such file, it is unreadable, or it has an invalid line.
    """
    path = folder / "words.txt"
    try:
        lines = path.read_text("utf-8").split()
    except (OSError, ValueError) as error:
        raise BadOption(
            f"cannot read {path}: {error}; it should have one word of five letters per line"
        ) from error
    words = tuple(dict.fromkeys(line.lower() for line in lines))
    wrong = next((word for word in words if not _WORD.fullmatch(word)), None)
    if wrong is not None:
        raise BadOption(f"{path}: {wrong[:40]!r} is not a word of five letters from a to z")
    if not 1 <= len(words) <= MAX_WORDS:
        raise BadOption(f"{path} has {len(words)} words; it should have 1 to {MAX_WORDS}")
    return WordleWorld(words, 0)
