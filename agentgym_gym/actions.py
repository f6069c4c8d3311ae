"""Typed actions: one declaration gives the parser, the text, the tool schema, the prompt and a strategy.

>>> from typing import Annotated, ClassVar
>>> from agentgym_gym.arguments import Integer, Name
>>> @dataclass(frozen=True)
... class Get(Action):
...     '''Take an ingredient from the environment.'''
...
...     template: ClassVar[str] = "get {count} {item}"
...     count: Annotated[int, Integer(1, 64), "how many"]
...     item: Annotated[str, Name(["oak log"]), "what to take"]
>>> grammar = Grammar([Get(1, "oak log")])
>>> grammar.parse("GET 2 oak_log")
Get(count=2, item='oak log')
>>> str(Get(2, "oak log"))
'get 2 oak log'
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, TypeAlias

from agentgym_gym._templates import ListOf, TemplateText, fields_of
from agentgym_gym._text import shown
from agentgym_gym.arguments import strategies
from agentgym_gym.errors import ActionError, BadArguments, UnknownAction

if TYPE_CHECKING:
    import numpy as np
    from hypothesis.strategies import SearchStrategy

__all__ = [
    "MAX_ACTION_CHARS",
    "Action",
    "Dumpable",
    "Grammar",
    "ListOf",
    "StepAction",
    "Style",
    "Thought",
    "ToolCall",
    "Verbatim",
]

MAX_ACTION_CHARS = 16_384
"""Longest text read as one action. A reply may be longer; its action may not."""


@dataclass(frozen=True)
class Style:
    """How the actions of one environment are written in a reply.

    Attributes:
        lines: Whether an action is one line. If not, :meth:`end` returns where it ends.
        verbatim: Whether the white space inside an action matters. If not, a run of it counts as one blank.
        fence: The language named on the code fence that an action is written in; "" for a fence without a
            language, None for no fence. The parser reads an action with or without a fence.
        mark: Pattern of an action with the fence or the tags that mark it, so that a reply needs no
            ``Action:`` before it; None where the actions have no such mark. It must match in linear time.
        beside_label: Whether AgentGym's own parser finds an action only on the line of its ``Action:``.
        opening: Pattern of an action up to its first word, which is the group ``name``.
    """

    lines: bool = True
    verbatim: bool = False
    fence: str | None = None
    mark: re.Pattern[str] | None = None
    beside_label: bool = False
    opening: re.Pattern[str] = re.compile(r"(?P<name>\w*)")

    def write(self, action: str) -> str:
        """Return the text of an action as it is written in a reply."""
        if self.fence is None:
            return action
        return f"```{self.fence}\n{action}\n```" if self.fence else f"```{action}```"

    def end(self, text: str, start: int, limit: int) -> int:
        """Return where an action of several lines ends.

        Args:
            text: The reply.
            start: Where the action begins.
            limit: Where it ends at the latest: at the next label, or at the end of the reply.
        """
        return limit

    def first_word(self, action: str) -> str:
        """Return the first word of an action's text, in lower case; may be empty."""
        found = self.opening.match(action)
        return found["name"].lower() if found else ""


class Action(TemplateText):
    """A typed action: a text that an environment plays. Its docstring tells the agent what it does.

    Class attributes:
        style: How it is written in a reply: the same for all actions of an environment.
        aliases: Other names by which its function is called; no prompt names them.
    """

    style: ClassVar[Style] = Style()
    aliases: ClassVar[tuple[str, ...]] = ()

    @classmethod
    def name(cls) -> str:
        """Return the function name: the words before the first field, such as ``go_to``."""
        return "_".join(re.findall(r"\w+", cls.head())) or cls.__name__.lower()

    @classmethod
    def doc(cls) -> str:
        """Return the first line of the docstring."""
        return (cls.__doc__ or "").strip().partition("\n")[0]


@dataclass(frozen=True)
class Verbatim:
    """An action sent in the agent's own words, because the grammar does not know it."""

    text: str

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True)
class Thought:
    """A reply that only thinks, in a format that allows it: it is acknowledged, not sent."""

    text: str


@dataclass(frozen=True)
class ToolCall:
    """A function call of a model, as an inference engine or an API hands it over.

    Attributes:
        name: The function's name.
        arguments: The arguments by name, or a JSON object of them as text. What does not fit is the agent's
            mistake, as in a reply of text.
    """

    name: str
    arguments: Mapping[str, Any] | str = field(default_factory=dict)

    def __str__(self) -> str:
        """Return the call as JSON, with the arguments as they were given."""
        call = {"name": self.name, "arguments": self.arguments}
        return json.dumps(call, ensure_ascii=False, default=_plain)


class Dumpable(Protocol):
    """An object with ``model_dump``, as pydantic has it, such as the messages of the client of OpenAI."""

    def model_dump(self) -> dict[str, Any]:
        """Return its fields by name."""
        ...


StepAction: TypeAlias = (
    str
    | Action
    | Verbatim
    | ToolCall
    | Dumpable
    | Mapping[str, Any]
    | Sequence[ToolCall | Dumpable | Mapping[str, Any]]
)
"""What ``step`` takes: text, a typed action, a function call, or a message of a chat API."""


