"""The base class of all formats."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar, NamedTuple, TypeAlias

from agentgym_gym._text import shown
from agentgym_gym.actions import Action, Grammar, Thought, Verbatim
from agentgym_gym.errors import ActionError, BadOption
from agentgym_gym.formats._answer import answer_of

__all__ = ["Format", "ParsedReply", "Reading", "answer_of"]

ParsedReply: TypeAlias = Action | Verbatim | Thought
"""The result of parsing a reply."""


class Reading(NamedTuple):
    """An action and where a reply marks it.

    Attributes:
        action: The action.
        mark: The kind of mark: ``"label"``, ``"tags"``, ``"call"``, ``"code"``, ``"command"``,
            ``"environment"`` or ``"whole reply"``.
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

# To see that a reply is read as its action takes longer than to play it, and an agent writes the same few
# actions again and again.
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
            thought: What the model thinks before it, where the format has a place for that.

        Raises:
            BadOption: The thought would be read as part of the action.
        """
        key = (self, type(action), str(action))
        if not thought and key in _rendered:
            return _rendered[key]
        reply = self._wrap(action, thought.strip())
        try:
            same = self.parse(reply, Grammar([action])) == action
        except ActionError:
            same = False
        if not same or "think>" in thought:
            raise BadOption(f"in the format {self.name!r} this thought hides the action: {shown(thought)}")
        if not thought:
            if len(_rendered) >= _MOST_RENDERED:
                _rendered.clear()
            _rendered[key] = reply
        return reply

    @abstractmethod
    def parse(self, reply: str, grammar: Grammar) -> ParsedReply:
        """Read a reply.

        Args:
            reply: All that the model wrote.
            grammar: The actions it may name.

        Raises:
            NoAction: Nothing in the reply is marked as the action.
            ManyActions: It holds more than one.
            UnknownAction: It names an action that the grammar does not know.
            BadArguments: It names a known action with arguments that do not fit.
        """

    def read(self, reply: str, grammar: Grammar) -> Reading:
        """Read a reply; return the action with its place in the reply and the calls that are ignored.

        Raises:
            ActionError: As :meth:`parse`.
        """
        return Reading(self.parse(reply, grammar))

    @property
    @abstractmethod
    def _rule(self) -> str:
        """The rule of the format, in a sentence or two."""

    @abstractmethod
    def _wrap(self, action: Action, thought: str) -> str:
        """Put an action and a thought together."""

    def _actions(self, grammar: Grammar) -> str:
        fence = grammar.style.fence
        where = "" if fence is None else f", to be written between ```{fence} and ```"
        return f"The actions{where}:\n" + "\n".join(f"- {line}" for line in grammar.lines())

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"
