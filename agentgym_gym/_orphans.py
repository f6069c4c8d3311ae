"""Remote environments that a process left open when it was killed: which may still be there; closing them.

Where a server gives out ids that only grow, a new id that is not greater than an old one says that the server
was restarted in between, and lost what it held. Beyond that, an id proves nothing.
"""

from __future__ import annotations

import contextlib
import time
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from agentgym_gym._addresses import configured
from agentgym_gym._headers import configured_headers
from agentgym_gym._http.limits import Limits
from agentgym_gym._http.sync_driver import SyncDriver
from agentgym_gym._leasing import journal
from agentgym_gym._logging import logger
from agentgym_gym._text import redact
from agentgym_gym.calls import at
from agentgym_gym.catalogue import find
from agentgym_gym.errors import EnvironmentFailed, Fault, ServerError, ServerUnreachable

if TYPE_CHECKING:
    from agentgym_gym._headers import HiddenHeaders
    from agentgym_gym._leasing.journal import Record
    from agentgym_gym.calls import Flow
    from agentgym_gym.wire import Wire

__all__ = ["ask", "close_left", "newest_id", "release_left", "remove_lost"]

T = TypeVar("T")

_SECONDS = 60.0  # for each reply: to close may be to end a browser
_ENDING_SECONDS = 10.0  # in which the system releases the locks of a process that was killed


def release_left(
    pid: int,
    *,
    environment: str,
    server: str | Sequence[str] | None = None,
    headers: Mapping[str, str] | None = None,
    **_: Any,
) -> None:
    """Close what a process that has ended left open. To be called in another process, right after the end.

    Only then may it be done without asking: nobody else can have been given those ids yet, unless the server
    was restarted meanwhile, which is looked at as far as it can be.

    Args:
        pid: The id of the process that has ended.
        environment: Name of the environment that it played.
        server: Its option `server`; by default what the variable of the environment names.
        headers: Its option `headers`.
        **_: Its other options.

    Raises:
        AgentGymError: An option has a value it cannot have.
    """
    known = find(environment)
    if not known.wire.closes:
        return
    hidden = configured_headers(known, headers)
    for url in configured(known, server):
        left = _left_by(pid, url, known.name)
        if left:
            _release(url, left, known.wire, hidden)


def _left_by(pid: int, server: str, name: str) -> list[Record]:
    deadline = time.monotonic() + _ENDING_SECONDS
    while True:
        own = [
            record for record in journal.records(server) if record.pid == pid and record.environment == name
        ]
        if not any(record.alive for record in own) or time.monotonic() > deadline:
            return [record for record in own if record.ids and not record.alive]
        time.sleep(0.05)


def _release(server: str, left: list[Record], wire: Wire, headers: HiddenHeaders) -> None:
    counts: Counter[str] = Counter()
    try:
        newest = newest_id(server, wire, headers)
        counts["lost"] = remove_lost(left, {record.environment for record in left}, newest)
        close_left(server, left, headers, counts)
    except ServerUnreachable as fault:
        if not fault.refused:
            logger.warning("what a killed process left on %s stays open: %s", redact(server), fault)
            return
        counts["lost"] += sum(len(record.ids) for record in left)  # the server is gone, and they with it
        for record in left:
            with record.claimed() as ours:
                for env_id in record.ids if ours else ():
                    record.remove(env_id)
    except Fault as fault:
        logger.warning("what a killed process left on %s stays open: %s", redact(server), fault)
    logger.warning(
        "a killed process had left environments on %s: closed %d, unknown there %d, gone with the server %d",
        redact(server),
        counts["closed"],
        counts["refused"],
        counts["lost"],
    )


def newest_id(server: str, wire: Wire, headers: HiddenHeaders) -> int:
    """Make an environment and close it; return its id.

    Raises:
        Fault: The server did not do its part.
    """
    return ask(server, _make_and_close(wire), headers)


def remove_lost(left: Collection[Record], names: Collection[str], newest: int | None) -> int:
    """Remove from the records what the server lost by a restart; return how many.

    The records of another environment, whose server was at this address before, are removed, too.

    Args:
        left: The records of ended processes.
        names: The environments that the server serves.
        newest: An id that it gave out just now; None where it gives none.
    """
    made_before = [
        made
        for record in left
        for env_id, made in record.ids.items()
        if newest is not None and env_id >= newest
    ]
    restarted = max(made_before, default=0.0)  # at that time or later
    gone = 0
    for record in left:
        for env_id, made in list(record.ids.items()):
            if record.environment not in names or made <= restarted:
                record.remove(env_id)
                del record.ids[env_id]
                gone += 1
    return gone


def close_left(server: str, left: Collection[Record], headers: HiddenHeaders, counts: Counter[str]) -> None:
    """Close what ended processes left, except for what a running process holds by now.

    Args:
        server: The server.
        left: The records of those processes.
        headers: HTTP headers for it.
        counts: Counts what was ``closed``, and what was ``refused`` since the server did not know it.

    Raises:
        Fault: The server failed, and the rest is left.
    """
    for record in left:
        wire = find(record.environment).wire
        with record.claimed() as ours:
            for env_id in list(record.ids) if ours else ():
                if not _held_by_running(server, env_id, but=record):
                    try:
                        ask(server, wire.close(env_id), headers)
                        counts["closed"] += 1
                    except (ServerError, EnvironmentFailed):
                        counts["refused"] += 1  # it does not know the id, or cannot close it
                record.remove(env_id)


def ask(server: str, flow: Flow[T], headers: HiddenHeaders) -> T:
    """Carry out a flow by a connection of its own.

    Raises:
        Fault: The server did not do its part.
    """
    limits = Limits(create=_SECONDS, reset=_SECONDS, close=_SECONDS)
    with contextlib.closing(SyncDriver(limits=limits, headers=headers)) as driver:
        return driver.run(at(server, flow))


def _held_by_running(server: str, env_id: int, *, but: Record) -> bool:
    """Return whether another process, which runs, holds an id: after a restart of the server it may."""
    records = journal.records(server)
    return any(each.alive and env_id in each.ids for each in records if each.folder != but.folder)


def _make_and_close(wire: Wire) -> Flow[int]:
    env_id = yield from wire.create(0)
    yield from wire.close(env_id)
    return env_id
