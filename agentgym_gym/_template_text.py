"""Templates: frozen dataclasses that are formatted as text and parsed from text by a template."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Mapping
from dataclasses import MISSING, dataclass, fields, is_dataclass
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, get_args, get_origin, get_type_hints

from agentgym_gym._template import Template
from agentgym_gym._text import shown
from agentgym_gym.arguments import Argument, strategies
from agentgym_gym.errors import BadArguments

if TYPE_CHECKING:
    import numpy as np
    from hypothesis.strategies import SearchStrategy
    from typing_extensions import Self

__all__ = ["Field", "ListOf", "TemplateText", "fields_of", "names_of", "register_all"]


@dataclass(frozen=True)
class Field:
    """One argument of a template.

    Attributes:
        name: Its name.
        key: Its name in prompts, schemas and calls: without the trailing underscore that avoids a clash with
            a method.
        argument: Its kind.
        doc: Its meaning.
        required: Whether it is required.
    """

    name: str
    key: str
    argument: Argument[Any]
    doc: str
    required: bool


class TemplateText:
    """A frozen dataclass with a template: the base of :class:`Action` and of its parts.

    Every field is annotated ``Annotated[type, Argument, "what it means"]`` and validated when the object is
    created, so every object can be formatted, and its text parses to an equal object.

    Class attributes:
        template: The form of the text, with ``{field}`` in each field's place.
        accepts: Other templates to parse, each with the values of the fields that it omits.

    Raises:
        BadArguments: A field has an invalid value.
    """

    template: ClassVar[str]
    accepts: ClassVar[Mapping[str, Mapping[str, Any]]] = {}

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        if "hypothesis" in sys.modules:
            _register(cls)

    def __post_init__(self) -> None:
        self._check_fields()
        template = _templates(type(self))[0]
        if not template.gaps:  # the value of a single field is always parsed as written
            return
        written = self._written()
        text = template.join(written)
        if template.split(text) != written:
            raise BadArguments(f"{shown(text)} would be read as something else")
        self.__dict__["_text"] = text

    def _check_fields(self) -> None:
        for field in fields_of(type(self)):
            try:
                field.argument.check(getattr(self, field.name))
            except BadArguments as error:
                raise BadArguments(f"{field.key}: {error}") from None

    def _written(self) -> list[str]:
        return [f.argument.write(getattr(self, f.name)) for f in fields_of(type(self))]

    def __str__(self) -> str:
        text: str | None = self.__dict__.get("_text")  # requested often, and immutable
        if text is None:
            text = self.__dict__["_text"] = _templates(type(self))[0].join(self._written())
        return text

    @classmethod
    def head(cls) -> str:
        """Return the words before the first field, in their original order; may be empty."""
        return _templates(cls)[0].head

    @classmethod
    def openings(cls) -> frozenset[str]:
        """Return the possible first words of such a text, in lower case; empty if any text can be one.

        For a text that starts with no word, such as ``<search>``, the first word is empty. A class that
        parses more than its templates, and so overrides :meth:`begins`, overrides this too.
        """
        if not cls.head():
            return frozenset()
        stems = (template.stem for template in _templates(cls) if template.stem)
        return frozenset(re.split(r"\W", stem, maxsplit=1)[0] for stem in stems)

    @classmethod
    def begins(cls, text: str) -> bool:
        """Return whether a text starts like such a text; without a head, whether it is one."""
        templates = _templates(cls)
        if templates[0].head:
            return any(template.begins(text) for template in templates)
        try:
            cls.parse(text)
        except BadArguments:
            return False
        return True

    @classmethod
    def parse(cls, text: str) -> Self:
        """Create the object from its text.

        Raises:
            BadArguments: The text does not match, or a field has an invalid value.
        """
        problem: BadArguments | None = None
        for template in _templates(cls):
            try:
                values = template.read(text)
                if values is not None:
                    return cls(**values, **template.defaults) if template.defaults else cls(**values)
            except BadArguments as error:
                problem = problem or error
        because = f": {problem}" if problem else ""
        raise BadArguments(f"expected {cls.usage()!r}, got {shown(text)}{because}")

    @classmethod
    def from_json(cls, value: Any) -> Self:
        """Create the object from a mapping of its fields.

        Raises:
            BadArguments: A field is missing, unknown, or has an invalid value.
        """
        if not isinstance(value, (dict, Mapping)):  # the check for a dict is faster
            raise BadArguments(f"expected the arguments {cls.usage()!r} as an object, got {shown(value)}")
        known, names = fields_of(cls), names_of(cls)
        if value.keys() == names:
            return cls(**_read(value, known))
        unknown = [str(name) for name in value if name not in names]
        missing = [f.key for f in known if f.required and f.key not in value]
        if unknown or missing:
            listed = ", ".join(f.key for f in known) or "none"
            lacking = f"; missing: {', '.join(missing)}" if missing else ""
            strange = f"; not known: {shown(', '.join(unknown))}" if unknown else ""
            raise BadArguments(f"the arguments are: {listed}{lacking}{strange}")
        return cls(**_read(value, [f for f in known if f.key in value]))

    def to_json(self) -> dict[str, Any]:
        """Return the fields as JSON values, the inverse of :meth:`from_json`."""
        return {f.key: f.argument.to_json(getattr(self, f.name)) for f in fields_of(type(self))}

    @classmethod
    def usage(cls) -> str:
        """Return the template with each field's name in angle brackets, for people and models."""
        return cls.template.format_map({f.name: f"<{f.key}>" for f in fields_of(cls)})

    @classmethod
    def schema(cls) -> dict[str, Any]:
        """Return the JSON schema of :meth:`to_json`."""
        known = fields_of(cls)
        return {
            "type": "object",
            "properties": {f.key: {**f.argument.schema(), "description": f.doc} for f in known},
            "required": [f.key for f in known if f.required],
            "additionalProperties": False,
        }

    @classmethod
    def strategy(cls) -> SearchStrategy[Self]:
        """Return a hypothesis strategy over all objects of this type."""
        drawn = strategies().fixed_dictionaries({f.name: f.argument.strategy() for f in fields_of(cls)})
        return drawn.map(cls._made_of).filter(lambda made: made is not None)  # type: ignore[no-any-return]

    @classmethod
    def _made_of(cls, values: dict[str, Any]) -> Self | None:
        """Return an object with these values, or None if its text would parse differently."""
        try:
            return cls(**values)
        except BadArguments:
            return None

    @classmethod
    def sample(cls, rng: np.random.Generator) -> Self:
        """Return a typical object."""
        while True:
            made = cls._made_of({f.name: f.argument.sample(rng) for f in fields_of(cls)})
            if made is not None:
                return made


