"""TextCraft: craft a Minecraft item from the recipes shown (Prasad et al., 2024, arXiv:2311.05772).

The goal of a task id depends on the order in which the server read its recipe files. Therefore an episode
shows the server's text from the reset, and ``info["goal"]`` contains the goal. Item names are lower-case
words, and the server is case-sensitive. It has no step limit, and pays rewards for steps after the end of an
episode.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, ClassVar

from agentgym_gym._template_text import ListOf, TemplateText
from agentgym_gym.actions import Action, Grammar
from agentgym_gym.arguments import NO_NAMES, Integer, Name
from agentgym_gym.calls import Body, Call, Flow
from agentgym_gym.catalogue import Environment, make_splits
from agentgym_gym.envs._agentgym_parsers import plain_line
from agentgym_gym.errors import BadArguments
from agentgym_gym.wire import Outcome, Seen, Start, Wire, look

__all__ = ["TEXTCRAFT", "Craft", "Get", "Ingredient", "Inventory", "TextCraftWire"]

_Count = Annotated[int, Integer(1, 1_000_000), "how many"]
_Item = Annotated[
    str,
    Name(
        ["oak logs", "stick", "white dye", "iron ingot", "string", "glass", "bone meal", "redstone"],
        reserved=["using", "to", *NO_NAMES],
        namespace="minecraft:",
        # No item name has a number: "oak logs and 2 sticks" is two items. Only flint and steel has an "and".
        words=r"(?:flint and steel|(?!and\b)[a-z]+)(?: (?!and\b)[a-z]+)*",
    ),
    "the item's name",
]


@dataclass(frozen=True)
class Ingredient(TemplateText):
    """A quantity of an item."""

    template: ClassVar[str] = "{count} {item}"
    count: _Count
    item: _Item


@dataclass(frozen=True)
class Get(Action):
    """Take from the world an item that no recipe makes."""

    template: ClassVar[str] = "get {count} {item}"
    count: _Count
    item: _Item


@dataclass(frozen=True)
class Craft(Action):
    """Make an item by one of the crafting commands, from ingredients that you hold.

    ``craft oak planks using 1 oak logs`` is read too: the server uses the number of the recipe, not
    the number in the action.
    """

    template: ClassVar[str] = "craft {count} {item} using {ingredients}"
    accepts: ClassVar[Mapping[str, Mapping[str, int]]] = {"craft {item} using {ingredients}": {"count": 1}}
    count: _Count
    item: _Item
    ingredients: Annotated[tuple[Ingredient, ...], ListOf(Ingredient), "what is used up"]


@dataclass(frozen=True)
class Inventory(Action):
    """List the items that you hold."""

    template: ClassVar[str] = "inventory"


_GRAMMAR = Grammar(
    [
        Get(1, "oak logs"),
        Craft(4, "oak planks", (Ingredient(1, "oak logs"),)),
        Inventory(),
    ]
)

_RULES = """\
You are playing a crafting game with the items of Minecraft. The first message lists crafting commands and \
names a goal: the item that you must make. After each of your actions you are told what happened.

