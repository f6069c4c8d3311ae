"""Budgets, rate limits and checks before the first episode of ``agentgym eval``."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import typer

from agentgym_gym._cli.console import clean, err
from agentgym_gym.errors import Argument, BadOption
from agentgym_gym.evaluate._chat.limits import Budget, Gate, RequestLimits

if TYPE_CHECKING:
    from agentgym_gym._cli.plans import RunPlan
    from agentgym_gym._cli.players import Player
    from agentgym_gym.evaluate._figures.prices import Price

__all__ = ["MOST_UNASKED", "SLOW_SECONDS", "SharedLimits", "check_servers", "confirm"]

MOST_UNASKED = 1_000
"""The number of episodes that models play without a confirmation."""

SLOW_SECONDS = 10.0
"""The seconds of a request after which the progress shows its duration."""


class SharedLimits:
    """The budget of a command, and a gate for each model server.

    Args:
        plan: The plan of the runs.
        players: The agents of the runs.
        prices: The prices of tokens.

    Attributes:
        budget: The budget of all runs.

    Raises:
        BadOption: A limit has no effect or cannot be enforced.
    """

    def __init__(self, plan: RunPlan, players: Sequence[Player], prices: Mapping[str, Price]) -> None:
        limits = {name: getattr(plan, name) for name in _LIMITS if getattr(plan, name) is not None}
        first = next(iter(limits), None)
        if first is not None and not any(player.is_model for player in players):
            raise BadOption(Argument(first), f"={limits[first]} is only for models: remove it")
        if first is not None and plan.ray is not None:
            raise BadOption(
                Argument(first),
                f"={limits[first]} cannot be enforced on a Ray cluster: remove it, or ",
                Argument("ray"),
                f"={plan.ray!r}",
            )
        self.budget = Budget(plan.max_tokens_total, plan.max_cost)
        self._rate = plan.requests_per_minute
        self._gates: dict[str, Gate] = {}
        self._prices = {player.name: player.price(prices) for player in players if player.is_model}
        unpriced = [name for name, price in self._prices.items() if price is None]
        if unpriced and plan.max_cost is not None:
            raise BadOption(
                Argument("max_cost"),
                f"={plan.max_cost:g} needs a price of {unpriced[0]}: give one by --prices",
            )
        if unpriced and plan.prices is not None:
            err.print(f"{plan.prices} has no price of {', '.join(unpriced)}: its cost is unknown")
        Gate(self._rate)  # reports an invalid rate before the run

    def of(self, player: Player) -> RequestLimits | None:
        """Return the limits of an agent in one environment; None if it is not a model."""
        if not player.is_model:
            return None
        gate = self._gates.setdefault(player.server_key, Gate(self._rate))
        return RequestLimits(gate, self.budget, self._prices[player.name])

    def state(self) -> list[str]:
        """Return the state of the requests in words, for the progress display."""
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
            f"retrying {gate.faulted}: {' '.join(clean(gate.last_fault).split()):.60}"
            for gate in gates
            if gate.faulted
        ]
        if rejected:
            words.append(f"HTTP 429 {rejected}")
        if self.budget.cost:
            words.append(f"cost {self.budget.cost:.2f}")
        return words


_LIMITS = ("max_cost", "max_tokens_total", "requests_per_minute")


def confirm(episodes: int, *, yes: bool) -> None:
    """Request a confirmation before models play very many episodes.

    Args:
        episodes: Number of episodes that models would play.
        yes: Whether they are confirmed already.

    Raises:
        BadOption: Standard input is not a terminal, so no confirmation is possible.
        typer.Abort: The user does not confirm.
    """
    if yes or episodes <= MOST_UNASKED:
        return
    what = f"{episodes:,} episodes of a model"
    if not sys.stdin.isatty():
        raise BadOption(
            f"this run has {what}, and there is no terminal to confirm them: give --yes to play them all, or "
            "--limit N for the first N tasks"
        )
    typer.confirm(f"This run has {what}. Play them all?", abort=True, err=True)


def check_servers(players: Sequence[Player]) -> None:
    """Check that the servers of all models accept connections.

    Raises:
        SetupError: One of them does not.
    """

    async def check() -> None:
        await asyncio.gather(*(player.check_server() for player in players))

    asyncio.run(check())
