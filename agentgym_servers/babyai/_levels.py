"""BabyAI's forty levels, in AgentGym's order, as the package `minigrid` makes them.

A task is a level and a seed of it. The seed is all that is drawn from, so a task is the same in every process
and on every machine, whatever was played before.
"""

from __future__ import annotations

import os
from functools import cache
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, cast

# Read by pygame alone, when minigrid imports it: it would print a line on standard output.
os.environ.setdefault("PYGAME_HIDE_SUPPORT_PROMPT", "1")

from minigrid.core.roomgrid import RoomGrid
from minigrid.envs import babyai
from minigrid.envs.babyai.core.roomgrid_level import RejectSampling

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy as np
    from minigrid.core.grid import Grid
    from numpy.typing import NDArray

__all__ = ["LEVELS", "SEEDS", "Image", "Level", "level_of", "new_level"]

Image: TypeAlias = "NDArray[np.uint8]"
"""What the agent sees: by column and row the kind, colour and state of each place, as numbers."""


class Level(Protocol):
    """What is used here of a level of `minigrid`, whose own types leave much out.

    Attributes:
        mission: The instruction in words.
        instrs: The instruction, as `minigrid.envs.babyai.core.verifier` has it.
        grid: The things, by place.
        carrying: What the agent carries.
        agent_pos: Where it is: column and row.
        agent_dir: Where it looks to.
        step_count: How many moves were made.
        max_steps: How many moves it lasts.
        highlight: Whether a picture shows what the agent sees.
        tile_size: How many points a side a place has in a picture.
    """

    mission: str
    instrs: Any
    grid: Grid
    carrying: Any
    agent_pos: tuple[int, int]
    agent_dir: int
    step_count: int
    max_steps: int
    highlight: bool
    tile_size: int

    def reset(self, *, seed: int) -> tuple[dict[str, Any], dict[str, Any]]:
        """Draw it anew."""

    def step(self, action: int) -> tuple[dict[str, Any], float, bool, bool, dict[str, Any]]:
        """Make a move."""

    def gen_obs(self) -> dict[str, Any]:
        """Look."""

    def get_frame(self, *, highlight: bool, tile_size: int) -> NDArray[np.uint8]:
        """Draw a picture."""


_Made: TypeAlias = "tuple[str, Mapping[str, Any]]"

# By name: the class, and what it is made with. Both are written out here, and not looked up by name in
# gymnasium's registry, because minigrid 3 has another GoToObjS6: rooms of 6, where the 2.x that AgentGym's
# server runs on has rooms of 4.
_LEVELS: Mapping[str, _Made] = {
    "GoToRedBallGrey": ("GoToRedBallGrey", {}),
    "GoToRedBall": ("GoToRedBall", {}),
    "GoToRedBallNoDists": ("GoToRedBallNoDists", {}),
    "GoToObjS6": ("GoToObj", {"room_size": 4}),
    "GoToLocalS8N7": ("GoToLocal", {"room_size": 8, "num_dists": 7}),
    "GoToObjMazeS7": ("GoTo", {"num_dists": 1, "room_size": 7}),
    "GoToImpUnlock": ("GoToImpUnlock", {}),
    "GoToSeqS5R2": ("GoToSeq", {"room_size": 5, "num_rows": 2, "num_cols": 2, "num_dists": 4}),
    "GoToRedBlueBall": ("GoToRedBlueBall", {}),
    "GoToDoor": ("GoToDoor", {}),
    "GoToObjDoor": ("GoToObjDoor", {}),
    "Open": ("Open", {}),
    "OpenRedDoor": ("OpenRedDoor", {}),
    "OpenDoorLoc": ("OpenDoor", {"select_by": "loc"}),
    "OpenRedBlueDoorsDebug": (
        "OpenTwoDoors",
        {"first_color": "red", "second_color": "blue", "strict": True},
    ),
    "OpenDoorsOrderN4Debug": ("OpenDoorsOrder", {"debug": True, "num_doors": 4}),
    "Pickup": ("Pickup", {}),
    "UnblockPickup": ("UnblockPickup", {}),
    "PickupLoc": ("PickupLoc", {}),
    "PickupDistDebug": ("PickupDist", {"debug": True}),
    "PickupAbove": ("PickupAbove", {}),
    "PutNextLocalS6N4": ("PutNextLocal", {"room_size": 6, "num_objs": 4}),
    "PutNextS7N4Carrying": ("PutNext", {"room_size": 7, "objs_per_room": 4, "start_carrying": True}),
    "Unlock": ("Unlock", {}),
    "UnlockLocalDist": ("UnlockLocal", {"distractors": True}),
    "KeyInBox": ("KeyInBox", {}),
    "UnlockPickupDist": ("UnlockPickup", {"distractors": True}),
    "BlockedUnlockPickup": ("BlockedUnlockPickup", {}),
    "UnlockToUnlock": ("UnlockToUnlock", {}),
    "ActionObjDoor": ("ActionObjDoor", {}),
    "FindObjS7": ("FindObjS5", {"room_size": 7}),
    "KeyCorridorS6R3": ("KeyCorridor", {"room_size": 6, "num_rows": 3}),
    "OneRoomS20": ("OneRoomS8", {"room_size": 20}),
    "MoveTwoAcrossS8N9": ("MoveTwoAcross", {"room_size": 8, "objs_per_room": 9}),
    "SynthS5R2": ("Synth", {"room_size": 5, "num_rows": 2}),
    "SynthLoc": ("SynthLoc", {}),
    "SynthSeq": ("SynthSeq", {}),
    "MiniBossLevel": ("MiniBossLevel", {}),
    "BossLevel": ("BossLevel", {}),
    "BossLevelNoUnlock": ("BossLevelNoUnlock", {}),
}

