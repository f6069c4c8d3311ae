"""The oracle of TextCraft: plans with the recipes in the observations."""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING, Any

from agentgym_gym.envs.textcraft import Craft, Get, Inventory
from agentgym_servers.textcraft._knowledge import Knowledge
from agentgym_servers.textcraft._plan import Step, plan

if TYPE_CHECKING:
    import gymnasium

    from agentgym_gym.actions import Action

__all__ = ["TextCraftOracle"]

_HELD = re.compile(r"\[([^\]]+)\] \((\d+)\)")
_PATIENCE = 3  # the number of consecutive observations it fails to parse before it gives up


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


class _Game:
    """One task: the inventory as known from the observations, and the rest of the plan."""

    def __init__(self, observation: str, goal: str) -> None:
        self._known = Knowledge.of(observation)
        self._goal = goal
        self._held: Counter[str] = Counter()
        self._plan: list[Step] = []  # the next step is the last
        self._asked: Step | Inventory | None = None  # the action that the next observation responds to
        self._lost = 0  # the number of consecutive observations that could not be parsed

    def act(self, observation: str) -> Action | None:
        if isinstance(self._asked, Inventory):
            self._held = Counter({item: int(count) for item, count in _HELD.findall(observation)})
        elif self._asked is not None and not self._learn(self._asked, observation):
            self._asked = Inventory()
            return self._asked if self._lost < _PATIENCE else None
        if not self._plan:
            self._plan = (plan(self._goal, self._held, self._known) or [])[::-1]
        self._asked = self._plan.pop() if self._plan else None
        return None if self._asked is None else self._asked.action

    def _learn(self, step: Step, observation: str) -> bool:
        """Record the effect of a step; return whether it is clear."""
        action = step.action
        if isinstance(action, Get) and observation.startswith("Got "):
            self._held[action.item] += action.count
        elif isinstance(action, Craft) and observation.startswith("Crafted "):
            self._held[action.item] += action.count
            self._held.subtract({part.item: part.count for part in action.ingredients})
            self._known.worked(step.served)
        else:
            self._plan = []
            if isinstance(action, Get) and observation.startswith("Could not find "):
                self._known.not_there(action.item)
            elif step.recipe is not None and observation.startswith("Could not find a valid recipe"):
                self._known.failed(step.recipe, step.served)
            else:
                self._lost += 1
                return False
        self._lost = 0
        return True