# Filled on first use: a class decorated as a dataclass is complete only after its creation.
_known_fields: dict[type, tuple[Field, ...]] = {}
_known_names: dict[type, frozenset[str]] = {}
_templates_of: dict[type, tuple[Template, ...]] = {}


def fields_of(cls: type[TemplateText]) -> tuple[Field, ...]:
    """Return the arguments of a template class in order."""
    if cls in _known_fields:
        return _known_fields[cls]
    hints = get_type_hints(cls, include_extras=True)
    found = []
    for field in fields(cls):  # type: ignore[arg-type]
        hint = hints[field.name]
        if get_origin(hint) is not Annotated:
            raise TypeError(f"{cls.__name__}.{field.name} must be Annotated[type, Argument, 'what it means']")
        _, argument, doc = get_args(hint)
        key = field.name.removesuffix("_")
        found.append(Field(field.name, key, argument, doc, field.default is MISSING))
    _known_fields[cls] = tuple(found)
    return _known_fields[cls]


def _read(value: Mapping[str, Any], known: Iterable[Field]) -> dict[str, Any]:
    """Return the values of arguments by field name.

    Args:
        value: The values, by key.
        known: The arguments, all of which are present.

    Raises:
        BadArguments: An argument has an invalid value; the message contains its name.
    """
    found = {}
    for field in known:
        try:
            found[field.name] = field.argument.from_json(value[field.key])
        except BadArguments as error:
            raise BadArguments(f"{field.key}: {error}") from None
    return found