class Grammar:
    """The actions of an environment.

    Args:
        examples: One action of each type, in the order a prompt should list them; the first is the one
            that examples of replies use.
        exclusive: Whether a reply must mark nothing else than these actions. If not, marks of other text are
            ignored in a reply that marks one of them.

    Raises:
        ValueError: There is no example, or two actions share a function name, or they differ in style.
    """

    def __init__(self, examples: Sequence[Action], *, exclusive: bool = False) -> None:
        self.examples = tuple(examples)
        self.exclusive = exclusive
        self.actions: tuple[type[Action], ...] = tuple(type(example) for example in examples)
        self._by_name = {_folded(action.name()): action for action in self.actions}
        self._names = ", ".join(action.name() for action in self.actions)
        if not self.examples or len(self._by_name) != len(self.examples):
            raise ValueError("a grammar needs one example of each action, and no two of one name")
        for action in self.actions:
            self._by_name |= {_folded(name): action for name in action.aliases}
        self.style = self.actions[0].style
        if any(action.style != self.style for action in self.actions):
            raise ValueError("the actions of a grammar must be of one style")
        # Which actions a text may be, by its first word: those that begin with it, then those of any word.
        self._of_any = tuple(action for action in self.actions if not action.openings())
        self._by_opening: dict[str, tuple[type[Action], ...]] = {
            word: (*(action for action in self.actions if word in action.openings()), *self._of_any)
            for word in frozenset().union(*(action.openings() for action in self.actions))
        }

    def parse(self, text: str) -> Action:
        """Read one action.

        Args:
            text: The action alone, without a fence or quotes around it.

        Raises:
            UnknownAction: No action begins with this text.
            ManyActions: The text is more than one action.
            BadArguments: The action is known, its arguments do not fit, or the text is too long.
        """
        if len(text) > MAX_ACTION_CHARS:
            raise BadArguments(
                f"the action is {len(text)} characters long; at most {MAX_ACTION_CHARS} are read"
            )
        text = text.strip() if self.style.verbatim else " ".join(text.split())
        problems: dict[type[Action], BadArguments] = {}
        possible = self._by_opening.get(text.partition(" ")[0].lower())
        if possible is None:  # the first word does not end with a blank
            possible = self._by_opening.get(self.style.first_word(text), self._of_any)
        several = len(possible) > 1
        for action in possible:
            if several and action.head() and not action.begins(text):
                continue  # sooner known than by an error
            try:
                return action.parse(text)
            except BadArguments as error:
                if action.begins(text):
                    problems[action] = error
        if not problems:
            raise UnknownAction(f"{shown(text)} is not one of the actions: {self._names}", text=text)
        # What most of the words at the beginning agree with is what was meant.
        raise problems[max(problems, key=lambda action: len(action.head()))]

    def begins(self, text: str) -> bool:
        """Return whether a text begins as an action does."""
        return any(action.begins(text) for action in self.actions)

    def knows(self, text: str) -> bool:
        """Return whether :meth:`parse` reads an action from the text."""
        try:
            self.parse(text)
        except ActionError:
            return False
        return True

    def from_call(self, name: str, arguments: Any) -> Action:
        """Make an action from a function call.

        Args:
            name: The function's name.
            arguments: A mapping of argument names to JSON values.

        Raises:
            UnknownAction: There is no function of that name.
            BadArguments: The arguments do not fit.
        """
        return self._named(name).from_json(arguments)

    def signature(self, name: str) -> tuple[str, ...]:
        """Return the argument names of a function in order.

        Raises:
            UnknownAction: There is no function of that name.
        """
        return tuple(self.parameters(name)["properties"])

    def parameters(self, name: str) -> dict[str, Any]:
        """Return the JSON schema of a function's arguments.

        Raises:
            UnknownAction: There is no function of that name.
        """
        return self._named(name).schema()

    def has_function(self, name: str) -> bool:
        """Return whether there is a function of that name."""
        return _folded(name) in self._by_name

    def _named(self, name: str) -> type[Action]:
        try:
            return self._by_name[_folded(name)]
        except KeyError:
            raise UnknownAction(f"{shown(name)} is not one of the functions: {self._names}") from None

    def lines(self) -> list[str]:
        """Return one line per action for a prompt: how it is written, what it does, an example."""
        return [
            f"{type(e).usage()} - {type(e).doc()}" + (f" Example: {e}" if fields_of(type(e)) else "")
            for e in self.examples
        ]

    def tools(self) -> list[dict[str, Any]]:
        """Return the actions as function tools, in the JSON shape that chat templates and APIs take."""
        return [
            {
                "type": "function",
                "function": {"name": a.name(), "description": a.doc(), "parameters": a.schema()},
            }
            for a in self.actions
        ]

    def strategy(self) -> SearchStrategy[Action]:
        """Return a hypothesis strategy over all actions."""
        return strategies().one_of([a.strategy() for a in self.actions])  # type: ignore[no-any-return]

    def sample(self, rng: np.random.Generator) -> Action:
        """Return a likely action."""
        return self.actions[int(rng.integers(len(self.actions)))].sample(rng)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Grammar) and other.examples == self.examples

    def __hash__(self) -> int:
        return hash(self.examples)

    def __repr__(self) -> str:
        return f"Grammar({self._names})"


def _plain(value: object) -> Any:
    """Return a mapping as JSON needs it."""
    return dict(value) if isinstance(value, Mapping) else repr(value)


def _folded(name: str) -> str:
    """Return a function's name in the form that is compared: models write ``goto`` and ``GoTo``."""
    return name.replace("_", "").lower()
