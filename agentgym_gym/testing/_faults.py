"""Injected faults: which calls go wrong and how, for the proxy and the transport."""

from __future__ import annotations

import random
import threading
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from types import MappingProxyType
from typing import Literal, TypeAlias, TypeVar, get_args

from agentgym_gym.calls import Stage
from agentgym_gym.errors import BadOption

__all__ = ["ARRIVES", "ERROR", "KINDS", "PAGE", "SEEN_AS", "STAGES", "Faults", "Kind", "stage_of"]

T = TypeVar("T")

Kind: TypeAlias = Literal["reset", "lost", "truncate", "error", "garble", "delay", "silent"]
"""How a call goes wrong.

- ``reset``: the connection is reset, and the request never reaches the server;
- ``lost``: the server carries the request out, and the connection is reset instead of the reply;
- ``truncate``: the server carries it out, and the connection is closed in the middle of the reply;
- ``error``: HTTP 500, and the request never reaches the server;
- ``garble``: the server carries it out, and the reply is HTTP 200 with a page of HTML;
- ``delay``: the server carries it out, and the reply comes late;
- ``silent``: nothing is answered, and the request never reaches the server.
"""

KINDS: tuple[Kind, ...] = get_args(Kind)
"""All of them."""

STAGES: tuple[Stage, ...] = get_args(Stage)
"""All that a call may be for."""

ARRIVES: frozenset[Kind] = frozenset({"lost", "truncate", "garble", "delay"})
"""Those in which the server carries out the request."""

SEEN_AS: Mapping[Kind, str] = MappingProxyType(
    {
        "reset": "ConnectionLost",
        "lost": "ConnectionLost",
        "truncate": "ConnectionLost",
        "error": "ServerError",
        "garble": "BadReply",
        "delay": "ServerTimeout",
        "silent": "ServerTimeout",
    }
)
"""The fault that a step ends with; none after a ``delay`` that is shorter than its time limit."""

_BY_WORD: Mapping[str, Stage] = {
    "": "identify",
    "openapi.json": "identify",
    "create": "create",
    "reset": "reset",
    "step": "step",
    "close": "close",
}

ERROR = b"Internal Server Error"
"""The body of ``error``."""

PAGE = b"<!doctype html><title>It works!</title>"
"""The body of ``garble``."""


class Faults:
    """Draws what happens to each call, and counts it.

    The same seed and the same sequence of calls give the same faults. Calls of several clients come in
    another order each time, so different calls are hit, at the same share.

    Args:
        share: How many of the calls go wrong, from 0 to 1.
        kinds: How; one that is named twice is drawn twice as often.
        stages: What the calls that may go wrong are for; all by default.
        seed: Seed of the draws.
        delay: Seconds by which ``delay`` is late.

    Attributes:
        share: As given. It may be changed at any time, for example to 0 for a while without faults.
        injected: The faults so far, by kind.
        calls: The calls so far, by stage.

    Raises:
        BadOption: A value is out of its range, or there is no such kind or stage.
    """

    def __init__(
        self,
        share: float,
        *,
        kinds: Sequence[Kind] = KINDS,
        stages: Collection[Stage] = STAGES,
        seed: int = 0,
        delay: float = 1.0,
    ) -> None:
        if not 0 <= share <= 1:
            raise BadOption(f"share={share!r} should be from 0 to 1")
        if delay < 0:
            raise BadOption(f"delay={delay!r} should be a number of seconds")
        self.share = share
        self.kinds: tuple[Kind, ...] = _known("kinds", kinds, KINDS)
        self.stages: tuple[Stage, ...] = _known("stages", stages, STAGES)
        self.delay = delay
        self.injected: Counter[Kind] = Counter()
        self.calls: Counter[Stage] = Counter()
        self._random = random.Random(seed)  # noqa: S311 - no secret
        self._lock = threading.Lock()

    def draw(self, stage: Stage) -> Kind | None:
        """Return the fault of the next call; None for no fault."""
        with self._lock:
            self.calls[stage] += 1
            if stage not in self.stages or self._random.random() >= self.share:
                return None
            kind = self._random.choice(self.kinds)
            self.injected[kind] += 1
            return kind

    def take_back(self, kind: Kind | None) -> None:
        """Uncount a fault that could not be injected, since the server itself failed before."""
        if kind is not None:
            with self._lock:
                self.injected[kind] -= 1


def stage_of(path: str) -> Stage:
    """Return what a request is for, by the last word of its path, which all servers of AgentGym share.

    Args:
        path: The path, with or without a query.
    """
    return _BY_WORD.get(path.partition("?")[0].rpartition("/")[2], "observe")


def _known(name: str, given: Collection[T], known: tuple[T, ...]) -> tuple[T, ...]:
    """Return what was given as a tuple.

    Raises:
        BadOption: It is empty, or something of it is not known.
    """
    unknown = [each for each in given if each not in known]
    if isinstance(given, str) or unknown or not given:
        raise BadOption(f"{name}={given!r} should be a list of one or more of {', '.join(map(str, known))}")
    return tuple(given)
