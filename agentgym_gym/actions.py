"""Typed actions: one declaration gives the parser, the text, the tool schema, the prompt and a strategy.

>>> from dataclasses import dataclass
>>> from typing import Annotated, ClassVar
>>> from agentgym_gym.actions import Action, Grammar
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

from agentgym_gym._template_text import ListOf, TemplateText, fields_of
from agentgym_gym._text import shown
from agentgym_gym.arguments import strategies
from agentgym_gym.errors import ActionError, BadArguments, UnknownAction

if TYPE_CHECKING:
    import numpy as np
    from hypothesis.strategies import SearchStrategy

__all__ = [
    "MAX_ACTION_CHARS",
    "Action",
    "Grammar",
    "ListOf",
    "StepAction",
    "Style",
    "Thought",
    "ToolCall",
    "Verbatim",
]

MAX_ACTION_CHARS = 16_384
"""Limit for the text of one action, in characters. A reply may be longer than its action."""


@dataclass(frozen=True)
class Style:
    """The notation of an environment's actions in a reply.

    Attributes:
        lines: Whether an action is a single line. If not, :meth:`end` returns the position of its end.
        verbatim: Whether the white space inside an action matters. If not, any run of it counts as one space.
        fence: The language of the code fence around an action; "" for a fence without a language, None for
            no fence. The parser accepts an action with or without a fence.
        mark: Pattern of an action with its fence or tags, so that a reply needs no ``Action:`` before it;
            None if the actions have no such mark. It must match in linear time.
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
        """Return the text of an action in the notation of a reply."""
        if self.fence is None:
            return action
        return f"```{self.fence}\n{action}\n```" if self.fence else f"```{action}```"

    def end(self, text: str, start: int, limit: int) -> int:
        """Return the position of the end of a multi-line action.

        Args:
            text: The reply.
            start: The position where the action starts.
            limit: The latest possible end: the next label, or the end of the reply.
        """
        return limit

    def first_word(self, action: str) -> str:
        """Return the first word of an action's text, in lower case; may be empty."""
        found = self.opening.match(action)
        return found["name"].lower() if found else ""


class Action(TemplateText):
    """A typed action: a text that an environment executes. Its docstring describes it to the agent.

    Class attributes:
        style: Its notation in a reply: the same for all actions of an environment.
        aliases: Other names of its function, which prompts do not mention.
        blind_answers: Values of its only field that need no knowledge of the task. Only an action that ends
            an episode with an answer has them; `agentgym validate --policies` plays each.
    """

    style: ClassVar[Style] = Style()
    aliases: ClassVar[tuple[str, ...]] = ()
    blind_answers: ClassVar[tuple[Any, ...]] = ()

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
    """An action sent as the agent wrote it, because it is not in the grammar."""

    text: str

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True)
class Thought:
    """A reply that contains only a thought, in a format that allows it: it is acknowledged, not sent."""

    text: str


@dataclass(frozen=True)
class ToolCall:
    """A function call of a model, as returned by an inference engine or an API.

    Attributes:
        name: The function's name.
        arguments: The arguments by name, or a JSON object of them as text. Invalid arguments count as the
            agent's mistake, as in a text reply.
    """

    name: str
    arguments: Mapping[str, Any] | str = field(default_factory=dict)

    def __str__(self) -> str:
        """Return the call as JSON, with the original arguments."""
        call = {"name": self.name, "arguments": self.arguments}
        return json.dumps(call, ensure_ascii=False, default=_plain)


class _Dumpable(Protocol):
    """An object with ``model_dump``, as in pydantic, such as a message of OpenAI's client."""

    def model_dump(self) -> dict[str, Any]:
        """Return its fields by name."""
        ...


StepAction: TypeAlias = (
    str
    | Action
    | Verbatim
    | ToolCall
    | _Dumpable
    | Mapping[str, Any]
    | Sequence[ToolCall | _Dumpable | Mapping[str, Any]]
)
"""Arguments of ``step``: text, a typed action, a function call, or a message of a chat API."""


