"""The soak's client, in its own process: many workers in one event loop, each with an environment.

It prints a line of JSON after each twentieth of the episodes, and one at its end. The outcome of each episode
goes to a file, so that the memory of this process is that of the library.
"""

from __future__ import annotations

import asyncio
import gc
import json
import logging
import os
import sys
import threading
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO, cast

from _soak_player import Player

from agentgym_gym import AsyncAgentGymEnv, Stats
from agentgym_gym.errors import Fault

if TYPE_CHECKING:
    import gymnasium

LIMITS = {"connect": 2.0, "create": 2.0, "reset": 2.0, "step": 2.0, "close": 2.0}
PAUSE = 1.0  # seconds that a worker waits after a failed reset, as a rollout would: the server may be down
FRESH_EVERY = 16  # every 16th worker makes an environment for each episode
SAMPLES = 20
LATE = "agentgym-late"
"""The name of the threads that read late replies."""
LATE_SECONDS = 20.0
LOST = ("neither used nor closed", "was restarted meanwhile")
"""How the message of a lease ends that was lost: a check failed, and no request to close it was sent."""


class RetryCounter(logging.Handler):
    """Counts retries by their reason in the log; the library's own counters do not have it.

    Attributes:
        retried: Retries, by the kind of fault.
        unreached: Tries that could not connect.
        late: Requests to close an environment whose id arrived after its caller had given up, and to check it
            before. A thread sends them, and no environment's counters include them.
    """

    def __init__(self) -> None:
        super().__init__(logging.DEBUG)
        self.retried: Counter[str] = Counter()
        self.unreached = self.late = 0

    def emit(self, record: logging.LogRecord) -> None:
        """Count the record if it reports a failure."""
        facts = vars(record).get("agentgym", {})
        late = record.threadName == LATE
        self.late += late and facts.get("event") in {"retry", "lease released", "lease checked"}
        if late and facts.get("event") == "lease not closed":
            self.late -= facts["message"].endswith(LOST)
        if facts.get("event") not in {"retry", "fault"}:
            return
        unreached = "could not connect" in facts["message"]
        self.unreached += unreached
        if facts["event"] == "retry" and not late:
            refused = "answered HTTP" in facts["message"]
            kind = "ServerUnreachable" if unreached else "ServerError" if refused else "ConnectionLost"
            self.retried[kind] += 1


class Client:
    """The workers, and their counts.

    Args:
        server: URL of the proxy.
        episodes: Total number of episodes.
        seed: The seed of the soak.
        outcomes: The file for the outcomes.
    """

    def __init__(self, server: str, episodes: int, seed: int, outcomes: TextIO) -> None:
        self._server = server
        self._episodes = episodes
        self._numbers: Iterator[int] = iter(range(episodes))
        self._seed = seed
        self._outcomes = outcomes
        self._over = 0
        self._kept: list[AsyncAgentGymEnv] = []
        self.stats = Stats()  # of closed environments
        self.seen: dict[str, Counter[str]] = {
            name: Counter() for name in ("step", "reset", "recovered", "close")
        }
        self.uncounted = 0  # calls after which the counters differ from the observed faults

    async def work(self, worker: int) -> None:
        """Play episodes until there are none left."""
        env = None
        for number in self._numbers:
            env = env or AsyncAgentGymEnv("TextCraft", server=self._server, timeout=LIMITS)
            outcome = await self.play(env, number)
            self._outcomes.write(json.dumps(outcome) + "\n")
            if worker % FRESH_EVERY == 0:
                await self.close(env)
                env = None
            self._over += 1
            if self._over % max(1, self._episodes // SAMPLES) == 0:
                gc.collect()
                print_line(over=self._over, rss=rss(), blocks=sys.getallocatedblocks())
            if outcome.get("at") == "reset":
                await asyncio.sleep(PAUSE)
        if env is not None:
            self._kept.append(env)

    async def play(self, env: AsyncAgentGymEnv, number: int) -> dict[str, Any]:
        """Play an episode; return its outcome."""
        player = Player(cast("gymnasium.Env[str, Any]", env), self._seed, number)
        before = env.stats.copy()
        try:
            observation, info = await env.reset(options={"task_id": player.task_id})
        except Fault as fault:
            self.check("reset", env, before, fault.kind)
            return {"episode": number, "fault": fault.kind, "at": "reset"}
        self.check("reset", env, before, None)
        player.begin(observation, info)
        while not player.over and (reply := player.next_reply()) is not None:
            before = env.stats.copy()
            turn = await env.step(reply)
            player.append_reply(reply, *turn)
            self.check("step", env, before, player.fault["kind"] if player.fault else None)
        if player.fault:
            return {"episode": number, "fault": player.fault["kind"], "at": "step"}
        return player.outcome()

    def check(self, stage: str, env: AsyncAgentGymEnv, before: Stats, fault: str | None) -> None:
        """Compare the counters of a reset or a step with the fault that it raised.

        That fault is counted once. All other counts are of recovered faults, which a step never has.
        """
        counted = env.stats.since(before).faults
        if fault is not None:
            self.seen[stage][fault] += 1
            counted[fault] -= 1
        if min(counted.values(), default=0) < 0 or (stage == "step" and any(counted.values())):
            self.uncounted += 1
        self.seen["recovered"] += counted

    async def close(self, env: AsyncAgentGymEnv) -> None:
        """Close an environment; a failed release is only counted."""
        before = env.stats.copy()
        await env.close()
        failed = env.stats.since(before).faults
        self.seen["close"] += failed
        if failed:
            self._kept.append(env)  # to be closed again, as at exit
        else:
            self.stats.add(env.stats)

    async def close_all(self) -> None:
        """Close the environments that are kept."""
        while self._kept:
            await self.close(self._kept.pop())


def rss() -> int:
    """Return the resident memory of this process, in kilobytes."""
    pages = int(Path("/proc/self/statm").read_text("ascii").split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") // 1024


def print_line(**values: Any) -> None:
    """Print a line of JSON."""
    print(json.dumps(values), flush=True)


async def main(server: str, episodes: int, concurrent: int, seed: int, outcomes: TextIO) -> None:
    """Play all episodes, close all environments on command, and print the counts."""
    retries = RetryCounter()
    logger = logging.getLogger("agentgym_gym")
    logger.setLevel(logging.DEBUG)
    logger.addHandler(retries)
    logger.propagate = False
    client = Client(server, episodes, seed, outcomes)
    await asyncio.gather(*(client.work(number) for number in range(concurrent)))
    outcomes.flush()
    print_line(played=True)
    await asyncio.to_thread(sys.stdin.readline)  # until the proxy is quiet
    await client.close_all()
    for thread in threading.enumerate():
        if thread.name == LATE:  # at exit the library waits for them too
            await asyncio.to_thread(thread.join, LATE_SECONDS)
    print_line(
        stats=client.stats.as_dict(),
        seen=client.seen,
        uncounted=client.uncounted,
        late=retries.late,
        retried=retries.retried,
        unreached=retries.unreached,
    )


if __name__ == "__main__":
    _, url, *numbers, file = sys.argv
    count, many, chosen = map(int, numbers)
    with Path(file).open("w", encoding="ascii") as lines:
        asyncio.run(main(url, count, many, chosen, lines))
