"""Where each environment's server comes from, and what answers at a URL."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import TYPE_CHECKING, Literal

from agentgym_gym import local_servers
from agentgym_gym._addresses import configured
from agentgym_gym._headers import HiddenHeaders, configured_headers
from agentgym_gym._http.limits import Limits
from agentgym_gym._http.sync_driver import SyncDriver
from agentgym_gym._text import redact
from agentgym_gym.calls import Call, Flow, Reply, at
from agentgym_gym.catalogue import environments
from agentgym_gym.errors import AgentGymError, BadOption, NoServer, WrongServer
from agentgym_gym.wire import SERVER_HEADER, greeting_of

if TYPE_CHECKING:
    from agentgym_gym.catalogue import Environment

__all__ = ["Probe", "ServerSource", "headers_for", "probe", "require_server", "source_of"]

PING_SECONDS = 10.0
"""Seconds allowed for each reply."""

PINGS = 5
"""Requests whose time is taken, on a connection that is open already."""


@dataclass(frozen=True)
class ServerSource:
    """Where an environment's server comes from.

    Attributes:
        kind: ``variable``, ``local`` (one is started when it is needed), ``none``, or ``invalid`` where a
            variable does not hold URLs or headers.
        urls: What the variable names.
        note: In words.
    """

    kind: Literal["variable", "local", "none", "invalid"]
    urls: tuple[str, ...]
    note: str


def source_of(environment: Environment) -> ServerSource:
    """Return where an environment's server comes from when no argument says it."""
    try:
        urls = configured(environment)
        configured_headers(environment)
    except BadOption as error:
        return ServerSource("invalid", (), str(error))
    if urls:
        return ServerSource("variable", urls, ", ".join(map(redact, urls)))
    if environment.local_server is None:
        return ServerSource("none", (), f"none; set {environment.variable}")
    missing = local_servers.available(environment.local_server)
    if missing is not None:
        return ServerSource("none", (), f"none; set {environment.variable}. {missing}")
    return ServerSource("local", (), "local, started when needed")


@dataclass(frozen=True)
class Probe:
    """What answers at a URL.

    Attributes:
        url: The URL, without a password.
        answers: What it says at its root, or None where nothing came.
        served_by: Which of this project's own servers it says it is; None for any other.
        environments: The environments whose servers answer like that.
        round_trip_ms: Median time of a request on an open connection, in milliseconds.
        problem: What is wrong, or None.
    """

    url: str
    answers: str | None = None
    served_by: str | None = None
    environments: tuple[Environment, ...] = ()
    round_trip_ms: float | None = None
    problem: str | None = None

    @property
    def ambiguous(self) -> bool:
        """Whether it can be but one of the environments, and nothing it says tells which."""
        calls = [next(environment.wire.reset(0, 0)) for environment in self.environments]
        return len({call.path for call in calls}) < len(calls)


def probe(url: str, wanted: Environment | None = None, headers: Mapping[str, str] | None = None) -> Probe:
    """Ask a server who it is.

    Args:
        url: Its base URL.
        wanted: The environment that it should be; any one will do by default.
        headers: HTTP headers to send, beside those of `headers_for`.
    """
    try:
        driver = SyncDriver(limits=Limits.of(PING_SECONDS), headers=headers_for(url, wanted, headers))
    except AgentGymError as error:
        return Probe(redact(url), problem=str(error))
    try:
        reply = driver.run(at(url, _root()))
        said, served_by = greeting_of(reply, plain=True), reply.headers.get(SERVER_HEADER)
        times = [_seconds(driver, url) for _ in range(PINGS)]
        found = tuple(e for e in environments() if _answers(driver, url, e))
    except AgentGymError as error:
        return Probe(redact(url), problem=str(error))
    finally:
        driver.close()
    problem = None
    if wanted is not None and wanted not in found:
        problem = f"not {wanted.name}: it says {said}"
    elif not found:
        problem = f"none of the environments known here: it says {said}"
    return Probe(redact(url), said, served_by, found, round(median(times) * 1000, 3), problem)


def require_server(
    environment: Environment, servers: Sequence[str], headers: Mapping[str, str]
) -> list[Probe]:
    """Return what answers; tell of a mistyped address now, and not by a folder full of faults.

    Args:
        environment: What is to be played.
        servers: Base URLs, of which one must answer.
        headers: HTTP headers to send.

    Raises:
        NoServer: No server is there, or it is another environment's.
    """
    probes = [probe(server, environment, headers) for server in servers]
    if all(found.problem for found in probes):
        told = "; ".join(f"{found.url}: {found.problem}" for found in probes)
        raise NoServer(f"there is no {environment.name} to play on: {told}")
    return probes


def headers_for(
    url: str, wanted: Environment | None = None, given: Mapping[str, str] | None = None
) -> HiddenHeaders:
    """Return the HTTP headers for a server.

    Args:
        url: Its base URL.
        wanted: The environment whose variable is read; by default those that are configured to use this URL.
        given: What was given by the user, which replaces headers of the same name.

    Raises:
        BadOption: A variable does not hold headers.
    """
    headers = HiddenHeaders(given or {})
    if wanted is not None:
        return configured_headers(wanted, headers)
    for environment in environments():
        with contextlib.suppress(BadOption):  # of a URL that is none, which is not this one
            if url in configured(environment):
                headers = headers.over(configured_headers(environment))
    return headers


def _answers(driver: SyncDriver, url: str, environment: Environment) -> bool:
    try:
        driver.run(at(url, environment.wire.identify()))
    except WrongServer:
        return False
    return True


def _root() -> Flow[Reply]:
    return (yield Call("identify", "GET", "/"))


def _seconds(driver: SyncDriver, url: str) -> float:
    began = time.perf_counter()
    driver.run(at(url, _root()))
    return time.perf_counter() - began
