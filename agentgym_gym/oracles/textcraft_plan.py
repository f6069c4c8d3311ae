"""The plan with the fewest turns to a goal in TextCraft, by branch and bound.

A plan chooses one way for each item that is needed. The cost of a choice depends on all others, since what
two recipes need is taken in one turn and crafted in common batches. So the choices are searched, the most
promising first, and a branch is cut as soon as it cannot be better than the best plan known.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeAlias

from agentgym_gym.envs.textcraft import Craft, Get
from agentgym_gym.oracles.textcraft_recipes import Serve, Take, Way

if TYPE_CHECKING:
    from collections.abc import Mapping

    from agentgym_gym.oracles.textcraft_recipes import Knowledge

__all__ = ["Step", "plan"]

MOST_LOOKS = 20_000
"""Most sets of choices that a search visits; after that it returns the best it has."""


@dataclass(frozen=True)
class Step:
    """One turn of a plan.

    Attributes:
        action: What to do.
        recipe: The recipe it follows, when it crafts.
        served: The kinds the recipe names, each with the member that is used for it.
    """

    action: Get | Craft
    recipe: Craft | None = None
    served: tuple[tuple[str, str], ...] = ()


_Choices: TypeAlias = "dict[str, Way]"


def plan(goal: str, held: Mapping[str, int], known: Knowledge) -> list[Step] | None:
    """Return the turns that make one of the goal, or None if no plan is known.

    Args:
        goal: The item to make.
        held: How many of each item are there already.
        known: The recipes.
    """
    search = _Search(goal, held, known)
    search.look({})
    return None if search.best is None else search.steps(search.best)


class _Search:
    """A search for the choices that cost the fewest turns.

    Attributes:
        best: The best choices found.
    """

    def __init__(self, goal: str, held: Mapping[str, int], known: Knowledge) -> None:
        self.best: _Choices | None = None
        self._best_turns = float("inf")
        self._goal = goal
        self._held = held
        self._ways = {name: known.ways(name) for name in known.names | {goal}}
        self._guess = self._guesses()
        self._looks = 0

    def look(self, choices: _Choices) -> None:
        """Complete the choices in every way that may be better than the best plan known."""
        self._looks += 1
        needs = self._needs(choices)
        if needs is None or self._looks > MOST_LOOKS:
            return
        turns = sum(self._turns(name, count, choices) for name, count in needs.items())
        if turns >= self._best_turns:
            return
        undecided = next((name for name in needs if name not in choices), None)
        if undecided is None:
            self.best, self._best_turns = dict(choices), turns
            return
        count = needs[undecided]
        for way in sorted(self._ways[undecided], key=lambda way: self._worth(way, count)):
            self.look({**choices, undecided: way})

    def steps(self, choices: _Choices) -> list[Step]:
        """Return the turns of complete choices: what is taken first, and parts before wholes."""
        needs = self._needs(choices) or {}
        takes = [Step(Get(count, name)) for name, count in needs.items() if isinstance(choices[name], Take)]
        crafts: list[Step] = []
        for name, count in reversed(needs.items()):
            way = choices[name]
            if isinstance(way, Craft):
                crafts += [_step(way, choices)] * _batches(way, count)
        return takes[::-1] + crafts

    def _needs(self, choices: _Choices) -> dict[str, int] | None:
        """Return what is lacking and how many, wholes before parts; None where a choice leads to itself."""
        order = self._order(choices)
        if order is None:
            return None
        wanted = Counter({self._goal: 1})
        needs: dict[str, int] = {}
        for name in order:
            lacking = wanted[name] - self._held.get(name, 0)
            if lacking <= 0:
                continue
            needs[name] = lacking
            for part, count in _parts(choices.get(name), lacking):
                wanted[part] += count
        return needs

    def _order(self, choices: _Choices) -> list[str] | None:
        """Return the names that the choices reach, wholes before parts; None where they go in a circle."""
        finished: list[str] = []
        open_names: set[str] = set()

        def visit(name: str) -> bool:
            if name in open_names:
                return False
            if name not in finished:
                open_names.add(name)
                if not all(visit(part) for part, _ in _parts(choices.get(name), 1)):
                    return False
                open_names.remove(name)
                finished.append(name)
            return True

        return finished[::-1] if visit(self._goal) else None

    def _turns(self, name: str, count: int, choices: _Choices) -> float:
        """Return the turns that one thing takes by itself; at least how many, where its way is not chosen."""
        ways = [choices[name]] if name in choices else self._ways[name]
        return min((_own_turns(way, count) for way in ways), default=float("inf"))

    def _worth(self, way: Way, count: int) -> float:
        """Estimate the turns of a way with all its parts, to try the best one first."""
        return _own_turns(way, count) + sum(self._guess[part] for part, _ in _parts(way, count))

    def _guesses(self) -> dict[str, float]:
        """Return the turns for one of each name if nothing is shared, by iteration to a fixed point."""
        self._guess = dict.fromkeys(self._ways, float("inf"))
        changed = True
        while changed:
            changed = False
            for name, ways in self._ways.items():
                least = min((self._worth(way, 1) for way in ways), default=float("inf"))
                if least < self._guess[name]:
                    self._guess[name], changed = least, True
        return self._guess


def _batches(recipe: Craft, count: int) -> int:
    return -(-count // recipe.count)


def _own_turns(way: Way, count: int) -> int:
    if isinstance(way, Craft):
        return _batches(way, count)
    return 1 if isinstance(way, Take) else 0


def _parts(way: Way | None, count: int) -> list[tuple[str, int]]:
    """Return what a way needs for a number of items."""
    if isinstance(way, Craft):
        batches = _batches(way, count)
        return [(part.item, part.count * batches) for part in way.ingredients]
    return [(way.member, count)] if isinstance(way, Serve) else []


def _step(recipe: Craft, choices: _Choices) -> Step:
    served = []
    ingredients = []
    for part in recipe.ingredients:
        item, way = part.item, choices.get(part.item)
        while isinstance(way, Serve):
            served.append((item, way.member))
            item, way = way.member, choices.get(way.member)
        ingredients.append(replace(part, item=item))
    return Step(replace(recipe, ingredients=tuple(ingredients)), recipe, tuple(served))
