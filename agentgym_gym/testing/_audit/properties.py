"""The properties of a sound environment, in the order in which they are checked."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from agentgym_gym.testing._audit.replay import check_replay

if TYPE_CHECKING:
    from agentgym_gym.testing._audit.findings import Checked, Severity
    from agentgym_gym.testing._audit.subject import Subject

__all__ = ["PROPERTIES", "Property"]


@dataclass(frozen=True)
class Property:
    """A property of a sound environment.

    Attributes:
        name: Its name.
        claim: The property in one sentence.
        cost: The damage to training or evaluation in an environment without it, in one sentence.
        check: Checks it. Raises `NotApplicable` with the reason if that is impossible.
        severity: ``"error"`` if results of training or evaluation are wrong without it.
        share: The share of the time budget, relative to the other properties.
    """

    name: str
    claim: str
    cost: str
    check: Callable[[Subject], Awaitable[Checked]]
    severity: Severity = "error"
    share: float = 1.0


PROPERTIES: tuple[Property, ...] = (
    Property(
        "replay",
        "The same task and actions give the same episode in a new environment.",
        "GRPO compares episodes of one task: their advantages would be noise.",
        check_replay,
        share=2,
    ),
)
