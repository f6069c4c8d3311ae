"""Replies read as AgentGym's own client reads them."""

from __future__ import annotations

from collections.abc import Callable

from agentgym_gym.actions import Action, Grammar, Verbatim
from agentgym_gym.formats._base import Format, ParseResult

__all__ = ["AgentGymFormat"]


class AgentGymFormat(Format):
    """Reads replies exactly as AgentGym's own client does, for scores that compare with published ones.

    Args:
        inner: The format that writes the instructions.
        reader: AgentGym's rule for the environment: takes a reply and returns the text that its client
            sends. Where the client sends nothing, the rule raises an ``ActionError`` with the client's
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
        """Return the reply by which a model would give an action."""
        return self.inner.render(action, thought)

    def read(self, reply: str, grammar: Grammar) -> ParseResult:
        """Return the text that AgentGym's client sends, known to the grammar or not, without its place."""
        return ParseResult(Verbatim(self.reader(reply)))
