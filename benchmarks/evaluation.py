"""What evaluation costs beside the environment: the oracle plays 64 tasks at once, with records and a folder.

The local TextCraft server runs in a process of its own. The oracle plays tasks by `evaluate_async` into a
`RunFolder`, as ``agentgym eval`` does; then the same actions are played in a bare loop over
`AgentGymVectorEnv` of the same size, which keeps nothing. Both play in turn. Prints JSON: the seconds of each
and their ratio.

Run it by ``python benchmarks/evaluation.py``.
"""

from __future__ import annotations

import asyncio
import statistics
import tempfile
from pathlib import Path

import numpy as np
from _common import MEASUREMENTS, allow_open_files, at_most, in_turns, ratios, report, seconds, usually

from agentgym_gym import AgentGymVectorEnv, AsyncAgentGymEnv, find
from agentgym_gym.evaluate import RunFolder, evaluate_async, load_oracle
from agentgym_gym.formats import base
from agentgym_gym.servers.local import LocalServer

AT_ONCE = usually(64, quick=4)
TASKS = usually(512, quick=12)
BAR = 1.3


def evaluated(url: str) -> dict[int, tuple[str, ...]]:
    """Evaluate the oracle; return what it replied in each task."""
    environment = find("TextCraft")
    base._rendered.clear()  # noqa: SLF001 - as in a process that plays these tasks for the first time
    with tempfile.TemporaryDirectory() as out, RunFolder(Path(out), {}) as folder:
        asyncio.run(
            evaluate_async(
                lambda: AsyncAgentGymEnv("TextCraft", server=url),
                lambda: load_oracle(environment),
                range(TASKS),
                concurrency=AT_ONCE,
                on_episode=folder.add,
            )
        )
        if folder.summary.scored != TASKS:
            raise RuntimeError(f"episodes failed: {folder.summary.faults}")
        return {record.task_id: record.replies for record in folder.records}


def stepped(url: str, replies: dict[int, tuple[str, ...]]) -> None:
    """Play the same in a bare loop: where an episode ends, that environment is reset to the next task."""
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
    """Measure both in turn."""
    allow_open_files(1024)
    server = LocalServer("textcraft")
    url = server.start()
    try:
        replies = evaluated(url)  # what is imported late is imported now
        took = in_turns(
            {
                "evaluate": lambda: seconds(lambda: evaluated(url)),
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
        ratio=at_most(ratios(took["evaluate"], took["vector"]), BAR),
    )


if __name__ == "__main__":
    main()
