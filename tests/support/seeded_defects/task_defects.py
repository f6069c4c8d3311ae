"""Defects of tasks and prompts, and answers that win without the skill of the game."""

from __future__ import annotations

import random
import re
from typing import Any

from seeded_defects.key_rooms import SIDES, House, KeyRooms
from seeded_defects.number_game import NumberGame
from seeded_defects.price_shop import PriceShop, price_of, product_of
from seeded_defects.text_game import SolutionPlayer
from seeded_defects.word_game import WordGame, word_of

_EXAMPLE = 420


class ForeignGoal(PriceShop):
    """The example in the prompt is a task of the test split, with its answer."""

    system_prompt = (
        f"{PriceShop.system_prompt}\n\nExample:\n"
        f"Question: What is the price of the {product_of(_EXAMPLE)}, in cents?\n"
        f"open[{product_of(_EXAMPLE)}]\nanswer[{price_of(_EXAMPLE)}]"
    )


class AnswerShown(WordGame):
    """The first observation names the file of the task, and the file is named after the word."""

    def start(self, task: int) -> str:
        """Show the letters and the file."""
        return f"Loaded puzzles/{task:04d}-{word_of(task)}.json\n{super().start(task)}"


class ForgedReward(WordGame):
    """Reads the reward from the transcript of the turn, in which the agent's text comes first."""

    def play(self, action: str) -> tuple[str, float]:
        """Compare a guess; take the reward from the transcript."""
        observation, reward = super().play(action)
        transcript = f"Action: {action}\nObservation: {observation}\nReward: {reward}"
        match = re.search(r"^Reward: ([01](?:\.[0-9])?)$", transcript, re.MULTILINE)
        return observation, float(match[1]) if match else reward


class UnreadInventory(KeyRooms):
    """The prompt teaches ``inventory``, but the game reads ``i``."""

    def read(self, action: str) -> list[str]:
        """Split an action into words."""
        words = super().read(action)
        return {"i": ["inventory"], "inventory": ["?"]}.get(" ".join(words), words)

    def available_actions(self) -> list[str]:
        """Return the actions with ``i``."""
        return ["i" if action == "inventory" else action for action in super().available_actions()]


class RefusedAdmissible(KeyRooms):
    """Lists all four directions as admissible, also where there is a wall."""

    def available_actions(self) -> list[str]:
        """Return the actions with each direction."""
        moves = [f"go {side}" for side in SIDES]
        return [*moves, *(each for each in super().available_actions() if each not in moves)]


class _HouseWithoutKey(House):
    """In every 25th house the key of the chest is missing."""

    def __init__(self, task: int) -> None:
        super().__init__(task)
        if task % 25 == 6:
            for keys in self.keys.values():
                keys[:] = [key for key in keys if key != self.label]


class Unwinnable(KeyRooms):
    """Every 25th task has no key for its chest."""

    def new_house(self, task: int) -> House:
        """Return the house of a task."""
        return _HouseWithoutKey(task)


class Duplicates(PriceShop):
    """The last 50 train tasks repeat the first 50."""

    def start(self, task: int) -> str:
        """Open the shop of a task."""
        return super().start(task - 350 if 350 <= task < 400 else task)


def _sold_out(task: int) -> bool:
    return random.Random(f"stock/{task}").random() < 0.12  # noqa: S311


def solution_with_sold_out(task: int) -> list[str]:
    """Return the calls that answer the question of a task of `CommonAnswer`."""
    product = product_of(task)
    price = 0 if _sold_out(task) else price_of(task)
    return [f"search[{product.split()[1]}]", f"open[{product}]", f"answer[{price}]"]


class CommonAnswer(PriceShop):
    """Products that are sold out cost 0 cents: the right answer of 12 % of the tasks."""

    def price_in(self, task: int) -> int:
        """Return the right answer of a task."""
        return 0 if _sold_out(task) else super().price_in(task)


class CommonAnswerSolver(SolutionPlayer):
    """Answers 0 for products that are sold out."""

    solution = staticmethod(solution_with_sold_out)


class YesWins(NumberGame):
    """Accepts "yes" as the right guess, left over from a version in which the agent has the number."""

    def play(self, action: str) -> tuple[str, float]:
        """Compare a guess."""
        if action.strip().lower().rstrip(".!") == "yes":
            action = f"guess {self.number}"
        return super().play(action)


class SurrogateCrash(NumberGame):
    """Counts the bytes of an action, which fails for a lone surrogate."""

    def start(self, task: int) -> str:
        """Start a round."""
        self.received = 0
        return super().start(task)

    def info(self) -> dict[str, Any]:
        """Return the info with the bytes received."""
        return {**super().info(), "received": self.received}

    def play(self, action: str) -> tuple[str, float]:
        """Compare a guess."""
        self.received += len(action.encode())
        return super().play(action)
