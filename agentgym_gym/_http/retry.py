"""How a flow's calls are carried out, without I/O: time limits, trying again, the waits in between.

What a driver has left to do is to send one request and read one reply, and to wait; the synchronous and the
asynchronous one do it each in its way, and behave alike because all else is here.
"""

from __future__ import annotations

import logging
import math
import random
import time
from collections import Counter
from collections.abc import Generator, Mapping
from concurrent.futures import Future
from dataclasses import asdict, dataclass, field, fields, replace
from http import HTTPStatus
from numbers import Real
from typing import Any, TypeAlias, TypeVar

from agentgym_gym._logging import log
from agentgym_gym._text import redact
from agentgym_gym.calls import Call, Reply, Stage, Wait, WaitingFlow
from agentgym_gym.errors import BadOption, BadReply, ConnectionLost, Fault, ServerTimeout, ServerUnreachable

__all__ = [
    "DEFAULT_TIMEOUT",
    "MAX_REPLY_BYTES",
    "IOFlow",
    "Limits",
    "Pause",
    "Send",
    "Stats",
    "backoff",
    "check_size",
    "may_repeat",
    "with_retries",
]

T = TypeVar("T")

DEFAULT_TIMEOUT = 300.0
"""Seconds allowed for a reply, the figure of AgentGym's own client."""

MAX_REPLY_BYTES = 64 * 1024 * 1024
"""Largest reply read, in bytes."""

_RETRIES = 2
_BACKOFF = 0.1  # seconds before the first retry, doubled for each further one


@dataclass(frozen=True)
class Limits:
    """Seconds allowed at each stage, all finite.

    A stage's limit is for the reply to its last byte, connecting and trying again included.

    Attributes:
        connect: For a connection.
        create: For a remote environment to be made, and for asking a server what it is.
        reset: For a task to start.
        step: For an action to be played.
        close: For giving an environment back; it is not worth a long wait.
        episode: From the reset of a task to the reply to its last step, the agent's own time included.
    """

    connect: float = 10.0
    create: float = DEFAULT_TIMEOUT
    reset: float = DEFAULT_TIMEOUT
    step: float = DEFAULT_TIMEOUT
    close: float = 5.0
    episode: float = 6 * 3600.0

    @classmethod
    def of(cls, timeout: float | Mapping[str, float]) -> Limits:
        """Read the option ``timeout``.

        Args:
            timeout: Seconds for ``create``, ``reset`` and ``step`` alike, and the most for ``connect`` and
                ``close``; or seconds by the name of the limit, where the others keep their defaults.

        Raises:
            BadOption: A limit is not a positive number of seconds, or there is none of that name.
        """
        if not isinstance(timeout, Mapping):
            seconds = _seconds(timeout, "timeout")
            most = cls()
            return cls(
                connect=min(seconds, most.connect),
                create=seconds,
                reset=seconds,
                step=seconds,
                close=min(seconds, most.close),
            )
        names = [each.name for each in fields(cls)]
        unknown = sorted(set(map(str, timeout)) - set(names))
        if unknown:
            raise BadOption(f"timeout has no limits for {unknown}; there are {names}")
        return cls(**{name: _seconds(value, f"timeout[{name!r}]") for name, value in timeout.items()})

    def seconds(self, stage: Stage) -> float:
        """Return what is allowed for a call."""
        limits: dict[Stage, float] = {
            "identify": self.create,
            "create": self.create,
            "reset": self.reset,
            "observe": self.reset,
            "step": self.step,
            "close": self.close,
        }
        return limits[stage]


@dataclass
class Stats:
    """What was counted, since an environment was made.

    Attributes:
        requests: Requests sent, or tried to be.
        retries: Requests that were tries again.
        connections: Connections opened.
        reconnects: Connections opened after an environment's first: because the one before had failed, had
            been idle for 4 seconds, was to another server or of an event loop that has ended.
        faults: What failed for good, by the kind of fault, even if another server or a new remote environment
            could be had instead.
        queued: Seconds spent waiting for a place on a server, before anything was sent.
        seconds: Seconds spent waiting for servers, and between tries.
    """

    requests: int = 0
    retries: int = 0
    connections: int = 0
    reconnects: int = 0
    faults: Counter[str] = field(default_factory=Counter)
    queued: float = 0.0
    seconds: float = 0.0

    @classmethod
    def of(cls, counted: Mapping[str, Any]) -> Stats:
        """Undo `as_dict`; what is not known is passed over."""
        known = {each.name: counted[each.name] for each in fields(cls) if each.name in counted}
        return cls(**{**known, "faults": Counter(known.get("faults", {}))})

    def add(self, other: Stats) -> None:
        """Count what another has counted, too."""
        for each in fields(self):
            setattr(self, each.name, getattr(self, each.name) + getattr(other, each.name))

    def since(self, earlier: Stats) -> Stats:
        """Return what was counted after an earlier `copy` was made."""
        return Stats(
            **{each.name: getattr(self, each.name) - getattr(earlier, each.name) for each in fields(self)}
        )

    def copy(self) -> Stats:
        """Return the counts as they are now."""
        return replace(self, faults=Counter(self.faults))

    def fault(self, fault: Fault, *, server: str, stage: Stage) -> None:
        """Count a fault and log it, unless that was done where it was met first.

        Args:
            fault: The fault.
            server: Base URL of the server.
            stage: What was being done.
        """
        if fault.counted:
            return
        fault.counted = True
        self.faults[fault.kind] += 1
        log(
            logging.INFO,
            "fault",
            kind=fault.kind,
            stage=stage,
            server=redact(server),
            message=str(fault),
        )

    def as_dict(self) -> dict[str, Any]:
        """Return plain numbers, as for JSON."""
        return {**asdict(self), "faults": dict(self.faults)}


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


