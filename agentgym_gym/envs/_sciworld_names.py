"""Names of things in ScienceWorld, and actions that join two of them."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, ClassVar

from agentgym_gym.actions import Action
from agentgym_gym.arguments import NO_NAMES, Name, strategies

if TYPE_CHECKING:
    from hypothesis.strategies import SearchStrategy
    from typing_extensions import Self

__all__ = ["IntoAction", "MovedThingName", "NamedAction", "OptionalThingName", "ThingName"]

_SAMPLES = [
    *("metal pot", "thermometer", "door to kitchen", "substance in metal pot", "anode in red light bulb"),
    *("cup containing nothing in table", "black wire terminal 1", "self watering flower pot 4", "air"),
    "flower pot 4 containing cherry tree and soil in inventory",
    *("book (pride and prejudice)", "green-blue paint", "unknown substance b", "orange", "red box", "sink"),
]


_TITLES = (
    *("beowulf", "frankenstein", "moby dick", "pride and prejudice", "sherlock holmes"),
    "the foundations of the origin of species",
)


class ThingName(Name):
    """The name of a thing, optionally with its location or contents, as in ``cup containing water in sink``.

    A name cannot start or end with a preposition that joins two names: one of the two would be missing. Only
    the title of a book is in parentheses. The word "and" is in a title or joins the contents of a thing, as
    in ``flower pot 4 containing cherry tree and soil``; any other joins two actions.
    """

    _joints = frozenset({"to", "on", "in", "into", "with", "at"})

    def __init__(self) -> None:
        word = rf"(?:book \((?:{'|'.join(_TITLES)})\)|(?!and\b)[a-z0-9]+(?:['-][a-z0-9]+)*)"
        name = rf"{word}(?: {word})*"
        contents = rf"(?: containing {name}(?: and {name})+)?"
        super().__init__(_SAMPLES, words=rf"{name}{contents}", max_chars=200, reserved=NO_NAMES)

    def read(self, text: str) -> str:
        """Parse a name, optionally in quotes."""
        return super().read(text.strip().strip("\"'`"))

    def _fits(self, value: str) -> bool:
        words = value.split(" ")
        return super()._fits(value) and self._joints.isdisjoint((words[0], words[-1]))


class MovedThingName(ThingName):
    """A name that extends to the last ``to``, as in ``instructions to make mixed nuts``."""

    greedy = True


class OptionalThingName(ThingName):
    """An optional name; the empty string if omitted."""

    def check(self, value: Any) -> None:
        """Accept names and the empty string."""
        if value != "":
            super().check(value)

    def from_json(self, value: Any) -> str:
        """Accept null too."""
        return super().from_json("" if value is None else value)

    def strategy(self) -> SearchStrategy[str]:
        """Draw a name or the empty string."""
        return strategies().just("") | super().strategy()  # type: ignore[no-any-return]


class NamedAction(Action):
    """An action whose function has the name that AgentGym gives it, where that is not its first words."""

    function: ClassVar[str] = ""

    @classmethod
    def name(cls) -> str:
        """Return the function name."""
        return cls.function or super().name()


_IN = re.compile(" in ", re.IGNORECASE)

# Places: an "in" before one of them gives the location of the preceding thing, not the target of the action.
_PLACES = frozenset(
    {
        *("art studio", "bathroom", "bedroom", "foundry", "greenhouse", "hallway", "inventory", "kitchen"),
        *("living room", "outside", "workshop", "desk", "table", "counter", "shelf", "bookshelf"),
        *("book shelf", "wood table", "steel table"),
    }
)


class IntoAction(NamedAction):
    """An action with two names that ``in`` may join, a word that also occurs within names.

    A name contains the place of its thing at most once, so in ``pour A in B in C in D`` the joint is in the
    middle; in ``pour A in B in C`` it is the second, unless C itself is a place.
    """

    joint: ClassVar[str]
    others: ClassVar[re.Pattern[str]] = re.compile(" (?:into|to|on) ", re.IGNORECASE)

    @classmethod
    def parse(cls, text: str) -> Self:
        """Parse the action."""
        parts = _IN.split(text)
        if len(parts) == 1 or cls.others.search(text):
            return super().parse(text)
        cut = len(parts) // 2
        if len(parts) == 3:  # noqa: PLR2004 - A, B and C
            middle, last = (part.lower().rstrip(" .") for part in parts[1:])
            cut = 1 if last in _PLACES and middle not in _PLACES else 2
        return super().parse(f"{' in '.join(parts[:cut])} {cls.joint} {' in '.join(parts[cut:])}")