- Always give the number of items, in `get` and in `craft`.
- Items that one of the crafting commands makes cannot be taken with `get`: make them from their \
ingredients. All other ingredients can be taken.
- Use the crafting commands as they are listed, with just the numbers they state. Where one names a kind of \
item, such as planks, any item of that kind will do, such as dark oak planks.
- To make an item several times over, give the command several times."""

# Python parses no number of more than 4,300 digits (640 in some configurations), and sums grow.
_ENDLESS_NUMBER = re.compile(r"[0-9]{601}")

_GOAL = re.compile(r"^Goal: craft (.+?)\.?$", re.MULTILINE)


def _outcomes(action: str) -> list[str]:
    """Return the possible responses of the server to an action, if they follow from its text."""
    if not action:
        return []
    got = re.fullmatch(r"get (\d+) (.+)", action)
    return [f"Got {got[1]} {got[2]}", f"Could not find {got[2]}"] if got else [f"Could not execute {action}"]


class TextCraftWire(Wire):
    """Protocol of AgentGym's TextCraft server: ids under ``id``, errors as ``{"error": …}`` with HTTP 200."""

    greeting = "This is environment TextCraft."
    closes = True

    def create(self, task_id: int) -> Flow[int]:
        """Create an environment; the server requires a body, which may be empty."""
        body = (yield Call("create", "POST", "/create", {})).body()
        return body.integer("id")

    def reset(self, env_id: int, task_id: int) -> Flow[Start]:
        """Start a task."""
        body = (yield Call("reset", "POST", "/reset", {"id": env_id, "data_idx": task_id})).body()
        body.check_id("id", env_id)
        observation = body.text("observation")
        goal = _GOAL.search(observation)
        return Start(observation, goal=goal[1] if goal else None)

    def check(self, words: str) -> None:
        """Reject numbers so long that AgentGym's server fails on them: that must not count as a fault."""
        if _ENDLESS_NUMBER.search(words):
            raise BadArguments("no number may have more than 600 digits")

    def step(self, env_id: int, action: str) -> Flow[Outcome]:
        """Execute one action."""
        body = (yield Call("step", "POST", "/step", {"id": env_id, "action": action})).body()
        return Outcome(body.text("observation"), body.number("reward"), body.flag("done"))

    def recognise(self, env_id: int, seen: Seen) -> Flow[bool | None]:
        """Compare the last observation, or the outcome of an action whose response was lost."""
        shown = yield from look(Call("observe", "GET", "/observation", query={"id": env_id}), seen)
        if not isinstance(shown, Body):
            return shown
        return shown.text() in {seen.observation, *_outcomes(seen.unanswered)}

    def close(self, env_id: int) -> Flow[None]:
        """Free an environment; the server ignores ids that are already closed."""
        (yield Call("close", "POST", "/close", {"id": env_id})).body()


_QUIRKS = """\
- The goal of a task id depends on the order in which the server read its recipe files: 540 of the 544
  ids differ between machines. The goal is in `info["goal"]`.
- The listed recipes depend on Python's hash seed and, if several clients reset at once, on chance.
- AgentGym's server has no step limit, and pays again for steps after the end of an episode."""

_LOCAL_QUIRKS = """\
- A task id has the same goal and the same recipes on every machine and in every process.
- `/commands` returns the recipes shown, and `/goal` the item id of the goal. On AgentGym's server they fail.
- A number of more than 600 digits is refused like any other impossible action. On AgentGym's server a number
  of more than 4,300 digits breaks the environment.
- `"data_idx": null` returns an error message, and the game continues. On AgentGym's server it empties the
  inventory."""

# From integer programming over all recipes, shown or not, each used any number of times.
_LEAST_TURNS = {
    **dict.fromkeys((422, 425, 429, 473, 476, 496, 538), 23),
    **dict.fromkeys((533, 537), 24),
    543: 26,
    534: 27,
    420: 36,
    495: 48,
}
"""Minimum number of turns to win, for tasks where it exceeds the turn limit."""

TEXTCRAFT = Environment(
    name="TextCraft",
    summary="Craft a Minecraft item from the recipes shown (Prasad et al., 2024, arXiv:2311.05772).",
    wire=TextCraftWire(),
    grammar=_GRAMMAR,
    rules=_RULES,
    max_turns=20,
    splits=make_splits(range(544), test=range(444, 544), unwinnable=_LEAST_TURNS),
    unwinnable={task: f"it takes {turns} turns at least" for task, turns in _LEAST_TURNS.items()},
    agentgym_readers={"react": plain_line},
    local_server="agentgym_servers.textcraft:SERVER",
    local_quirks=_LOCAL_QUIRKS,
    oracle="agentgym_servers.textcraft._oracle:TextCraftOracle",
    quirks=_QUIRKS,
    launch="cd agentenv-textcraft && pip install -e . && textcraft --host 127.0.0.1 --port 36001",
    transcript=(
        "Crafting commands:\n…",
        "inventory",
        "Inventory: You are not carrying anything.",
    ),
)
