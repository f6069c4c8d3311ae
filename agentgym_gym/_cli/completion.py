"""Shell completion of environments, splits, agents and run folders.

Nothing here imports a module of the user or contacts a server, so the shell does not wait.
"""

from __future__ import annotations

import contextlib
import os
from collections import deque
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from agentgym_gym import local_servers
from agentgym_gym._cli.console import ARGUMENTS
from agentgym_gym.catalogue import BUILT_IN, environments, find
from agentgym_gym.errors import UnknownEnvironment
from agentgym_gym.evaluate._protocols.reading import PROTOCOLS
from agentgym_gym.evaluate._runs import EPISODES, TRAINING_EPISODES

if TYPE_CHECKING:
    from agentgym_gym.catalogue import Environment

__all__ = [
    "complete_agent",
    "complete_env",
    "complete_property",
    "complete_protocol",
    "complete_run",
    "complete_server",
    "complete_split",
]

_MOST_FOLDERS = 1_000
"""The number of folders to look into for runs, which bounds the time in a home folder."""

_DEPTH = 4
"""The depth below the working directory, or the folder on the command line, to look for runs."""

_REPLAY = "replay:"


def complete_env(incomplete: str) -> list[str]:
    """Return the names and ids of AgentGym's environments that begin with a word."""
    names = [name for each in BUILT_IN for name in (each.name, *each.aliases, *each.ids)]
    return [name for name in names if name.startswith(incomplete)]


def complete_server(incomplete: str) -> list[str]:
    """Return the names of local servers that begin with a word."""
    return [name for name in (*local_servers.servers(), local_servers.ALL) if name.startswith(incomplete)]


def complete_property(incomplete: str) -> list[str]:
    """Return the names of the properties of an audit that begin with a word."""
    from agentgym_gym.testing import PROPERTIES  # noqa: PLC0415 - its imports take as long as the others

    return [each.name for each in PROPERTIES if each.name.startswith(incomplete)]


def complete_protocol(incomplete: str) -> list[str]:
    """Return the names of protocols that begin with a word."""
    return [name for name in PROTOCOLS if name.startswith(incomplete)]


def complete_split(incomplete: str) -> list[str]:
    """Return the splits of the environments on the command line, or of all environments if there is none.

    With several environments, each split has the name of its environment, as in ``Maze=train``.
    """
    given = _given()
    names = [(each.name, split) for each in given or environments() for split in (*each.splits, *each.parts)]
    if len(given) > 1 or "=" in incomplete:
        words = [f"{name}={split}" for name, split in names]
    else:
        words = [split for _, split in names]
    return [word for word in dict.fromkeys(words) if word.startswith(incomplete)]


def complete_agent(incomplete: str) -> list[str]:
    """Return the built-in agents that begin with a word, or the runs that ``replay:`` may repeat."""
    if incomplete.startswith(_REPLAY):
        return [f"{_REPLAY}{run}" for run in complete_run(incomplete.removeprefix(_REPLAY))]
    given = _given()
    oracle = not given or any(each.oracle is not None for each in given)
    return [
        each
        for each in (*(["oracle", "oracle:thoughts"] * oracle), "random", _REPLAY)
        if each.startswith(incomplete)
    ]


def complete_run(incomplete: str) -> list[str]:
    """Return the folders of runs whose paths begin with a word, and the folders that contain several."""
    head, _, start = incomplete.rpartition("/")
    prefix = incomplete.removesuffix(start)
    root = Path(prefix or ".").expanduser()
    runs = [prefix + run for run in _runs_below(root, start)]
    parents = (run.rpartition("/")[0] for run in runs)
    several = [parent for parent in parents if parent.startswith(incomplete) and parent not in ("", head)]
    return sorted({*runs, *several})


def _given() -> list[Environment]:
    """Return AgentGym's environments among the words of the command."""
    found = []
    for word in ARGUMENTS.get():
        with contextlib.suppress(UnknownEnvironment):
            found.append(find(word.partition("=")[0]))
    return found


def _runs_below(root: Path, start: str) -> Iterator[str]:
    """Yield the relative paths of runs and trainings, those near the root first."""
    folders = deque((name, 1) for name in _subfolders(root) if name.startswith(start))
    for _ in range(_MOST_FOLDERS):
        if not folders:
            return
        folder, depth = folders.popleft()
        if (root / folder / EPISODES).is_file() or _holds(root / folder, TRAINING_EPISODES):
            yield folder
        elif depth < _DEPTH:
            folders.extend((f"{folder}/{name}", depth + 1) for name in _subfolders(root / folder))


def _holds(folder: Path, pattern: str) -> bool:
    return next(folder.glob(pattern), None) is not None


def _subfolders(folder: Path) -> Iterable[str]:
    try:
        with os.scandir(folder) as entries:
            return sorted(e.name for e in entries if not e.name.startswith(".") and e.is_dir())
    except OSError:
        return ()
