"""The other client of ``restarts.py``, in its own process, which uses this library too.

When it receives the name of an environment, it makes some and starts a task in each. When it receives
``go on``, it plays them to the end of a script, and compares every result with that of the same task and the
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

__all__ = ["ENVIRONMENTS", "HeldIds", "shown", "start"]

ENVIRONMENTS = 3  # more than the other client has
TASKS = {"TextCraft": 300, "Maze": 12}  # the first task numbers; the other client plays others
BEGINNINGS = {"TextCraft": ["get 1 bone", "get 2 string"], "Maze": ["move left"]}
# A step of another client would show in the inventory, or in the fifty-first step, which fails the game.
ENDS = {
    "TextCraft": ["inventory", "get 1 feather", "inventory"],
    "Maze": ["move right", "move left"] * 25,
}


class HeldIds(logging.Handler):
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


class Player:
    """Plays one task by a script.

    Args:
        name: The environment.
        server: Base URL of the server.
        number: Index of the task.

    Attributes:
        heard: The results of the reset and of each step.
    """

    def __init__(self, name: str, server: str, number: int) -> None:
        self.env = AgentGymEnv(name, server=server, max_turns=None)
        self.heard: list[Any] = [self.env.reset(options={"task_id": TASKS[name] + number})]
        self._play(BEGINNINGS[name])
        self.faults_before = self.env.stats.faults.total()

    def go_on(self) -> None:
        """Play to the end of the script."""
        self._play(ENDS[self.env.environment.name])

    def _play(self, actions: list[str]) -> None:
        for action in actions:
            if len(self.heard) == 1 or self.env.playing:
                self.heard.append(tuple(self.env.step(f"Action: {action}")))


def start(servers: Mapping[str, str]) -> Connection:
    """Start the process; return the connection for its commands, once it is ready.

    Args:
        servers: The URLs of new servers, by the names of the environments.
    """
    context = multiprocessing.get_context("spawn")
    ours, its = context.Pipe()
    context.Process(target=_serve, args=(its, dict(servers)), daemon=True).start()
    its.close()
    ours.recv()
    return ours


def shown(name: str, url: str, env_id: int) -> Any:
    """Return the observation of an environment on the server."""
    prefix, query = "/maze" if name == "Maze" else "", urllib.parse.urlencode({"id": env_id})
    with urllib.request.urlopen(f"{url}{prefix}/observation?{query}", timeout=30) as reply:  # noqa: S310 - our own
        return json.load(reply)


def _serve(told: Connection, servers: dict[str, str]) -> None:
    held = HeldIds()
    expected = {name: _undisturbed(name, servers[name]) for name in servers}
    told.send("ready")
    while True:
        try:
            name = told.recv()
        except EOFError:
            return
        players = [Player(name, servers[name], number) for number in range(ENVIRONMENTS)]
        # The last observation of each environment, by id.
        told.send({env_id: player.heard[-1][0] for env_id, player in zip(held.ids, players, strict=True)})
        told.recv()  # go on
        harms = []
        for number, player in enumerate(players):
            player.go_on()
            faults = player.env.stats.faults.total() - player.faults_before
            for turn, (heard, due) in enumerate(zip(player.heard, expected[name][number], strict=False)):
                if heard != due:
                    harms.append(f"its task {number}, turn {turn}: {heard} and not {due}")
                    break
            else:
                if faults or len(player.heard) != len(expected[name][number]):
                    harms.append(f"its task {number}: {player.env.stats.faults}, {len(player.heard)} turns")
            player.env.close()
        told.send(harms)


def _undisturbed(name: str, server: str) -> list[list[Any]]:
    """Return the results of each task on an undisturbed server."""
    heard = []
    for number in range(ENVIRONMENTS):
        player = Player(name, server, number)
        player.go_on()
        player.env.close()
        heard.append(player.heard)
    return heard
