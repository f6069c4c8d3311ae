"""Finds a short sequence of actions that wins a task of BabyAI.

`_strategy` returns the necessary deeds. A search finds actions that do them, among all actions that the
server would offer the agent on its way; one action may consist of twenty moves.
"""

from __future__ import annotations

import heapq
import itertools
from typing import TYPE_CHECKING, Any, NamedTuple

from agentgym_servers.babyai._available_actions import AvailableActions, MinigridMove
from agentgym_servers.babyai._game import BabyAIGame
from agentgym_servers.babyai._levels import new_level
from agentgym_servers.babyai._sight import AHEAD, Cell, look_around
from agentgym_servers.babyai._strategy import Deed, after, strategies

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from minigrid.core.grid import Grid

    from agentgym_servers.babyai._levels import Image, Level

__all__ = ["solve"]

_MOST_POSES = 1500  # the maximum number of poses that a search expands
_MOST_SEARCHES = 12
_SINGLE_MOVES = {
    MinigridMove.LEFT: "turn left",
    MinigridMove.RIGHT: "turn right",
    MinigridMove.FORWARD: "move forward",
    MinigridMove.TOGGLE: "toggle",
}
_STEPS_AT_ONCE = (2.5, 1.6, 5.0)  # estimates of steps per action: low is fast, high finds short plans


