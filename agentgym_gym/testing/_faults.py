"""Choose which calls fail and how, for the proxy and the transport."""

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
"""How a call fails.

- ``reset``: the connection is reset; the request never reaches the server.
- ``lost``: the server executes the request; the connection is reset before the reply.
- ``truncate``: the server executes the request; the connection is closed in the middle of the reply.
- ``error``: HTTP 500; the request never reaches the server.
- ``garble``: the server executes the request; the reply is HTTP 200 with an HTML page.
- ``delay``: the server executes the request; the reply is late.
- ``silent``: there is no reply; the request never reaches the server.
"""

KINDS: tuple[Kind, ...] = get_args(Kind)
"""All kinds of faults."""

STAGES: tuple[Stage, ...] = get_args(Stage)
"""All stages of a call."""

ARRIVES: frozenset[Kind] = frozenset({"lost", "truncate", "garble", "delay"})
"""The kinds of faults where the server executes the request."""

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
"""The fault of a step by injected kind; a ``delay`` shorter than the timeout causes no fault."""

_BY_WORD: Mapping[str, Stage] = {
    "": "identify",
    "openapi.json": "identify",
    "create": "create",
    "reset": "reset",
    "step": "step",
    "close": "close",
}

ERROR = b"Internal Server Error"
"""The response body of ``error``."""

PAGE = b"<!doctype html><title>It works!</title>"
"""The response body of ``garble``."""


class Faults:
    """Draws the fault of each call at random, and counts calls and faults.

    The same seed and the same sequence of calls give the same faults. With several clients, the order of the
    calls varies, so the faults hit different calls at the same rate.

    Args:
        share: Fraction of the calls that fail, from 0 to 1.
        kinds: Kinds of faults; a kind listed twice is drawn twice as often.
        stages: Stages of the calls that may fail; all by default.
        seed: Random seed.
        delay: Seconds by which ``delay`` delays a reply.

    Attributes:
        share: Fraction of the calls that fail. It can be changed at any time, for example to 0 to pause.
        injected: Number of faults so far, by kind.
        calls: Number of calls so far, by stage.

    Raises:
        BadOption: A value is out of range, or a kind or stage does not exist.
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
            raise BadOption("share", share, "from 0 to 1")
        if delay < 0:
            raise BadOption("delay", delay, "a number of seconds")
        self.share = share
        self.kinds: tuple[Kind, ...] = _known("kinds", kinds, KINDS)
        self.stages: tuple[Stage, ...] = _known("stages", stages, STAGES)
        self.delay = delay
        self.injected: Counter[Kind] = Counter()
        self.calls: Counter[Stage] = Counter()
        self._random = random.Random(seed)  # noqa: S311 - no secret
        self._lock = threading.Lock()

    def draw(self, stage: Stage) -> Kind | None:
        """Draw the fault of the next call; None for no fault."""
        with self._lock:
            self.calls[stage] += 1
            if stage not in self.stages or self._random.random() >= self.share:
                return None
            kind = self._random.choice(self.kinds)
            self.injected[kind] += 1
            return kind

    def take_back(self, kind: Kind | None) -> None:
        """Uncount a fault that was not injected because the server itself failed first."""
        if kind is not None:
            with self._lock:
                self.injected[kind] -= 1


def stage_of(path: str) -> Stage:
    """Return the stage of a request from the last segment of its path, the same for all AgentGym servers.

    Args:
        path: The path, with or without a query.
    """
    return _BY_WORD.get(path.partition("?")[0].rpartition("/")[2], "observe")


def _known(name: str, given: Collection[T], known: tuple[T, ...]) -> tuple[T, ...]:
    """Validate a collection and return it as a tuple.

    Raises:
        BadOption: The collection is empty, or contains an unknown value.
    """
    unknown = [each for each in given if each not in known]
    if isinstance(given, str) or unknown or not given:
        raise BadOption(name, given, f"a list of one or more of {', '.join(map(str, known))}")
    return tuple(given)
