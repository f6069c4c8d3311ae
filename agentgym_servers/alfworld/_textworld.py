"""ALFWorld's own games: finds them in the user's folder, and plays them in child processes by TextWorld.

Each process plays the games of some of the environments.
"""

from __future__ import annotations

import asyncio
import contextlib
import importlib.util
import itertools
import json
import logging
import os
import sys
import weakref
from pathlib import Path
from typing import Any

from agentgym_gym.envs.alfworld import ALFWORLD
from agentgym_gym.errors import BadOption, MissingExtra
from agentgym_servers._frame.app import CannotJudge, Failed
from agentgym_servers.alfworld._game import MAX_STEPS, HouseTurn

__all__ = ["OfficialGames", "TextWorldGame", "games_of"]

logger = logging.getLogger("agentgym_servers")

_GAME_FILE = "game.tw-pddl"
_DATA = "json_2.1.1"
_SPLITS = ("train", "valid_seen", "valid_unseen")
_UNPLAYABLE = ("movable", "Sliced")  # ALFWorld leaves out the games whose folders are named so

_WORKER = Path(__file__).with_name("_textworld_worker.py")
_WAIT_SECONDS = 120.0  # for one response, on a busy machine; starting a process included
_MAX_RESPONSE_BYTES = 1 << 24
_ENDED = "The process that played this game has ended: reset the environment."
_AT_LOCATION = "You arrive at loc "


def games_of(folder: Path) -> dict[int, Path]:
    """Return the files of ALFWorld's games by task id.

    The ids of ``train``, ``test_seen`` and ``test_unseen`` play the first games of ALFWorld's folders
    ``train``, ``valid_seen`` and ``valid_unseen``. Each of these folders also has ids for all of its games.
    The games are in the order of their paths.

    Args:
        folder: ALFWorld's folder of data, or its folder ``json_2.1.1``.

    Raises:
        BadOption: The folder has no games.
    """
    root = folder / _DATA if (folder / _DATA).is_dir() else folder
    files = {split: _files(root / split) for split in _SPLITS}
    if not any(files.values()):
        where = ", ".join(str(root / split) for split in _SPLITS)
        raise BadOption(f"there is no {_GAME_FILE} below any of {where}; give ALFWorld's folder of data")
    games: dict[int, Path] = {}
    for split, selections in {
        "train": ("train", "official_train"),
        "valid_seen": ("test_seen", "valid_seen"),
        "valid_unseen": ("test_unseen", "valid_unseen"),
    }.items():
        for selection in selections:
            games.update(zip(ALFWORLD.split(selection), files[split], strict=False))
    return games


def _files(folder: Path) -> list[Path]:
    return [
        file
        for file in sorted(folder.rglob(_GAME_FILE))
        if not any(word in part for part in file.parent.parts for word in _UNPLAYABLE)
        and '"solvable": false' not in file.read_text("utf-8")
    ]


class _Child:
    """A process that plays games; it starts on first use, and again after it has ended."""

    def __init__(self) -> None:
        self._turn = asyncio.Lock()
        self._process: asyncio.subprocess.Process | None = None
        self._games: set[int] = set()  # of the running process
        self._dropped: list[int] = []

    async def exchange(self, game: int, **request: str) -> dict[str, Any]:
        """Send a request about a game and return the response.

        Raises:
            Failed: TextWorld failed, or the process has ended.
        """
        async with self._turn:
            process = await self._started()
            if "path" in request:
                self._games.add(game)
            elif game not in self._games:
                raise Failed(_ENDED)
            dropped, self._dropped = self._dropped, []
            line = json.dumps({"game": game, "drop": dropped, **request}).encode("ascii") + b"\n"
            response = await self._response(process, line)
        if "error" in response:
            raise Failed(response["error"])
        return response

    def drop(self, game: int) -> None:
        """Delete a game before the next request."""
        self._dropped.append(game)

    async def _started(self) -> asyncio.subprocess.Process:
        if self._process is None or self._process.returncode is not None:
            self._games, self._dropped = set(), []
            self._process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-I", str(_WORKER)),
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.DEVNULL,
                limit=_MAX_RESPONSE_BYTES,
                start_new_session=True,  # Ctrl-C in a terminal is for the server, whose end ends this process
            )
        return self._process

    async def _response(self, process: asyncio.subprocess.Process, line: bytes) -> dict[str, Any]:
        if process.stdin is None or process.stdout is None:
            raise Failed(_ENDED)
        response = b""
        try:
            process.stdin.write(line)
            with contextlib.suppress(OSError):
                await process.stdin.drain()
                response = await asyncio.wait_for(process.stdout.readline(), _WAIT_SECONDS)
        except asyncio.TimeoutError:
            logger.warning("a game of ALFWorld took more than %g s, and its process was ended", _WAIT_SECONDS)
        if not response.endswith(b"\n"):
            with contextlib.suppress(ProcessLookupError):
                process.kill()
            await process.wait()
            raise Failed(_ENDED)
        answered: dict[str, Any] = json.loads(response)
        return answered


