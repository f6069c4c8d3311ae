"""Runs the calls of a flow, without I/O: time limits, retries and the backoff between them.

A driver only sends one request, reads one reply, and waits. The synchronous and the asynchronous driver do so
in their own ways, and behave alike because everything else is here.
"""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Generator
from concurrent.futures import Future
from dataclasses import dataclass, replace
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

from agentgym_gym._backoff import backoff, retry_after_seconds
from agentgym_gym._logging import log
from agentgym_gym._text import redact
from agentgym_gym.calls import Call, InThread, MaybeRestarted, Reply, WaitForFuture, WaitingFlow
from agentgym_gym.errors import (
    AccessDenied,
    ArgumentName,
    ConnectionLost,
    Fault,
    ServerError,
    ServerTimeout,
    ServerUnreachable,
)

if TYPE_CHECKING:
    from agentgym_gym._http.limits import Limits, Stats

__all__ = [
    "IOFlow",
    "Pause",
    "Send",
    "may_repeat",
    "retry_after",
    "with_retries",
]

T = TypeVar("T")

_RETRIES = 2
_BACKOFF = 0.1  # seconds before the first retry, doubled for each further one
_JITTER = (0.5, 1.5)
_LONGEST = 1e6  # seconds; the longest wait for a server, regardless of the limits

# The server did not process the request: too many requests, or no capacity.
_NOT_PROCESSED = frozenset({HTTPStatus.TOO_MANY_REQUESTS, HTTPStatus.SERVICE_UNAVAILABLE})
_DENIED: dict[int, str] = {
    HTTPStatus.UNAUTHORIZED: "the server, or a gateway before it,",
    HTTPStatus.FORBIDDEN: "the server, or a gateway before it,",
    HTTPStatus.PROXY_AUTHENTICATION_REQUIRED: "a proxy",
}


@dataclass(frozen=True)
class Send:
    """An operation for the driver: send a call and return the reply, or throw the fault.

    Attributes:
        call: The call.
        deadline: The time by which the reply must be complete, on `time.monotonic`.
        connect: The part of that time allowed for opening a connection, in seconds.
    """

    call: Call
    deadline: float
    connect: float

    @property
    def left(self) -> float:
        """Seconds to the deadline, at least a millisecond."""
        return max(0.001, self.deadline - time.monotonic())


@dataclass(frozen=True)
class Pause:
    """An operation for the driver: wait.

    Attributes:
        seconds: The longest time to wait.
        until: A future that ends the wait early, if any.
    """

    seconds: float
    until: Future[Any] | None = None


IOFlow: TypeAlias = Generator[Send | Pause | InThread, Any, T]
"""The operations for a driver. It sends back the reply to a `Send`, None after a `Pause`, and the result of
the function of an `InThread`."""


def with_retries(flow: WaitingFlow[T], limits: Limits, stats: Stats, until: float = math.inf) -> IOFlow[T]:
    """Run a flow, and deliver all its calls with retries.

    Args:
        flow: The flow.
        limits: Time limits per stage.
        stats: Metrics to update.
        until: End of the time allowed for the whole episode, on `time.monotonic`.

    Returns:
        The result of the flow.

    Raises:
        Fault: A call failed and the flow did not handle it.
        AgentGymError: The flow itself raised it.
    """
    try:
        operation = next(flow)
        while True:
            if isinstance(operation, WaitForFuture):
                yield from _wait(operation, limits, stats, until)
                operation = next(flow)
                continue
            if isinstance(operation, InThread):
                try:
                    result = yield operation
                except Exception as error:  # noqa: BLE001 - it is for the flow
                    operation = flow.throw(error)
                else:
                    operation = flow.send(result)
                continue
            try:
                reply = yield from _deliver(operation, limits, stats, until)
            except Fault as fault:
                stats.fault(fault, server=operation.server, stage=operation.stage)
                operation = flow.throw(fault)
            except MaybeRestarted as error:
                operation = flow.throw(error)
            else:
                operation = flow.send(reply)
    except StopIteration as stop:
        returned: T = stop.value
        return returned
    finally:
        flow.close()


def _wait(wait: WaitForFuture, limits: Limits, stats: Stats, until: float) -> IOFlow[None]:
    """Wait for a slot on a server."""
    deadline = min(wait.began + limits.create, until)
    began = time.monotonic()
    left = min(deadline - began, wait.seconds)
    try:
        if left > 0:
            yield Pause(left, wait.until)
    finally:
        stats.queued += time.monotonic() - began
    if time.monotonic() >= deadline:
        wait.until.cancel()


