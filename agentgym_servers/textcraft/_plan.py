"""Finds the shortest plan to a goal in TextCraft, by branch and bound.

A plan chooses one way to get each item that it needs. The cost of a choice depends on all others, because an
item that two recipes need is taken in one turn and crafted in common batches. The search therefore branches
on the choices, the most promising first, and prunes a branch as soon as it cannot beat the best plan found.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeAlias

from agentgym_gym.envs.textcraft import Craft, Get
from agentgym_servers.textcraft._knowledge import TakeFromWorld, UseMember, Way

if TYPE_CHECKING:
    from collections.abc import Mapping

    from agentgym_servers.textcraft._knowledge import Knowledge

__all__ = ["PlanStep", "plan"]

MAX_VISITS = 20_000
"""The maximum number of sets of choices that a search visits; it then returns the best plan found."""


@dataclass(frozen=True)
class PlanStep:
    """One turn of a plan.

    Attributes:
        action: The action.
        recipe: The recipe, if the action crafts.
        members: The kinds that the recipe names, each with the member used for it.
    """

    action: Get | Craft
    recipe: Craft | None = None
    members: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, eq=False)  # compared by identity, which is fast
class _Option:
    """A way to get an item, with precomputed values for the search.

    Attributes:
        way: The way.
        batch: The number of items that one turn gives; 0 if any number takes one turn.
        turns: The turns of one batch.
        parts: The ingredients of one batch, with their numbers.
    """

    way: Way
    batch: int
    turns: int
    parts: tuple[tuple[str, int], ...]

    @classmethod
    def of(cls, way: Way) -> _Option:
        if isinstance(way, Craft):
            return cls(way, way.count, 1, tuple((part.item, part.count) for part in way.ingredients))
        if isinstance(way, UseMember):
            return cls(way, 1, 0, ((way.member, 1),))
        return cls(way, 0, 1, ())

    def batches(self, count: int) -> int:
        return -(-count // self.batch) if self.batch else 1


_Choices: TypeAlias = "dict[str, _Option]"


def plan(goal: str, held: Mapping[str, int], knowledge: Knowledge) -> list[PlanStep] | None:
    """Return the turns that make one of the goal, or None if no plan was found.

    Args:
        goal: The item to make.
        held: The number of each item in the inventory.
        knowledge: The recipes.
    """
    search = _Search(goal, held, knowledge)
    search.extend({})
    return None if search.best is None else search.steps(search.best)


class _Search:
    """A search for the choices that take the fewest turns.

    Attributes:
        best: The best choices found.
    """

    def __init__(self, goal: str, held: Mapping[str, int], knowledge: Knowledge) -> None:
        self.best: _Choices | None = None
        self._best_turns = float("inf")
        self._goal = goal
        self._held = held
        self._options = {
            name: [_Option.of(way) for way in knowledge.ways(name)] for name in knowledge.names | {goal}
        }
        self._turns_of_one = self._estimates()
        self._visits = 0

    def extend(self, choices: _Choices) -> None:
        """Complete the choices in every way that may beat the best plan found."""
        self._visits += 1
        needs = self._needs(choices)
        if needs is None or self._visits > MAX_VISITS:
            return
        turns, undecided = 0.0, None
        for name, count in needs.items():
            option = choices.get(name)
            if option is not None:
                turns += option.turns * option.batches(count)
                continue
            if undecided is None:
                undecided = name
            turns += min((o.turns * o.batches(count) for o in self._options[name]), default=float("inf"))
        if turns >= self._best_turns:
            return
        if undecided is None:
            self.best, self._best_turns = dict(choices), turns
            return
        count = needs[undecided]
        for option in sorted(self._options[undecided], key=lambda option: self._estimate(option, count)):
            self.extend({**choices, undecided: option})

    def steps(self, choices: _Choices) -> list[PlanStep]:
        """Return the turns of complete choices: items from the world first, ingredients before outputs."""
        needs = self._needs(choices) or {}
        ways = {name: option.way for name, option in choices.items()}
        takes = [
            PlanStep(Get(count, name))
            for name, count in needs.items()
            if isinstance(ways[name], TakeFromWorld)
        ]
        crafts: list[PlanStep] = []
        for name, count in reversed(needs.items()):
            way = ways[name]
            if isinstance(way, Craft):
                crafts += [_step(way, ways)] * choices[name].batches(count)
        return takes[::-1] + crafts

    def _needs(self, choices: _Choices) -> dict[str, int] | None:
        """Return the missing items and numbers, outputs before ingredients; None if a choice is circular."""
        order = self._order(choices)
        if order is None:
            return None
        required = {self._goal: 1}
        needs: dict[str, int] = {}
        for name in order:
            lacking = required.get(name, 0) - self._held.get(name, 0)
            if lacking <= 0:
                continue
            needs[name] = lacking
            option = choices.get(name)
            if option is not None and option.parts:
                batches = option.batches(lacking)
                for part, count in option.parts:
                    required[part] = required.get(part, 0) + count * batches
        return needs

    def _order(self, choices: _Choices) -> list[str] | None:
        """Return the names that the choices reach, outputs before ingredients; None if they form a cycle."""
        finished: dict[str, None] = {}
        open_names: set[str] = set()

        def visit(name: str) -> bool:
            open_names.add(name)
            option = choices.get(name)
            if option is not None:
                for part, _ in option.parts:
                    if part in open_names or (part not in finished and not visit(part)):
                        return False
            open_names.remove(name)
            finished[name] = None
            return True

        return list(finished)[::-1] if visit(self._goal) else None

    def _estimate(self, option: _Option, count: int) -> float:
        """Estimate the turns of a way with all its ingredients, to try the best one first."""
        turns: float = option.turns * option.batches(count)
        for part, _ in option.parts:
            turns += self._turns_of_one[part]
        return turns

    def _estimates(self) -> dict[str, float]:
        """Return the turns for one of each name without sharing, by fixed-point iteration."""
        self._turns_of_one = dict.fromkeys(self._options, float("inf"))
        changed = True
        while changed:
            changed = False
            for name, options in self._options.items():
                least = min((self._estimate(option, 1) for option in options), default=float("inf"))
                if least < self._turns_of_one[name]:
                    self._turns_of_one[name], changed = least, True
        return self._turns_of_one


def _step(recipe: Craft, ways: Mapping[str, Way]) -> PlanStep:
    members = []
    ingredients = []
    for part in recipe.ingredients:
        item, way = part.item, ways.get(part.item)
        while isinstance(way, UseMember):
            members.append((item, way.member))
            item, way = way.member, ways.get(way.member)
        ingredients.append(replace(part, item=item))
    return PlanStep(replace(recipe, ingredients=tuple(ingredients)), recipe, tuple(members))
