"""The recipes in an observation of TextCraft, and facts about them learned while playing.

An ingredient may be the name of a *kind*: ``planks`` means oak planks, birch planks and so on, and the
observation does not mark such names. This module guesses which names are kinds. The game refuses a wrong
guess; this module records it and does not repeat it.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, TypeAlias

from agentgym_gym.envs.textcraft import Craft
from agentgym_gym.errors import ActionError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

__all__ = ["Knowledge", "TakeFromWorld", "UseMember", "Way"]


@dataclass(frozen=True)
class TakeFromWorld:
    """Take the item from the world."""


@dataclass(frozen=True)
class UseMember:
    """Use an item as a member of the kind."""

    member: str


Way: TypeAlias = Craft | TakeFromWorld | UseMember
"""A way to get an item. A :class:`Craft` is a recipe, with the numbers of one batch."""


class Knowledge:
    """The recipes shown, and the facts about names learned from the game's observations.

    Args:
        recipes: The recipes shown.
    """

    def __init__(self, recipes: Iterable[Craft]) -> None:
        self._makers: dict[str, list[Craft]] = {}
        for recipe in recipes:
            self._makers.setdefault(recipe.item, []).append(recipe)
        self._origins = {item: self._ingredients_of(item) for item in self._makers}
        self._missing: set[str] = set()
        self._is_member: dict[tuple[str, str], bool] = {}  # whether a member belongs to a kind, where known
        self._rejected: set[Craft] = set()

    @classmethod
    def of(cls, observation: str) -> Knowledge:
        """Parse the first observation of a task; lines without a recipe are ignored."""
        return cls(recipe for line in observation.splitlines() if (recipe := _recipe(line)) is not None)

    @property
    def names(self) -> set[str]:
        """All names of outputs and ingredients in the recipes shown."""
        return set(self._makers).union(*self._origins.values())

    def ways(self, name: str) -> list[Way]:
        """Return the ways of the likeliest type to get an item, except ways that are known to fail."""
        crafts: list[Way] = [r for r in self._makers.get(name, ()) if r not in self._rejected]
        if name in self._makers:
            return crafts  # the output of a recipe cannot be taken from the world
        members = self._members(name, lambda item: item.endswith(f" {name}"))
        from_world: list[Way] = [] if name in self._missing else [TakeFromWorld()]
        if members or from_world:
            return members or from_world
        words = set(map(_stem, name.split()))
        return self._members(name, lambda item: not words.isdisjoint(map(_stem, item.split()))) or (
            self._members(name, lambda _: True)
        )

    def record_missing(self, name: str) -> None:
        """Record that an item cannot be taken from the world."""
        self._missing.add(name)

    def record_accepted(self, members: Sequence[tuple[str, str]]) -> None:
        """Record that a recipe accepted these members for these kinds."""
        self._is_member.update(dict.fromkeys(members, True))

    def record_rejected(self, recipe: Craft, members: Sequence[tuple[str, str]]) -> None:
        """Record that a recipe did not accept these members for these kinds."""
        untested = [pair for pair in members if pair not in self._is_member]
        self._is_member.update(dict.fromkeys(untested, False))
        if not untested:
            self._rejected.add(recipe)

    def _members(self, kind: str, fits: Callable[[str], bool]) -> list[Way]:
        """Return possible members of a kind: outputs of recipes that take no item with the kind's name."""
        return [
            UseMember(item)
            for item in self._makers
            if fits(item) and kind not in self._origins[item] and self._is_member.get((kind, item), True)
        ]

    def _ingredients_of(self, item: str) -> set[str]:
        """Return all direct and indirect ingredients of an item."""
        ingredients: set[str] = set()
        names = [item]
        while names:
            for recipe in self._makers.get(names.pop(), ()):
                new = {part.item for part in recipe.ingredients} - ingredients
                ingredients |= new
                names += new
        return ingredients


@lru_cache(maxsize=4096)  # many tasks show the same recipes
def _recipe(line: str) -> Craft | None:
    try:
        return Craft.parse(line)
    except ActionError:
        return None


def _stem(word: str) -> str:
    return word.removesuffix("s")
