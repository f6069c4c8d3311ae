"""Kill and restart servers under a client, and have another process take its ids: nobody is harmed.

    python benchmarks/restarts.py --kills 200 --seed 0

Each round plays TextCraft or Maze, with the sync, the async or the vector environment, on a new server. At a
random moment the server is killed and restarted at its port, while the client sleeps between two calls, or
during one of its requests. Then another process, which plays other tasks with this library, makes
environments, and so gets the ids that the client has (``_restarts_other.py``). The client continues, and
closes. Then the server's state of the other process's environments must be the last one observed there, and
that process must be able to play to the end undisturbed.

Prints a table. The exit status is 1 if an environment of the other process was changed, or if an episode of
the client continued after a restart without a fault.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import random
import signal
import sys
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import numpy as np
from _common import free_port
from _restarts_other import EnvIds, observation_of, start

from agentgym_gym import AgentGymEnv, AgentGymVectorEnv, AsyncAgentGymEnv, errors
from agentgym_gym.local_servers import LocalServer

if TYPE_CHECKING:
    from multiprocessing.connection import Connection

    from agentgym_gym import Stats

NAMES, WAYS = ("TextCraft", "Maze"), ("sync", "async", "vector")
ACTIONS = {"TextCraft": ("get 1 egg", "inventory"), "Maze": ("move up", "move left", "move right")}
OURS = 2  # in the vector environment
ASLEEP, CLOSING = 0.5, 0.3  # shares of rounds: the client sleeps during the kill; it closes afterwards
AWAY = 0.2  # share of kills during a request in which the client continues before the server is back
COLUMNS = ("rounds", "idle", "waiting", "ids taken", "faulted", "no fault", "looks", "unnoticed", "harmed")


class ClientThread(threading.Thread):
    """Plays until `over` is set, sleeps now and then, and closes.

    Attributes:
        over: Set to make it close.
        awake: Cleared to make it sleep.
        asleep: Set while it sleeps.
        waiting: Whether it waits for a response of an environment.
        life: How often the server was restarted.
        unnoticed: Steps without a fault in episodes that started before the last restart of the server.
        stats: The counters; None before the end.
    """

    def __init__(self, name: str, way: str, url: str, chance: random.Random) -> None:
        super().__init__(daemon=True)
        self.over, self.awake, self.asleep = (threading.Event() for _ in range(3))
        self.awake.set()
        self.waiting, self.life, self.unnoticed = False, 0, 0
        self.stats: Stats | None = None
        self._name, self._way, self._url, self._chance = name, way, url, chance

    def run(self) -> None:
        """Play."""
        options: dict[str, Any] = {"server": self._url, "timeout": 20, "max_turns": 6}
        kind: Any = AgentGymEnv if self._way == "sync" else AsyncAgentGymEnv
        many = self._way == "vector"
        env: Any = AgentGymVectorEnv(OURS, self._name, **options) if many else kind(self._name, **options)
        with contextlib.closing(asyncio.new_event_loop()) as loop:

            def done(result: Any) -> Any:
                return loop.run_until_complete(result) if self._way == "async" else result

            # For each environment, the server's life in which its episode started; negative without an
            # episode.
            began = np.full(OURS if many else 1, -1)
            while not self.over.is_set():
                self.waiting = True
                with contextlib.suppress(errors.Fault):
                    if (starting := began < 0).any():
                        task = {"task_id": self._chance.randrange(10)}
                        done(env.reset(options={**task, "reset_mask": starting} if many else task))
                        began[starting] = self.life
                    life, action = self.life, f"Action: {self._chance.choice(ACTIONS[self._name])}"
                    _, _, *ends, info = done(env.step([action] * OURS if many else action))
                    faulted = np.atleast_1d(info.get("_fault", False) if many else "fault" in info)
                    self.unnoticed += int(((began < life) & ~faulted).sum())
                    began[np.atleast_1d(ends[0] | ends[1])] = -1
                self.waiting = False
                done(asyncio.to_thread(self._think)) if self._way == "async" else self._think()
            done(env.close())
            self.stats = env.stats

    def _think(self) -> None:
        time.sleep(self._chance.choice([0, 0, 0.02, 0.2]))
        if not self.awake.is_set():
            self.asleep.set()
            self.awake.wait(60)
            self.asleep.clear()


def kill(server: LocalServer, client: ClientThread, chance: random.Random) -> str:
    """Kill a server at a random moment; return the client's activity at that time."""
    time.sleep(chance.uniform(0.05, 0.6))
    asleep = chance.random() < ASLEEP
    if asleep:
        client.awake.clear()
        client.asleep.wait(60)
    elif server.process is not None:
        server.process.send_signal(signal.SIGSTOP)  # so that the next request gets no response
        time.sleep(0.05)
        while not client.waiting:
            time.sleep(0.01)
        time.sleep(chance.uniform(0.01, 0.05))
        if chance.random() >= AWAY:
            client.awake.clear()  # it sleeps after the failed request
    if chance.random() < CLOSING:
        client.over.set()  # it closes, immediately or when it wakes up
    server.stop()  # with SIGKILL
    return "idle" if asleep else "waiting"


