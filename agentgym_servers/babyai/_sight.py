"""What the agent of a level sees, and how AgentGym's server says it."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from minigrid.core.constants import IDX_TO_COLOR, IDX_TO_OBJECT, STATE_TO_IDX

if TYPE_CHECKING:
    from collections.abc import Sequence

    from agentgym_servers.babyai._levels import Level

__all__ = ["AHEAD", "Cell", "Sight", "Thing", "look_around"]

Cell: TypeAlias = tuple[int, int]  # column and row, both from 0

AHEAD: tuple[Cell, ...] = ((1, 0), (0, 1), (-1, 0), (0, -1))
"""One step by direction: right, down, left, up."""

_SIZE = 7  # the agent sees a square of so many places a side, and stands in the middle of its last row
_SHOWN = ("door", "key", "ball", "box", "wall")
_STATES = {number: state for state, number in STATE_TO_IDX.items()}


@dataclass(frozen=True)
class Thing:
    """One thing in sight.

    Attributes:
        kind: door, key, ball, box or wall.
        name: Its colour and kind, and the state of a door: ``blue closed door``.
        place: Where it is.
        ahead: How many steps ahead of the agent.
        aside: How many steps to its right; below 0, to its left.
    """

    kind: str
    name: str
    place: Cell
    ahead: int
    aside: int


@dataclass(frozen=True)
class Sight:
    """All that is in sight.

    Attributes:
        place: Where the agent is.
        direction: Where it looks to, as an index of `AHEAD`.
        things: What it sees, walls too, the nearest first.
        carried: What it carries, by colour and kind, such as ``red key``; or None.
    """

    place: Cell
    direction: int
    things: Sequence[Thing]
    carried: str | None

    @property
    def barrier(self) -> Thing | None:
        """The nearest wall or box straight ahead."""
        ahead = [each for each in self.things if each.aside == 0 and each.kind in ("wall", "box")]
        return min(ahead, key=lambda each: each.ahead, default=None)

    @property
    def ranges(self) -> tuple[range, range]:
        """The columns and rows in which AgentGym's server looks for ways.

        They are those in sight, and where the agent looks or turns towards lower numbers one more.
        """
        (x, y), (dx, dy) = self.place, AHEAD[self.direction]
        far = _SIZE - 1
        return _between(x + far * dx + 3 * dy, -dx - dy), _between(y + far * dy - 3 * dx, dx - dy)

    def __str__(self) -> str:
        barrier = self.barrier
        return "".join(
            (
                "In front of you in this room, you can see several objects: "
                if self.things
                else "You cannot see any objects within sight.",
                *self._described(),
                "The room has walls around you. ",
                f"You are facing a {barrier.kind} {barrier.ahead} steps away. " if barrier else "",
                f"You are carrying a {self.carried}." if self.carried else "You are not carrying anything.",
            )
        )

    def _described(self) -> list[str]:
        counted: Counter[str] = Counter()
        said = []
        for thing in self.things:
            if thing.kind == "wall":
                continue
            counted[thing.name] += 1
            if thing.aside == 0:
                where = f"right in front of you {thing.ahead} steps away"
            else:
                side = "right" if thing.aside > 0 else "left"
                where = f"{thing.ahead} steps in front of you and {abs(thing.aside)} steps to your {side}"
            said.append(f"There is a {thing.name} {counted[thing.name]} {where}.  ")
        return said


def look_around(level: Level, image: Sequence[Sequence[Sequence[int]]]) -> Sight:
    """Return what the agent of a level sees.

    Args:
        level: The level.
        image: Its last image: kind, colour and state, as numbers, of each place in sight, by column and row.
    """
    x, y = (int(each) for each in level.agent_pos)
    direction = int(level.agent_dir)
    dx, dy = AHEAD[direction]
    things = []
    # The order tells which of two that are equally far comes first.
    for ahead in range(_SIZE - 1, -1, -1):
        for aside in range(-(_SIZE // 2), _SIZE // 2 + 1):
            number, colour, state = image[aside + _SIZE // 2][_SIZE - 1 - ahead]
            kind = IDX_TO_OBJECT[number]
            place = (x + ahead * dx - aside * dy, y + ahead * dy + aside * dx)
            # Of its own place the image shows what it carries.
            if kind not in _SHOWN or place == (x, y) or min(place) < 0:
                continue
            parts = [IDX_TO_COLOR[colour], *([_STATES[state]] if kind == "door" else []), kind]
            things.append(Thing(kind, " ".join(parts), place, ahead, aside))
    things.sort(key=lambda each: abs(each.ahead) + abs(each.aside))
    held = level.carrying
    return Sight((x, y), direction, things, f"{held.color} {held.type}" if held else None)


def _between(corner: int, way: int) -> range:
    end = corner + _SIZE * way
    return range(end, corner + 1) if end < corner else range(corner, end)
