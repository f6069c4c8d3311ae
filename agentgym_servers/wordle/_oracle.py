"""The oracle of Wordle: combines the answers to its guesses with the server's list of words."""

from __future__ import annotations

import re
from collections import Counter
from functools import lru_cache
from typing import TYPE_CHECKING, Any, TypeAlias

from agentgym_gym.envs.wordle import WORDS, Guess
from agentgym_gym.local_servers import ServedWorld
from agentgym_servers._frame.world_seed import seed_of
from agentgym_servers.wordle._game import marks
from agentgym_servers.wordle._world import world_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    import gymnasium

    from agentgym_gym.actions import Action

__all__ = ["WordleOracle", "marks"]

_Words: TypeAlias = tuple[str, ...]
_History: TypeAlias = tuple[tuple[str, str], ...]  # guesses with their answers

_MARKS = re.compile(r"[gyb](?: [gyb]){4}")

_MOST_COMPARED = 20_000  # pairs of words to compare for one guess: takes some hundredths of a second


class WordleOracle:
    """Guesses a word whose answer separates the possible words well.

    It uses the word list of the server that it plays on: AgentGym's or this project's own. It infers the
    hidden word from the answers only.
    """

    name = "oracle"
    blocking = False

    def __init__(self) -> None:
        self._words: _Words = WORDS
        self._history: _History = ()
        self._guessed: str | None = None

    def reset(self, env: gymnasium.Env[str, Any], observation: str, info: dict[str, Any]) -> None:
        """Start with all words.

        Raises:
            BadOption: The server's words come from a file of the user.
        """
        world = ServedWorld.parse(info.get("served_by"))
        theirs = info.get("served_by") is None or (world is not None and world.twin)
        self._words = WORDS if theirs else world_of(seed_of(info, "Wordle")).words
        self._history, self._guessed = (), None

    def act(self, observation: str, info: dict[str, Any]) -> Action | None:
        """Return the next guess; None if no word is possible."""
        if self._guessed is not None:
            self._history += ((self._guessed, observation.strip()),)
        self._guessed = _next_guess(self._words, self._history)
        return None if self._guessed is None else Guess(self._guessed)

    def thought(self) -> str:
        """Return what the answers show about the letters, and whether the last guess fits them."""
        if self._guessed is None:
            return ""
        guess = " ".join(self._guessed)
        answers = [(word, reply.split()) for word, reply in self._history if _MARKS.fullmatch(reply)]
        if not answers:
            return f"I know no letter yet. {guess} has common letters."
        tried = {letter for word, _ in answers for letter in word}
        if all(marks(word, self._guessed).split() == reply for word, reply in answers):
            return f"{_hints(answers)} {guess} fits."
        new = ", ".join(dict.fromkeys(letter for letter in self._guessed if letter not in tried))
        return f"{_hints(answers)} {guess} tests {new or 'other places'}."


def _hints(answers: Sequence[tuple[str, Sequence[str]]]) -> str:
    """Return what answers show: the letters in place, elsewhere in the word, and not in it."""
    letters = [
        (place, letter, mark)
        for word, reply in answers
        for place, (letter, mark) in enumerate(zip(word, reply, strict=True), 1)
    ]
    fixed = {place: letter for place, letter, mark in letters if mark == "g"}
    inside = {letter for _, letter, mark in letters if mark != "b"}
    elsewhere = dict.fromkeys(
        f"{letter} not {place}"
        for place, letter, mark in letters
        if mark == "y" and letter not in fixed.values()
    )
    absent = dict.fromkeys(letter for _, letter, _ in letters if letter not in inside)
    sentences = [
        f"In place: {' '.join(fixed.get(place, '_') for place in range(1, 6))}." * bool(fixed),
        f"Elsewhere: {', '.join(elsewhere)}." * bool(elsewhere),
        f"Not in it: {', '.join(absent)}." * bool(absent),
    ]
    return " ".join(filter(None, sentences))


@lru_cache(maxsize=4096)
def _possible(words: _Words, history: _History) -> _Words:
    """Return the words that are consistent with all answers."""
    if not history:
        return words
    guessed, reply = history[-1]
    # A guess that the game rejects as not a word is not the hidden one; it gives no other information.
    return tuple(
        word
        for word in _possible(words, history[:-1])
        if (marks(guessed, word) == reply if _MARKS.fullmatch(reply) else word != guessed)
    )


@lru_cache(maxsize=4096)  # games of one server begin with the same guesses
def _next_guess(words: _Words, history: _History) -> str | None:
    possible = _possible(words, history)
    if len(possible) <= 2:  # noqa: PLR2004 - each of two is as good as the other
        return next(iter(possible), None)
    guessed = {guess for guess, _ in history}
    likely = frozenset(possible)
    letters = Counter(letter for word in possible for letter in set(word))

    def parts(word: str) -> int:
        """Return how evenly the letters of a word divide the possible words."""
        return sum(min(letters[each], len(possible) - letters[each]) for each in set(word))

    tried = sorted((word for word in words if word not in guessed), key=parts, reverse=True)
    tried = tried[: max(1, _MOST_COMPARED // len(possible))]
    if len(possible) ** 2 <= _MOST_COMPARED:
        tried = [*possible, *tried]

    def left(word: str) -> tuple[int, bool]:
        """Return the sum of squared group sizes after a guess, and whether the word is impossible."""
        answers = Counter(marks(word, each) for each in possible)
        return sum(count**2 for count in answers.values()), word not in likely

    return min(tried, key=left)
