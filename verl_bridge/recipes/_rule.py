"""A rule of `agentgym verl check` about numbers, and how to write one."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Generic, Literal, TypeVar

from verl_bridge.recipes._finding import Finding

__all__ = ["Rule", "problem_if", "warning_if"]

S = TypeVar("S")
"""The record of the settings that a rule reads."""


@dataclass(frozen=True)
class Rule(Generic[S]):
    """A rule about settings.

    Attributes:
        status: The kind of its finding.
        wrong: Whether the settings break it; without side effects.
        text: The finding with the values, each as ``name={field}``.
        reason: The effect on the training.
        advice: The remedy.
    """

    status: Literal["problem", "warning"]
    wrong: Callable[[S], bool]
    text: str
    reason: str
    advice: str

    def settings(self, labels: Mapping[str, str]) -> list[str]:
        """Return the settings and facts that the rule reads, as the docs have them.

        Args:
            labels: The setting or the fact of each field of the record.
        """
        # They are the attributes in the code of the function, so that no second list can differ from it.
        return [labels[name] for name in self.wrong.__code__.co_names if name in labels]

    @property
    def condition(self) -> str:
        """The finding without values."""
        return re.sub(r"=\{[^}]*\}", "", self.text)

    def finding(self, numbers: S) -> Finding:
        """Return the finding about settings that break the rule."""
        text = f"{self.text.format_map(vars(numbers))}: {self.reason}"
        return Finding("numbers", self.status, text, self.advice)


def problem_if(wrong: Callable[[S], bool], text: str, reason: str, advice: str) -> Rule[S]:
    """Return a rule whose finding is a problem; the arguments are the attributes of :class:`Rule`."""
    return Rule("problem", wrong, text, reason, advice)


def warning_if(wrong: Callable[[S], bool], text: str, reason: str, advice: str) -> Rule[S]:
    """Return a rule whose finding is a warning; the arguments are the attributes of :class:`Rule`."""
    return Rule("warning", wrong, text, reason, advice)
