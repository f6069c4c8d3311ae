"""A step of ALFWorld's local server beside the same games played by TextWorld, which AgentGym's server uses.

The games are written in ALFWorld's format from tasks of the generated world, and served by ``--data``. The
oracle plays a task on the one server, and its replies are then repeated on the other; the servers take turns,
so that other load on the machine slows both. A step is from the request to the response.

Prints JSON: milliseconds and the ratio. Run it with ``python benchmarks/household.py``, with the extra
``servers-alfworld``; without it, it prints that it was skipped.
"""

from __future__ import annotations

import asyncio
import importlib
import importlib.util
import statistics
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

from _common import at_least, ratios, report, usually

from agentgym_gym import AsyncAgentGymEnv, find
from agentgym_gym.evaluate import EpisodeRecord, evaluate_async, load_oracle
from agentgym_gym.local_servers import LocalServer
from agentgym_gym.testing import ScriptedAgent

TASKS = list(range(2420, 2420 + usually(20, quick=2)))
BAR = 10


@contextmanager
def textworld_server(folder: Path) -> Iterator[str]:
    """Serve the games of a folder; yield the URL."""
    command = (
        sys.executable,
        "-m",
        "agentgym_servers",
        "alfworld",
        "--exit-with-parent",
        "--data",
        str(folder),
    )
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as server:  # noqa: S603
        if server.stdin is None or server.stdout is None:
            raise RuntimeError("the server has no pipes")
        yield server.stdout.readline().rpartition(" ")[2].strip()
        server.stdin.close()


def played(url: str, agent: Callable[[], object], task: int) -> EpisodeRecord:
    """Play one task."""
    env = partial(AsyncAgentGymEnv, "ALFWorld", server=url, timeout=120)
    (record,) = asyncio.run(evaluate_async(env, agent, [task], concurrency=1))  # type: ignore[arg-type]
    if not record.success:
        raise RuntimeError(f"task {task} was not won: {record.fault}")
    return record


def main() -> None:
    """Play the same games on both servers."""
    if importlib.util.find_spec("textworld") is None:
        report(benchmark="household", skipped="textworld is not installed: the extra servers-alfworld")
        return
    sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "support"))
    games = importlib.import_module("household_games")
    server = LocalServer("alfworld")
    with TemporaryDirectory() as folder:
        official = games.write_games(Path(folder), TASKS)
        try:
            ours_url = server.start()
            with textworld_server(Path(folder)) as theirs_url:
                ours, theirs = [], []
                for task in TASKS:
                    record = played(ours_url, partial(load_oracle, find("ALFWorld")), task)
                    ours.append(_step_ms(record))
                    again = played(theirs_url, partial(ScriptedAgent, *record.replies), official[task])
                    theirs.append(_step_ms(again))
        finally:
            server.stop()
    report(
        benchmark="household",
        step_ms=round(statistics.median(ours), 3),
        textworld_step_ms=round(statistics.median(theirs), 3),
        beside_textworld=at_least(ratios(theirs, ours), BAR),
    )


def _step_ms(record: EpisodeRecord) -> float:
    return 1000 * statistics.median(step["env_seconds"] for step in record.steps)


if __name__ == "__main__":
    main()
