"""Kill and restart servers under clients that think, and hand their ids to somebody else: nobody is harmed.

    python benchmarks/restarts.py --kills 200 --seed 0

Each round plays TextCraft or Maze, by the sync, the async or the vector environment. At a random moment the
server is killed and started again at its port. Then somebody else, who speaks HTTP on his own, makes
as many environments as there are ids in use, starts a task in each and plays. When the client has gone on and
closed, each of those environments must show what its owner saw last. The exit status is 1 if one does not.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import random
import signal
import sys
import threading
import time
import urllib.request
from collections import Counter
from typing import Any

import numpy as np

from agentgym_gym import AgentGymEnv, AgentGymVectorEnv, AsyncAgentGymEnv, errors
from agentgym_gym.servers.local import LocalServer

OURS, THEIRS = 2, 4  # environments that we hold, and that the other makes
ASLEEP, CLOSING = 0.8, 0.3  # the shares of the rounds in which the client sleeps meanwhile, and closes then
ACTIONS = {"textcraft": "Action: inventory", "maze": "Action: move up"}
NAMES = {"textcraft": "TextCraft", "maze": "Maze"}


class Other:
    """Somebody else, who takes the first ids of a server that was restarted."""

    def __init__(self, kind: str, url: str) -> None:
        self.kind, self.base = kind, url + ("/maze" if kind == "maze" else "")
        self.seen: dict[int, str] = {}
        for number in range(THEIRS):
            env_id = self._ask("/create", {})["id"]
            task = {"data_idx": 300 + number} if kind == "textcraft" else {"game": 12 + number}
            self._ask("/reset", {"id": env_id, **task})
            action = "dance wildly" if kind == "textcraft" else "move nowhere"
            self.seen[env_id] = self._ask("/step", {"id": env_id, "action": action})["observation"]

    def harmed(self) -> list[int]:
        """Return the ids of the environments that do not show what was seen last."""
        return [
            env_id for env_id, seen in self.seen.items() if self._ask(f"/observation?id={env_id}") != seen
        ]

    def _ask(self, path: str, body: dict[str, Any] | None = None) -> Any:
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.base + path, data, {"Content-Type": "application/json"})  # noqa: S310 - our own
        with urllib.request.urlopen(request, timeout=30) as reply:  # noqa: S310 - our own
            return json.load(reply)


def restart(server: LocalServer, kind: str) -> LocalServer:
    """Kill a server with all it knows, and start it again at its port."""
    if server.process is not None:
        server.process.send_signal(signal.SIGKILL)
        server.process.wait()
    again = LocalServer(kind, port=int(server.url.rpartition(":")[2]))
    again.start()
    return again


class Moments:
    """When the client goes on, and when it is to close.

    Attributes:
        over: Set when it is to close.
        awake: Cleared while it thinks.
    """

    def __init__(self, chance: random.Random) -> None:
        self.over, self.awake = threading.Event(), threading.Event()
        self.awake.set()
        self._chance = chance

    def think(self) -> None:
        """Think for a random time, and for as long as it is not awake."""
        time.sleep(self._chance.choice([0, 0, 0.02, 0.2]))
        self.awake.wait(60)

    def task(self) -> int:
        """Return the next task."""
        return self._chance.randrange(10)


def play(kind: str, way: str, url: str, moments: Moments) -> Counter[str]:
    """Play on until it is over, thinking now and then; close; return the faults."""
    name = NAMES[kind]
    options: dict[str, Any] = {"server": url, "timeout": 20, "max_turns": 6}
    if way == "vector":
        return _vector(AgentGymVectorEnv(OURS, name, **options), kind, moments)
    loop = asyncio.new_event_loop()
    env: Any = (AgentGymEnv if way == "sync" else AsyncAgentGymEnv)(name, **options)

    def done(result: Any) -> Any:
        return loop.run_until_complete(result) if way == "async" else result

    playing = False
    while not moments.over.is_set():
        with contextlib.suppress(errors.Fault):
            if not playing:
                done(env.reset(options={"task_id": moments.task()}))
            _, _, terminated, truncated, _ = done(env.step(ACTIONS[kind]))
            playing = not (terminated or truncated)
        moments.think()
    done(env.close())
    loop.close()
    return Counter(env.stats.faults)


def _vector(envs: AgentGymVectorEnv, kind: str, moments: Moments) -> Counter[str]:
    mask = np.ones(OURS, dtype=bool)
    while not moments.over.is_set():
        with contextlib.suppress(errors.Fault):
            if mask.any():
                envs.reset(options={"task_id": moments.task(), "reset_mask": mask})
            mask = np.zeros(OURS, dtype=bool)
            _, _, terminated, truncated, _ = envs.step([ACTIONS[kind]] * OURS)
            mask = terminated | truncated
        moments.think()
    envs.close()
    return envs.stats.faults


def main() -> int:
    """Run the rounds."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    chance = random.Random(arguments.seed)  # noqa: S311 - no secret
    faults: Counter[str] = Counter()
    harmed = 0
    servers = {kind: LocalServer(kind) for kind in ACTIONS}
    for server in servers.values():
        server.start()
    for number in range(arguments.kills):
        kind, way = ("textcraft", "maze")[number % 2], ("sync", "async", "vector")[number // 2 % 3]
        url, told = servers[kind].url, []
        moments = Moments(random.Random(chance.random()))  # noqa: S311 - no secret
        client = threading.Thread(
            target=lambda: told.append(play(kind, way, url, moments)),  # noqa: B023 - it is joined
        )
        client.start()
        time.sleep(chance.uniform(0.05, 0.6))
        if chance.random() < ASLEEP:
            moments.awake.clear()  # else it goes on while there is no server
        if chance.random() < CLOSING:
            moments.over.set()  # it closes, at once or when it wakes up
        servers[kind] = restart(servers[kind], kind)
        other = Other(kind, url)
        moments.awake.set()
        time.sleep(0.3)
        moments.over.set()
        client.join(60)
        if not told:
            print(f"round {number} ({kind}, {way}): the client hangs, or has failed")
            return 1
        faults += told[0]
        for env_id in other.harmed():
            harmed += 1
            print(f"round {number} ({kind}, {way}): environment {env_id} of somebody else was changed")
    for server in servers.values():
        server.stop()
    print(f"{arguments.kills} kills, {harmed} environments of somebody else harmed; faults: {dict(faults)}")
    return 1 if harmed else 0


if __name__ == "__main__":
    sys.exit(main())
