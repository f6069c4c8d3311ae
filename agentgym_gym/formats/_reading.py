"""The result of reading a reply."""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

from agentgym_gym.actions import Action, Thought, Verbatim

__all__ = ["ParsedReply", "Reading"]

ParsedReply: TypeAlias = Action | Verbatim | Thought
"""An action, an action in the agent's own words, or a reply that only thinks."""


class Reading(NamedTuple):
    """An action and where a reply marks it.

    Attributes:
        action: The action.
        mark: The kind of mark: ``"label"``, ``"tags"``, ``"call"``, ``"code"``, ``"command"``,
            ``"environment"`` or ``"whole reply"``; empty for a format that does not report it.
        start: Where the text of the action begins in the reply, in characters.
        end: Where it ends.
        ignored: Further native calls of the same reply, which are not played, as text.
    """

    action: ParsedReply
    mark: str = ""
    start: int = 0
    end: int = 0
    ignored: tuple[str, ...] = ()
