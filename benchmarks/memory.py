"""What one more environment costs in memory, in our vector environment and in gymnasium's ``AsyncVectorEnv``.

Both hold TextCraft environments of one local server, which is not counted, and are measured after their
reset, at two sizes, each size in a fresh process; the difference is divided by the number of environments
between. What is counted is the proportional set size (PSS) of the process and of all its children: a page
that several of them share counts once. Linux alone tells it.

``AsyncVectorEnv`` runs each environment in a child of its own; how children are started is left to Python's
default, which is printed. Its ``shared_memory`` is off, as text needs it. An environment is played and closed
before, so that all is imported that is needed: where children are forks they share that with their parent,
and the size of Python does not count against them.

Prints JSON: kilobytes for each added environment and the ratio. Run it by ``python benchmarks/memory.py``.
"""

from __future__ import annotations

import gc
import json
import multiprocessing
import os
import subprocess
import sys
from pathlib import Path

from _common import at_least, report, usually
from gymnasium.vector import AsyncVectorEnv

from agentgym_gym import AgentGymEnv, AgentGymVectorEnv
from agentgym_gym.local_servers import LocalServer

SIZES = {"ours": usually((64, 512), quick=(4, 16)), "theirs": usually((2, 10), quick=(1, 2))}


def hold(kind: str, number: int, url: str) -> None:
    """Make so many environments, reset them, print the kilobytes that are in use."""
    first = AgentGymEnv("TextCraft", server=url)
    first.reset(seed=0)
    first.close()
    if kind == "ours":
        envs = AgentGymVectorEnv(number, "TextCraft", server=url)
    else:
        made = [lambda: AgentGymEnv("TextCraft", server=url)] * number
        envs = AsyncVectorEnv(made, shared_memory=False)  # type: ignore[assignment]
    envs.reset(seed=0)
    gc.collect()
    print(json.dumps(sum(map(pss, [os.getpid(), *children(os.getpid())]))))
    envs.close()


def pss(process: int) -> int:
    """Return the proportional set size of a process in kilobytes."""
    lines = Path(f"/proc/{process}/smaps_rollup").read_text("utf-8").splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("Pss:"))


def children(process: int) -> list[int]:
    """Return the ids of all processes that descend from one."""
    parents = {}
    for status in Path("/proc").glob("[0-9]*/stat"):
        try:  # the name, which may hold anything, stands in round brackets
            parents[int(status.parent.name)] = int(status.read_text("utf-8").rpartition(")")[2].split()[1])
        except (OSError, UnicodeDecodeError):
            continue  # it has ended
    found = [process]
    for each in found:
        found += [child for child, parent in parents.items() if parent == each]
    return found[1:]


def measure(kind: str, number: int, url: str) -> int:
    """Return the kilobytes that so many environments and their process take."""
    command = [sys.executable, __file__, kind, str(number), url]
    output = subprocess.run(command, check=True, capture_output=True, text=True).stdout  # noqa: S603 - ourselves
    kilobytes: int = json.loads(output)
    return kilobytes


def main() -> None:
    """Measure all of it against one server."""
    server = LocalServer("textcraft")
    url = server.start()
    each = {}
    for kind, (few, many) in SIZES.items():
        each[kind] = (measure(kind, many, url) - measure(kind, few, url)) / (many - few)
    server.stop()
    report(
        benchmark="memory",
        sizes=SIZES,
        started_by=multiprocessing.get_start_method(),
        kilobytes_each={kind: round(size, 1) for kind, size in each.items()},
        theirs_beside_ours=at_least([each["theirs"] / each["ours"]], 50),
    )


if __name__ == "__main__":
    if len(sys.argv) > 2:  # noqa: PLR2004 - not from outside
        hold(sys.argv[1], int(sys.argv[2]), sys.argv[3])
    else:
        main()
