"""Where each environment's server comes from, and what answers at a URL."""

from __future__ import annotations

import time
from dataclasses import dataclass
from http import HTTPStatus
from statistics import median
from typing import TYPE_CHECKING, Literal

from agentgym_gym.addresses import configured
from agentgym_gym.catalogue import environments
from agentgym_gym.client import SyncDriver
from agentgym_gym.errors import AgentGymError, BadOption, BadReply
from agentgym_gym.servers import local
from agentgym_gym.text import redact
from agentgym_gym.wire import Call, Flow, Reply, at

if TYPE_CHECKING:
    from agentgym_gym.catalogue import Environment

__all__ = ["Probe", "Source", "probe", "source_of"]

PING_SECONDS = 10.0
"""Seconds allowed for each reply."""

PINGS = 5
"""Requests whose time is taken, on a connection that is open already."""


@dataclass(frozen=True)
class Source:
    """Where an environment's server comes from.

    Attributes:
        kind: ``variable``, ``local`` (one is started when it is needed), ``none``, or ``invalid`` where the
            variable holds no URL.
        urls: What the variable names.
        note: In words.
    """

    kind: Literal["variable", "local", "none", "invalid"]
    urls: tuple[str, ...]
    note: str


def source_of(environment: Environment) -> Source:
    """Return where an environment's server comes from when no argument says it."""
    try:
        urls = configured(environment)
    except BadOption as error:
        return Source("invalid", (), str(error))
    if urls:
        return Source("variable", urls, ", ".join(map(redact, urls)))
    if environment.local_server is None:
        return Source("none", (), f"none; set {environment.variable}")
    missing = local.available(environment.local_server)
    if missing is not None:
        return Source("none", (), f"none; set {environment.variable}. {missing}")
    return Source("local", (), "local, started when needed")


@dataclass(frozen=True)
class Probe:
    """What answers at a URL.

    Attributes:
        url: The URL, without a password.
        answers: What it says at its root, or None where nothing came.
        environments: Ids of the environments whose servers say that.
        round_trip_ms: Median time of a request on an open connection, in milliseconds.
        problem: What is wrong, or None.
    """

    url: str
    answers: str | None = None
    environments: tuple[str, ...] = ()
    round_trip_ms: float | None = None
    problem: str | None = None


def probe(url: str, wanted: Environment | None = None) -> Probe:
    """Ask a server who it is.

    Args:
        url: Its base URL.
        wanted: The environment that it should be; any one will do by default.
    """
    driver = SyncDriver(timeout=PING_SECONDS)
    try:
        reply = driver.run(at(url, _root()))
        times = [_seconds(driver, url) for _ in range(PINGS)]
    except AgentGymError as error:
        return Probe(redact(url), problem=str(error))
    finally:
        driver.close()
    said = _greeting(reply)
    found = tuple(e.id for e in environments() if reply.status == HTTPStatus.OK and e.wire.greeting == said)
    problem = None
    if wanted is not None and wanted.id not in found:
        problem = f"not {wanted.name}: it says {said}"
    elif not found:
        problem = f"none of the environments known here: it says {said}"
    return Probe(redact(url), said, found, round(median(times) * 1000, 3), problem)


def _root() -> Flow[Reply]:
    return (yield Call("identify", "GET", "/"))


def _seconds(driver: SyncDriver, url: str) -> float:
    began = time.perf_counter()
    driver.run(at(url, _root()))
    return time.perf_counter() - began


def _greeting(reply: Reply) -> str:
    """Return what a server says of itself; where it is not a plain text, status and beginning of the body."""
    try:
        said = reply.json()
    except BadReply:
        said = None
    if reply.status == HTTPStatus.OK and isinstance(said, str):
        return said
    return f"HTTP {reply.status} {reply.excerpt}"