class Grammar:
    """The actions of an environment.

    Args:
        examples: One action of each type, in the order for prompts; examples of replies use the first.
        exclusive: Whether a reply must mark only these actions. If not, other marks are ignored in a reply
            that marks one of them.

    Attributes:
        heads: The words before the first field of each action, in lower case.

    Raises:
        ValueError: There is no example, or two actions share a function name or differ in style.
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
        self.heads = tuple(action.head().lower() for action in self.actions if action.head())
        # Candidate actions by the first word of a text: actions with that first word, then actions with any.
        self._of_any = tuple(action for action in self.actions if not action.openings())
        self._by_opening: dict[str, tuple[type[Action], ...]] = {
            word: (*(action for action in self.actions if word in action.openings()), *self._of_any)
            for word in frozenset().union(*(action.openings() for action in self.actions))
        }

    def parse(self, text: str) -> Action:
        """Parse one action.

        Args:
            text: Only the action, without a fence or quotes around it.

        Raises:
            UnknownAction: No action starts with this text.
            ManyActions: The text is more than one action.
            BadArguments: The action is known, but its arguments are invalid or the text is too long.
        """
        if len(text) > MAX_ACTION_CHARS:
            raise BadArguments(
                f"the action is {len(text)} characters long; at most {MAX_ACTION_CHARS} are read"
            )
        text = text.strip() if self.style.verbatim else " ".join(text.split())
        problems: dict[type[Action], BadArguments] = {}
        possible = self._by_opening.get(text.partition(" ")[0].lower())
        if possible is None:  # the first word is not followed by a space
            possible = self._by_opening.get(self.style.first_word(text), self._of_any)
        several = len(possible) > 1
        for action in possible:
            if several and action.head() and not action.begins(text):
                continue  # cheaper than an exception
            try:
                return action.parse(text)
            except BadArguments as error:
                if action.begins(text):
                    problems[action] = error
        if not problems:
            raise UnknownAction(f"{shown(text)} is not one of the actions: {self._names}", text=text)
        # The agent most likely meant the action with the longest matching head.
        raise problems[max(problems, key=lambda action: len(action.head()))]

    def begins(self, text: str) -> bool:
        """Return whether a text starts like an action."""
        return any(action.begins(text) for action in self.actions)

    def knows(self, text: str) -> bool:  # plain: a public name
        """Return whether :meth:`parse` accepts the text."""
        try:
            self.parse(text)
        except ActionError:
            return False
        return True

    def from_call(self, name: str, arguments: Any) -> Action:
        """Create an action from a function call.

        Args:
            name: The function's name.
            arguments: A mapping of argument names to JSON values.

        Raises:
            UnknownAction: There is no function of that name.
            BadArguments: The arguments are invalid.
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
        """Return one line per action for a prompt: its syntax, its description and an example."""
        return [
            f"{type(e).usage()} - {type(e).doc()}" + (f" Example: {e}" if fields_of(type(e)) else "")
            for e in self.examples
        ]

    def tools(self) -> list[dict[str, Any]]:
        """Return the actions as function tools, in the JSON format of chat templates and APIs."""
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
        """Return a typical action."""
        return self.actions[int(rng.integers(len(self.actions)))].sample(rng)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Grammar) and other.examples == self.examples

    def __hash__(self) -> int:
        return hash(self.examples)

    def __repr__(self) -> str:
        return f"Grammar({self._names})"


def _plain(value: object) -> Any:
    """Convert a value for JSON: a mapping to a dict, other objects to their repr."""
    return dict(value) if isinstance(value, Mapping) else repr(value)


def _folded(name: str) -> str:
    """Return a function's name in normalized form: models write ``goto`` and ``GoTo``."""
    return name.replace("_", "").lower()
