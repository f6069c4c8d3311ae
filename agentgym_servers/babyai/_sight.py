"""The agent's view of a level, and its description in the words of AgentGym's server."""

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
"""The step for each direction: right, down, left, up."""

_SIZE = 7  # the agent sees a square with this side, from the middle of its last row
_SHOWN = ("door", "key", "ball", "box", "wall")
_STATES = {number: state for state, number in STATE_TO_IDX.items()}


@dataclass(frozen=True)
class Thing:
    """One visible thing.

    Attributes:
        kind: door, key, ball, box or wall.
        name: Its colour and kind, and the state of a door: ``blue closed door``.
        place: Its cell.
        ahead: The number of steps ahead of the agent.
        aside: The number of steps to the agent's right; negative to its left.
    """

    kind: str
    name: str
    place: Cell
    ahead: int
    aside: int


@dataclass(frozen=True)
class Sight:
    """The agent's view.

    Attributes:
        place: The agent's cell.
        direction: The agent's direction, as an index of `AHEAD`.
        things: The visible things, including walls, the nearest first.
        carried: The colour and kind of the carried thing, such as ``red key``; or None.
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
        """The columns and rows in which AgentGym's server searches for paths.

        These are the visible ones, and one more where the agent faces or turns towards lower numbers.
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
        sentences = []
        for thing in self.things:
            if thing.kind == "wall":
                continue
            counted[thing.name] += 1
            if thing.aside == 0:
                where = f"right in front of you {thing.ahead} steps away"
            else:
                side = "right" if thing.aside > 0 else "left"
                where = f"{thing.ahead} steps in front of you and {abs(thing.aside)} steps to your {side}"
            sentences.append(f"There is a {thing.name} {counted[thing.name]} {where}.  ")
        return sentences


def look_around(level: Level, image: Sequence[Sequence[Sequence[int]]]) -> Sight:
    """Return the view of the agent of a level.

    Args:
        level: The level.
        image: Its last image: kind, colour and state, as numbers, of each visible cell, by column and row.
    """
    x, y = (int(each) for each in level.agent_pos)
    direction = int(level.agent_dir)
    dx, dy = AHEAD[direction]
    things = []
    # The order decides which of two equally distant things comes first.
    for ahead in range(_SIZE - 1, -1, -1):
        for aside in range(-(_SIZE // 2), _SIZE // 2 + 1):
            number, colour, state = image[aside + _SIZE // 2][_SIZE - 1 - ahead]
            kind = IDX_TO_OBJECT[number]
            place = (x + ahead * dx - aside * dy, y + ahead * dy + aside * dx)
            # In the agent's own cell, the image shows the carried thing.
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
