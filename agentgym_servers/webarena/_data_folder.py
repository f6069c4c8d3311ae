"""A user's own sites and tasks: WebArena's task files, and a file with the addresses of the sites.

The folder contains task files of WebArena's schema: ``test.raw.json`` or any other ``*.json`` file with a
list of tasks, or one file for each task, such as ``config_files/0.json``. ``sites.json`` has the address of
each placeholder: ``{"__SHOPPING__": "http://localhost:7770"}``. The browser reaches these addresses only, and
others that a list has: ``"allow": ["https://tiles.example.org"]``. Files with cookies that tasks name in
``storage_state`` are relative to the folder.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agentgym_gym.errors import BadOption
from agentgym_servers._browser.wall import address_of
from agentgym_servers._frame.data_files import read_user_json
from agentgym_servers.webarena._page_functions import FUNCTIONS, called_function
from agentgym_servers.webarena._sites.addresses import REAL, Addresses
from agentgym_servers.webarena._task import WebArenaTask

if TYPE_CHECKING:
    from agentgym_servers.webarena._sites.state import SiteState

__all__ = ["SITES_FILE", "DataWorld"]

SITES_FILE = "sites.json"
"""The file with the addresses."""

_ALLOW = "allow"
_LOOPBACK = ("localhost", "127.0.0.1", "::1")  # names of the same machine

_SETTLE_SECONDS = 1.5  # as AgentGym's server waits after a reset and after each action, including stop
_CHECK_SECONDS = 3.0  # as WebArena waits after a check has opened a page
_NEEDED = ("task_id", "sites", "intent", "start_url", "eval")
_KINDS = {"string_match", "url_match", "program_html"}


class DataWorld:
    """The tasks of a folder.

    Args:
        folder: The folder.

    Attributes:
        allowed: The hosts and ports that the browser may reach.

    Raises:
        BadOption: A file is missing or has the wrong form.
    """

    def __init__(self, folder: Path) -> None:
        self.addresses, self.allowed = _addresses(folder / SITES_FILE)
        self.settle_seconds, self.check_seconds = _SETTLE_SECONDS, _CHECK_SECONDS
        self._tasks: dict[int, WebArenaTask] = {}
        for path, written in _written(folder):
            task = self._task(folder, path, written)
            number: int = written["task_id"]
            if number in self._tasks:
                raise BadOption(f"{path}: task {number} occurs twice; remove one of them")
            self._tasks[number] = task
        if not self._tasks:
            raise BadOption(f"{folder} has no tasks; put task files of WebArena's schema (*.json) into it")

    def task(self, task_id: int) -> WebArenaTask:
        """Return a task.

        Raises:
            LookupError: There is no such task.
        """
        if task_id not in self._tasks:
            raise LookupError(f"there is no task {task_id}")
        return self._tasks[task_id]

    def fresh_state(self, task: WebArenaTask) -> SiteState | None:
        """Return None: the sites are the user's, and keep an episode's changes."""
        return None

    def _task(self, folder: Path, path: Path, written: dict[str, Any]) -> WebArenaTask:
        missing = [name for name in _NEEDED if name not in written]
        if missing or not isinstance(written.get("task_id"), int):
            raise BadOption(f"{path}: a task lacks {', '.join(missing) or 'a number as task_id'}")
        name = f"{path}: task {written['task_id']}"
        check = self.addresses.fill_all(written["eval"])
        checked = json.dumps(check)
        _check_evaluation(name, check)
        start = self.addresses.fill(written["start_url"])
        unknown = [each for each in REAL if each in start or each in checked]
        if unknown:
            raise BadOption(f"{name} needs the address of {unknown[0]}; add it to {SITES_FILE}")
        storage = written.get("storage_state")
        stored = folder / storage if storage else None
        if stored is not None and not stored.is_file():
            raise BadOption(
                f"{name} needs the cookies of {stored}; write them there, or remove storage_state"
            )
        return WebArenaTask(
            tuple(written["sites"]),
            written["intent"],
            tuple(start.split(" |AND| ")),
            check,
            storage=stored,
            template=str(written.get("intent_template_id", "")),
        )


def _addresses(path: Path) -> tuple[Addresses, frozenset[tuple[str, int]]]:
    """Return the addresses of a file, and the hosts and ports that they allow.

    Raises:
        BadOption: The file has the wrong form.
    """
    known = read_user_json(path) if path.is_file() else {}
    more = known.pop(_ALLOW, []) if isinstance(known, dict) else []
    if not isinstance(known, dict) or not all(isinstance(each, str) for each in known.values()):
        raise BadOption(f"{path} should map placeholders such as __SHOPPING__ to addresses")
    if not isinstance(more, list) or not all(isinstance(each, str) for each in more):
        raise BadOption(f"{path}: {_ALLOW} should be a list of addresses such as https://example.org")
    allowed = set()
    for each in (*known.values(), *more):
        try:
            host, port = address_of(each)
        except ValueError as error:
            raise BadOption(f"{path}: {each!r} is not an address such as http://localhost:7770") from error
        allowed |= {(name, port) for name in (_LOOPBACK if host in _LOOPBACK else (host,))}
    return Addresses({name: address.rstrip("/") for name, address in known.items()}), frozenset(allowed)


def _written(folder: Path) -> Iterator[tuple[Path, dict[str, Any]]]:
    """Yield each task with its file.

    Raises:
        BadOption: The folder does not exist, or a file has the wrong form.
    """
    if not folder.is_dir():
        raise BadOption("data", str(folder), "a folder with task files of WebArena's schema")
    for path in sorted([*folder.glob("*.json"), *folder.glob("config_files/*.json")]):
        if path.name == SITES_FILE:
            continue
        written = read_user_json(path)
        for each in written if isinstance(written, list) else [written]:
            if not isinstance(each, dict):
                raise BadOption(f"{path} should have a task or a list of tasks, as in WebArena's files")
            yield path, each


def _check_evaluation(name: str, check: Any) -> None:
    kinds = check.get("eval_types") if isinstance(check, dict) else None
    if not kinds or not isinstance(kinds, list) or not all(each in _KINDS for each in map(str, kinds)):
        raise BadOption(f"{name}: eval_types is {kinds}; it should be some of {', '.join(sorted(_KINDS))}")
    for target in check.get("program_html") or ():
        texts = (target.get("url"), target.get("locator")) if isinstance(target, dict) else ()
        for text in filter(None, map(called_function, texts)):
            if text.partition("(")[0] not in FUNCTIONS:
                raise BadOption(
                    f"{name} calls func:{text:.80}; the functions are {', '.join(sorted(FUNCTIONS))}"
                )
