"""Orphaned remote environments of killed processes: finds the ones that still exist, and closes them.

If a server assigns only increasing ids, a new id that is not greater than an old one proves that the server
was restarted in between, and lost its environments. Otherwise an id proves nothing.
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

__all__ = ["close_left", "newest_id", "release_left", "remove_lost", "run_on"]

T = TypeVar("T")

_SECONDS = 60.0  # per reply: closing may stop a browser
_ENDING_SECONDS = 10.0  # for the system to release the locks of a killed process


def release_left(
    pid: int,
    *,
    environment: str,
    server: str | Sequence[str] | None = None,
    headers: Mapping[str, str] | None = None,
    **_: Any,
) -> None:
    """Close the orphaned environments of a process; call it from another process right after its end.

    Only then is it safe without confirmation: the server cannot have assigned the ids to another client
    yet, unless it was restarted in between, which is checked if possible.

    Args:
        pid: The id of the ended process.
        environment: Name of its environment.
        server: Its option `server`; by default the variable of the environment.
        headers: Its option `headers`.
        **_: Its other options.

    Raises:
        AgentGymError: An option has an invalid value.
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
            logger.warning("environments of a killed process on %s stay open: %s", redact(server), fault)
            return
        counts["lost"] += sum(len(record.ids) for record in left)  # the environments are gone with the server
        for record in left:
            with record.claimed() as ours:
                for env_id in record.ids if ours else ():
                    record.remove(env_id)
    except Fault as fault:
        logger.warning("environments of a killed process on %s stay open: %s", redact(server), fault)
    logger.warning(
        "a killed process had left environments on %s: closed %d, unknown there %d, gone with the server %d",
        redact(server),
        counts["closed"],
        counts["refused"],
        counts["lost"],
    )


def newest_id(server: str, wire: Wire, headers: HiddenHeaders) -> int:
    """Create and close an environment; return its id.

    Raises:
        Fault: The server failed.
    """
    return run_on(server, _make_and_close(wire), headers)


def remove_lost(left: Collection[Record], names: Collection[str], newest: int | None) -> int:
    """Remove environments that were lost in a restart of the server from the records; return their number.

    This includes the records of other environments, whose server had this address before.

    Args:
        left: The records of ended processes.
        names: The environments that the server provides.
        newest: An id that the server has just assigned; None if it assigns none.
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
    """Close the orphaned environments of ended processes, except for ids leased by a running process.

    Args:
        server: The server.
        left: The records of the processes.
        headers: HTTP headers for the server.
        counts: Incremented for each environment: ``closed``, or ``refused`` if its id is unknown to the
            server.

    Raises:
        Fault: The server failed, and the rest is still open.
    """
    for record in left:
        wire = find(record.environment).wire
        with record.claimed() as ours:
            for env_id in list(record.ids) if ours else ():
                if not _held_by_running(server, env_id, but=record):
                    try:
                        run_on(server, wire.close(env_id), headers)
                        counts["closed"] += 1
                    except (ServerError, EnvironmentFailed):
                        counts["refused"] += 1  # the id is unknown, or the server cannot close it
                record.remove(env_id)


def run_on(server: str, flow: Flow[T], headers: HiddenHeaders) -> T:
    """Run a flow over a separate connection.

    Raises:
        Fault: The server failed.
    """
    limits = Limits(create=_SECONDS, reset=_SECONDS, close=_SECONDS)
    with contextlib.closing(SyncDriver(limits=limits, headers=headers)) as driver:
        return driver.run(at(server, flow))


def _held_by_running(server: str, env_id: int, *, but: Record) -> bool:
    """Return whether another running process has leased an id, as is possible after a server restart."""
    records = journal.records(server)
    return any(each.alive and env_id in each.ids for each in records if each.folder != but.folder)


def _make_and_close(wire: Wire) -> Flow[int]:
    env_id = yield from wire.create(0)
    yield from wire.close(env_id)
    return env_id
