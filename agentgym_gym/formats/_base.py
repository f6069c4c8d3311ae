"""The base class of all formats."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar, NamedTuple, TypeAlias

from agentgym_gym._text import shown
from agentgym_gym.actions import Action, Grammar, Thought, Verbatim
from agentgym_gym.errors import ActionError, BadOption

__all__ = ["MAX_IGNORED_CHARS", "Format", "ParseResult", "ParsedReply"]

ParsedReply: TypeAlias = Action | Verbatim | Thought
"""An action, text that is sent to the server unchanged, or a reply with only a thought."""

MAX_IGNORED_CHARS = 200
"""Maximum length of the text kept for a call that is not executed."""


class ParseResult(NamedTuple):
    """An action and its position in a reply.

    Attributes:
        action: The action.
        mark: The kind of mark: ``"label"``, ``"tags"``, ``"call"``, ``"code"``, ``"command"``,
            ``"environment"`` or ``"whole reply"``; empty for a format that does not report it.
        start: Start of the action's text in the reply, in characters.
        end: End of that text.
        ignored: Texts of further native calls in the same reply, which are not executed.
        played: Position of the executed one among all native calls of the reply, from 0.
    """

    action: ParsedReply
    mark: str = ""
    start: int = 0
    end: int = 0
    ignored: tuple[str, ...] = ()
    played: int = 0


_EXAMPLE_THOUGHT = "I know what to do next."
_STAND_IN = "the thought itself"

# Cache: checking that a rendered reply parses takes longer than a step, and agents repeat their actions.
_rendered: dict[tuple[Format, type[Action], str], str] = {}
_MOST_RENDERED = 1024


class Format(ABC):
    """A way to write an action in a reply."""

    name: ClassVar[str]

    def instructions(self, grammar: Grammar) -> str:
        """Return the part of a system prompt that lists the actions and explains how to reply.

        It contains :meth:`example` verbatim.
        """
        return (
            f"{self._actions(grammar)}\n\n{self._rule}\n\nAn example of a reply:\n\n{self.example(grammar)}"
        )

    def example(self, grammar: Grammar) -> str:
        """Return a reply that :meth:`parse` reads as the grammar's first example."""
        return self.render(grammar.examples[0], _EXAMPLE_THOUGHT)

    def render(self, action: Action, thought: str = "") -> str:
        """Return a reply that contains an action.

        Args:
            action: The action.
            thought: The thought before it, if the format has a place for one.

        Raises:
            BadOption: The parser would treat the thought as part of the action.
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
        """Return the action in a reply.

        Args:
            reply: The whole reply of the model.
            grammar: The actions that the reply may contain.

        Raises:
            NoAction: The reply has no mark of an action.
            ManyActions: It marks several different actions.
            UnknownAction: The marked text is not one of the actions.
            BadArguments: It is a known action with invalid arguments.

        Each error message ends with an example of the format.
        """
        try:
            return self.read(reply, grammar).action
        except ActionError as error:
            raise error.with_form(self.example(grammar)) from None

    @abstractmethod
    def read(self, reply: str, grammar: Grammar) -> ParseResult:
        """Return the action in a reply, its position, and the ignored native calls.

        Raises:
            ActionError: As for :meth:`parse`.
        """

    def thought_of(self, reply: str, action: Action) -> str:
        """Return the thought before the action in a reply, stripped; it may be empty.

        The result is exact for a reply that the format itself rendered. For other replies it is the text in
        the format's place for a thought, or else the text before the action.

        Args:
            reply: The whole reply of the model.
            action: The action parsed from it.
        """
        before, mark, behind = self._wrap(action, _STAND_IN).partition(_STAND_IN)
        if mark and reply.startswith(before) and reply.endswith(behind):
            thought = reply[len(before) : len(reply) - len(behind)].strip()
            if self._wrap(action, thought) == reply:
                return thought
        return self._thought_in(reply.replace("\r\n", "\n")).strip()

    def _thought_in(self, reply: str) -> str:
        """Return the thought in a reply that the format would render differently; empty by default."""
        return ""

    @property
    @abstractmethod
    def _rule(self) -> str:
        """How to write a reply, in one or two sentences."""

    @abstractmethod
    def _wrap(self, action: Action, thought: str) -> str:
        """Combine an action and a thought."""

    def _actions(self, grammar: Grammar) -> str:
        fence = grammar.style.fence
        where = "" if fence is None else f", to be written between ```{fence} and ```"
        return f"The actions{where}:\n" + "\n".join(f"- {line}" for line in grammar.lines())

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"
