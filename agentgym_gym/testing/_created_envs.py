"""Track the remote environments that a server created, as seen by a proxy."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

__all__ = ["Created", "Journal"]

_NAMES = ("id", "env_idx")  # keys of the id in replies that are not a bare number


@dataclass
class Created:
    """A remote environment.

    Attributes:
        id: The id. It is unique at most among environments of the same path between two restarts.
        path: The path of the request that created it, such as ``/create``.
        life: The number of server restarts before it was created.
        reply_sent: Whether the proxy sent the whole reply to a client that was still connected. A client
            that gives up at that moment may not have read it.
        close_requested: Whether the client sent a close request, even if it did not reach the server.
        closed: Whether the server answered a close request with HTTP 200.
    """

    id: int
    path: str
    life: int
    reply_sent: bool = False
    close_requested: bool = False
    closed: bool = False


class Journal:
    """The remote environments that were created, in order. Not thread-safe.

    Attributes:
        created: All environments.
        life: The number of server restarts so far.
    """

    def __init__(self) -> None:
        self.created: list[Created] = []
        self.life = 0
        self._by_id: dict[tuple[int, str, int], Created] = {}

    def note_created(self, path: str, content: bytes) -> Created | None:
        """Record a reply to a create request; return None if the reply has no id."""
        env_id = _id_in(content)
        if env_id is None:
            return None
        made = Created(env_id, path.partition("?")[0], self.life)
        self.created.append(made)
        self._by_id[self.life, _prefix(path), env_id] = made
        return made

    def note_close_request(self, path: str, content: bytes) -> Created | None:
        """Record a close request and return its environment; None if the environment is unknown."""
        env_id = _id_in(content)
        made = None if env_id is None else self._by_id.get((self.life, _prefix(path), env_id))
        if made is not None:
            made.close_requested = True
        return made


def _prefix(path: str) -> str:
    """Return a path without its last segment: a server may serve two games, each with its own ids."""
    return path.partition("?")[0].rpartition("/")[0]


def _id_in(content: bytes) -> int | None:
    """Return the id in a message, which is a number or an object that contains it."""
    try:
        value: Any = json.loads(content)
    except (ValueError, RecursionError):
        return None
    if isinstance(value, dict) and "error" not in value:
        value = next((value[name] for name in _NAMES if name in value), None)
    return value if isinstance(value, int) and not isinstance(value, bool) else None
