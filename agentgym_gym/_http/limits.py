"""The time allowed for a call, the largest reply, and what is counted of calls."""

from __future__ import annotations

import logging
import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from numbers import Real
from typing import TYPE_CHECKING, Any

from agentgym_gym._logging import log
from agentgym_gym._text import redact
from agentgym_gym.errors import BadOption, BadReply, Fault

if TYPE_CHECKING:
    from agentgym_gym.calls import Call, Stage

__all__ = ["DEFAULT_TIMEOUT", "MAX_REPLY_BYTES", "Limits", "Stats", "check_size"]

DEFAULT_TIMEOUT = 300.0
"""Seconds allowed for a reply, the figure of AgentGym's own client."""

MAX_REPLY_BYTES = 64 * 1024 * 1024
"""Largest reply read, in bytes."""


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
    def of(cls, timeout: float | Mapping[str, float], own: Mapping[str, float] | None = None) -> Limits:
        """Read the option ``timeout``.

        Args:
            timeout: Seconds for ``create``, ``reset`` and ``step`` alike, and the most for ``connect`` and
                ``close``; or seconds by the name of the limit, where the others keep their defaults.
            own: Defaults of the environment in place of the usual ones. A number of seconds cuts none of
                those for ``connect`` and ``close``.

        Raises:
            BadOption: A limit is not a positive number of seconds, or there is none of that name.
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
            raise BadOption(f"timeout has no limits for {unknown}; there are {names}")
        given = {name: _seconds(value, f"timeout[{name!r}]") for name, value in timeout.items()}
        return cls(**{**own, **given})

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
        reconnects: Connections opened after an environment's first: the one before failed, was closed by the
            server while idle, or belonged to another server or event loop.
        looks: Requests that looked whether a remote environment is still the one that was last seen, as the
            connection on which it was last heard was gone.
        faults: What failed for good, by the kind of fault, even if another server or a new remote environment
            could be had instead.
        queued: Seconds spent waiting for a place on a server, before anything was sent.
        seconds: Seconds spent waiting for servers, and between tries.
    """

    requests: int = 0
    retries: int = 0
    connections: int = 0
    reconnects: int = 0
    looks: int = 0
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
