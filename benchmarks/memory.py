"""The memory of one more environment, in our vector environment and in gymnasium's ``AsyncVectorEnv``.

Both have TextCraft environments of one local server, which is not counted. They are measured after their
reset, at two sizes, each size in a new process; the difference is divided by the difference of the sizes. The
measure is the proportional set size (PSS) of the process and all its descendants: a page shared by several of
them counts once. Only Linux reports it.

``AsyncVectorEnv`` runs each environment in a child process; the start method is Python's default, which is
printed. Its ``shared_memory`` is off, because text requires that. One environment is played and closed first,
so that all modules are imported: forked children share them with their parent, so Python's own size does not
count against them.

Prints JSON: kilobytes for each added environment and the ratio. Run it with ``python benchmarks/memory.py``.
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
    """Make `number` environments, reset them, and print the used kilobytes."""
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
    """Return the ids of all descendants of a process."""
    parents = {}
    for status in Path("/proc").glob("[0-9]*/stat"):
        try:  # the name in parentheses may contain anything
            parents[int(status.parent.name)] = int(status.read_text("utf-8").rpartition(")")[2].split()[1])
        except (OSError, UnicodeDecodeError):
            continue  # the process has ended
    found = [process]
    for each in found:
        found += [child for child, parent in parents.items() if parent == each]
    return found[1:]


def measure(kind: str, number: int, url: str) -> int:
    """Return the kilobytes of `number` environments and their process."""
    command = [sys.executable, __file__, kind, str(number), url]
    output = subprocess.run(command, check=True, capture_output=True, text=True).stdout  # noqa: S603 - ourselves
    kilobytes: int = json.loads(output)
    return kilobytes


def main() -> None:
    """Measure both ways with one server."""
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
    if len(sys.argv) > 2:  # noqa: PLR2004 - a child process of this benchmark
        hold(sys.argv[1], int(sys.argv[2]), sys.argv[3])
    else:
        main()
