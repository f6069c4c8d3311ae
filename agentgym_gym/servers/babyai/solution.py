"""What wins a task of BabyAI, in as few actions as can be found.

`minigrid`'s own bot tells what has to be done, and where: what to face, pick up, put down, open, one after the
other. It makes single moves, and many of them. So a search finds actions that do the same: it looks among all
actions that the agent would be offered on its way, of which one may be twenty moves.

It knows the whole level from the start, the agent who plays it sees but a part of it.
"""

from __future__ import annotations

import copy
import heapq
import itertools
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from minigrid.envs.babyai.core.verifier import PutNextInstr
from minigrid.utils.baby_ai_bot import BabyAIBot, DropSubgoal, GoNextToSubgoal

from agentgym_gym.servers.babyai.choices import Choices, Move
from agentgym_gym.servers.babyai.game import Game
from agentgym_gym.servers.babyai.levels import new_level
from agentgym_gym.servers.babyai.sight import AHEAD, Place, look_around

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from minigrid.core.grid import Grid

    from agentgym_gym.servers.babyai.levels import Image, RoomGridLevel

__all__ = ["solve"]

_MOST_MOVES = 1000  # that the bot is let make
_MOST_POSES = 6000  # that a search looks around from

_SINGLE = {
    Move.LEFT: "turn left",
    Move.RIGHT: "turn right",
    Move.FORWARD: "move forward",
    Move.DROP: "drop",
    Move.TOGGLE: "toggle",
}


def solve(task: int, seed: int = 0) -> tuple[str, ...] | None:
    """Return the actions that win a task, as texts; None if none were found.

    Args:
        task: The task id.
        seed: Of the world.

    Raises:
        ValueError: There is no such task.
    """
    for knowing in (True, False):
        deeds = _deeds(task, seed, knowing=knowing)
        plan = None if deeds is None else _Search(new_level(task, seed)[0], deeds).plan()
        if plan is not None and _wins(task, seed, plan):
            return tuple(plan)
    return None


def _wins(task: int, seed: int, plan: Sequence[str]) -> bool:
    game = Game(task, seed)
    for action in plan:
        if game.last.done or action not in game.actions:
            return False
        game.play(action)
    return game.last.reward > 0


@dataclass(frozen=True)
class _Deed:
    """One thing that has to be done.

    Attributes:
        place: The place that is right ahead as it is done.
        move: The move that does it; None where it is enough to face the place.
    """

    place: Place
    move: Move | None


def _deeds(task: int, seed: int, *, knowing: bool) -> list[_Deed] | None:
    """Return what the bot does to win a task; None if it does not win it.

    Args:
        task: The task.
        seed: Of the world.
        knowing: Whether it knows the whole level from the start. It then takes the shortest way, but cannot
            win all that it wins by exploring.
    """
    level, _ = new_level(task, seed)
    bot = BabyAIBot(level)
    if knowing:
        bot.vis_mask[:] = True
    if isinstance(level.instrs, PutNextInstr) and level.carrying in level.instrs.desc_move.obj_set:
        # The bot would look for the thing that is in its hand.
        bot.stack[:] = [DropSubgoal(bot), GoNextToSubgoal(bot, level.instrs.desc_fixed, reason="PutNext")]
    deeds = []
    progress, terminated, reward = _progress(level.instrs), False, 0.0
    for _ in range(_MOST_MOVES):
        try:
            move = bot.replan()
        except Exception:  # noqa: BLE001 - it fails by assertions and by whatever they did not foresee
            return None
        if move == level.actions.done:
            break
        before = _state(level)
        _, paid, terminated, _, _ = level.step(move)
        place = _ahead(level)
        changed = _state(level) != before and move not in (Move.LEFT, Move.RIGHT, Move.FORWARD)
        now = _progress(level.instrs)
        if changed:
            deeds.append(_Deed(place, Move(int(move))))
        elif now != progress or terminated:
            deeds.append(_Deed(place, None))
        progress, reward = now, float(paid)
        if terminated:
            break
    return deeds if reward > 0 else None


def _state(level: RoomGridLevel) -> tuple[Any, ...]:
    """Return what moves other than steps and turns change."""
    ahead = level.grid.get(*_ahead(level))
    return id(level.carrying), id(ahead), getattr(ahead, "is_open", None)


def _progress(instruction: Any) -> tuple[Any, ...]:
    """Return how much of an instruction is done."""
    if not hasattr(instruction, "instr_a"):
        return ()
    parts = (instruction.instr_a, instruction.instr_b)
    return (instruction.a_done, instruction.b_done, *(_progress(part) for part in parts))


def _ahead(level: RoomGridLevel) -> Place:
    x, y = level.front_pos
    return int(x), int(y)


class _Pose(NamedTuple):
    """How far the agent is: deeds done, where it is, and where it looks to."""

    done: int
    place: Place
    direction: int

    @property
    def ahead(self) -> Place:
        step = AHEAD[self.direction]
        return self.place[0] + step[0], self.place[1] + step[1]


