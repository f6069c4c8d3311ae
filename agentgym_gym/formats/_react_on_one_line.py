"""The variant of ReAct with an action on the line of its label."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agentgym_gym.formats.react import ReAct

if TYPE_CHECKING:
    from agentgym_gym.actions import Action

__all__ = ["ReActOnOneLine"]


class ReActOnOneLine(ReAct):
    """ReAct with the action on the line of its label, where AgentGym's tool servers expect it."""

    _rule = (
        "First write what you think below the word `Thought:`, then the word `Action:` and exactly one "
        "action on the same line, and end your reply there."
    )

    def _wrap(self, action: Action, thought: str) -> str:
        return f"Thought:\n{thought}\n\nAction: {action.style.write(str(action))}"
