"""Time limits of calls, the size limit of replies, and metrics of requests."""

from __future__ import annotations

import logging
import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from numbers import Real
from typing import TYPE_CHECKING, Any

from agentgym_gym._logging import log
from agentgym_gym._text import redact, server_name
from agentgym_gym.errors import BadOption, BadReply, Fault

if TYPE_CHECKING:
    from agentgym_gym.calls import Call, Stage

__all__ = ["DEFAULT_TIMEOUT", "MAX_REPLY_BYTES", "Limits", "Stats", "check_size"]

DEFAULT_TIMEOUT = 300.0
"""Seconds allowed for a reply, the default of AgentGym's own client."""

MAX_REPLY_BYTES = 64 * 1024 * 1024
"""Size limit of a reply, in bytes."""

_BY_NAME = ("faults", "server_tasks", "server_faults")
"""Attributes of `Stats` with a count for each name."""


@dataclass(frozen=True)
class Limits:
    """Seconds allowed at each stage, all finite.

    The limit of a stage covers connecting, retries and the whole reply.

    Attributes:
        connect: To open a connection.
        create: To create a remote environment, and to identify a server.
        reset: To start a task.
        step: To execute an action.
        close: To close a remote environment; it is not worth a long wait.
        episode: From the reset of a task to the reply to its last step, including the agent's own time.
    """

    connect: float = 10.0
    create: float = DEFAULT_TIMEOUT
    reset: float = DEFAULT_TIMEOUT
    step: float = DEFAULT_TIMEOUT
    close: float = 5.0
    episode: float = 6 * 3600.0

    @classmethod
    def of(cls, timeout: float | Mapping[str, float], own: Mapping[str, float] | None = None) -> Limits:
        """Return the limits for the option ``timeout``.

        Args:
            timeout: Seconds for each of ``create``, ``reset`` and ``step``, and an upper bound for
                ``connect`` and ``close``; or a mapping of limits to seconds, in which missing limits keep
                their defaults.
            own: Defaults of the environment, instead of the general ones. If ``timeout`` is a number, it does
                not reduce those for ``connect`` and ``close``.

        Raises:
            BadOption: A limit is not a positive number of seconds, or its name is unknown.
        """
        own = own or {}
        if not isinstance(timeout, Mapping):
            seconds = _seconds(timeout, "timeout")
            most = cls()
            return cls(
                connect=own.get("connect", min(seconds, most.connect)),
                create=seconds,
                reset=seconds,
                step=seconds,
                close=own.get("close", min(seconds, most.close)),
            )
        names = [each.name for each in fields(cls)]
        unknown = sorted(set(map(str, timeout)) - set(names))
        if unknown:
            raise BadOption("timeout", problem=f"has no limits for {unknown}; there are {names}")
        given = {name: _seconds(value, f"timeout[{name!r}]") for name, value in timeout.items()}
        return cls(**{**own, **given})

    def seconds(self, stage: Stage) -> float:
        """Return the limit for a stage."""
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
    """Metrics of the requests of an environment, since it was created.

    Attributes:
        requests: Requests sent, including failed attempts to send one.
        retries: Requests that repeated a failed one.
        connections: Connections opened.
        reconnects: Connections opened after an environment's first: the previous one failed, was closed by
            the server while idle, or belonged to another server or event loop.
        looks: Requests that checked whether a remote environment is unchanged, after the connection of its
            last reply was lost.
        faults: Calls that failed for good, by kind of fault, even if another server or a new remote
            environment replaced the failed one.
        server_tasks: Tasks started, by host and port of the server.
        server_faults: The same faults, by host and port of the server.
        queued: Seconds spent waiting for a slot on a server, before a request was sent.
        seconds: Seconds spent waiting for servers, and between retries.
    """

    requests: int = 0
    retries: int = 0
    connections: int = 0
    reconnects: int = 0
    looks: int = 0
    faults: Counter[str] = field(default_factory=Counter)
    server_tasks: Counter[str] = field(default_factory=Counter)
    server_faults: Counter[str] = field(default_factory=Counter)
    queued: float = 0.0
    seconds: float = 0.0

    @classmethod
    def of(cls, counted: Mapping[str, Any]) -> Stats:
        """Restore the result of `as_dict`; unknown keys are ignored."""
        known = {each.name: counted[each.name] for each in fields(cls) if each.name in counted}
        return cls(**known | {name: Counter(known.get(name, {})) for name in _BY_NAME})

    def add(self, other: Stats) -> None:
        """Add the metrics of another object."""
        for each in fields(self):
            setattr(self, each.name, getattr(self, each.name) + getattr(other, each.name))

    def since(self, earlier: Stats) -> Stats:
        """Return the difference from an earlier `copy`."""
        return Stats(
            **{each.name: getattr(self, each.name) - getattr(earlier, each.name) for each in fields(self)}
        )

    def copy(self) -> Stats:
        """Return a snapshot."""
        copies: dict[str, Any] = {name: Counter(getattr(self, name)) for name in _BY_NAME}
        return replace(self, **copies)

    def note_task(self, server: str) -> None:
        """Count a task that a server started."""
        self.server_tasks[server_name(server)] += 1

    def fault(self, fault: Fault, *, server: str, stage: Stage) -> None:
        """Count a fault and log it, unless that was done before.

        Args:
            fault: The fault.
            server: Base URL of the server.
            stage: The stage of the failed call.
        """
        if fault.counted:
            return
        fault.counted = True
        self.faults[fault.kind] += 1
        self.server_faults[server_name(server)] += 1
        log(
            logging.INFO,
            "fault",
            kind=fault.kind,
            stage=stage,
            server=redact(server),
            message=str(fault),
        )

    def as_dict(self) -> dict[str, Any]:
        """Return the metrics as plain numbers, for JSON."""
        return {**asdict(self), **{name: dict(getattr(self, name)) for name in _BY_NAME}}


def check_size(call: Call, size: int) -> None:
    """Check the size of a reply so far.

    Raises:
        BadReply: It exceeds `MAX_REPLY_BYTES`.
    """
    if size > MAX_REPLY_BYTES:
        raise BadReply(f"{call} ", f"answered more than {MAX_REPLY_BYTES} bytes")


def _seconds(given: object, name: str) -> float:
    if isinstance(given, bool) or not isinstance(given, Real) or not 0 < float(given) < math.inf:
        raise BadOption(name, given, "a positive number of seconds")
    return float(given)
