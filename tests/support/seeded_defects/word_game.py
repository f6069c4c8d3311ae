"""Unscramble a word of seven letters."""

from __future__ import annotations

import random

from seeded_defects.text_game import SolutionPlayer, TextGame

SYLLABLES = "ba ce di fo gu ha je ki lo mu na pe ri so tu va we xi yo zu".split()  # noqa: SIM905


def word_of(task: int) -> str:
    """Return the word of a task; no two tasks have words of the same letters."""
    return _WORDS[task]


def _all_words() -> list[str]:
    rng, words = random.Random("words"), dict[str, str]()  # noqa: S311
    while len(words) < 500:
        word = "".join(rng.sample(SYLLABLES, 3)) + rng.choice("lnrst")
        letters = "".join(sorted(word))
        if len(set(letters)) == len(letters):
            words.setdefault(letters, word)
    return list(words.values())


_WORDS = _all_words()


def scrambled(task: int) -> str:
    """Return the letters of a task's word in another order, which has no letter in its place."""
    word, rng = word_of(task), random.Random(f"letters/{task}")  # noqa: S311
    while True:
        letters = rng.sample(word, len(word))
        if not any(map(str.__eq__, letters, word)) and not any(map(str.__eq__, letters[::-1], word)):
            return " ".join(letters)


def solution(task: int) -> list[str]:
    """Return the guess that wins a task."""
    return [f"guess {word_of(task)}"]


class WordGame(TextGame):
    """Guess in 10 turns, which the game itself limits. It gives two hints."""

    max_turns = 10
    system_prompt = (
        "Unscramble the letters to a word. After each guess you learn how many letters are in place.\n"
        "Actions:\nguess WORD, for example: guess pebacon\nhint (reveals a letter, twice at most)"
    )

    def goal(self) -> str:
        """Return the letters."""
        return f"Unscramble: {scrambled(self.task or 0)}"

    def start(self, task: int) -> str:
        """Show the letters."""
        self.word = word_of(task)
        self.hints = 0
        return f"{self.goal()}\nYou have {self.max_turns} turns."

    def play(self, action: str) -> tuple[str, float]:
        """Compare a guess, or give a hint."""
        words = action.strip().lower().split()
        if words == ["hint"]:
            return self.hint(), 0.0
        if len(words) != 2 or words[0] != "guess":
            return "Use: guess WORD, or hint", 0.0
        self.won = words[1] == self.word
        if self.won:
            return "Yes, that is the word.", 1.0
        return f"{sum(map(str.__eq__, words[1], self.word))} letters are in place.", 0.0

    def hint(self) -> str:
        """Reveal a letter."""
        if self.hints == 2:
            return "There are no more hints."
        self.hints += 1
        place = self.revealed(self.hints)
        return f"Letter {place + 1} is {self.word[place]}."

    def revealed(self, hint: int) -> int:
        """Return the place of the letter that a hint reveals."""
        return 2 * hint


class Solver(SolutionPlayer):
    """Guesses the word at once."""

    solution = staticmethod(solution)
