"""The thoughts of BabyAI's oracle, from the observations: what is needed, where it is, what the move does."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

__all__ = ["Commentary"]

_THING = re.compile(
    r"There is a ([a-z ]+) (\d+) (?:right in front of you (\d+) steps away"
    r"|(\d+) steps in front of you and (\d+) steps to your (left|right))"
)
_CARRYING = re.compile(r"You are carrying a ([a-z ]+)\.")
_GOAL = re.compile(r"Your goal: (.*)")
_OF_A_THING = re.compile(r"(pickup|go to|toggle and go through|go through) (.+) (\d+)")
# Where the thing is at the start, which later observations do not match.
_PLACE = re.compile(r" (?:in front of you|behind you|on your left|on your right)$")


class _Thing(NamedTuple):
    """A thing seen; ``ahead`` is negative behind the agent, ``aside`` to its left."""

    name: str
    number: int
    ahead: int
    aside: int

    def __str__(self) -> str:
        front = f"{abs(self.ahead)} {'behind' if self.ahead < 0 else 'ahead'}"
        side = f"{abs(self.aside)} {'left' if self.aside < 0 else 'right'}"
        return ", ".join([front] * (self.ahead != 0) + [side] * (self.aside != 0))

    def after(self, action: str | None) -> _Thing | None:
        """Return the thing as placed after an action; None if the action may have moved the agent far."""
        places = {
            "turn right": (self.aside, -self.ahead),
            "turn left": (-self.aside, self.ahead),
            "move forward": (self.ahead - 1, self.aside),
            "drop": (self.ahead, self.aside),
        }
        return None if action not in places else _Thing(self.name, self.number, *places[action])


class _Part(NamedTuple):
    """A part of the goal: its verb and the thing it names; for ``put``, also the thing next to it."""

    verb: str
    thing: str
    beside: str = ""

    @classmethod
    def of(cls, text: str) -> _Part:
        verb = next(verb for verb in ("go to", "pick up", "open", "put", text) if text.startswith(verb))
        things = text.removeprefix(verb).strip().split(" next to ")
        return cls(verb, *(_PLACE.sub("", thing) for thing in things))


class Commentary:
    """Follows one game, and explains its actions.

    Args:
        observation: The first observation; it contains the goal.
    """

    def __init__(self, observation: str) -> None:
        goal = _GOAL.search(observation)
        self._parts = [_Part.of(part) for part in re.split(r",? and ", goal[1] if goal else "go to the goal")]
        self._left = list(self._parts)
        self._locked: set[str] = set()  # the colours of the locked doors seen so far
        self._seen: list[_Thing] = []
        self._remembered: list[_Thing] = []  # things out of sight
        self._carried = ""

    def observe(self, observation: str, action: str | None) -> None:
        """Record an observation, and the parts of the goal done by the action before it."""
        before, carried = self._seen, self._carried
        self._seen = [
            _Thing(name, int(number), int(straight or ahead), int(aside or 0) * (-1 if side == "left" else 1))
            for name, number, straight, ahead, aside, side in _THING.findall(observation)
        ]
        names = {thing.name for thing in self._seen}
        moved = (thing.after(action) for thing in (*before, *self._remembered))
        self._remembered = [thing for thing in moved if thing is not None and thing.name not in names]
        holding = _CARRYING.search(observation)
        self._carried = holding[1] if holding else ""
        self._locked |= {thing.name.split()[0] for thing in self._seen if " locked " in thing.name}
        done = (part for part in self._left if action and self._is_done(part, action, before, carried))
        finished = next(done, None)
        if finished is not None:
            self._left.remove(finished)

    def _is_done(self, part: _Part, action: str, before: Iterable[_Thing], carried: str) -> bool:
        verb, name, _ = _parts(action)
        if part.verb == "go to":
            return _fits(part.thing, name) or any(
                _fits(part.thing, each.name) for each in _facing(self._seen)
            )
        if part.verb == "pick up":
            return _fits(part.thing, self._carried)
        if part.verb == "open":
            opened = [name] if verb.startswith("toggle and") else []
            if action == "toggle":
                opened = [each.name for each in _facing(before)]
            return any(_fits(part.thing, each) for each in opened)
        return action == "drop" and _fits(part.thing, carried) and self._is_ahead_next_to(part.beside)

    def _is_ahead_next_to(self, thing: str) -> bool:
        """Return whether the cell ahead is next to a visible thing."""
        return any(
            abs(each.ahead - 1) + abs(each.aside) == 1 for each in self._seen if _fits(thing, each.name)
        )

    def explain(self, action: str, later: Sequence[str]) -> str:
        """Return what is needed, where it is, and what the next action does about it.

        Args:
            action: The next action.
            later: The actions after it.
        """
        part = self._part_of([action, *later])
        verb, name, number = _parts(action)
        thing = part.thing
        # The game accepts some parts only after others, but the goal does not give the order.
        start = f"{'' if self._left else 'The order may matter. '}I need {thing}."
        if part.verb == "put" and _fits(thing, self._carried):
            start = f"I carry the {self._carried} and need {part.beside}."
            thing = part.beside
        if action == "drop":
            if thing == part.beside and self._is_ahead_next_to(thing):
                return f"{start} The cell ahead is next to it, so I drop the {self._carried} here."
            if thing == part.beside:
                return f"{start} I drop the {self._carried} here."
            return f"{start} I do not need the {self._carried} now, so I drop it."
        if verb == "pickup" and not _fits(thing, name):
            return f"{start} {self._why_to_take(name)} I pick up the {name}."
        matches = [each for each in self._seen if _fits(thing, each.name)]
        matches.sort(key=lambda each: (each.name, each.number) != (name, number))
        where = f"It is {matches[0]}." if matches else "I do not see it."
        remembered = [each for each in self._remembered if _fits(thing, each.name)]
        if remembered and not matches:
            where = f"I saw it: it is {remembered[0]}."
            matches = remembered
        return f"{start} {where} {self._move(action, part, thing, matches, later)}"

    def _part_of(self, actions: Iterable[str]) -> _Part:
        """Return the part of the goal that the next actions are for."""
        carried = self._carried
        for action in actions:
            verb, name, _ = _parts(action)
            for part in self._left or self._parts:
                things = {
                    "go to": name,
                    "pick up": name * (verb == "pickup"),
                    "open": name * ("toggle" in verb),
                }
                if _fits(part.thing, things.get(part.verb, carried if action == "drop" else "")):
                    return part
            carried = name if verb == "pickup" else "" if action == "drop" else carried
        return (self._left or self._parts)[0]

    def _why_to_take(self, name: str) -> str:
        colour, _, kind = name.partition(" ")
        if kind != "key":
            return f"The {name} is in the way."
        if colour in self._locked:
            return f"The {colour} door is locked."
        return f"There may be a locked {colour} door."

    def _move(
        self, action: str, part: _Part, thing: str, matches: Sequence[_Thing], later: Sequence[str]
    ) -> str:
        verb, name, number = _parts(action)
        which = f"the {name} {number}"
        if verb and _fits(thing, name):
            pickup = "I reach it if I pick it up." if part.verb == "go to" else "I pick it up."
            moves = {"pickup": pickup, "go to": "I go to it.", "toggle and go through": "I open it."}
            return moves.get(verb, "I go through it.")
        if "through" in verb:
            return f"I go through {which} {'to get there' if matches else 'to look behind it'}."
        if verb == "go to":
            return f"I go to {which} {'to get nearer' if matches else 'to look from there'}."
        if action == "toggle":
            return "I open the door in front of me."
        if action == "move forward":
            return f"I move forward {'towards it' if matches else 'to see more'}."
        return self._turn(action, matches, later)

    def _turn(self, action: str, matches: Sequence[_Thing], later: Sequence[str]) -> str:
        if later and later[0] == "drop":
            return f"I {action} for a free cell to drop the {self._carried}."
        if not matches:
            return f"I {action} to look there."
        aside = matches[0].aside
        towards = (aside > 0) == action.endswith("right") if aside else matches[0].ahead < 0
        return f"I {action} {'towards it' if towards else 'to get around'}."


def _parts(action: str) -> tuple[str, str, int]:
    """Return the verb, thing and number of an action; empty for an action without a thing."""
    match = _OF_A_THING.fullmatch(action)
    return (match[1], match[2], int(match[3])) if match else ("", "", 0)


def _facing(things: Iterable[_Thing]) -> list[_Thing]:
    return [each for each in things if (each.ahead, each.aside) == (1, 0)]


def _fits(thing: str, name: str) -> bool:
    """Return whether a thing of the goal, such as ``a red door``, may be one of an observation's."""
    _, *colour, kind = thing.split()
    words = name.split()
    return bool(words) and kind in {"object", words[-1]} and set(colour) <= set(words)