LEVELS = tuple(_LEVELS)
"""The names of the levels, as BabyAI has them; a task id is of level ``LEVELS[id % 40]``."""

SEEDS = 1_000_000
"""How many seeds of a level a world has before they are those of the world of the next seed."""

_ATTEMPTS = 1000  # to draw a level; none of those of tasks 0..899 takes more than 40


def level_of(task: int) -> str:
    """Return the name of a task's level."""
    return LEVELS[task % len(LEVELS)]


def new_level(task: int, seed: int = 0) -> tuple[Level, Image]:
    """Return the level of a task, as it is at the start, and the first image of it.

    In the level that begins with a thing in hand, that image still has it where it lay.

    Args:
        task: The task id: ``id % 40`` is the level, ``id // 40`` its seed.
        seed: Of the world. In that of seed 0 the tasks are AgentGym's.

    Raises:
        ValueError: The task id is below 0.
    """
    if task < 0:
        # In the words of AgentGym's server, which has them from gymnasium.
        raise ValueError(f"Seed must be greater or equal to zero, actual value: {task // len(LEVELS)}")
    name, options = _LEVELS[level_of(task)]
    level = cast("Level", _quiet(name)(**options))
    seen, _ = level.reset(seed=seed * SEEDS + task // len(LEVELS))
    return level, seen["image"]


class _Quiet:
    """What makes a level of `minigrid` print nothing, give up in the end, and carry nothing over."""

    locked_room: Any

    def _gen_grid(self: Any, width: int, height: int) -> None:
        """Draw rooms and an instruction until one fits the other.

        Raises:
            ValueError: None does, in a large number of attempts.
        """
        draw_rooms: Any = RoomGrid._gen_grid  # noqa: SLF001 - what the level's own method begins with
        for _ in range(_ATTEMPTS):
            # minigrid 3.1 keeps the locked room of an attempt that failed; 3.2 does not.
            self.locked_room = None
            try:
                draw_rooms(self, width, height)
                self.gen_mission()
                self.validate_instrs(self.instrs)
            except (RecursionError, RejectSampling):  # the first: no place was found for a thing
                continue
            self.mission = self.surface = self.instrs.surface(self)
            return
        raise ValueError("this level cannot be drawn from this seed")


@cache
def _quiet(name: str) -> type:
    return type(name, (_Quiet, getattr(babyai, name)), {})
