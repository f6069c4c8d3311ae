"""Parse replies as AgentGym's own client does."""

from __future__ import annotations

from collections.abc import Callable

from agentgym_gym.actions import Action, Grammar, Verbatim
from agentgym_gym.formats._base import Format, ParseResult

__all__ = ["AgentGymFormat"]


class AgentGymFormat(Format):
    """Parses replies exactly as AgentGym's own client does, so that scores compare with published ones.

    Args:
        inner: The format that writes the instructions.
        reader: AgentGym's parser for the environment. It takes a reply and returns the text that AgentGym's
            client sends. If the client sends nothing, it raises an ``ActionError`` with the client's
            ``answer``.
    """

    name = "agentgym"

    def __init__(self, inner: Format, reader: Callable[[str], str]) -> None:
        self.inner = inner
        self.reader = reader

    @property
    def _rule(self) -> str:
        return self.inner._rule  # noqa: SLF001 - the same family

    def _actions(self, grammar: Grammar) -> str:
        return self.inner._actions(grammar)  # noqa: SLF001 - the same family

    def _wrap(self, action: Action, thought: str) -> str:
        return self.inner._wrap(action, thought)  # noqa: SLF001 - the same family

    def render(self, action: Action, thought: str = "") -> str:
        """Return the reply that the inner format renders for an action."""
        return self.inner.render(action, thought)

    def read(self, reply: str, grammar: Grammar) -> ParseResult:
        """Return the text that AgentGym's client sends, even one that the grammar rejects; no position."""
        return ParseResult(Verbatim(self.reader(reply)))
