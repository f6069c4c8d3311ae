"""How a recipe treats the reasoning of a model, by the model's name."""

from __future__ import annotations

import re
from dataclasses import dataclass

__all__ = ["THINKING", "Thinking", "thinking_of"]

THINKING = ("off", "hide", "keep")
"""Choices: no reasoning, reasoning that the environment does not see, and reasoning as part of the reply."""

# Qwen3 without a suffix reasons by default, and its template has a switch; a release of 2507 has one mode.
_SWITCH = re.compile(r"qwen3(\.\d+)?-\d+(\.\d+)?b(-a\d+(\.\d+)?b)?(-base)?(-fp8|-awq)?$", re.IGNORECASE)
_ALWAYS = re.compile(r"thinking|\bqwq\b|deepseek-r1|\br1\b|reasoning|magistral|gpt-oss", re.IGNORECASE)


@dataclass(frozen=True)
class Thinking:
    """The choice and its reason.

    Attributes:
        mode: One of :data:`THINKING`; None for a model that does not reason.
        reason: The reason, for a comment.
    """

    mode: str | None
    reason: str


def thinking_of(model: str, chosen: str | None) -> Thinking:
    """Return how a recipe treats the reasoning of a model.

    Args:
        model: Name or path of the model.
        chosen: One of :data:`THINKING`, or None for what fits the name.

    Raises:
        ValueError: The choice is invalid, or the model's template cannot switch reasoning off.
    """
    name = model.rstrip("/").rpartition("/")[2]
    always = _ALWAYS.search(name) is not None
    if chosen is not None and chosen not in THINKING:
        raise ValueError(f"--thinking={chosen!r} is not one of {', '.join(THINKING)}")
    if chosen == "off" and always:
        raise ValueError(
            f"--thinking='off' does not fit {name}: its chat template has no switch for reasoning; use "
            "'hide', or a model without reasoning"
        )
    if chosen is not None:
        return Thinking(chosen, f"--thinking {chosen}.")
    if always:
        return Thinking("hide", f"The name {name} is of a model that always reasons: --thinking hide.")
    if _SWITCH.match(name):
        return Thinking(
            "off", f"The name {name} is of a model whose template can switch reasoning off: --thinking off."
        )
    return Thinking(None, "")