def restart(server: LocalServer) -> LocalServer:
    """Stop a server, and start it again at its port."""
    server.stop()
    server.start()
    return server


def play_round(
    name: str, way: str, server: LocalServer, other: Connection, env_ids: EnvIds, chance: random.Random
) -> Counter[str]:
    """Play one round; return its counts.

    Raises:
        RuntimeError: The client hangs, or has failed.
    """
    env_ids.ids.clear()
    client = ClientThread(name, way, server.url, random.Random(chance.random()))  # noqa: S311 - not a secret
    client.start()
    counted = Counter({"rounds": 1, kill(server, client, chance): 1})
    ours = set(env_ids.ids)
    server.start()
    client.life += 1
    other.send(name)
    theirs = other.recv()
    client.awake.set()
    time.sleep(0.3)
    client.over.set()
    client.join(60)
    if client.stats is None:
        raise RuntimeError(f"{name}, {way}: the client hangs, or has failed")
    harms = [
        f"{i}: {text!r}"
        for i, last in theirs.items()
        if (text := observation_of(name, server.url, i)) != last
    ]
    other.send("finish")
    harms += other.recv()
    if harms:
        print(f"{name}, {way}: the other client was harmed: {harms}")
    counted["ids taken"] = bool(ours & set(theirs))
    counted["faulted" if client.stats.faults else "no fault"] = 1
    return counted + Counter(looks=client.stats.looks, unnoticed=client.unnoticed, harmed=bool(harms))


def main() -> int:
    """Run the rounds."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    chance = random.Random(arguments.seed)  # noqa: S311 - not a secret
    env_ids, table = EnvIds(), {(name, way): Counter[str]() for name in NAMES for way in WAYS}
    servers = {name: LocalServer(name, port=free_port()) for name in NAMES}
    other = start({name: server.start() for name, server in servers.items()})
    with ThreadPoolExecutor(1) as ahead:  # starts the next round's server during a round
        ready = ahead.submit(restart, servers[NAMES[0]])
        for number in range(arguments.kills):
            name, way = NAMES[number % 2], WAYS[number // 2 % 3]
            server = ready.result()
            ready = ahead.submit(restart, servers[NAMES[(number + 1) % 2]])
            table[name, way] += play_round(name, way, server, other, env_ids, chance)
    other.close()
    for server in servers.values():
        server.stop()
    total = sum(table.values(), Counter())
    print("| environment | client |", *(f"{column} |" for column in COLUMNS))
    print("|---" * (2 + len(COLUMNS)) + "|")
    for row, counted in {**table, ("all", ""): total}.items():
        print("|", " | ".join([*row, *(str(counted[column]) for column in COLUMNS)]), "|")
    return 1 if total["harmed"] or total["unnoticed"] else 0


if __name__ == "__main__":
    sys.exit(main())
