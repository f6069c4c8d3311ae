"""The other client of ``restarts.py``, in its own process, which uses this library too.

When it receives the name of an environment, it makes some and starts a task in each. When it receives
``finish``, it plays them to the end of a script, and compares every result with that of the same task and the
same actions on a server that was never killed.
"""

from __future__ import annotations

import json
import logging
import multiprocessing
import urllib.parse
import urllib.request
from typing import TYPE_CHECKING, Any

from agentgym_gym import AgentGymEnv

if TYPE_CHECKING:
    from collections.abc import Mapping
    from multiprocessing.connection import Connection

__all__ = ["ENVIRONMENTS", "EnvIds", "observation_of", "start"]

ENVIRONMENTS = 3  # more than the other client has
TASKS = {"TextCraft": 300, "Maze": 12}  # the first task numbers; the other client plays others
BEGINNINGS = {"TextCraft": ["get 1 bone", "get 2 string"], "Maze": ["move left"]}
# A step of another client would show in the inventory, or in the fifty-first step, which fails the game.
ENDS = {
    "TextCraft": ["inventory", "get 1 feather", "inventory"],
    "Maze": ["move right", "move left"] * 25,
}


class EnvIds(logging.Handler):
    """Collects the ids of this process's remote environments from the library's log.

    Attributes:
        ids: The ids, in the order of their creation.
    """

    def __init__(self) -> None:
        super().__init__(logging.DEBUG)
        self.ids: list[int] = []
        logger = logging.getLogger("agentgym_gym")
        logger.setLevel(logging.DEBUG)
        logger.propagate = False
        logger.addHandler(self)

    def emit(self, record: logging.LogRecord) -> None:
        """Add created ids, and remove released ones."""
        facts = vars(record).get("agentgym", {})
        if facts.get("event") == "lease made":
            self.ids.append(facts["env_id"])
        elif facts.get("event") in {"lease lost", "lease released"} and facts["env_id"] in self.ids:
            self.ids.remove(facts["env_id"])


class ScriptPlayer:
    """Plays one task by a script.

    Args:
        name: The environment.
        server: Base URL of the server.
        number: Index of the task.

    Attributes:
        results: The results of the reset and of each step.
    """

    def __init__(self, name: str, server: str, number: int) -> None:
        self.env = AgentGymEnv(name, server=server, max_turns=None)
        self.results: list[Any] = [self.env.reset(options={"task_id": TASKS[name] + number})]
        self._play(BEGINNINGS[name])
        self.faults_before = self.env.stats.faults.total()

    def finish(self) -> None:
        """Play to the end of the script."""
        self._play(ENDS[self.env.environment.name])

    def _play(self, actions: list[str]) -> None:
        for action in actions:
            if len(self.results) == 1 or self.env.playing:
                self.results.append(tuple(self.env.step(f"Action: {action}")))


def start(servers: Mapping[str, str]) -> Connection:
    """Start the process; return the connection for its commands, once it is ready.

    Args:
        servers: The URLs of new servers, by the names of the environments.
    """
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    context.Process(target=_serve, args=(theirs, dict(servers)), daemon=True).start()
    theirs.close()
    ours.recv()
    return ours


def observation_of(name: str, url: str, env_id: int) -> Any:
    """Return the observation of an environment on the server."""
    prefix, query = "/maze" if name == "Maze" else "", urllib.parse.urlencode({"id": env_id})
    with urllib.request.urlopen(f"{url}{prefix}/observation?{query}", timeout=30) as reply:  # noqa: S310 - our own
        return json.load(reply)


def _serve(commands: Connection, servers: dict[str, str]) -> None:
    ids = EnvIds()
    expected = {name: _expected(name, servers[name]) for name in servers}
    commands.send("ready")
    while True:
        try:
            name = commands.recv()
        except EOFError:
            return
        players = [ScriptPlayer(name, servers[name], number) for number in range(ENVIRONMENTS)]
        # The last observation of each environment, by id.
        commands.send(
            {env_id: player.results[-1][0] for env_id, player in zip(ids.ids, players, strict=True)}
        )
        commands.recv()  # finish
        harms = []
        for number, player in enumerate(players):
            player.finish()
            faults = player.env.stats.faults.total() - player.faults_before
            for turn, (result, due) in enumerate(zip(player.results, expected[name][number], strict=False)):
                if result != due:
                    harms.append(f"its task {number}, turn {turn}: {result} and not {due}")
                    break
            else:
                if faults or len(player.results) != len(expected[name][number]):
                    harms.append(f"its task {number}: {player.env.stats.faults}, {len(player.results)} turns")
            player.env.close()
        commands.send(harms)


def _expected(name: str, server: str) -> list[list[Any]]:
    """Return the results of each task on an undisturbed server."""
    results = []
    for number in range(ENVIRONMENTS):
        player = ScriptPlayer(name, server, number)
        player.finish()
        player.env.close()
        results.append(player.results)
    return results
