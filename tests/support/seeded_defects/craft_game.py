"""Craft a tool from two parts. Each part pays a quarter, and the tool half."""

from __future__ import annotations

import random
from typing import Any

from seeded_defects.text_game import SolutionPlayer, TextGame

MATERIALS = "ash bark bone clay coal copper flax flint hide horn reed resin sand silver straw tin".split()  # noqa: SIM905
PARTS = (  # noqa: SIM905 - shorter than a list
    "base blade cap case frame grip handle head hook hoop lid pin plate ring rod socket spring strap"
).split()
TOOLS = (  # noqa: SIM905 - shorter than a list
    "axe awl brush chisel comb drill file hammer knife lamp ladle press rake saw sieve spade tongs vice"
).split()
OWNERS = (  # noqa: SIM905 - shorter than a list
    "Ada Ben Cleo Dan Eve Finn Gus Hal Ida Jon Kim Leo Mia Ned Ola Pia Quin Rob Sue Tom Uma Val "
    "Wim Yan Zoe Abe Bea Cid"
).split()

Recipes = dict[str, tuple[str, str]]


def tool_of(task: int) -> str:
    """Return the tool of a task; no two tasks have the same."""
    number = (5 * task + 17) % (len(TOOLS) * len(OWNERS))
    return f"{OWNERS[number // len(TOOLS)]}'s {TOOLS[number % len(TOOLS)]}"


def recipes_of(task: int) -> Recipes:
    """Return the recipes of a task by the product, the tool's included."""
    rng = random.Random(f"craft/{task}")  # noqa: S311
    parts = rng.sample(PARTS, 5)
    recipes: Recipes = {}
    for part in parts:
        first, second = rng.sample(MATERIALS, 2)
        recipes[part] = (first, second)
    recipes[tool_of(task)] = (parts[0], parts[1])
    order = rng.sample(list(recipes), len(recipes))
    return {product: recipes[product] for product in order}


def solution(task: int) -> list[str]:
    """Return the actions that craft the tool."""
    recipes = recipes_of(task)
    actions = []
    for part in recipes[tool_of(task)]:
        actions += [*(f"gather {material}" for material in recipes[part]), f"craft {part}"]
    return [*actions, f"craft {tool_of(task)}"]


class CraftGame(TextGame):
    """Craft a tool within 12 turns: the limit of the game and of the registration."""

    max_turns = 12
    system_prompt = (
        "Craft the tool of your goal by the recipes.\nActions:\n"
        "gather MATERIAL, for example: gather sand\ncraft PRODUCT, for example: craft handle\ninventory"
    )

    def __init__(self) -> None:
        super().__init__()
        self.score = self.paid = 0.0

    def goal(self) -> str:
        """Return the tool to craft."""
        return f"Craft {self.tool}."

    def start(self, task: int) -> str:
        """Show the recipes."""
        self.tool, self.recipes = tool_of(task), recipes_of(task)
        self.held: list[str] = []
        self.made: set[str] = set()
        self.clear_score()
        lines = [f"{product} = {first} + {second}" for product, (first, second) in self.recipes.items()]
        return "\n".join([self.goal(), "Recipes:", *lines, f"Materials: {', '.join(MATERIALS)}"])

    def clear_score(self) -> None:
        """Begin with a score of 0."""
        self.score = self.paid = 0.0

    def info(self) -> dict[str, Any]:
        """Return the info with the inventory and the admissible actions."""
        return {
            **super().info(),
            "inventory": list(self.held),
            "available_actions": self.available_actions(),
        }

    def available_actions(self) -> list[str]:
        """Return the actions that the game accepts now."""
        possible = (p for p, inputs in self.recipes.items() if all(each in self.held for each in inputs))
        return [
            *(f"gather {material}" for material in MATERIALS),
            *(f"craft {product}" for product in possible),
            "inventory",
        ]

    def play(self, action: str) -> tuple[str, float]:
        """Play one action; the reward is the increase of the score."""
        observation = self.act(action.strip())
        return observation, self.pay()

    def pay(self) -> float:
        """Return the part of the score that is not yet paid."""
        reward = self.score - self.paid
        self.paid = self.score
        return reward

    def act(self, action: str) -> str:
        """Return the observation of one action."""
        verb, _, thing = action.partition(" ")
        if action == "inventory":
            return f"You have: {', '.join(self.held) or 'nothing'}."
        if verb == "gather" and thing in MATERIALS:
            self.held.append(thing)
            return f"You gather {thing}."
        if verb == "craft" and thing in self.recipes:
            return self.craft(thing)
        return "Nothing happens."

    def craft(self, product: str) -> str:
        """Make a product if its inputs are there."""
        inputs = self.recipes[product]
        if not all(each in self.held for each in inputs):
            return "You lack something for it."
        for each in inputs:
            self.held.remove(each)
        self.held.append(product)
        self.won = product == self.tool
        if self.won:
            self.score = 1.0
        elif product in self.recipes[self.tool] and product not in self.made:
            self.made.add(product)
            self.score += 0.25
        return f"You craft {product}."


class Solver(SolutionPlayer):
    """Follows the recipes."""

    solution = staticmethod(solution)
