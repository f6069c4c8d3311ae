"""Limits on the requests to model servers: budgets, a rate, and a concurrency that follows HTTP 429."""

from __future__ import annotations

import asyncio
import contextlib
import math
import time
from collections import Counter, deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from agentgym_gym.errors import ArgumentName, BadOption, SetupError

if TYPE_CHECKING:
    from agentgym_gym.evaluate._figures.prices import Price

__all__ = ["Budget", "BudgetUsedUp", "Gate", "RequestLimits", "Usage"]

_CUT = 0.7  # factor of the concurrency after HTTP 429
_TOO_MANY = 429


class BudgetUsedUp(SetupError):
    """The budget of a run is used up: no further request is sent until it is raised.

    Attributes:
        limit: The name of the limit, an attribute of `Budget`.
    """

    def __init__(self, *parts: str, limit: str = "") -> None:
        super().__init__(*parts)
        self.limit = limit


@dataclass
class Usage:
    """Sums over the replies of a model, including the replies of unfinished episodes.

    Attributes:
        requests: Number of requests, including retries.
        retries: Number of retries after faults.
        prompt_tokens: Prompt tokens.
        completion_tokens: Completion tokens, including reasoning.
        cost: Cost of the tokens; 0 without a price.
    """

    requests: int = 0
    retries: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cost: float = 0.0

    @property
    def tokens(self) -> int:
        """Prompt and completion tokens."""
        return self.prompt_tokens + self.completion_tokens

    def add(self, other: Mapping[str, Any]) -> None:
        """Add sums, as returned by :meth:`as_dict`; invalid values are ignored."""
        for name in vars(self):
            value = other.get(name)
            if isinstance(value, (int, float)) and not isinstance(value, bool) and value >= 0:
                setattr(self, name, getattr(self, name) + value)

    def as_dict(self) -> dict[str, Any]:
        """Return the sums as JSON values."""
        return dict(vars(self))


@dataclass
class Budget:
    """A limit on all tokens, or on their cost. Several models may share it.

    Attributes:
        max_tokens_total: Maximum number of prompt and completion tokens; None for no limit.
        max_cost: Maximum cost, in the currency of the prices; None for no limit.
        tokens: Tokens so far.
        cost: Cost so far.

    Raises:
        BadOption: A limit is not positive.
    """

    max_tokens_total: int | None = None
    max_cost: float | None = None
    tokens: int = 0
    cost: float = 0.0

    def __post_init__(self) -> None:
        for name in ("max_tokens_total", "max_cost"):
            limit = getattr(self, name)
            if limit is not None and not 0 < limit < math.inf:
                raise BadOption(name, limit, "a positive number")

    @property
    def limits(self) -> list[ArgumentName]:
        """The names of the limits; empty if there is none."""
        limits = {"max_tokens_total": self.max_tokens_total, "max_cost": self.max_cost}
        return [ArgumentName(name) for name, limit in limits.items() if limit is not None]

    def check(self) -> None:
        """Check that the budget permits a further request.

        Raises:
            BudgetUsedUp: The budget is used up.
        """
        if self.max_tokens_total is not None and self.tokens >= self.max_tokens_total:
            raise self._used_up("max_tokens_total", f"{self.tokens:,} tokens", f"{self.max_tokens_total}")
        if self.max_cost is not None and self.cost >= self.max_cost:
            raise self._used_up("max_cost", f"cost {self.cost:.4g}", f"{self.max_cost:g}")

    @staticmethod
    def _used_up(limit: str, used: str, most: str) -> BudgetUsedUp:
        return BudgetUsedUp(f"budget used up: {used}, ", ArgumentName(limit), f"={most}", limit=limit)


