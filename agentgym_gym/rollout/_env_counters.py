"""Counters of an environment for one episode."""

from __future__ import annotations

from typing import Any

__all__ = ["EnvCounters"]


class EnvCounters:
    """The increase of an environment's ``stats`` during an episode, if ``env.stats`` exists."""

    def __init__(self) -> None:
        self._stats: Any = None
        self._before: Any = None
        self._values: dict[str, Any] | None = None

    def begin(self, env: Any) -> None:
        """Start to count, if the environment has suitable ``stats``."""
        stats: Any = getattr(getattr(env, "unwrapped", env), "stats", None)
        if all(callable(getattr(stats, name, None)) for name in ("copy", "since", "as_dict")):
            self._stats, self._before = stats, stats.copy()

    def values(self) -> dict[str, Any] | None:
        """Return the counters since the start, or None if there are none."""
        if self._stats is not None:
            self._values = self._stats.since(self._before).as_dict()
        return self._values

    def end(self) -> None:
        """Keep the current values, because another episode will use the environment."""
        self.values()
        self._stats = None
