"""The usage of models, and the budgets of tokens and cost that end a run."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from agentgym_gym.errors import ArgumentName, BadOption, SetupError
from agentgym_gym.evaluate._chat.causes import RejectionStreak
from agentgym_gym.evaluate._chat.rate_limit import Gate
from agentgym_gym.evaluate._chat.request_form import RequestForm

if TYPE_CHECKING:
    from agentgym_gym.evaluate._figures.prices import Price

__all__ = ["Budget", "BudgetUsedUp", "RequestLimits", "Usage"]


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


class RequestLimits:
    """The limits of a model's requests, and their usage.

    Args:
        gate: The gate of the model's server.
        budget: The budget.
        price: The price of the tokens, which a maximum cost requires.
        form: The form in which the server accepts requests.

    Attributes:
        gate: The gate of the model's server.
        form: The form in which the server accepts requests.
        streak: The rejected conversations in a row.
        usage: The usage of this model.

    Raises:
        BadOption: The budget has a maximum cost, and there is no price.
    """

    def __init__(
        self,
        gate: Gate | None = None,
        budget: Budget | None = None,
        price: Price | None = None,
        form: RequestForm | None = None,
    ) -> None:
        self.gate = Gate() if gate is None else gate
        self.form = RequestForm() if form is None else form
        self.streak = RejectionStreak()
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
