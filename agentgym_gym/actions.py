"""Typed actions: one declaration gives the parser, the text, the tool schema, the prompt and a strategy.

>>> from typing import Annotated, ClassVar
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

import re
from collections.abc import Mapping, Sequence
from dataclasses import MISSING, dataclass, fields
from itertools import chain
from string import Formatter
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, TypeVar, get_args, get_origin, get_type_hints

from agentgym_gym.arguments import Argument, Integer, Name, strategies
from agentgym_gym.errors import ActionError, BadArguments, UnknownAction
from agentgym_gym.text import shown

if TYPE_CHECKING:
    import numpy as np
    from hypothesis.strategies import SearchStrategy
    from typing_extensions import Self

__all__ = ["MAX_ACTION_CHARS", "Action", "Grammar", "Integer", "Name", "Phrase", "Thought", "Verbatim"]

MAX_ACTION_CHARS = 16_384
"""Longest text read as one action. A reply may be longer; its action may not."""

P = TypeVar("P", bound="Phrase")


@dataclass(frozen=True)
class _Field:
    """One argument of a phrase: its name, its kind, what it means and whether it may be left out."""

    name: str
    argument: Argument[Any]
    doc: str
    required: bool


class _Template:
    """A template such as ``get {count} {item}``, taken apart once per class.

    Reading never goes back on a decision: a field ends at the first place where the text that follows it in
    the template is found, so the time taken grows with the length of the text and no faster.
    """

    def __init__(self, template: str) -> None:
        self.source = template
        pieces = list(Formatter().parse(template))
        self.names = [name for _, name, _, _ in pieces if name is not None]
        literals = [literal for literal, name, _, _ in pieces if name is not None]
        self.head = literals[0] if literals else template
        self._literals = literals
        self.tail = pieces[-1][0] if pieces[-1][1] is None and literals else ""
        self.gaps = [re.compile(re.escape(gap), re.IGNORECASE | re.ASCII) for gap in literals[1:]]

    def join(self, written: Sequence[str]) -> str:
        """Put the text of each field in its place."""
        if not self.names:
            return self.head
        return "".join([*chain.from_iterable(zip(self._literals, written, strict=True)), self.tail])

    def split(self, text: str) -> list[str] | None:
        """Return the text of each field in order, or None where the template does not fit."""
        head, tail = len(self.head), len(self.tail)
        if len(text) < head + tail or text[:head].lower() != self.head.lower():
            return None
        if tail and text[-tail:].lower() != self.tail.lower():
            return None
        if not self.names:
            return [] if len(text) == head else None
        end = len(text) - tail
        found, start = [], head
        for gap in self.gaps:
            match = gap.search(text, start, end)
            if match is None:
                return None
            found.append(text[start : match.start()])
            start = match.end()
        found.append(text[start:end])
        return found


class Phrase:
    """A frozen dataclass with a template: base of :class:`Action` and of the parts of one.

    Every field is annotated ``Annotated[type, Argument, "what it means"]`` and checked when the phrase is
    made, so a phrase that exists can be written, and read back as itself.

    Class attributes:
        template: How the phrase is written, with ``{field}`` in each field's place.
        accepts: Other templates that are read as well, each with the values of the fields it leaves out.

    Raises:
        BadArguments: A field has a value its kind does not allow.
    """

    template: ClassVar[str]
    accepts: ClassVar[Mapping[str, Mapping[str, Any]]] = {}

    def __post_init__(self) -> None:
        for field in _fields(type(self)):
            try:
                field.argument.check(getattr(self, field.name))
            except BadArguments as error:
                raise BadArguments(f"{field.name}: {error}") from None
        template, written = _templates(type(self))[0], self._written()
        if template.split(template.join(written)) != written:
            raise BadArguments(f"{shown(str(self))} would be read as something else")

    def _written(self) -> list[str]:
        return [f.argument.write(getattr(self, f.name)) for f in _fields(type(self))]

    def __str__(self) -> str:
        return _templates(type(self))[0].join(self._written())

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read the phrase from text.

        Raises:
            BadArguments: The text does not fit, or a field does not allow what it says.
        """
        problem: BadArguments | None = None
        for template in _templates(cls):
            found = template.split(text)
            if found is None:
                continue
            arguments = {f.name: f.argument for f in _fields(cls)}
            values = dict(cls.accepts.get(template.source, {}))
            try:
                for name, written in zip(template.names, found, strict=True):
                    values[name] = arguments[name].read(written)
                return cls(**values)
            except BadArguments as error:
                problem = problem or error
        because = f": {problem}" if problem else ""
        raise BadArguments(f"expected {cls.usage()!r}, got {shown(text)}{because}")

    @classmethod
    def from_json(cls, value: Any) -> Self:
        """Make the phrase from a mapping of its fields.

        Raises:
            BadArguments: A field is missing, unknown, or has a value its kind does not allow.
        """
        if not isinstance(value, Mapping):
            raise BadArguments(f"expected the arguments {cls.usage()!r} as an object, got {shown(value)}")
        known = _fields(cls)
        unknown = [str(name) for name in value if name not in {f.name for f in known}]
        missing = [f.name for f in known if f.required and f.name not in value]
        if unknown or missing:
            names = ", ".join(f.name for f in known) or "none"
            lacking = f"; missing: {', '.join(missing)}" if missing else ""
            strange = f"; not known: {shown(', '.join(unknown))}" if unknown else ""
            raise BadArguments(f"the arguments are: {names}{lacking}{strange}")
        return cls(**{f.name: f.argument.from_json(value[f.name]) for f in known if f.name in value})

    def to_json(self) -> dict[str, Any]:
        """Return the fields as JSON values; :meth:`from_json` undoes it."""
        return {f.name: f.argument.to_json(getattr(self, f.name)) for f in _fields(type(self))}

    @classmethod
    def usage(cls) -> str:
        """Return the template with each field's name in angle brackets, for people and models."""
        return cls.template.format_map({f.name: f"<{f.name}>" for f in _fields(cls)})

    @classmethod
    def schema(cls) -> dict[str, Any]:
        """Return the JSON schema of :meth:`to_json`."""
        known = _fields(cls)
        return {
            "type": "object",
            "properties": {f.name: {**f.argument.schema(), "description": f.doc} for f in known},
            "required": [f.name for f in known if f.required],
            "additionalProperties": False,
        }

    @classmethod
    def strategy(cls) -> SearchStrategy[Self]:
        """Return a hypothesis strategy over all phrases of this type."""
        drawn = {f.name: f.argument.strategy() for f in _fields(cls)}
        return strategies().builds(cls, **drawn)  # type: ignore[no-any-return]

    @classmethod
    def sample(cls, rng: np.random.Generator) -> Self:
        """Return a likely phrase."""
        return cls(**{f.name: f.argument.sample(rng) for f in _fields(cls)})