class _Search:
    """Searches for the fewest actions that do a sequence of deeds, and change nothing else.

    It is A*: at least one action is needed for each deed left but those that may be done in passing.

    Args:
        level: The level at its start. It is used up.
        deeds: What is to be done.
    """

    def __init__(self, level: RoomGridLevel, deeds: Sequence[_Deed]) -> None:
        self._level = level
        self._deeds = deeds
        x, y = level.agent_pos
        self._start = _Pose(0, (int(x), int(y)), int(level.agent_dir))
        self._stages = list(self._stages_of(level.grid, level.carrying))
        self._images: dict[_Pose, bytes] = {}
        self._choices: dict[_Pose, Choices] = {}
        acts = [each.move is not None for each in deeds]
        self._left = [sum(acts[done:]) for done in range(len(deeds) + 1)]

    def plan(self) -> list[str] | None:
        """Return the actions; None if none are found."""
        if not self._deeds:
            return None
        start = self._passed(self._start)
        came: dict[_Pose, tuple[_Pose, str] | None] = {start: None}
        cost = {start: 0}
        order = itertools.count()
        queue = [(self._left[start.done], next(order), start)]
        looked = 0
        while queue and looked < _MOST_POSES:
            estimate, _, pose = heapq.heappop(queue)
            if pose.done == len(self._deeds):
                return self._back(came, pose)
            if estimate > cost[pose] + self._left[pose.done]:
                continue
            looked += 1
            for action, reached in self._following(pose):
                if cost[pose] + 1 < cost.get(reached, len(self._deeds) + _MOST_MOVES):
                    cost[reached] = cost[pose] + 1
                    came[reached] = (pose, action)
                    heapq.heappush(queue, (cost[reached] + self._left[reached.done], next(order), reached))
        return None

    @staticmethod
    def _back(came: dict[_Pose, tuple[_Pose, str] | None], pose: _Pose) -> list[str]:
        plan = []
        while (step := came[pose]) is not None:
            pose, action = step
            plan.append(action)
        return plan[::-1]

    def _stages_of(self, grid: Grid, carried: Any) -> Iterator[tuple[Grid, Any]]:
        """Return the level before the first deed, and after each."""
        yield grid, carried
        for deed in self._deeds:
            grid = _copied(grid)
            there = grid.get(*deed.place)
            if deed.move is Move.PICKUP:
                carried = there
                grid.set(*deed.place, None)
            elif deed.move is Move.DROP:
                grid.set(*deed.place, carried)
                carried = None
            elif deed.move is Move.TOGGLE:
                there.is_open = not there.is_open
                there.is_locked = False
            yield grid, carried

    def _following(self, pose: _Pose) -> Iterator[tuple[str, _Pose]]:
        offered = self._offered(pose).moves
        deed = self._deeds[pose.done]
        single = {text: [move] for move, text in _SINGLE.items()}
        for action, moves in {**single, **offered}.items():
            if action not in offered or not moves:
                continue
            reached = self._moved(pose, moves)
            if reached is not None and reached != pose:
                yield action, reached
        del deed

    def _moved(self, pose: _Pose, moves: Sequence[Move]) -> _Pose | None:
        """Return where moves lead to; None where they would do what is not to be done."""
        for move in moves:
            before = self._image(pose)
            reached = self._after(pose, move)
            if reached is None or (reached == pose):
                return reached
            pose = self._passed(reached)
            if pose.done == len(self._deeds) or self._image(pose) == before:
                return pose
        return pose

    def _after(self, pose: _Pose, move: Move) -> _Pose | None:
        if move in (Move.LEFT, Move.RIGHT):
            turn = 1 if move is Move.RIGHT else -1
            return pose._replace(direction=(pose.direction + turn) % 4)
        if move is Move.FORWARD:
            there = self._stages[pose.done][0].get(*pose.ahead)
            free = there is None or there.can_overlap()
            return pose._replace(place=pose.ahead) if free else pose
        if self._deeds[pose.done] == _Deed(pose.ahead, move):
            return pose._replace(done=pose.done + 1)
        return None

    def _passed(self, pose: _Pose) -> _Pose:
        """Return a pose with all done that is done by being there."""
        while pose.done < len(self._deeds) and self._deeds[pose.done] == _Deed(pose.ahead, None):
            pose = pose._replace(done=pose.done + 1)
        return pose

    def _place(self, pose: _Pose) -> None:
        self._level.grid, self._level.carrying = self._stages[pose.done]
        self._level.agent_pos, self._level.agent_dir = pose.place, pose.direction

    def _seen(self, pose: _Pose) -> Image:
        self._place(pose)
        image: Image = self._level.gen_obs()["image"]
        return image

    def _image(self, pose: _Pose) -> bytes:
        if pose not in self._images:
            self._images[pose] = self._seen(pose).tobytes()
        return self._images[pose]

    def _offered(self, pose: _Pose) -> Choices:
        if pose not in self._choices:
            image = self._seen(pose)
            self._choices[pose] = Choices(look_around(self._level, image.tolist()))
        return self._choices[pose]


def _copied(grid: Grid) -> Grid:
    """Return a copy in which doors can be opened; what can be picked up is shared."""
    copied = copy.copy(grid)
    copied.grid = [copy.copy(each) if each and each.type == "door" else each for each in grid.grid]
    return copied
