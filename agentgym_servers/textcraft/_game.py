"""One game of TextCraft, without a server.

The first observation has some recipes and a goal. The agent may ``get`` an item that no recipe makes,
``craft`` an item from others that it has, and look at its ``inventory``. It wins when it makes the goal.

Every observation equals AgentGym's to the letter, except for numbers so long that AgentGym's server fails.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING

from agentgym_servers._frame.game_turn import GameTurn
from agentgym_servers.textcraft._recipes import (
    NAMESPACE,
    CraftIngredient,
    CraftRecipe,
    RecipeBook,
    name_in_game,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["MAX_DIGITS", "CraftGame"]

MAX_DIGITS = 600
"""The maximum number of digits of a number in an action.

Python may refuse to print an integer of 640 digits or more (see ``sys.set_int_max_str_digits``); the
difference leaves room for sums.
"""

_CRAFT = re.compile(r"craft (.*) using (.*)")
_GET = re.compile(r"get ([0-9]+) (.*)")
_COUNTED = re.compile(r"([0-9]+) (.*)")


class _ActionRefused(Exception):
    """The action has no effect; the message is the observation."""


class CraftGame:
    """One game in play. It does not end: after the goal it continues and can be won again.

    Args:
        book: All recipes, shown or not.
        goal: The item id to make.
    """

    def __init__(self, book: RecipeBook, goal: str) -> None:
        self._book = book
        self._goal = goal
        self._held: dict[str, int] = {}

    def play(self, action: str) -> GameTurn:
        """Play one action. Never raises, with any text.

        Args:
            action: ``get 1 oak logs``, ``craft 4 oak planks using 1 oak logs`` or ``inventory``. Further
                lines, and any text after ``inventory``, are ignored.

        Returns:
            The result. Its reward is 1, and it is done, for the action that made the goal.
        """
        try:
            if match := _CRAFT.match(action):
                return self._craft(*match.groups())
            if match := _GET.match(action):
                return self._get(*match.groups())
        except _ActionRefused as refusal:
            return GameTurn(str(refusal))
        if action.startswith("inventory"):
            return GameTurn(f"Inventory: {self._inventory()}")
        return GameTurn(f"Could not execute {action}")

    def _inventory(self) -> str:
        if not self._held:
            return "You are not carrying anything."
        return "".join(f"[{name_in_game(item_id)}] ({count}) " for item_id, count in self._held.items())

    def _get(self, digits: str, name: str) -> GameTurn:
        count = _number(digits)
        item_id = self._named(name).name
        if not self._book.can_get(item_id):
            raise _ActionRefused(f"Could not find {name}")
        return self._gain(item_id, count, f"Got {count} {name}")

    def _craft(self, output_text: str, inputs_text: str) -> GameTurn:
        output = self._counted(output_text) or self._named(output_text)
        inputs = [self._input(part.strip()) for part in inputs_text.split(",")]
        if not all(self._holds(each) for each in inputs):
            raise _ActionRefused(
                f"Could not find enough items to craft {None if output.is_tag else output.name}"
            )
        recipe = self._recipe_for(output, inputs)
        if recipe is None:
            raise _ActionRefused(f"Could not find a valid recipe for {output.record}")
        for each in inputs:
            self._spend(each)
        return self._gain(recipe.output, recipe.count, f"Crafted {recipe.count} {recipe.output}")

    def _recipe_for(self, output: CraftIngredient, inputs: Sequence[CraftIngredient]) -> CraftRecipe | None:
        """Return the first recipe for an output that takes exactly the inputs, by item or by tag."""
        recipes = () if output.is_tag else self._book.by_item.get(output.name, ())
        return next((recipe for recipe in recipes if self._fits(recipe, inputs)), None)

    def _fits(self, recipe: CraftRecipe, inputs: Sequence[CraftIngredient]) -> bool:
        unused = list(inputs)
        for ingredient in recipe.inputs:
            used = next((each for each in unused if self._book.accepts(ingredient, each.name)), None)
            if used is None or used.count != ingredient.count:
                return False
            unused.remove(used)
        return not unused

    def _holds(self, ingredient: CraftIngredient) -> bool:
        # The agent has only items, so it never has enough of a tag.
        held = None if ingredient.is_tag else self._held.get(ingredient.name)
        return held is not None and held >= ingredient.count

    def _spend(self, ingredient: CraftIngredient) -> None:
        # No recipe takes one item under two names (a test checks the book for this), so the separate checks
        # of `_holds` also hold together.
        self._held[ingredient.name] -= ingredient.count
        if not self._held[ingredient.name]:
            del self._held[ingredient.name]

    def _gain(self, item_id: str, count: int, observation: str) -> GameTurn:
        self._held[item_id] = self._held.get(item_id, 0) + count
        won = item_id == self._goal
        return GameTurn(observation, reward=int(won), done=won)

    def _input(self, text: str) -> CraftIngredient:
        ingredient = self._counted(text)
        if ingredient is None:
            raise _ActionRefused(f"Wrong item format: {text}")
        return ingredient

    def _counted(self, text: str) -> CraftIngredient | None:
        """Parse ``2 oak logs``; None if the text does not begin with a number."""
        match = _COUNTED.match(text)
        return match and replace(self._named(match[2]), count=_number(match[1]))

    def _named(self, text: str) -> CraftIngredient:
        name = NAMESPACE + text.replace(" ", "_")
        return CraftIngredient(name, is_tag=name in self._book.tags)


def _number(digits: str) -> int:
    if len(digits) > MAX_DIGITS:
        raise _ActionRefused(f"Could not use a number of more than {MAX_DIGITS} digits")
    return int(digits)
