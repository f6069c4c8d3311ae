"""The limits that the models of several runs share: a budget, and a gate for each model server."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from agentgym_gym.errors import ArgumentName, BadOption
from agentgym_gym.evaluate._chat.budget import Budget, RequestLimits
from agentgym_gym.evaluate._chat.rate_limit import Gate
from agentgym_gym.evaluate._chat.request_form import RequestForm
from agentgym_gym.evaluate._figures.prices import Price, read_prices

if TYPE_CHECKING:
    from agentgym_gym.evaluate._agent_setup import AgentSetup
    from agentgym_gym.evaluate._env_setup import EnvSetup
    from agentgym_gym.evaluate._run import RunLimits

__all__ = ["RequestsState", "SharedLimits"]

SLOW_SECONDS = 10.0
"""The seconds of a request after which the progress shows its duration."""


class SharedLimits:
    """The budget of several runs, a gate for each model server, and the form of requests for each model.

    Args:
        limits: The limits.
        agents: The agents of the runs.
        ray: The address of a Ray cluster, whose processes share no budget.
        notify: Called once with a sentence for each field of requests that a server refuses; by default,
            they are logged.

    Attributes:
        budget: The budget of all runs.
        unpriced: Names of the models without a price.

    Raises:
        BadOption: A limit has no effect or cannot be enforced.
    """

    def __init__(
        self,
        limits: RunLimits,
        agents: Sequence[AgentSetup],
        *,
        ray: str | None = None,
        notify: Callable[[str], object] | None = None,
    ) -> None:
        given = {name: getattr(limits, name) for name in _LIMITS if getattr(limits, name) is not None}
        first = next(iter(given), None)
        if first is not None and not any(agent.is_model for agent in agents):
            raise BadOption(first, given[first], problem="is only for models: remove it")
        if first is not None and ray is not None:
            raise BadOption(
                first,
                given[first],
                problem=(
                    "cannot be enforced on a Ray cluster: remove it, or ",
                    ArgumentName("ray"),
                    f"={ray!r}",
                ),
            )
        self.prices: Mapping[str, Price] = {} if limits.prices is None else read_prices(limits.prices)
        self.budget = Budget(limits.max_tokens_total, limits.max_cost)
        self._rate = limits.requests_per_minute
        self._gates: dict[str, Gate] = {}
        self._forms: dict[tuple[str, str], RequestForm] = {}
        self._notify = notify
        models = dict.fromkeys(agent.name for agent in agents if agent.is_model)
        by_name = {agent.name: agent for agent in agents}
        self.unpriced = [name for name in models if self.price(by_name[name]) is None]
        if self.unpriced and limits.max_cost is not None:
            raise BadOption(
                "max_cost",
                limits.max_cost,
                problem=(f"needs a price of {self.unpriced[0]}: give one by ", ArgumentName("prices")),
            )
        Gate(self._rate)  # reports an invalid rate before the run

    def price(self, agent: AgentSetup) -> Price | None:
        """Return the price of a model's tokens; None if it is unknown, or the agent is not a model."""
        return agent.price(self.prices)

    def of(self, agent: AgentSetup) -> RequestLimits | None:
        """Return the limits of an agent in one environment; None if it is not a model."""
        if not agent.is_model:
            return None
        gate = self._gates.setdefault(agent.server_key, Gate(self._rate))
        form = self._forms.setdefault((agent.server_key, agent.model), RequestForm(self._notify))
        return RequestLimits(gate, self.budget, self.price(agent), form)

    def state(self) -> list[str]:
        """Return the state of the requests in words."""
        gates = self._gates.values()
        waiting, in_flight = sum(gate.waiting for gate in gates), sum(gate.in_flight for gate in gates)
        rejected = sum(gate.rejected for gate in gates)
        words = []
        oldest = max((gate.longest_wait for gate in gates), default=0.0)
        if in_flight or waiting:
            words.append(f"requests {in_flight}" + (f" (+{waiting} waiting)" if waiting else ""))
        if oldest > SLOW_SECONDS:
            words.append(f"longest {oldest:.0f} s")
        if retries := sum(gate.retries for gate in gates):
            words.append(f"retries {retries}")
        words += [
            f"retrying {gate.faulted}: {' '.join(gate.last_fault.split()):.60}"
            for gate in gates
            if gate.faulted
        ]
        if rejected:
            words.append(f"HTTP 429 {rejected}")
        if self.budget.cost:
            words.append(f"cost {self.budget.cost:.2f}")
        return words


_LIMITS = ("max_cost", "max_tokens_total", "requests_per_minute")


@dataclass(frozen=True)
class RequestsState:
    """The state of requests to models and of slow environments in words, for the progress."""

    limits: SharedLimits
    envs: Collection[EnvSetup]

    def __call__(self) -> list[str]:
        waits = {env.name: env.shared_servers.calls.longest for env in self.envs}
        slow = [f"{name} waits {wait:.0f} s" for name, wait in waits.items() if wait > SLOW_SECONDS]
        return [*self.limits.state(), *slow]
