"""The actions available to the agent, in AgentGym's words, and the moves that make up each of them."""

from __future__ import annotations

from collections import Counter
from enum import IntEnum
from typing import TYPE_CHECKING, TypeAlias

from agentgym_servers.babyai._sight import AHEAD, Cell

if TYPE_CHECKING:
    from collections.abc import Container, Iterator, Mapping

    from agentgym_servers.babyai._sight import Sight, Thing

__all__ = ["CHECK", "AvailableActions", "MinigridMove"]

CHECK = "check available actions"
"""The action that lists the others; it makes no move."""

_LOOSE = ("ball", "key", "box")
_SOLID = (*_LOOSE, "wall")


class MinigridMove(IntEnum):
    """A move, by its number in `minigrid`."""

    LEFT = 0
    RIGHT = 1
    FORWARD = 2
    PICKUP = 3
    DROP = 4
    TOGGLE = 5


class AvailableActions:
    """The available actions, and the reasons why other actions are unavailable.

    The order, the numbers and the reasons equal AgentGym's.

    Args:
        sight: The agent's view.
        twin: Whether the reason for an unreachable closed door numbers the door as AgentGym's server does: by
            a dictionary of all doors before it.

    Attributes:
        moves: The moves of each available action, by its text, in the order of the list.
        refusals: The observation for each unavailable action, by its text.
    """

    def __init__(self, sight: Sight, *, twin: bool = False) -> None:
        self._sight = sight
        self._twin = twin
        self._ways = _Ways(sight)
        self.moves: dict[str, list[MinigridMove]] = {
            "turn left": [MinigridMove.LEFT],
            "turn right": [MinigridMove.RIGHT],
        }
        self.refusals: dict[str, str] = {}
        self._add_forward()
        if sight.carried is None:
            self._add_reach("pickup", _LOOSE, [MinigridMove.PICKUP])
        self._add_drop()
        self._add_doors()
        self._add_reach("go to", (*_LOOSE, "door"), [])
        self.moves[CHECK] = []

    def _add_forward(self) -> None:
        barrier = self._sight.barrier
        if barrier is None or barrier.ahead > 1:
            self.moves["move forward"] = [MinigridMove.FORWARD]
        else:
            self.refusals["move forward"] = "There is a barrier in front of you, you can't move forward."

    def _add_drop(self) -> None:
        if self._sight.carried is None:
            self.refusals["drop"] = "You cannot drop the object, as you are not carrying anything."
        elif any((each.ahead, each.aside) == (1, 0) and each.kind in _SOLID for each in self._sight.things):
            self.refusals["drop"] = (
                "You cannot drop the object, as there is already an object in front of you."
            )
        else:
            self.moves["drop"] = [MinigridMove.DROP]

    def _add_reach(self, verb: str, kinds: Container[str], then: list[MinigridMove]) -> None:
        """Add a verb for each thing that the agent can reach.

        These things are numbered separately: an unreachable one is not counted.
        """
        counted: Counter[str] = Counter()
        for thing in self._sight.things:
            if thing.kind not in kinds:
                continue
            action = f"{thing.name} {counted[thing.name] + 1}"
            way = self._ways.to_face(thing.place)
            if way is None:
                self.refusals[f"{verb} {action}"] = (
                    f"You cannot {verb} {action}, as there is no path leading to it."
                )
            else:
                counted[thing.name] += 1
                self.moves[f"{verb} {action}"] = way + then

    def _add_doors(self) -> None:
        counted: Counter[str] = Counter()
        for door in self._sight.things:
            if door.kind != "door":
                continue
            counted[door.name] += 1
            name = f"{door.name} {counted[door.name]}"
            if " open " in door.name:
                self._add_way(f"go through {name}", self._ways.to(door.place))
            elif " closed " in door.name:
                self._add_toggle(door, name, counted)
                self.refusals[f"go through {name}"] = (
                    f"You cannot go through {name}, as it is closed. You should toggle it first."
                )
            else:
                self._add_locked(door, name, counted)

    def _add_locked(self, door: Thing, name: str, counted: Mapping[str, int]) -> None:
        colour, _, kind = (self._sight.carried or "no thing").partition(" ")
        if kind == "key" and colour == door.name.split(" ")[0]:
            self._add_toggle(door, name, counted)
            return
        why = (
            "the color of the key you are carrying does not match the color of door"
            if kind == "key"
            else "you are not carrying a key"
        )
        self.refusals[f"toggle and go through {name}"] = f"You cannot toggle and go through {name}, as {why}."

    def _add_toggle(self, door: Thing, name: str, counted: Mapping[str, int]) -> None:
        way = self._ways.to_face(door.place)
        action = f"toggle and go through {name}"
        self._add_way(action, None if way is None else [*way, MinigridMove.TOGGLE, MinigridMove.FORWARD])
        if way is None and self._twin:
            door_text = f"toggle and go through {door.name} {dict(counted)}"
            self.refusals[action] = f"You cannot {door_text}, as there is no path leading to it."
        if not way and way is not None:
            self.moves["toggle"] = [MinigridMove.TOGGLE]

    def _add_way(self, action: str, way: list[MinigridMove] | None) -> None:
        if way is None:
            self.refusals[action] = f"You cannot {action}, as there is no path leading to it."
        else:
            self.moves[action] = way


