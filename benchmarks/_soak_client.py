"""The soak's client, in a process of its own: many workers in one event loop, each with an environment.

Prints a line of JSON each time that another twentieth of the episodes is over, and one at its end. What
became of each episode goes to a file, so that the memory of this process is that of the library.
"""

from __future__ import annotations

import asyncio
import gc
import json
import logging
import os
import sys
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
REST = 1.0  # seconds that a worker waits when nobody is there, as a rollout would
ANEW = 16  # every so many-th worker makes an environment for each episode
SAMPLES = 20


class Tries(logging.Handler):
    """Counts by the log why something was tried again, which the library's own counters do not say.

    Attributes:
        retried: What was tried again, by the kind of fault.
        unreached: Tries that found nobody there.
        late: Requests to close an environment whose id came when nobody waited for it any more. They are sent
            by a thread, and are in the counters of no environment.
    """

    def __init__(self) -> None:
        super().__init__(logging.DEBUG)
        self.retried: Counter[str] = Counter()
        self.unreached = self.late = 0

    def emit(self, record: logging.LogRecord) -> None:
        """Count, if it says that something failed."""
        facts = vars(record).get("agentgym", {})
        late = record.threadName == "agentgym-late"
        self.late += late and facts.get("event") in {"retry", "lease released"}
        if facts.get("event") not in {"retry", "fault"}:
            return
        unreached = "could not connect" in facts["message"]
        self.unreached += unreached
        if facts["event"] == "retry" and not late:
            refused = "answered HTTP" in facts["message"]
            kind = "ServerUnreachable" if unreached else "ServerError" if refused else "ConnectionLost"
            self.retried[kind] += 1


class Client:
    """The workers, and what they see.

    Args:
        server: URL of the proxy.
        episodes: How many in all.
        seed: The seed of the soak.
        outcomes: Where it is written what became of each.
    """

    def __init__(self, server: str, episodes: int, seed: int, outcomes: TextIO) -> None:
        self._server = server
        self._episodes = episodes
        self._numbers: Iterator[int] = iter(range(episodes))
        self._seed = seed
        self._outcomes = outcomes
        self._over = 0
        self._kept: list[AsyncAgentGymEnv] = []
        self.stats = Stats()  # of environments that were closed
        self.seen: dict[str, Counter[str]] = {
            name: Counter() for name in ("step", "reset", "got_over", "close")
        }
        self.uncounted = 0  # calls after which the counters did not say what was seen

    async def work(self, worker: int) -> None:
        """Play episodes until there are none left."""
        env = None
        for number in self._numbers:
            env = env or AsyncAgentGymEnv("TextCraft", server=self._server, timeout=LIMITS)
            outcome = await self.play(env, number)
            self._outcomes.write(json.dumps(outcome) + "\n")
            if worker % ANEW == 0:
                await self.close(env)
                env = None
            self._over += 1
            if self._over % max(1, self._episodes // SAMPLES) == 0:
                gc.collect()
                say(over=self._over, rss=rss(), blocks=sys.getallocatedblocks())
            if outcome.get("fault") == "ServerUnreachable":
                await asyncio.sleep(REST)
        if env is not None:
            self._kept.append(env)

    async def play(self, env: AsyncAgentGymEnv, number: int) -> dict[str, Any]:
        """Play an episode; return what became of it."""
        player = Player(cast("gymnasium.Env[str, Any]", env), self._seed, number)
        before = env.stats.copy()
        try:
            observation, info = await env.reset(options={"task_id": player.task_id})
        except Fault as fault:
            self.check("reset", env, before, fault.kind)
            return {"episode": number, "fault": fault.kind, "at": "reset"}
        self.check("reset", env, before, None)
        player.begin(observation, info)
        while not player.over and (reply := player.say()) is not None:
            before = env.stats.copy()
            turn = await env.step(reply)
            player.append_reply(reply, *turn)
            self.check("step", env, before, player.fault["kind"] if player.fault else None)
        if player.fault:
            return {"episode": number, "fault": player.fault["kind"], "at": "step"}
        return player.outcome()

    def check(self, what: str, env: AsyncAgentGymEnv, before: Stats, fault: str | None) -> None:
        """Hold what the counters say of a reset or a step against what was seen of it.

        A fault that was seen is counted once. What else is counted was got over, which a step never does.
        """
        counted = env.stats.since(before).faults
        if fault is not None:
            self.seen[what][fault] += 1
            counted[fault] -= 1
        if min(counted.values(), default=0) < 0 or (what == "step" and any(counted.values())):
            self.uncounted += 1
        self.seen["got_over"] += counted

    async def close(self, env: AsyncAgentGymEnv) -> None:
        """Close an environment. That it cannot be given back is counted, and nobody is told."""
        before = env.stats.copy()
        await env.close()
        failed = env.stats.since(before).faults
        self.seen["close"] += failed
        if failed:
            self._kept.append(env)  # and closed once more, as it would be at exit
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


def say(**what: Any) -> None:
    """Print a line of JSON."""
    print(json.dumps(what), flush=True)


async def main(server: str, episodes: int, concurrent: int, seed: int, outcomes: TextIO) -> None:
    """Play all episodes, close all environments when told to, and print what was counted."""
    tries = Tries()
    logger = logging.getLogger("agentgym_gym")
    logger.setLevel(logging.DEBUG)
    logger.addHandler(tries)
    logger.propagate = False
    client = Client(server, episodes, seed, outcomes)
    await asyncio.gather(*(client.work(number) for number in range(concurrent)))
    outcomes.flush()
    say(played=True)
    await asyncio.to_thread(sys.stdin.readline)  # until the proxy is quiet
    await client.close_all()
    say(
        stats=client.stats.as_dict(),
        seen=client.seen,
        uncounted=client.uncounted,
        late=tries.late,
        retried=tries.retried,
        unreached=tries.unreached,
    )


if __name__ == "__main__":
    _, url, *numbers, file = sys.argv
    count, many, chosen = map(int, numbers)
    with Path(file).open("w", encoding="ascii") as lines:
        asyncio.run(main(url, count, many, chosen, lines))