def _check_judged(task_id: int, state: dict[str, Any]) -> None:
    if state["won"] is None:
        raise CannotJudge(task_id, "TextWorld does not report whether its goal is reached")


class TextWorldGame:
    """One game in play.

    Args:
        child: The process that plays it.
        number: Its number there.
        task_id: The task.
        last: The first observation.

    Attributes:
        last: The result of the last action; before the first action, the first observation.
    """

    def __init__(self, child: _Child, number: int, task_id: int, last: HouseTurn) -> None:
        self._child = child
        self._number = number
        self._task_id = task_id
        self._steps = 0
        self.last = last
        weakref.finalize(self, child.drop, number)

    async def play(self, action: str) -> HouseTurn:
        """Play one action, which may be any text.

        Raises:
            CannotJudge: TextWorld does not report whether the game is won.
            Failed: TextWorld failed, or its process has ended.
        """
        state = await self._child.exchange(self._number, action=action)
        _check_judged(self._task_id, state)
        self._steps += 1
        observation = state["observation"]
        if observation.startswith(_AT_LOCATION):
            observation = observation.partition(". ")[2]
        done = state["won"] or self._steps >= MAX_STEPS
        self.last = HouseTurn(observation, tuple(state["available_actions"]), float(state["won"]), done)
        return self.last


class OfficialGames:
    """The games of a folder of ALFWorld's data.

    Args:
        folder: The folder.
        count: The number of processes; None for the number of processors, but at most eight.

    Raises:
        MissingExtra: TextWorld is not installed.
        BadOption: The folder has no games.
    """

    def __init__(self, folder: Path, count: int | None = None) -> None:
        for module in ("textworld", "fast_downward"):
            if importlib.util.find_spec(module) is None:
                raise MissingExtra("playing ALFWorld's own games", extra="servers-alfworld", module=module)
        self._games = games_of(folder)
        self._children = [_Child() for _ in range(count or min(8, os.cpu_count() or 1))]
        self._numbers = itertools.count()

    async def start(self, env_id: int, task_id: int) -> tuple[str, TextWorldGame]:
        """Start a game; return its name and the game.

        Args:
            env_id: The environment; its games are all played in one process.
            task_id: The id.

        Raises:
            CannotJudge: TextWorld does not report whether the game is won.
            Failed: There is no game of this id, TextWorld failed, or its process has ended.
        """
        path = self._games.get(task_id)
        if path is None:
            raise Failed("There is no such game in the folder of this server.")
        number, child = next(self._numbers), self._children[env_id % len(self._children)]
        state = await child.exchange(number, path=str(path))
        _check_judged(task_id, state)
        # The first paragraph is TextWorld's greeting.
        observation = "\n".join(state["observation"].split("\n\n")[1:])
        game = TextWorldGame(
            child, number, task_id, HouseTurn(observation, tuple(state["available_actions"]))
        )
        return "/".join(path.parts[-3:-1]), game
