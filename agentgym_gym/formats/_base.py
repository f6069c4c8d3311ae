"""The base class of all formats."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar, NamedTuple, TypeAlias

from agentgym_gym._text import shown
from agentgym_gym.actions import Action, Grammar, Thought, Verbatim
from agentgym_gym.errors import ActionError, BadOption

__all__ = ["MAX_IGNORED_CHARS", "Format", "ParseResult", "ParsedReply"]

ParsedReply: TypeAlias = Action | Verbatim | Thought
"""An action, an action in the agent's own words, or a reply that only thinks."""

MAX_IGNORED_CHARS = 200
"""Characters that are kept of a call that is not played."""


class ParseResult(NamedTuple):
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


_EXAMPLE_THOUGHT = "I know what to do next."
_STAND_IN = "the thought itself"

# The check that a reply is read as its action takes longer than its step, and agents repeat their actions.
_rendered: dict[tuple[Format, type[Action], str], str] = {}
_MOST_RENDERED = 1024


class Format(ABC):
    """One way of wrapping an action in a reply."""

    name: ClassVar[str]

    def instructions(self, grammar: Grammar) -> str:
        """Return the part of a system prompt that lists the actions and says how to reply.

        It holds :meth:`example` word for word.
        """
        return (
            f"{self._actions(grammar)}\n\n{self._rule}\n\nAn example of a reply:\n\n{self.example(grammar)}"
        )

    def example(self, grammar: Grammar) -> str:
        """Return a reply that :meth:`parse` reads as the grammar's first example."""
        return self.render(grammar.examples[0], _EXAMPLE_THOUGHT)

    def render(self, action: Action, thought: str = "") -> str:
        """Return the reply by which a model would give an action.

        Args:
            action: The action.
            thought: The thought before it, where the format has a place for one.

        Raises:
            BadOption: The thought would be read as part of the action.
        """
        key = (self, type(action), str(action))
        if not thought and key in _rendered:
            return _rendered[key]
        reply = self._wrap(action, thought.strip())
        try:
            same = self.parse(reply, Grammar([action], exclusive=True)) == action
        except ActionError:
            same = False
        if not same or "think>" in thought:
            raise BadOption(f"in the format {self.name!r} this thought hides the action: {shown(thought)}")
        if not thought:
            if len(_rendered) >= _MOST_RENDERED:
                _rendered.clear()
            _rendered[key] = reply
        return reply

    def parse(self, reply: str, grammar: Grammar) -> ParsedReply:
        """Return the action of a reply.

        Args:
            reply: The whole reply of the model.
            grammar: The actions it may name.

        Raises:
            NoAction: The reply has no mark of an action.
            ManyActions: It marks several different actions.
            UnknownAction: The marked text is none of the actions.
            BadArguments: It is a known action with arguments that do not fit.

        The message of each ends with an example of the format.
        """
        try:
            return self.read(reply, grammar).action
        except ActionError as error:
            raise error.with_form(self.example(grammar)) from None

    @abstractmethod
    def read(self, reply: str, grammar: Grammar) -> ParseResult:
        """Return the action of a reply, its place, and the native calls that are ignored.

        Raises:
            ActionError: As for :meth:`parse`.
        """

    def thought_of(self, reply: str, action: Action) -> str:
        """Return the thought before the action of a reply, without white space at its ends; may be empty.

        For a reply that the format itself renders it is exact. For any other it is the text in the format's
        place for a thought, or else the text before the action.

        Args:
            reply: The whole reply of the model.
            action: The action that was read from it.
        """
        before, mark, behind = self._wrap(action, _STAND_IN).partition(_STAND_IN)
        if mark and reply.startswith(before) and reply.endswith(behind):
            thought = reply[len(before) : len(reply) - len(behind)].strip()
            if self._wrap(action, thought) == reply:
                return thought
        return self._thought_in(reply.replace("\r\n", "\n")).strip()

    def _thought_in(self, reply: str) -> str:
        """Return the thought of a reply that the format would not render so; empty by default."""
        return ""

    @property
    @abstractmethod
    def _rule(self) -> str:
        """How to write a reply, in a sentence or two."""

    @abstractmethod
    def _wrap(self, action: Action, thought: str) -> str:
        """Put an action and a thought together."""

    def _actions(self, grammar: Grammar) -> str:
        fence = grammar.style.fence
        where = "" if fence is None else f", to be written between ```{fence} and ```"
        return f"The actions{where}:\n" + "\n".join(f"- {line}" for line in grammar.lines())

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"