_Pose: TypeAlias = tuple[Cell, int]  # the agent's cell and its direction as an index of `AHEAD`


class _Ways:
    """The shortest paths, in moves, through the visible cells.

    Among paths of equal length, AgentGym's server takes the one that results from its search: a breadth-first
    search that adds a pose to its queue once per path to it, and keeps for each pose the last path found. Its
    target is the first suitable pose in the queue. The number of paths grows exponentially with the distance,
    so this search stores each pose once, with its first and its last position in that queue.
    """

    def __init__(self, sight: Sight) -> None:
        self._start: _Pose = (sight.place, sight.direction)
        self._columns, self._rows = sight.ranges
        self._solid = {each.place for each in sight.things if each.kind in _SOLID}
        self._before: dict[_Pose, tuple[_Pose, MinigridMove]] = {}
        self._at: dict[Cell, _Pose] = {}
        self._facing: dict[Cell, _Pose] = {}
        self._search()

    def to(self, place: Cell) -> list[MinigridMove] | None:
        """Return the moves into a cell; None if it is unreachable."""
        return self._moves(self._at.get(place))

    def to_face(self, place: Cell) -> list[MinigridMove] | None:
        """Return the moves after which a cell is straight ahead; None if there are none."""
        return self._moves(self._facing.get(place))

    def _moves(self, pose: _Pose | None) -> list[MinigridMove] | None:
        if pose is None:
            return None
        moves: list[MinigridMove] = []
        while pose != self._start:
            pose, move = self._before[pose]
            moves.append(move)
        return moves[::-1]

    def _search(self) -> None:
        # All poses at the same distance: ordered by their first position in that queue, and by their last.
        first = last = [self._start]
        seen = {self._start}
        while first:
            for place, direction in first:
                self._at.setdefault(place, (place, direction))
                ahead = AHEAD[direction]
                self._facing.setdefault((place[0] + ahead[0], place[1] + ahead[1]), (place, direction))
            following = {
                pose: [(move, each) for move, each in self._following(pose) if each not in seen]
                for pose in first
            }
            found = dict.fromkeys(each for pose in first for _, each in following[pose])
            kept: dict[_Pose, tuple[_Pose, MinigridMove]] = {}
            for pose in last:
                for move, each in following[pose]:
                    kept.pop(each, None)
                    kept[each] = (pose, move)
            self._before.update(kept)
            seen.update(found)
            first, last = list(found), list(kept)

    def _following(self, pose: _Pose) -> Iterator[tuple[MinigridMove, _Pose]]:
        (x, y), direction = pose
        dx, dy = AHEAD[direction]
        for move, place, towards in (
            (MinigridMove.FORWARD, (x + dx, y + dy), direction),
            (MinigridMove.LEFT, (x, y), (direction - 1) % 4),
            (MinigridMove.RIGHT, (x, y), (direction + 1) % 4),
        ):
            if place[0] in self._columns and place[1] in self._rows and place not in self._solid:
                yield move, (place, towards)
