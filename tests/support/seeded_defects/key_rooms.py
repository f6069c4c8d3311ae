"""Find a key in a house, carry it to its chest and open it."""

from __future__ import annotations

import random
from collections import deque
from typing import Any

from seeded_defects.text_game import SolutionPlayer, TextGame

COLORS = (  # noqa: SIM905 - shorter than a list
    "amber black blue bronze brown coral cream crimson gold gray green ivory jade lilac mint navy "
    "olive orange pink purple red silver teal violet white"
).split()
ANIMALS = (  # noqa: SIM905 - shorter than a list
    "ant bear bee cat crab crow deer dog duck eel fox frog goat hare hawk lion mole moth newt owl"
).split()
ROOMS = ["attic", "bathroom", "cellar", "kitchen", "library", "lounge", "pantry", "workshop"]
SIDES = {"north": (0, -1), "south": (0, 1), "east": (1, 0), "west": (-1, 0)}
COLUMNS, ROWS = 4, 2


def label(number: int) -> str:
    """Return one of 500 labels."""
    number = (7 * number + 123) % 500
    return f"{COLORS[number % 25]} {ANIMALS[number // 25]}"


class House:
    """The house of a task: its rooms in a grid, the keys and chests in them, and the first room."""

    def __init__(self, task: int) -> None:
        rng = random.Random(f"house/{task}")  # noqa: S311
        cells = [(x, y) for x in range(COLUMNS) for y in range(ROWS)]
        self.names = dict(zip(cells, rng.sample(ROOMS, len(cells)), strict=True))
        self.label = label(task)
        labels = [self.label, *(label(task + offset) for offset in rng.sample(range(1, 500), 15))]
        self.keys = self._spread(rng, cells, labels)
        self.chests = self._spread(rng, cells, labels)
        key_room, chest_room = self._room(self.keys), self._room(self.chests)
        self.first = rng.choice([cell for cell in cells if cell not in (key_room, chest_room)])

    @staticmethod
    def _spread(
        rng: random.Random, cells: list[tuple[int, int]], labels: list[str]
    ) -> dict[tuple[int, int], list[str]]:
        order = rng.sample(labels, len(labels))
        return {cell: sorted(order[2 * place : 2 * place + 2]) for place, cell in enumerate(cells)}

    def _room(self, things: dict[tuple[int, int], list[str]]) -> tuple[int, int]:
        return next(cell for cell, labels in things.items() if self.label in labels)

    def path(self, start: tuple[int, int], end: tuple[int, int]) -> list[str]:
        """Return the moves of a shortest path."""
        queue = deque([(start, list[str]())])
        while True:
            (x, y), moves = queue.popleft()
            if (x, y) == end:
                return moves
            for side, (right, down) in SIDES.items():
                if (x + right, y + down) in self.names:
                    queue.append(((x + right, y + down), [*moves, f"go {side}"]))

    def solution(self) -> list[str]:
        """Return the actions that open the chest."""
        key_room, chest_room = self._room(self.keys), self._room(self.chests)
        return [
            *self.path(self.first, key_room),
            f"take {self.label} key",
            *self.path(key_room, chest_room),
            f"open {self.label} chest",
        ]


def solution(task: int) -> list[str]:
    """Return the actions that win a task."""
    return House(task).solution()


class KeyRooms(TextGame):
    """Open one chest in 12 turns, which the game itself limits."""

    max_turns = 12
    system_prompt = (
        "You are in a house of eight rooms. Find the key with the label of your chest, and open the "
        "chest. You can carry one key only, and cannot put it down.\n"
        "Actions:\ngo north, go south, go east, go west\ntake LABEL key, for example: take pink yak key\n"
        "open LABEL chest, for example: open pink yak chest\nlook\ninventory"
    )

    def goal(self) -> str:
        """Return the chest to open."""
        return f"Open the {self.house.label} chest."

    def start(self, task: int) -> str:
        """Enter the house."""
        self.house = self.new_house(task)
        self.here = self.house.first
        self.keys = {cell: list(labels) for cell, labels in self.house.keys.items()}
        self.held: list[str] = []
        return f"{self.goal()}\n{self.view()}"

    def new_house(self, task: int) -> House:
        """Return the house of a task."""
        return House(task)

    def info(self) -> dict[str, Any]:
        """Return the info with the admissible actions."""
        return {**super().info(), "available_actions": self.available_actions()}

    def exits(self) -> list[str]:
        """Return the sides with a door."""
        x, y = self.here
        return [side for side, (right, down) in SIDES.items() if (x + right, y + down) in self.house.names]

    def available_actions(self) -> list[str]:
        """Return the actions that have an effect, or a view."""
        return [
            *(f"go {side}" for side in self.exits()),
            *(f"take {key} key" for key in self.keys[self.here] if not self.held),
            *(f"open {chest} chest" for chest in self.house.chests[self.here] if chest in self.held),
            "look",
            "inventory",
        ]

    def view(self) -> str:
        """Describe the room."""
        keys = ", ".join(f"{key} key" for key in self.keys[self.here]) or "no key"
        chests = ", ".join(f"{chest} chest" for chest in self.house.chests[self.here])
        return (
            f"You are in the {self.house.names[self.here]}. You see: {keys}, {chests}. "
            f"Doors: {', '.join(self.exits())}."
        )

    def read(self, action: str) -> list[str]:
        """Split an action into words."""
        return action.strip().lower().split(" ")

    def play(self, action: str) -> tuple[str, float]:
        """Play one action."""
        match self.read(action):
            case ["go", side] if side in SIDES:
                return self._go(side), 0.0
            case ["take", *name, "key"]:
                return self._take(" ".join(name)), 0.0
            case ["open", *name, "chest"]:
                return self._open(" ".join(name))
            case ["look"]:
                return self.view(), 0.0
            case ["inventory"]:
                return f"You have: {', '.join(f'{key} key' for key in self.held) or 'nothing'}.", 0.0
        return "You cannot do that.", 0.0

    def _go(self, side: str) -> str:
        if side not in self.exits():
            return "There is a wall."
        self.here = (self.here[0] + SIDES[side][0], self.here[1] + SIDES[side][1])
        return self.view()

    def _take(self, key: str) -> str:
        if key not in self.keys[self.here]:
            return "There is no such key here."
        if self.held:
            return "You can carry one key only."
        self.keys[self.here].remove(key)
        self.held.append(key)
        return f"You take the {key} key."

    def _open(self, chest: str) -> tuple[str, float]:
        if chest not in self.house.chests[self.here]:
            return "There is no such chest here.", 0.0
        if chest not in self.held:
            return "The chest is locked.", 0.0
        self.won = chest == self.house.label
        return ("The chest opens.", 1.0) if self.won else ("The chest is empty.", 0.0)


class Solver(SolutionPlayer):
    """Takes a shortest path."""

    solution = staticmethod(solution)