def solve(task: int, seed: int = 0, within: int = 20, *, twin: bool = False) -> tuple[str, ...] | None:
    """Return the actions that win a task, as texts; None if none were found.

    Args:
        task: The task id.
        seed: The seed of the world.
        within: The search stops at the first solution with at most this number of actions.
        twin: Whether the actions are to win by the rules of AgentGym's server.

    Raises:
        ValueError: There is no such task.
    """
    best: list[str] | None = None
    level, _ = new_level(task, seed)
    start = (level.grid, level.carrying, level.agent_pos, level.agent_dir)
    tries = itertools.product(_STEPS_AT_ONCE, strategies(level)[: _MOST_SEARCHES // len(_STEPS_AT_ONCE)])
    for steps_at_once, deeds in tries:
        # All share one copy of the level, because its things are compared by identity.
        level.grid, level.carrying, level.agent_pos, level.agent_dir = start
        found = _Search(level, deeds, steps_at_once).plan()
        plan = None if found is None else _winning(task, seed, found, twin=twin)
        if plan is not None and (best is None or len(plan) < len(best)):
            best = plan
        if best is not None and len(best) <= within:
            break
    return None if best is None else tuple(best)


def _winning(task: int, seed: int, plan: Sequence[str], *, twin: bool) -> list[str] | None:
    """Play a plan; return the part of it that wins, or None if it does not win.

    The agent may reach the goal before it has done all planned deeds.
    """
    game = BabyAIGame(task, seed)
    for number, action in enumerate(plan):
        if action not in game.actions:
            return None
        endings = _endings(game, action) if twin else []
        if game.play(action).done:
            if game.last.reward <= 0:
                return None
            if not twin:
                return list(plan[: number + 1])
            played = (_win_as_twin(task, seed, [*plan[:number], *ending]) for ending in endings)
            return min(filter(None, played), key=len, default=None)
    return None


def _endings(game: BabyAIGame, action: str) -> list[list[str]]:
    """Return other ways to play an action; AgentGym's server pays only for its last move."""
    moves = list(game.moves_of(action))
    singly = [_SINGLE_MOVES[move] for move in moves if move in _SINGLE_MOVES]
    endings = [[action], singly]
    if MinigridMove.TOGGLE in moves:
        way = moves[: moves.index(MinigridMove.TOGGLE)]
        endings += [[walk, "toggle"] for walk in game.actions if way and list(game.moves_of(walk)) == way]
    return endings


def _win_as_twin(task: int, seed: int, actions: Sequence[str]) -> list[str] | None:
    """Return the beginning of some actions that wins by the rules of AgentGym's server; None if none does."""
    game = BabyAIGame(task, seed, twin=True)
    for number, action in enumerate(actions, 1):
        if action not in game.actions:
            return None
        if game.play(action).reward > 0:
            return list(actions[:number])
    return None


class _Pose(NamedTuple):
    """A state of the search: the cells of the deeds done, the agent's cell and its direction."""

    deeds: tuple[Cell, ...]
    place: Cell
    direction: int

    @property
    def done(self) -> int:
        return len(self.deeds)

    @property
    def ahead(self) -> Cell:
        step = AHEAD[self.direction]
        return self.place[0] + step[0], self.place[1] + step[1]


class _Search:
    """Searches for few actions that do a sequence of deeds and have no other effects.

    The search is A* with a heuristic that may overestimate, so the result is short but not always the
    shortest.

    Args:
        level: The level in its initial state; the search modifies it.
        deeds: The deeds to do.
        steps_at_once: The estimated number of steps per action.
    """

    def __init__(self, level: Level, deeds: Sequence[Deed], steps_at_once: float) -> None:
        self._steps_at_once = steps_at_once
        self._level = level
        self._deeds = deeds
        x, y = level.agent_pos
        self._start = _Pose((), (int(x), int(y)), int(level.agent_dir))
        self._stages: dict[tuple[Cell, ...], tuple[Grid, Any]] = {(): (level.grid, level.carrying)}
        self._images: dict[_Pose, bytes] = {}
        # By the number of deeds done: the cell of the next one, and the estimated remaining cost from there.
        self._left = [self._left_from(done) for done in range(len(deeds) + 1)]

    def _left_from(self, done: int) -> tuple[Cell | None, float]:
        rest = self._deeds[done:]
        places = [each.near for each in rest if each.near is not None]
        steps = sum(_distance(a, b) for a, b in itertools.pairwise(places))
        acts = sum(each.move is not None for each in rest)
        return places[0] if places else None, steps / self._steps_at_once + acts

    def _estimate(self, pose: _Pose) -> float:
        place, rest = self._left[pose.done]
        return rest + (0 if place is None else _distance(pose.place, place) / self._steps_at_once)

    def plan(self) -> list[str] | None:
        """Return the actions; None if none are found."""
        start = self._passed(self._start)
        came: dict[_Pose, tuple[_Pose, str] | None] = {start: None}
        cost = {start: 0}
        order = itertools.count()
        queue = [(self._estimate(start), next(order), start)]
        closed: set[_Pose] = set()
        while queue and len(closed) < _MOST_POSES:
            _, _, pose = heapq.heappop(queue)
            if pose.done == len(self._deeds):
                return self._back(came, pose)
            if pose in closed:
                continue
            closed.add(pose)
            for action, reached in self._following(pose):
                if reached not in cost or cost[pose] + 1 < cost[reached]:
                    cost[reached] = cost[pose] + 1
                    came[reached] = (pose, action)
                    heapq.heappush(queue, (cost[reached] + self._estimate(reached), next(order), reached))
        return None

    @staticmethod
    def _back(came: dict[_Pose, tuple[_Pose, str] | None], pose: _Pose) -> list[str]:
        plan = []
        while (step := came[pose]) is not None:
            pose, action = step
            plan.append(action)
        return plan[::-1]

    def _following(self, pose: _Pose) -> Iterator[tuple[str, _Pose]]:
        available = AvailableActions(look_around(self._level, self._seen(pose).tolist()))
        for action, moves in available.moves.items():
            reached = self._moved(pose, moves)
            if reached is not None and reached != pose:
                yield action, reached

    def _moved(self, pose: _Pose, moves: Sequence[MinigridMove]) -> _Pose | None:
        """Return the pose after some moves; None if they would have other effects than the next deed."""
        for move in moves:
            before = self._image(pose)
            reached = self._after(pose, move)
            if reached is None or reached == pose:
                return reached
            pose = self._passed(reached)
            if pose.done == len(self._deeds) or self._image(pose) == before:
                return pose
        return pose

    def _after(self, pose: _Pose, move: MinigridMove) -> _Pose | None:
        if move in (MinigridMove.LEFT, MinigridMove.RIGHT):
            turn = 1 if move is MinigridMove.RIGHT else -1
            return pose._replace(direction=(pose.direction + turn) % 4)
        grid, _ = self._stage(pose)
        if move is MinigridMove.FORWARD:
            there = grid.get(*pose.ahead)
            free = there is None or there.can_overlap()
            return pose._replace(place=pose.ahead) if free else pose
        deed = self._deeds[pose.done]
        if deed.move is move and deed.fits(grid, pose.ahead):
            return pose._replace(deeds=(*pose.deeds, pose.ahead))
        return None

    def _passed(self, pose: _Pose) -> _Pose:
        """Return a pose that includes all deeds done by merely being there."""
        while (
            pose.done < len(self._deeds)
            and self._deeds[pose.done].move is None
            and self._deeds[pose.done].fits(self._stage(pose)[0], pose.ahead)
        ):
            pose = pose._replace(deeds=(*pose.deeds, pose.ahead))
        return pose

    def _stage(self, pose: _Pose) -> tuple[Grid, Any]:
        """Return the grid and the carried thing after the deeds of a pose."""
        if pose.deeds not in self._stages:
            *before, last = pose.deeds
            grid, carried = self._stage(pose._replace(deeds=tuple(before)))
            self._stages[pose.deeds] = after(self._deeds[len(before)], grid, last, carried)
        return self._stages[pose.deeds]

    def _seen(self, pose: _Pose) -> Image:
        self._level.grid, self._level.carrying = self._stage(pose)
        self._level.agent_pos, self._level.agent_dir = pose.place, pose.direction
        image: Image = self._level.gen_obs()["image"]
        return image

    def _image(self, pose: _Pose) -> bytes:
        if pose not in self._images:
            self._images[pose] = self._seen(pose).tobytes()
        return self._images[pose]


def _distance(a: Cell, b: Cell) -> int:
    return abs(a[0] - b[0]) + abs(a[1] - b[1])