class Action(Phrase):
    """A phrase that an environment carries out. Its docstring tells the agent what it does."""

    @classmethod
    def name(cls) -> str:
        """Return the function name: the first word of the template."""
        match = re.match(r"\w+", cls.template)
        return match[0] if match else cls.__name__.lower()

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
    """A reply that only thinks, in a format where that is a move: it is acknowledged, not sent."""

    text: str


# By class, filled at first use: a class decorated as a dataclass is complete only after its creation.
_fields_of: dict[type, tuple[_Field, ...]] = {}
_templates_of: dict[type, tuple[_Template, ...]] = {}


def _fields(cls: type[Phrase]) -> tuple[_Field, ...]:
    if cls in _fields_of:
        return _fields_of[cls]
    hints = get_type_hints(cls, include_extras=True)
    found = []
    for field in fields(cls):  # type: ignore[arg-type]
        hint = hints[field.name]
        if get_origin(hint) is not Annotated:
            raise TypeError(f"{cls.__name__}.{field.name} must be Annotated[type, Argument, 'what it means']")
        _, argument, doc = get_args(hint)
        found.append(_Field(field.name, argument, doc, field.default is MISSING))
    _fields_of[cls] = tuple(found)
    return _fields_of[cls]


def _templates(cls: type[Phrase]) -> tuple[_Template, ...]:
    if cls in _templates_of:
        return _templates_of[cls]
    made = tuple(_Template(template) for template in (cls.template, *cls.accepts))
    if made[0].names != [f.name for f in _fields(cls)]:
        raise TypeError(f"{cls.__name__}: the template must name every field once, in order")
    _templates_of[cls] = made
    return made


class Grammar:
    """The actions of an environment.

    Args:
        examples: One action of each type, in the order a prompt should list them; the first is the one
            that examples of replies use.

    Raises:
        ValueError: There is no example, or two actions share a function name.
    """

    def __init__(self, examples: Sequence[Action]) -> None:
        self.examples = tuple(examples)
        self.actions: tuple[type[Action], ...] = tuple(type(example) for example in examples)
        self._by_name = {action.name(): action for action in self.actions}
        if not self.examples or len(self._by_name) != len(self.examples):
            raise ValueError("a grammar needs one example of each action, and no two of one name")

    def parse(self, text: str) -> Action:
        """Read one action.

        Args:
            text: The action alone, as a line of text. Runs of white space count as one blank.

        Raises:
            UnknownAction: No action begins like that.
            BadArguments: The action is known, its arguments do not fit, or the text is too long.
        """
        if len(text) > MAX_ACTION_CHARS:
            raise BadArguments(
                f"the action is {len(text)} characters long; at most {MAX_ACTION_CHARS} are read"
            )
        text = " ".join(text.split())
        action = self._by_name.get(_verb(text))
        if action is None:
            raise UnknownAction(
                f"{shown(text)} is not one of the actions: {', '.join(self._by_name)}", text=text
            )
        return action.parse(text)

    def knows(self, text: str) -> bool:
        """Return whether :meth:`parse` reads an action from the text."""
        try:
            self.parse(text)
        except ActionError:
            return False
        return True

    def names(self, text: str) -> bool:
        """Return whether the text begins with the name of an action, whatever follows."""
        return _verb(text) in self._by_name

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
        return tuple(field.name for field in _fields(self._named(name)))

    def _named(self, name: str) -> type[Action]:
        try:
            return self._by_name[name.lower()]
        except KeyError:
            known = ", ".join(self._by_name)
            raise UnknownAction(f"{shown(name)} is not one of the functions: {known}") from None

    def lines(self) -> list[str]:
        """Return one line per action for a prompt: how it is written, what it does, an example."""
        return [
            f"{type(e).usage()} - {type(e).doc()}" + (f" Example: {e}" if _fields(type(e)) else "")
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
        return f"Grammar({', '.join(self._by_name)})"


def _verb(text: str) -> str:
    match = re.match(r"\s*(\w*)", text)
    return match[1].lower() if match else ""