class Gate:
    """Admits requests to a model server, first come, first served.

    After HTTP 429, it admits 0.7 times as many concurrent requests as there were, and at least one. Each
    success then raises the limit by its reciprocal, so by about one per round trip, until it exceeds the
    highest concurrency so far. Requests that were sent before the last reduction do not cause another one.

    Args:
        per_minute: Maximum number of requests per minute, evenly spaced; None for no limit.

    Attributes:
        limit: Maximum number of concurrent requests; infinite until the first HTTP 429.
        lowest: The lowest limit so far.
        in_flight: Number of requests without a reply.
        requests: Number of requests so far.
        rejected: Number of requests that the server rejected with HTTP 429.
        retries: Number of requests that were sent again after a fault.
        faulted: Number of requests that wait before they are sent again.
        last_fault: The message of the last fault; empty without a fault.

    Raises:
        BadOption: ``per_minute`` is not positive.
    """

    def __init__(self, per_minute: float | None = None) -> None:
        if per_minute is not None and not 0 < per_minute < math.inf:
            raise BadOption("requests_per_minute", per_minute, "a positive number")
        self._pause = 0.0 if per_minute is None else 60.0 / per_minute
        self._next = -math.inf  # time of the next request, with `per_minute`
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._sleeping = 0
        self._highest = 0
        self._cut = -math.inf  # time of the last reduction
        self._open: Counter[float] = Counter()  # requests without a reply, by the time of their admission
        self.limit = self.lowest = math.inf
        self.in_flight = self.requests = self.rejected = self.retries = self.faulted = 0
        self.last_fault = ""

    def __getstate__(self) -> dict[str, Any]:
        """Return the state of a new gate with the same rate, because waiting requests cannot be pickled."""
        return vars(Gate(60.0 / self._pause if self._pause else None))

    @property
    def waiting(self) -> int:
        """Number of requests that wait for admission."""
        return len(self._waiting) + self._sleeping

    @property
    def longest_wait(self) -> float:
        """Seconds since the oldest request without a reply was sent; 0 if there is none."""
        return time.monotonic() - min(self._open) if self._open else 0.0

    async def enter(self) -> float:
        """Wait for admission, and return the time of admission for `leave`."""
        if self._waiting or self.in_flight >= self.limit:
            turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._waiting.append(turn)
            try:
                await turn
            except asyncio.CancelledError:
                if turn.done() and not turn.cancelled():
                    self._release()  # admitted and cancelled in the same iteration of the loop
                else:
                    self._waiting.remove(turn)
                raise
        else:
            self.in_flight += 1
        try:
            await self._keep_rate()
        except asyncio.CancelledError:
            self._release()
            raise
        self.requests += 1
        self._highest = max(self._highest, self.in_flight)
        admitted = time.monotonic()
        self._open[admitted] += 1
        return admitted

    def leave(self, admitted: float, status: int | None) -> None:
        """Note that a request ended.

        Args:
            admitted: The time of its admission.
            status: The HTTP status of the reply; None if there was none.
        """
        self._open[admitted] -= 1
        if not self._open[admitted]:
            del self._open[admitted]
        if status == _TOO_MANY:
            self.rejected += 1
            if admitted > self._cut:
                self.limit = max(1.0, _CUT * min(self.limit, self.in_flight))
                self.lowest = min(self.lowest, self.limit)
                self._cut = time.monotonic()
        elif status is not None and self.limit < math.inf:
            self.limit += 1 / self.limit
            if self.limit > self._highest:
                self.limit = math.inf
        self._release()

    @contextlib.contextmanager
    def retrying(self, fault: str) -> Iterator[None]:
        """Count a request that waits before it is sent again.

        Args:
            fault: The message of its fault.
        """
        self.faulted += 1
        self.last_fault = fault
        try:
            yield
            self.retries += 1
        finally:
            self.faulted -= 1

    def _release(self) -> None:
        self.in_flight -= 1
        while self._waiting and self.in_flight + 1 <= self.limit:
            turn = self._waiting.popleft()
            if not turn.done():
                self.in_flight += 1
                turn.set_result(None)

    async def _keep_rate(self) -> None:
        if not self._pause:
            return
        now = time.monotonic()
        self._next = max(self._next + self._pause, now)
        if self._next > now:
            self._sleeping += 1
            try:
                await asyncio.sleep(self._next - now)
            finally:
                self._sleeping -= 1


class RequestLimits:
    """The limits of a model's requests, and their usage.

    Args:
        gate: The gate of the model's server.
        budget: The budget.
        price: The price of the tokens, which a maximum cost requires.

    Attributes:
        gate: The gate of the model's server.
        usage: The usage of this model.

    Raises:
        BadOption: The budget has a maximum cost, and there is no price.
    """

    def __init__(
        self, gate: Gate | None = None, budget: Budget | None = None, price: Price | None = None
    ) -> None:
        self.gate = Gate() if gate is None else gate
        self.budget = Budget() if budget is None else budget
        self.usage = Usage()
        self._price = price
        if self.budget.max_cost is not None and price is None:
            raise BadOption(
                "max_cost", self.budget.max_cost, problem="requires a price of the model's tokens"
            )

    def charge(self, tokens: Mapping[str, Any]) -> None:
        """Add the token counts of a reply.

        Args:
            tokens: Token counts under the names of `StepRecord`.

        Raises:
            BadOption: There is a budget, and the server does not report token counts.
        """
        prompt, completion = tokens.get("prompt_tokens"), tokens.get("completion_tokens")
        if prompt is None or completion is None:
            if self.budget.limits:
                named = [part for limit in self.budget.limits for part in (" and ", limit)][1:]
                raise BadOption(
                    [
                        "the model server reports no token counts, so no budget can be enforced: remove ",
                        *named,
                    ]
                )
            return
        cost = 0.0 if self._price is None else self._price.of(prompt, completion, tokens.get("cached_tokens"))
        self.add({"prompt_tokens": prompt, "completion_tokens": completion, "cost": cost})

    def add(self, usage: Mapping[str, Any]) -> None:
        """Add usage, such as the usage of a run before it was resumed."""
        added = Usage()
        added.add(usage)
        self.usage.add(added.as_dict())
        self.budget.tokens += added.tokens
        self.budget.cost += added.cost