def _deliver(call: Call, limits: Limits, stats: Stats, until: float) -> IOFlow[Reply]:
    """Send a call and return the reply, with safe retries, all within one time limit."""
    began = time.monotonic()
    if began >= until:
        raise _episode_over(call, limits)
    deadline = min(began + limits.seconds(call.within or call.stage), until)
    attempt = 0
    failed: Fault | None = None
    try:
        while True:
            stats.requests += 1
            before, server_delay = stats.connections, None
            try:
                reply: Reply = yield Send(call, deadline, limits.connect)
            except MaybeRestarted as error:
                stats.requests -= 1
                error.after = failed
                raise
            except Fault as fault:
                # Otherwise the call had less time than the limit of its stage.
                fault.server_slow = fault.server_slow and deadline < until
                if attempt >= _RETRIES or not may_repeat(call, fault):
                    raise
                failed, reason = fault, str(fault)
            else:
                _check_access(reply)
                server_delay = retry_after(reply)
                if not _was_refused(reply) or (attempt >= _RETRIES and server_delay is None):
                    return reply
                if time.monotonic() + (server_delay or 0.0) >= deadline:
                    return reply
                reason = f"{call} answered HTTP {reply.status}"
                failed = ServerError(f"{reason}: {reply.excerpt}")
                # This is the last reply now. Its connection may be closed after an error, but not before.
                call = replace(call, connection=call.connection and reply.connection)
            finally:
                if before < stats.connections and stats.connections > 1:
                    _reconnected(call, stats, before)
            stats.retries += 1
            wait = max(server_delay or 0.0, backoff(min(attempt, _RETRIES), _BACKOFF, math.inf, _JITTER))
            wait = min(wait, max(0.0, deadline - time.monotonic()))
            attempt += 1
            event = {"stage": call.stage, "server": redact(call.server), "attempt": attempt + 1}
            log(logging.INFO, "retry", **event, wait=wait, message=reason)
            yield Pause(wait)
    finally:
        stats.seconds += time.monotonic() - began


def _episode_over(call: Call, limits: Limits) -> ServerTimeout:
    """Return the fault for a call that was not sent because the episode's time is over."""
    fault = ServerTimeout(f"{call} was not sent: the episode has had its {limits.episode:g} seconds")
    fault.was_sent = fault.server_slow = False
    return fault


def _reconnected(call: Call, stats: Stats, before: int) -> None:
    """Count the connections that a request opened, without the first of an environment."""
    opened = stats.connections - max(before, 1)
    stats.reconnects += opened
    event = {"stage": call.stage, "server": redact(call.server)}
    log(logging.DEBUG, "reconnect", **event, connections=stats.connections)


def _was_refused(reply: Reply) -> bool:
    """Return whether the server refused a request; to observe or close, whether it may have failed."""
    failed = reply.call.stage in {"observe", "close"} and reply.status >= HTTPStatus.INTERNAL_SERVER_ERROR
    return failed or reply.status in _NOT_PROCESSED


def _check_access(reply: Reply) -> None:
    """Raise if a server, or a gateway in front of it, requires other credentials.

    Raises:
        AccessDenied: There is no remote environment yet: nothing works without credentials.
        ServerError: There is one, so the credentials may have expired.
    """
    who = _DENIED.get(reply.status)
    if who is None:
        return
    kind = AccessDenied if reply.call.stage in {"identify", "create"} else ServerError
    raise kind(
        f"{reply.call} was denied (HTTP {reply.status}): {who} requires credentials. Give a header "
        "Authorization by ",
        ArgumentName("headers"),
        ", by the variable AGENTGYM_<NAME>_HEADERS, or in the URL, http://USER:PASSWORD@HOST",
    )


def retry_after(reply: Reply) -> float | None:
    """Return how many seconds a reply requests the client to wait (RFC 9110, section 10.2.3), or None.

    Args:
        reply: The reply; its ``Retry-After`` is a number of seconds or a date.
    """
    if reply.status not in _NOT_PROCESSED:
        return None
    seconds = retry_after_seconds(reply.headers.get("retry-after", ""))
    return None if seconds is None else min(seconds, _LONGEST)


def may_repeat(call: Call, fault: Fault) -> bool:
    """Return whether a failed call can be retried without side effects.

    A call that was not sent can be retried. But if the server was down, or possibly down, its successor may
    not have our environments, so that only calls that need none can be retried. A call that may have reached
    the server can be retried only if it is idempotent. A timeout is not retried, because it has used up the
    time allowed.
    """
    if isinstance(fault, ServerUnreachable) and fault.refused is not False:
        return call.stage in {"identify", "create"}
    if not fault.was_sent:
        return True
    return call.repeatable and isinstance(fault, ConnectionLost)
