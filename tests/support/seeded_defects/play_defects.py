"""Defects of repeatability: state outside the episode, clocks, and changes outside the environment."""

from __future__ import annotations

import datetime as dt
import os
import random
import tempfile
import time
from typing import Any, ClassVar

from seeded_defects.craft_game import CraftGame
from seeded_defects.key_rooms import KeyRooms
from seeded_defects.price_shop import PriceShop
from seeded_defects.word_game import WordGame


class GlobalRandomHints(WordGame):
    """Draws hints from Python's global random generator."""

    def revealed(self, hint: int) -> int:
        """Return a random place."""
        return random.randrange(len(self.word))  # noqa: S311


class ReseedsGlobal(KeyRooms):
    """Seeds Python's global random generator with the task, and draws noises of the house from it."""

    def start(self, task: int) -> str:
        """Seed the generator."""
        random.seed(task)
        return super().start(task)

    def view(self) -> str:
        """Describe the room with a noise."""
        noise = random.choice(["A clock ticks.", "A mouse squeaks.", "The wind howls.", "It is quiet."])  # noqa: S311
        return f"{super().view()} {noise}"


_catalogues: dict[str, dict[str, int]] = {}


class CoarseCache(PriceShop):
    """Caches the catalogue of a task by the kind of product, which many tasks share."""

    def catalogue(self, task: int) -> dict[str, int]:
        """Return a catalogue from the cache."""
        kind = self.product.split()[1]
        if kind not in _catalogues:
            _catalogues[kind] = super().catalogue(task)
        return _catalogues[kind]


class CarriedReward(CraftGame):
    """A reset forgets to set the score to 0, so the next episode pays it again."""

    def clear_score(self) -> None:
        """Begin with nothing paid."""
        self.paid = 0.0


class ScratchBuffer(KeyRooms):
    """Splits actions into a list that all instances share."""

    _words: ClassVar[list[str]] = []

    def read(self, action: str) -> list[str]:
        """Split an action into the shared list."""
        self._words.clear()
        for word in super().read(action):
            self._words.append(word)
            time.sleep(0.0003)  # a regular expression, a spelling check
        return list(self._words)


class WallClock(PriceShop):
    """Each tool's output starts with the time of day."""

    def play(self, action: str) -> tuple[str, float]:
        """Call one tool."""
        observation, reward = super().play(action)
        return f"[{time.strftime('%H:%M:%S')}] {observation}", reward


class DeliveryDay(PriceShop):
    """A product's page names the weekday of the delivery, counted from today."""

    def open(self, product: str) -> str:
        """Show a product with its day of delivery."""
        day = dt.date.today() + dt.timedelta(days=3)  # noqa: DTZ011 - the defect
        return super().open(product).replace("takes three days", f"is on {day:%A}")


class MutatedInventory(CraftGame):
    """Returns its own list of things in ``info``, which later turns change."""

    def info(self) -> dict[str, Any]:
        """Return the info with the list of the game."""
        return {**super().info(), "inventory": self.held}


class ChangesDirectory(CraftGame):
    """Enters a folder for its recipes and does not return."""

    def start(self, task: int) -> str:
        """Enter the folder."""
        os.chdir(tempfile.gettempdir())
        return super().start(task)
