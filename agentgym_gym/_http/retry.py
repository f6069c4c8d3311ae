"""How a flow's calls are carried out, without I/O: time limits, trying again, the waits in between.

What a driver has left to do is to send one request and read one reply, and to wait; the synchronous and the
asynchronous one do it each in its way, and behave alike because all else is here.
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
from agentgym_gym.calls import Call, InThread, MaybeRestarted, Reply, Wait, WaitingFlow
from agentgym_gym.errors import (
    AccessDenied,
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
_LONGEST = 1e6  # seconds; what asks for more is not waited for, whatever the limits

# Nothing was done: too many requests, or no room for another.
_NOT_PROCESSED = frozenset({HTTPStatus.TOO_MANY_REQUESTS, HTTPStatus.SERVICE_UNAVAILABLE})
_DENIED: dict[int, str] = {
    HTTPStatus.UNAUTHORIZED: "the server, or a gateway before it,",
    HTTPStatus.FORBIDDEN: "the server, or a gateway before it,",
    HTTPStatus.PROXY_AUTHENTICATION_REQUIRED: "a proxy",
}


@dataclass(frozen=True)
class Send:
    """Asks the driver to send a call and return the reply, or to throw the fault.

    Attributes:
        call: The call.
        deadline: By when the whole reply must be there, on `time.monotonic`.
        connect: Seconds allowed for a connection within that.
    """

    call: Call
    deadline: float
    connect: float

    @property
    def left(self) -> float:
        """Seconds to the deadline; a millisecond at the least."""
        return max(0.001, self.deadline - time.monotonic())


@dataclass(frozen=True)
class Pause:
    """Asks the driver to wait.

    Attributes:
        seconds: How long.
        until: What ends the wait when it is done, if anything does.
    """

    seconds: float
    until: Future[Any] | None = None


IOFlow: TypeAlias = Generator[Send | Pause | InThread, Any, T]
"""What a driver carries out: it is sent the reply to a `Send`, None after a `Pause`, and what the function of
an `InThread` returns."""


def with_retries(flow: WaitingFlow[T], limits: Limits, stats: Stats, until: float = math.inf) -> IOFlow[T]:
    """Deliver all calls of a flow.

    Args:
        flow: The flow.
        limits: The time allowed.
        stats: Where it is counted.
        until: When the time of the whole episode is up, on `time.monotonic`.

    Returns:
        What the flow returns.

    Raises:
        Fault: A call failed and the flow did not handle it.
        AgentGymError: Whatever the flow itself raises.
    """
    try:
        asked = next(flow)
        while True:
            if isinstance(asked, Wait):
                yield from _wait(asked, limits, stats, until)
                asked = next(flow)
                continue
            if isinstance(asked, InThread):
                try:
                    result = yield asked
                except Exception as error:  # noqa: BLE001 - it is for the flow
                    asked = flow.throw(error)
                else:
                    asked = flow.send(result)
                continue
            try:
                reply = yield from _deliver(asked, limits, stats, until)
            except Fault as fault:
                stats.fault(fault, server=asked.server, stage=asked.stage)
                asked = flow.throw(fault)
            except MaybeRestarted as error:
                asked = flow.throw(error)
            else:
                asked = flow.send(reply)
    except StopIteration as stop:
        returned: T = stop.value
        return returned
    finally:
        flow.close()


def _wait(asked: Wait, limits: Limits, stats: Stats, until: float) -> IOFlow[None]:
    """Wait for a place on a server."""
    deadline = min(asked.began + limits.create, until)
    began = time.monotonic()
    left = min(deadline - began, asked.seconds)
    try:
        if left > 0:
            yield Pause(left, asked.until)
    finally:
        stats.queued += time.monotonic() - began
    if time.monotonic() >= deadline:
        asked.until.cancel()


def _deliver(call: Call, limits: Limits, stats: Stats, until: float) -> IOFlow[Reply]:
    """Get a reply, trying again where that can do no harm, all within one time limit."""
    began = time.monotonic()
    if began >= until:
        raise _episode_over(call, limits)
    deadline = min(began + limits.seconds(call.within or call.stage), until)
    attempt = 0
    failed: Fault | None = None
    try:
        while True:
            stats.requests += 1
            before, asked_for = stats.connections, None
            try:
                reply: Reply = yield Send(call, deadline, limits.connect)
            except MaybeRestarted as error:
                stats.requests -= 1
                error.after = failed
                raise
            except Fault as fault:
                # Else it had less time than the limit of its stage.
                fault.server_slow = fault.server_slow and deadline < until
                if attempt >= _RETRIES or not may_repeat(call, fault):
                    raise
                failed, reason = fault, str(fault)
            else:
                _check_access(reply)
                asked_for = retry_after(reply)
                if not _was_refused(reply) or (attempt >= _RETRIES and asked_for is None):
                    return reply
                if time.monotonic() + (asked_for or 0.0) >= deadline:
                    return reply
                reason = f"{call} answered HTTP {reply.status}"
                failed = ServerError(f"{reason}: {reply.excerpt}")
            finally:
                if before < stats.connections and stats.connections > 1:
                    _reconnected(call, stats, before)
            call = replace(call, witness=call.repeatable and isinstance(failed, ConnectionLost))
            stats.retries += 1
            wait = max(asked_for or 0.0, backoff(min(attempt, _RETRIES), _BACKOFF, math.inf, _JITTER))
            wait = min(wait, max(0.0, deadline - time.monotonic()))
            attempt += 1
            told = {"stage": call.stage, "server": redact(call.server), "attempt": attempt + 1}
            log(logging.INFO, "retry", **told, wait=wait, message=reason)
            yield Pause(wait)
    finally:
        stats.seconds += time.monotonic() - began


def _episode_over(call: Call, limits: Limits) -> ServerTimeout:
    """Return the fault of an episode whose time is up before a call was sent."""
    fault = ServerTimeout(f"{call} was not sent: the episode has had its {limits.episode:g} seconds")
    fault.was_sent = fault.server_slow = False
    return fault


def _reconnected(call: Call, stats: Stats, before: int) -> None:
    """Count the connections that were opened by a request, but for an environment's first."""
    opened = stats.connections - max(before, 1)
    stats.reconnects += opened
    told = {"stage": call.stage, "server": redact(call.server)}
    log(logging.DEBUG, "reconnect", **told, connections=stats.connections)


