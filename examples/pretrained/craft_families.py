"""Families of TextCraft's goals, from the recipes that the prompts of its training tasks show.

A family is one set of quantities: four stairs take six of any material, and six slabs take three. A model
that was trained on one goal of a family has seen how to craft the others.
"""

from __future__ import annotations

import functools
import random
from collections.abc import Iterable
from typing import TypeAlias

from agentgym_gym import AgentGymEnv, find
from agentgym_gym.envs.textcraft import Craft

__all__ = ["draw_families", "without_families"]

Quantities: TypeAlias = tuple[int, tuple[int, ...]]
"""The number of items that a recipe makes, and the sorted numbers of its ingredients."""


def draw_families(count: int, seed: int) -> list[int]:
    """Return training tasks of random families: whole ones, except the last, which may have more tasks.

    A goal with several recipes joins their families.

    Args:
        count: The number of tasks.
        seed: Seed of the families.
    """
    families: list[tuple[set[Quantities], list[int]]] = []
    for task in _recipes():
        quantities, tasks = _own(task), [task]
        for family in [each for each in families if each[0] & quantities]:
            families.remove(family)
            quantities, tasks = quantities | family[0], [*family[1], *tasks]
        families.append((quantities, tasks))
    random.Random(seed).shuffle(families)  # noqa: S311 - a reproducible order
    return sorted([task for _, tasks in families for task in tasks][:count])


def without_families(tasks: Iterable[int], kept_out: Iterable[int]) -> list[int]:
    """Return the tasks whose prompts show no recipe of the families of the kept-out tasks."""
    hidden = set().union(*map(_own, kept_out))
    return [task for task in tasks if hidden.isdisjoint(map(_quantities, _recipes()[task][1]))]


def _own(task: int) -> set[Quantities]:
    """Return the quantities of the recipes that make the task's goal."""
    goal, recipes = _recipes()[task]
    return {_quantities(recipe) for recipe in recipes if recipe.item == goal}


def _quantities(recipe: Craft) -> Quantities:
    return recipe.count, tuple(sorted(part.count for part in recipe.ingredients))


@functools.cache
def _recipes() -> dict[int, tuple[str, list[Craft]]]:
    """Return the goal and the shown recipes of each training task."""
    shown = {}
    with AgentGymEnv("TextCraft") as env:
        for task in find("TextCraft").splits["train"]:
            observation, info = env.reset(options={"task_id": task})
            lines = [line for line in observation.splitlines() if line.startswith("craft ")]
            shown[task] = info["goal"], [Craft.parse(line) for line in lines]
    return shown
