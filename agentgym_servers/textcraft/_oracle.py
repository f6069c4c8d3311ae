"""The oracle of TextCraft: plans with the recipes in the observations."""

from __future__ import annotations

import re
from collections import Counter
from itertools import groupby
from typing import TYPE_CHECKING, Any

from agentgym_gym.envs.textcraft import Craft, Get, Inventory
from agentgym_servers.textcraft._knowledge import Knowledge
from agentgym_servers.textcraft._plan import PlanStep, plan

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    import gymnasium

    from agentgym_gym.actions import Action

__all__ = ["TextCraftOracle"]

_ITEMS = re.compile(r"\[([^\]]+)\] \((\d+)\)")
_MAX_UNPARSED = 3  # the number of consecutive observations it fails to parse before it gives up


class TextCraftOracle:
    """Plans with the fewest turns it can find, plays the plan, and replans when an action fails."""

    name = "oracle"
    blocking = False

    def __init__(self) -> None:
        self._game = _Game("", "")

    def reset(self, env: gymnasium.Env[str, Any], observation: str, info: dict[str, Any]) -> None:
        """Parse the recipes of a task."""
        self._game = _Game(observation, info.get("goal", ""))

    def act(self, observation: str, info: dict[str, Any]) -> Action | None:
        """Return the next turn of the plan; None if no plan is left."""
        return self._game.act(observation)

    def thought(self) -> str:
        """Return what the items of the plan need, when the plan is new, and what is left to do."""
        return self._game.thought()


class _Game:
    """One task: the inventory as known from the observations, and the rest of the plan."""

    def __init__(self, observation: str, goal: str) -> None:
        self._known = Knowledge.of(observation)
        self._goal = goal
        self._inventory: Counter[str] = Counter()
        self._plan: list[PlanStep] = []  # the next step is the last
        self._planned = False  # whether the plan was made for the last action
        self._pending: PlanStep | Inventory | None = None  # the action that the next observation responds to
        self._unparsed = 0  # the number of consecutive observations that could not be parsed

    def act(self, observation: str) -> Action | None:
        if isinstance(self._pending, Inventory):
            self._inventory = Counter({item: int(count) for item, count in _ITEMS.findall(observation)})
        elif self._pending is not None and not self._learn(self._pending, observation):
            self._pending = Inventory()
            return self._pending if self._unparsed < _MAX_UNPARSED else None
        self._planned = not self._plan
        if self._planned:
            self._plan = (plan(self._goal, self._inventory, self._known) or [])[::-1]
        self._pending = self._plan.pop() if self._plan else None
        return None if self._pending is None else self._pending.action

    def thought(self) -> str:
        if not isinstance(self._pending, PlanStep):
            return "I do not know what I have now, so I look at my inventory."
        steps = [self._pending, *reversed(self._plan)]
        todo = (
            f"{'get' if step.recipe is None else 'craft'} {step.action.count} {step.action.item}"
            for step in steps
        )
        runs = ((text, len(list(run))) for text, run in groupby(todo))
        left = ", then ".join(text if times == 1 else f"{text} {times} times" for text, times in runs)
        return " ".join([*(_needs(steps) if self._planned else ()), f"Left to do: {left}."])

    def _learn(self, step: PlanStep, observation: str) -> bool:
        """Record the effect of a step; return whether it is clear."""
        action = step.action
        if isinstance(action, Get) and observation.startswith("Got "):
            self._inventory[action.item] += action.count
        elif isinstance(action, Craft) and observation.startswith("Crafted "):
            self._inventory[action.item] += action.count
            self._inventory.subtract({part.item: part.count for part in action.ingredients})
            self._known.record_accepted(step.members)
        else:
            self._plan = []
            if isinstance(action, Get) and observation.startswith("Could not find "):
                self._known.record_missing(action.item)
            elif step.recipe is not None and observation.startswith("Could not find a valid recipe"):
                self._known.record_rejected(step.recipe, step.members)
            else:
                self._unparsed += 1
                return False
        self._unparsed = 0
        return True


def _needs(steps: Sequence[PlanStep]) -> Iterable[str]:
    """Return a sentence for what each item of a plan needs, from the goal back to the first ingredients."""
    sentences = []
    for step in reversed(steps):
        if isinstance(step.action, Craft):
            parts = ", ".join(str(part) for part in (step.recipe or step.action).ingredients)
            sentences.append(f"{step.action.item} needs {parts}.")
            sentences += [f"{member} will do as {kind}." for kind, member in step.members]
    return dict.fromkeys(sentences)
