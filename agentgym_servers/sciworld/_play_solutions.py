"""Plays the solution of every task, and writes one line of JSON for each: ``make sciworld``.

All tasks take hours, so a run continues where the last one stopped. The small kinds of tasks come first, then
the others in turn, in an order that is the same in each run. The lines that were not won belong into
``UNWINNABLE`` of `agentgym_gym.envs.sciworld_tasks`.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from agentgym_gym.envs.sciworld import SCIWORLD
from agentgym_gym.envs.sciworld_tasks import TASK_COUNT, task_of
from agentgym_servers._frame.draw import Draw
from agentgym_servers.sciworld._simulator import JavaProcess, Simulator
from agentgym_servers.sciworld._solutions import MAX_TURNS, WON, find_solution, play

__all__ = ["main"]

_HEAP_MB = 512
_WAIT_SECONDS = 3600.0  # so that it can run at the lowest priority
_SMALL = 36  # the number of variations of the largest kind that is surveyed first


def _played(simulator: Simulator, task_id: int) -> dict[str, Any]:
    """Return how the solution of a task ends."""
    task = task_of(task_id)
    solution = [str(SCIWORLD.grammar.parse(action)) for action in find_solution(task, simulator)]
    game = play(solution, task, simulator)
    won, turns = game.last.score == WON, len(game.actions)
    ends = {"score": game.last.score, "turns": turns, "moves": game.last.moves}
    return {"task": task_id, "kind": task.kind, "won": won and turns <= MAX_TURNS, **ends}


def _in_order() -> Iterator[int]:
    """Return all tasks, the small kinds first."""
    kinds: dict[str, list[int]] = {}
    for task_id in range(TASK_COUNT):
        kinds.setdefault(task_of(task_id).kind, []).append(task_id)
    for small in (True, False):
        group = [Draw(kind).shuffled(ids) for kind, ids in kinds.items() if (len(ids) <= _SMALL) is small]
        for i in range(max(map(len, group))):
            yield from (ids[i] for ids in group if i < len(ids))


def main(path: Path) -> None:
    """Survey the tasks that a file does not contain yet, and append them to it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    known = {json.loads(line)["task"] for line in path.read_text().splitlines()} if path.exists() else set()
    process = JavaProcess(_HEAP_MB, wait_seconds=_WAIT_SECONDS)
    try:
        simulator = process.simulator()
        with path.open("a") as file:
            for task_id in _in_order():
                if task_id not in known:
                    file.write(f"{json.dumps(_played(simulator, task_id))}\n")
                    file.flush()
    finally:
        process.close()


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "build/sciworld.jsonl"))
