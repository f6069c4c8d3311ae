"""The remote environments a server made, and what became of them, as a proxy sees it."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

__all__ = ["Created", "Journal"]

_NAMES = ("id", "env_idx")  # what servers call the id, where their reply is not the bare number


@dataclass
class Created:
    """A remote environment.

    Attributes:
        id: Its id, unique among those of one path in one life of a server at most.
        path: The path by which it was made, such as ``/create``.
        life: How often the server had been restarted when it was made.
        told: Whether the client was sent the whole reply while it still listened. A client that gives up at
            that moment may not have read it.
        asked: Whether the client sent a request to close it, even if that did not arrive.
        closed: Whether a request to close it arrived and was answered by HTTP 200.
    """

    id: int
    path: str
    life: int
    told: bool = False
    asked: bool = False
    closed: bool = False


class Journal:
    """The remote environments that were made, in order. Used in one thread.

    Attributes:
        created: All of them.
        life: How often the server has been restarted.
    """

    def __init__(self) -> None:
        self.created: list[Created] = []
        self.life = 0
        self._by_id: dict[tuple[int, str, int], Created] = {}

    def note_created(self, path: str, content: bytes) -> Created | None:
        """Note an answer to a request to create; None where it names no id."""
        env_id = _id_in(content)
        if env_id is None:
            return None
        made = Created(env_id, path.partition("?")[0], self.life)
        self.created.append(made)
        self._by_id[self.life, _prefix(path), env_id] = made
        return made

    def note_asked(self, path: str, content: bytes) -> Created | None:
        """Note a request to close, and return what it is to close; None where that is not known."""
        env_id = _id_in(content)
        made = None if env_id is None else self._by_id.get((self.life, _prefix(path), env_id))
        if made is not None:
            made.asked = True
        return made


def _prefix(path: str) -> str:
    """Return a path without its last word: one server may serve two games, each with ids of its own."""
    return path.partition("?")[0].rpartition("/")[0]


def _id_in(content: bytes) -> int | None:
    """Return the id that a message carries, which is a number or an object with one."""
    try:
        value: Any = json.loads(content)
    except (ValueError, RecursionError):
        return None
    if isinstance(value, dict) and "error" not in value:
        value = next((value[name] for name in _NAMES if name in value), None)
    return value if isinstance(value, int) and not isinstance(value, bool) else None
