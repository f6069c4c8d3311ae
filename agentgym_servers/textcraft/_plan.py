"""The plan with the fewest turns to a goal in TextCraft, by branch and bound.

A plan chooses one way for each item that is needed. The cost of a choice depends on all others, since what
two recipes need is taken in one turn and crafted in common batches. So the choices are searched, the most
promising first, and a branch is cut as soon as it cannot be better than the best plan known.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeAlias

from agentgym_gym.envs.textcraft import Craft, Get
from agentgym_servers.textcraft._knowledge import Serve, Take, Way

if TYPE_CHECKING:
    from collections.abc import Mapping

    from agentgym_servers.textcraft._knowledge import Knowledge

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


@dataclass(frozen=True, eq=False)  # told apart by identity, which is fast
class _Option:
    """A way to have something, with what the search asks of it again and again.

    Attributes:
        way: The way.
        batch: How many one turn makes; 0 where any number takes as many turns as one.
        turns: The turns of one batch.
        parts: What one batch needs, by name and number.
    """

    way: Way
    batch: int
    turns: int
    parts: tuple[tuple[str, int], ...]

    @classmethod
    def of(cls, way: Way) -> _Option:
        if isinstance(way, Craft):
            return cls(way, way.count, 1, tuple((part.item, part.count) for part in way.ingredients))
        if isinstance(way, Serve):
            return cls(way, 1, 0, ((way.member, 1),))
        return cls(way, 0, 1, ())

    def batches(self, count: int) -> int:
        return -(-count // self.batch) if self.batch else 1


_Choices: TypeAlias = "dict[str, _Option]"


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
        self._options = {name: [_Option.of(way) for way in known.ways(name)] for name in known.names | {goal}}
        self._guess = self._guesses()
        self._looks = 0

    def look(self, choices: _Choices) -> None:
        """Complete the choices in every way that may be better than the best plan known."""
        self._looks += 1
        needs = self._needs(choices)
        if needs is None or self._looks > MOST_LOOKS:
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
        for option in sorted(self._options[undecided], key=lambda option: self._worth(option, count)):
            self.look({**choices, undecided: option})

    def steps(self, choices: _Choices) -> list[Step]:
        """Return the turns of complete choices: what is taken first, and parts before wholes."""
        needs = self._needs(choices) or {}
        ways = {name: option.way for name, option in choices.items()}
        takes = [Step(Get(count, name)) for name, count in needs.items() if isinstance(ways[name], Take)]
        crafts: list[Step] = []
        for name, count in reversed(needs.items()):
            way = ways[name]
            if isinstance(way, Craft):
                crafts += [_step(way, ways)] * choices[name].batches(count)
        return takes[::-1] + crafts

    def _needs(self, choices: _Choices) -> dict[str, int] | None:
        """Return what is lacking and how many, wholes before parts; None where a choice leads to itself."""
        order = self._order(choices)
        if order is None:
            return None
        wanted = {self._goal: 1}
        needs: dict[str, int] = {}
        for name in order:
            lacking = wanted.get(name, 0) - self._held.get(name, 0)
            if lacking <= 0:
                continue
            needs[name] = lacking
            option = choices.get(name)
            if option is not None and option.parts:
                batches = option.batches(lacking)
                for part, count in option.parts:
                    wanted[part] = wanted.get(part, 0) + count * batches
        return needs

    def _order(self, choices: _Choices) -> list[str] | None:
        """Return the names that the choices reach, wholes before parts; None where they go in a circle."""
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

    def _worth(self, option: _Option, count: int) -> float:
        """Estimate the turns of a way with all its parts, to try the best one first."""
        worth: float = option.turns * option.batches(count)
        for part, _ in option.parts:
            worth += self._guess[part]
        return worth

    def _guesses(self) -> dict[str, float]:
        """Return the turns for one of each name if nothing is shared, by iteration to a fixed point."""
        self._guess = dict.fromkeys(self._options, float("inf"))
        changed = True
        while changed:
            changed = False
            for name, options in self._options.items():
                least = min((self._worth(option, 1) for option in options), default=float("inf"))
                if least < self._guess[name]:
                    self._guess[name], changed = least, True
        return self._guess


def _step(recipe: Craft, ways: Mapping[str, Way]) -> Step:
    served = []
    ingredients = []
    for part in recipe.ingredients:
        item, way = part.item, ways.get(part.item)
        while isinstance(way, Serve):
            served.append((item, way.member))
            item, way = way.member, ways.get(way.member)
        ingredients.append(replace(part, item=item))
    return Step(replace(recipe, ingredients=tuple(ingredients)), recipe, tuple(served))