def names_of(cls: type[TemplateText]) -> frozenset[str]:
    """Return the names of a template class's arguments in calls."""
    if cls not in _known_names:
        _known_names[cls] = frozenset(field.key for field in fields_of(cls))
    return _known_names[cls]


def register_all() -> None:
    """Register all template classes with hypothesis after its import. Later ones register themselves."""
    found = TemplateText.__subclasses__()
    while found:
        cls = found.pop()
        _register(cls)
        found += cls.__subclasses__()


def _register(cls: type[TemplateText]) -> None:
    """Register :meth:`TemplateText.strategy` for ``st.from_type``."""

    def strategy(_: object) -> Any:
        # A class decorated with slots=True was created twice, and the first of the two is unused.
        return cls.strategy() if is_dataclass(cls) else NotImplemented

    if hasattr(cls, "template"):  # otherwise it is an abstract base
        strategies().register_type_strategy(cls, strategy)


def _templates(cls: type[TemplateText]) -> tuple[Template, ...]:
    known = _templates_of.get(cls)
    if known is not None:
        return known
    arguments = {field.name: field.argument for field in fields_of(cls)}
    try:
        others = [Template(template, arguments, defaults) for template, defaults in cls.accepts.items()]
        made = (Template(cls.template, arguments), *others)
    except KeyError as name:
        raise TypeError(f"{cls.__name__}: a template names {name}, which is not a field") from None
    if made[0].names != list(arguments):
        raise TypeError(f"{cls.__name__}: the template must name every field once, in order")
    _templates_of[cls] = made
    return made


class ListOf(Argument[tuple[Any, ...]]):
    """One or more objects of one template class, separated by commas.

    Args:
        part: The type of the parts; the text of a part must not contain a comma.
        max_items: Greatest number of parts.
    """

    def __init__(self, part: type[TemplateText], *, max_items: int = 9) -> None:
        self.part = part
        self.max_items = max_items

    def read(self, text: str) -> tuple[Any, ...]:
        """Parse the parts between the commas."""
        if text.count(",") >= self.max_items:
            raise BadArguments(f"expected {self.describe()}, got more")
        return tuple(self.part.parse(part.strip()) for part in text.split(","))

    def write(self, value: tuple[Any, ...]) -> str:
        """Join the parts with commas."""
        return ", ".join(map(str, value))

    def check(self, value: Any) -> None:
        """Accept a tuple of objects of the right type."""
        if not isinstance(value, tuple) or not all(type(part) is self.part for part in value):
            raise BadArguments(f"expected {self.describe()}, got {shown(value)}")
        if not 1 <= len(value) <= self.max_items:
            raise BadArguments(f"expected {self.describe()}, got {len(value)}")

    def from_json(self, value: Any) -> tuple[Any, ...]:
        """Accept a list of objects, a list of strings, or one string with commas."""
        if isinstance(value, str):
            return self.read(value)
        if not isinstance(value, (list, tuple)) or not 1 <= len(value) <= self.max_items:
            raise BadArguments(f"expected {self.describe()}, got {shown(value)}")
        return tuple(
            self.part.parse(part.strip()) if isinstance(part, str) else self.part.from_json(part)
            for part in value
        )

    def to_json(self, value: tuple[Any, ...]) -> Any:
        """Return a list of objects."""
        return [part.to_json() for part in value]

    def describe(self) -> str:
        """Describe the form of a part."""
        return f"1 to {self.max_items} of {self.part.usage()!r} with commas between them"

    def schema(self) -> dict[str, Any]:
        """Return an array schema."""
        return {
            "type": "array",
            "items": self.part.schema(),
            "minItems": 1,
            "maxItems": self.max_items,
        }

    def strategy(self) -> SearchStrategy[tuple[Any, ...]]:
        """Draw up to four parts."""
        st = strategies()
        drawn = st.lists(self.part.strategy(), min_size=1, max_size=min(4, self.max_items))
        return drawn.map(tuple)  # type: ignore[no-any-return]

    def sample(self, rng: np.random.Generator) -> tuple[Any, ...]:
        """Draw one or two parts."""
        return tuple(self.part.sample(rng) for _ in range(int(rng.integers(1, 2, endpoint=True))))
