"""Seconds of an environment's calls, and its faults by server; independent of verl.

An episode's record carries them as one label, a JSON object: verl computes many metrics of each number.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from statistics import median
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from agentgym_gym.rollout import Episode

__all__ = ["LABEL", "Timing", "server_warnings", "timings_of"]

LABEL = "env_timing"
"""The name of the label."""

_SLOW = 3.0
"""How many times the median step time of the other servers makes a server slow."""

_LEAST_SECONDS = 0.01
"""Below this step time no server is slow: the differences between quick servers are chance."""


@dataclass
class Calls:
    """Calls that a server, or an environment without one, answered, and the faults there.

    Attributes:
        episodes: Started episodes.
        faults: Faults, including the faults of episodes that were played again.
        reset_seconds: Sum over the episodes.
        steps: Number of steps.
        step_seconds: Sum over the steps.
    """

    episodes: int = 0
    faults: int = 0
    reset_seconds: float = 0.0
    steps: int = 0
    step_seconds: float = 0.0

    def add(self, other: Calls) -> None:
        """Add the calls of another object."""
        for name, value in asdict(other).items():
            setattr(self, name, getattr(self, name) + value)


@dataclass
class Timing:
    """The answered calls of an episode and its earlier tries, or of all episodes of a step.

    Attributes:
        total: All of them.
        servers: Those of each server, by its host and port, if the environment counts them in ``stats``, as
            AgentGym's do.
    """

    total: Calls = field(default_factory=Calls)
    servers: dict[str, Calls] = field(default_factory=dict)

    def note(self, episode: Episode) -> None:
        """Add an episode that has ended, or one try of it."""
        seconds = [step["env_seconds"] for step in episode.steps if "env_seconds" in step]
        if episode.fault is not None:
            del seconds[-1:]  # it has no answer
        calls = Calls(steps=len(seconds), step_seconds=math.fsum(seconds))
        if episode.messages:  # otherwise the reset failed
            calls.episodes, calls.reset_seconds = 1, episode.reset_seconds
        self.total.add(calls)
        counters = episode.counters() or {}
        for server in counters.get("server_tasks", ()):
            self._server(server).add(calls)
        for server, faults in counters.get("server_faults", {}).items():
            self._server(server).add(Calls(faults=faults))

    def add(self, other: Timing) -> None:
        """Add the calls of another object."""
        self.total.add(other.total)
        for server, calls in other.servers.items():
            self._server(server).add(calls)

    def metrics(self, at: str) -> dict[str, float]:
        """Return the mean seconds, and the counts of each server, under a prefix."""
        metrics = {}
        if self.total.steps:
            metrics[f"{at}/step_seconds"] = self.total.step_seconds / self.total.steps
        if self.total.episodes:
            metrics[f"{at}/reset_seconds"] = self.total.reset_seconds / self.total.episodes
        for server, calls in sorted(self.servers.items()):
            metrics[f"{at}/server/{server}/episodes"] = float(calls.episodes)
            metrics[f"{at}/server/{server}/faults"] = float(calls.faults)
            if calls.steps:
                metrics[f"{at}/server/{server}/step_seconds"] = calls.step_seconds / calls.steps
        return metrics

    def label(self) -> str:
        """Return the JSON of this object."""
        return json.dumps(asdict(self))

    @classmethod
    def of(cls, label: object) -> Timing:
        """Return the object of a label; an empty one if there is none."""
        if not label:
            return cls()
        plain = json.loads(str(label))
        return cls(
            Calls(**plain["total"]), {name: Calls(**calls) for name, calls in plain["servers"].items()}
        )

    def _server(self, name: str) -> Calls:
        return self.servers.setdefault(name, Calls())


def timings_of(records: Iterable[Mapping[str, Any]]) -> dict[str, Timing]:
    """Return the sums over the records of each environment, by its id."""
    timings: dict[str, Timing] = {}
    for record in records:
        if record.get("env_id"):
            timings.setdefault(str(record["env_id"]), Timing()).add(Timing.of(record.get(LABEL)))
    return timings


def server_warnings(records: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return a line for each server of a training step that is slow, or that answers no more."""
    lines = []
    for env_id, timing in sorted(timings_of(records).items()):
        means = {
            name: calls.step_seconds / calls.steps for name, calls in timing.servers.items() if calls.steps
        }
        for server, calls in sorted(timing.servers.items()):
            others = [mean for name, mean in means.items() if name != server]
            own = means.get(server, 0.0)
            if not calls.episodes and calls.faults:
                lines.append(
                    f"{env_id}: the server {server} answers no more: {calls.faults} requests to it failed in "
                    "this step, and it played no episode. Restart it, or remove it from the addresses"
                )
            elif others and own >= _LEAST_SECONDS and own > _SLOW * median(others):
                lines.append(
                    f"{env_id}: the server {server} is slow: a step took {own:.2g} s there in this step, and "
                    f"{median(others):.2g} s, the median, on the others. Every training step waits for its "
                    "last episode: check that server, or remove it from the addresses"
                )
    return lines
