"""The overhead of evaluation: an agent plays 64 tasks at once, with records and a run folder.

The local TextCraft server runs in its own process. The oracle plays tasks with `evaluate_async` into a
`RunFolder`, as in ``agentgym eval``. Then an agent that repeats its replies does the same, which excludes the
oracle's planning. A bare loop over `AgentGymVectorEnv` of the same size plays the tasks without records. All
three are interleaved. Prints JSON: the seconds of each, and the ratios to the bare loop.

Run it with ``python benchmarks/evaluation.py``.
"""

from __future__ import annotations

import asyncio
import statistics
import tempfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from _common import MEASUREMENTS, allow_open_files, at_most, interleave, ratios, report, seconds, usually

from agentgym_gym import AgentGymVectorEnv, AsyncAgentGymEnv, find
from agentgym_gym.evaluate import Agent, RunFolder, evaluate_async, load_oracle
from agentgym_gym.formats import _base as base
from agentgym_gym.local_servers import LocalServer

AT_ONCE = usually(64, quick=4)
TASKS = usually(512, quick=12)
BAR = 1.2
BAR_WITH_PLANNING = 1.3


class Repeating:
    """An agent with prepared replies.

    Args:
        replies: The replies of each task.
    """

    name = "repeating"
    blocking = False

    def __init__(self, replies: Mapping[int, tuple[str, ...]]) -> None:
        self._replies = replies
        self._left: Iterator[str] = iter(())

    def reset(self, env: Any, observation: str, info: Mapping[str, Any]) -> None:
        """Start the replies of a task."""
        self._left = iter(self._replies[info["task_id"]])

    def act(self, observation: str, info: Mapping[str, Any]) -> str | None:
        """Return the next one."""
        return next(self._left, None)


def oracle() -> Agent:
    """Return the oracle."""
    return load_oracle(find("TextCraft"))


def evaluated(url: str, make_agent: Callable[[], Agent]) -> dict[int, tuple[str, ...]]:
    """Evaluate an agent; return its replies in each task."""
    base._rendered.clear()  # noqa: SLF001 - as in a process that plays these tasks for the first time
    with tempfile.TemporaryDirectory() as out, RunFolder(Path(out), {}) as folder:
        asyncio.run(
            evaluate_async(
                lambda: AsyncAgentGymEnv("TextCraft", server=url),
                make_agent,
                range(TASKS),
                concurrency=AT_ONCE,
                on_episode=folder.add,
            )
        )
        if folder.summary.scored != TASKS:
            raise RuntimeError(f"episodes failed: {folder.summary.faults}")
        return {record.task_id: record.replies for record in folder.records}


def stepped(url: str, replies: dict[int, tuple[str, ...]]) -> None:
    """Play the same in a bare loop: when an episode ends, its environment is reset to the next task."""
    tasks = iter(range(TASKS))
    env = AgentGymVectorEnv(AT_ONCE, "TextCraft", server=url)
    try:
        left: list[list[str]] = [[] for _ in range(AT_ONCE)]
        while True:
            begin = {
                n: task for n in range(AT_ONCE) if not left[n] and (task := next(tasks, None)) is not None
            }
            if begin:
                mask = np.array([number in begin for number in range(AT_ONCE)])
                env.reset(options={"reset_mask": mask, "task_id": [begin.get(n, 0) for n in range(AT_ONCE)]})
                for number, task in begin.items():
                    left[number] = list(replies[task])
            if not any(left):
                return
            env.step([actions.pop(0) if actions else None for actions in left])
    finally:
        env.close()


def main() -> None:
    """Measure all ways, interleaved."""
    allow_open_files(1024)
    server = LocalServer("textcraft")
    url = server.start()
    try:
        replies = evaluated(url, oracle)  # lazy imports happen here
        took = interleave(
            {
                "replay": lambda: seconds(lambda: evaluated(url, lambda: Repeating(replies))),
                "oracle": lambda: seconds(lambda: evaluated(url, oracle)),
                "vector": lambda: seconds(lambda: stepped(url, replies)),
            },
            MEASUREMENTS,
        )
    finally:
        server.stop()
    report(
        benchmark="evaluation",
        episodes=TASKS,
        steps=sum(map(len, replies.values())),
        at_once=AT_ONCE,
        seconds={name: round(statistics.median(each), 3) for name, each in took.items()},
        replay=at_most(ratios(took["replay"], took["vector"]), BAR),
        oracle=at_most(ratios(took["oracle"], took["vector"]), BAR_WITH_PLANNING),
    )


if __name__ == "__main__":
    main()