IOFlow: TypeAlias = Generator[Send | Pause, Reply | None, T]
"""What a driver carries out: it is sent the reply to a `Send`, and None after a `Pause`."""


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
            try:
                reply = yield from _deliver(asked, limits, stats, until)
            except Fault as fault:
                stats.fault(fault, server=asked.server, stage=asked.stage)
                asked = flow.throw(fault)
            else:
                asked = flow.send(reply)
    except StopIteration as stop:
        result: T = stop.value
        return result
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
        raise ServerTimeout(f"{call} was not sent: the episode has had its {limits.episode:g} seconds")
    deadline = min(began + limits.seconds(call.stage), until)
    try:
        for attempt in range(_RETRIES + 1):
            stats.requests += 1
            before = stats.connections
            try:
                reply = yield Send(call, deadline, limits.connect)
            except Fault as fault:
                if attempt == _RETRIES or not may_repeat(call, fault):
                    raise
                reason = str(fault)
            else:
                assert reply is not None  # noqa: S101 - what a driver owes
                if attempt == _RETRIES or not _was_refused(reply):
                    return reply
                reason = f"{call} answered HTTP {reply.status}"
            finally:
                if before < stats.connections and stats.connections > 1:
                    _reconnected(call, stats, before)
            stats.retries += 1
            wait = min(backoff(attempt), max(0.0, deadline - time.monotonic()))
            told = {"stage": call.stage, "server": redact(call.server), "attempt": attempt + 2}
            log(logging.INFO, "retry", **told, wait=wait, message=reason)
            yield Pause(wait)
    finally:
        stats.seconds += time.monotonic() - began
    raise AssertionError("the last attempt returns or raises")


def _reconnected(call: Call, stats: Stats, before: int) -> None:
    """Count the connections that were opened by a request, but for an environment's first."""
    opened = stats.connections - max(before, 1)
    stats.reconnects += opened
    told = {"stage": call.stage, "server": redact(call.server)}
    log(logging.DEBUG, "reconnect", **told, connections=stats.connections)


def _was_refused(reply: Reply) -> bool:
    """Return whether a reply says that nothing was done; of a request to close, that it may not have been."""
    if reply.call.stage == "close":
        return reply.status >= HTTPStatus.INTERNAL_SERVER_ERROR
    return reply.status == HTTPStatus.SERVICE_UNAVAILABLE


def may_repeat(call: Call, fault: Fault) -> bool:
    """Return whether a call that failed can be sent again without harm.

    It can when it did not reach the server. But where nobody was there, whoever answers next has not what we
    hold, so that only a call that begins anew can. When the call may have reached the server, only one that
    has no effect the second time can, and a time-out is not worth another: it has used up the time allowed.
    """
    if isinstance(fault, ServerUnreachable) and fault.refused:
        return call.stage in {"identify", "create"}
    if not fault.was_sent:
        return True
    return call.repeatable and isinstance(fault, ConnectionLost)


def backoff(attempt: int) -> float:
    """Return the seconds to wait before the next attempt: exponential, with jitter to keep many apart."""
    return float(_BACKOFF * 2**attempt * (0.5 + random.random()))  # noqa: S311 - no secret


def check_size(call: Call, size: int) -> None:
    """Check the bytes of a reply so far.

    Raises:
        BadReply: They are more than `MAX_REPLY_BYTES`.
    """
    if size > MAX_REPLY_BYTES:
        raise BadReply(f"{call} answered more than {MAX_REPLY_BYTES} bytes")


def _seconds(given: object, name: str) -> float:
    if isinstance(given, bool) or not isinstance(given, Real) or not 0 < float(given) < math.inf:
        raise BadOption(f"{name}={given!r} should be a positive number of seconds")
    return float(given)
