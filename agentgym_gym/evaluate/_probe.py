"""Probes the server at a URL: what it serves, who made it, and how long a request takes."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from http import HTTPStatus
from statistics import median
from typing import TYPE_CHECKING, Literal

from agentgym_gym._addresses import configured
from agentgym_gym._headers import HiddenHeaders, configured_headers
from agentgym_gym._http.limits import Limits
from agentgym_gym._http.sync_driver import SyncDriver
from agentgym_gym._text import redact
from agentgym_gym.calls import Call, Flow, Reply, at
from agentgym_gym.catalogue import environments
from agentgym_gym.errors import AgentGymError, ArgumentName, BadOption, NoServer, WrongServer
from agentgym_gym.evaluate._world import is_agentgyms, world_label
from agentgym_gym.wire import SERVER_HEADER, greeting_of

if TYPE_CHECKING:
    from agentgym_gym.catalogue import Environment

__all__ = ["Probe", "headers_for", "probe", "require_one_world", "require_server"]

PING_SECONDS = 10.0
"""The timeout of each request, in seconds."""

PINGS = 5
"""The number of requests to time, on an open connection."""


@dataclass(frozen=True)
class Probe:
    """The result of probing a server.

    Attributes:
        url: The URL, without a password.
        answers: The text that the server returns at its root path; None if there was no response.
        served_by: The header in which this project's servers report their name and world; None for others.
        made_by: ``local`` for this project's servers, ``agentgym`` for a server that its description shows to
            be AgentGym's; None if unknown.
        environments: The environments that this server may serve, judging by its responses.
        round_trip_ms: Median time of a request on an open connection, in milliseconds.
        mounted: The URLs of the servers below this one, by name, if it is ``agentgym serve all``.
        problem: A description of the problem; None if there is none.
    """

    url: str
    answers: str | None = None
    served_by: str | None = None
    made_by: Literal["local", "agentgym"] | None = None
    environments: tuple[Environment, ...] = ()
    round_trip_ms: float | None = None
    mounted: Mapping[str, str] = field(default_factory=dict)
    problem: str | None = None

    @property
    def world(self) -> str:
        """The label of the server's world."""
        return world_label(self.served_by, agentgym=self.made_by == "agentgym")

    @property
    def ambiguous(self) -> bool:
        """Whether the server serves one of several environments and its responses do not show which one."""
        calls = [next(environment.wire.reset(0, 0)) for environment in self.environments]
        return len({call.path for call in calls}) < len(calls)


def probe(url: str, expected: Environment | None = None, headers: Mapping[str, str] | None = None) -> Probe:
    """Identify the server at a URL and measure its round-trip time.

    Args:
        url: Base URL of the server.
        expected: The environment that the server should serve; any by default.
        headers: HTTP headers to send, in addition to the result of `headers_for`.
    """
    try:
        driver = SyncDriver(limits=Limits.of(PING_SECONDS), headers=headers_for(url, expected, headers))
    except AgentGymError as error:
        return Probe(redact(url), problem=str(error))
    try:
        reply = driver.run(at(url, _get("/")))
        greeting, served_by = greeting_of(reply, plain=True), reply.headers.get(SERVER_HEADER)
        times = [_seconds(driver, url) for _ in range(PINGS)]
        found = [(environment, _base(driver, url, environment)) for environment in environments()]
        bases = [(environment, base) for environment, base in found if base is not None]
        matches = tuple(environment for environment, _ in bases)
        made_by = _maker(driver, served_by, bases)
    except AgentGymError as error:
        return Probe(redact(url), problem=str(error))
    finally:
        driver.close()
    mounted = {name: f"{redact(url)}/{name}" for name in _mounted(reply)}
    problem = None
    if expected is not None and expected not in matches:
        problem = f"not {expected.name}: its root answers {greeting}"
        if expected.name.lower() in mounted:
            problem = f"not only {expected.name}: use {mounted[expected.name.lower()]}"
    elif not matches and not mounted:
        problem = f"no environment of the catalogue: its root answers {greeting}"
    seconds = median(times)
    milliseconds = round(seconds * 1000, 3)
    return Probe(redact(url), greeting, served_by, made_by, matches, milliseconds, mounted, problem)


def require_server(
    environment: Environment, servers: Sequence[str], headers: Mapping[str, str]
) -> list[Probe]:
    """Probe the servers of an environment, to report a mistyped address before any episode fails.

    Args:
        environment: The environment.
        servers: Base URLs; at least one of them must serve the environment.
        headers: HTTP headers to send.

    Returns:
        The probe of each server.

    Raises:
        NoServer: No server responds, or all of them serve other environments.
    """
    probes = [probe(server, environment, headers) for server in servers]
    if all(result.problem for result in probes):
        problems = "; ".join(f"{result.url}: {result.problem}" for result in probes)
        raise NoServer(
            f"no server of {environment.name} is available: {problems}; start it, or give another server by ",
            ArgumentName("server"),
        )
    return probes


def require_one_world(probes: Sequence[Probe]) -> None:
    """Check that the servers of a run do not have different known worlds.

    Raises:
        BadOption: They do; the message names two of them.
    """
    known = {result.world: result.url for result in probes if not result.problem and result.made_by}
    if len(known) > 1:
        first, other, *_ = (f"{url} has {world}" for world, url in known.items())
        raise BadOption(
            f"the servers have different worlds, whose scores are not averaged: {first}, and {other}; "
            "evaluate each in a separate run"
        )


def headers_for(
    url: str, environment: Environment | None = None, headers: Mapping[str, str] | None = None
) -> HiddenHeaders:
    """Return the HTTP headers for a server.

    Args:
        url: Base URL of the server.
        environment: The environment whose variable to read; by default, all environments configured with this
            URL.
        headers: Headers from the user, which replace headers of the same name.

    Raises:
        BadOption: A variable does not contain valid headers.
    """
    own = HiddenHeaders(headers or {})
    if environment is not None:
        return configured_headers(environment, own)
    for candidate in environments():
        with contextlib.suppress(BadOption):  # an invalid URL, which cannot be this one
            if url in configured(candidate):
                own = own.over(configured_headers(candidate))
    return own


def _base(driver: SyncDriver, url: str, environment: Environment) -> str | None:
    """Return the base URL at which a server serves an environment; None if it does not."""
    for base in environment.wire.base_urls(url):
        with contextlib.suppress(WrongServer):
            driver.run(at(base, environment.wire.identify()))
            return base
    return None


def _maker(
    driver: SyncDriver, served_by: str | None, bases: Sequence[tuple[Environment, str]]
) -> Literal["local", "agentgym"] | None:
    """Return who made a server, judging by its header and its OpenAPI description."""
    if served_by is not None:
        return "local"
    for environment, base in bases:
        with contextlib.suppress(AgentGymError):
            reply = driver.run(at(base, _get("/openapi.json")))
            if reply.status == HTTPStatus.OK and is_agentgyms(environment.name, reply.json()):
                return "agentgym"
    return None


def _mounted(reply: Reply) -> list[str]:
    """Return the names of the servers below this one, from its response at the root."""
    try:
        names = reply.json()["servers"]
    except (AgentGymError, KeyError, TypeError):
        return []
    return [name for name in names if isinstance(name, str)] if isinstance(names, list) else []


def _get(path: str) -> Flow[Reply]:
    return (yield Call("identify", "GET", path))


def _seconds(driver: SyncDriver, url: str) -> float:
    began = time.perf_counter()
    driver.run(at(url, _get("/")))
    return time.perf_counter() - began