def _was_refused(reply: Reply) -> bool:
    """Return whether a reply says that nothing was done; of a request to close, that it may not have been."""
    failed = reply.call.stage == "close" and reply.status >= HTTPStatus.INTERNAL_SERVER_ERROR
    return failed or reply.status in _NOT_PROCESSED


def _check_access(reply: Reply) -> None:
    """Raise where a server, or a gateway before it, wants credentials that it was not given.

    Raises:
        AccessDenied: Before there is a remote environment: nothing can be played as things are.
        ServerError: Later, as when a token has expired.
    """
    who = _DENIED.get(reply.status)
    if who is None:
        return
    message = (
        f"{reply.call} was denied (HTTP {reply.status}): {who} wants credentials. Give them by "
        "headers={'Authorization': ...}, by the variable AGENTGYM_<NAME>_HEADERS, or in the URL, "
        "http://USER:PASSWORD@HOST"
    )
    raise (AccessDenied if reply.call.stage in {"identify", "create"} else ServerError)(message)


def retry_after(reply: Reply) -> float | None:
    """Return the seconds for which a reply asks to wait (RFC 9110, section 10.2.3); None where it does not.

    Args:
        reply: The reply; its ``Retry-After`` is a number of seconds or a date.
    """
    if reply.status not in _NOT_PROCESSED:
        return None
    seconds = retry_after_seconds(reply.headers.get("retry-after", ""))
    return None if seconds is None else min(seconds, _LONGEST)


def may_repeat(call: Call, fault: Fault) -> bool:
    """Return whether a call that failed can be sent again without harm.

    It can when it did not reach the server. But where nobody was there, or that is not known, whoever answers
    next may not have what we hold, so that only a call that begins anew can. When the call may have reached
    the server, only one that has no effect the second time can, and a time-out is not worth another: it has
    used up the time allowed.
    """
    if isinstance(fault, ServerUnreachable) and fault.refused is not False:
        return call.stage in {"identify", "create"}
    if not fault.was_sent:
        return True
    return call.repeatable and isinstance(fault, ConnectionLost)
