"""Define the options of a command as the fields of a dataclass."""

from __future__ import annotations

import copy
import functools
import inspect
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import MISSING, Field, dataclass, fields, is_dataclass
from typing import Annotated, Any, TypeVar, get_args, get_origin, get_type_hints

from typer.models import ArgumentInfo, OptionInfo

__all__ = ["CliValue", "GivenOptions", "command", "marked"]

_Options = TypeVar("_Options")
_Mark = TypeVar("_Mark")


@dataclass(frozen=True)
class CliValue:
    """Converts a command-line value for a field whose type typer does not support.

    Put it in the field's ``Annotated``, next to its ``typer.Option``. If the option is absent, the field
    keeps its default.

    Attributes:
        type: The type that typer parses.
        convert: Converts the value from typer to the field's type.
    """

    type: Any
    convert: Callable[[Any], Any]


@dataclass(frozen=True)
class GivenOptions:
    """Adds the options of another dataclass; the field maps the names of the given options to their values.

    Put it in the ``Annotated`` of a mapping field. Empty lists and mappings count as absent.

    Attributes:
        of: The dataclass that declares the options.
        without: Names of fields to exclude from the command.
    """

    of: type
    without: Collection[str] = ()


def command(
    options: type[_Options], groups: Mapping[str, Collection[str]] | None = None
) -> Callable[[Callable[[_Options], None]], Callable[..., None]]:
    """Return a decorator that turns a function of a dataclass into a typer command.

    Each field ``name: Annotated[type, typer.Option(...)]`` of the dataclass becomes an option of the command,
    with the field's default; a field with a ``typer.Argument`` becomes an argument. A field whose type is a
    dataclass adds all options of that dataclass. Other fields keep their defaults. Fields of a base class
    come first.

    Args:
        options: The dataclass. Its annotations are evaluated at run time.
        groups: Names of fields by the title of their group in the help, in the order of the help. Options in
            no group come last.

    Raises:
        TypeError: Two fields have the same name, a field has neither an option nor a default, or a group
            names an option that does not exist.
    """
    parameters = _grouped(list(_parameters(options)), groups or {})
    twice = [name for name, times in Counter(each.name for each in parameters).items() if times > 1]
    if twice:
        raise TypeError(f"{options.__name__} declares {', '.join(twice)} more than once")

    def decorate(function: Callable[[_Options], None]) -> Callable[..., None]:
        @functools.wraps(function)
        def run(**values: Any) -> None:
            function(_build(options, values))

        run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined] # read by typer
        run.__annotations__ = {each.name: each.annotation for each in parameters}
        return run

    return decorate


def _grouped(
    parameters: Sequence[inspect.Parameter], groups: Mapping[str, Collection[str]]
) -> list[inspect.Parameter]:
    """Return the arguments, and then the options in the order of the groups, with the titles of these.

    Raises:
        TypeError: A group names an option that does not exist.
    """
    titles = {name: title for title, names in groups.items() for name in names}
    unknown = titles.keys() - {each.name for each in parameters}
    if unknown:
        raise TypeError(f"there is no option {', '.join(sorted(unknown))} to group")
    ranks = {name: rank for rank, name in enumerate(titles)}
    grouped = []
    for each in parameters:
        hint, info = get_args(each.annotation)
        if isinstance(info, OptionInfo):
            info = copy.copy(info)  # other commands have it in other groups
            info.rich_help_panel = titles.get(each.name)
            rank = ranks.get(each.name, len(ranks))
        else:
            rank = -1
        grouped.append((rank, each.replace(annotation=Annotated[hint, info])))
    return [each for _, each in sorted(grouped, key=lambda pair: pair[0])]


def marked(options: type, kind: type[_Mark]) -> dict[str, _Mark]:
    """Return the marks of the given class in the ``Annotated`` of a dataclass's fields, by field name."""
    marks = {each.field.name: each.find(kind) for each in _declarations(options)}
    return {name: mark for name, mark in marks.items() if mark is not None}


@dataclass(frozen=True)
class _Declaration:
    """A field, its type, and the other arguments of its ``Annotated``."""

    field: Field[Any]
    hint: Any
    extras: list[Any]

    def find(self, kind: type[_Mark]) -> _Mark | None:
        """Return the first extra of the given class, or None."""
        return next((each for each in self.extras if isinstance(each, kind)), None)

    @property
    def info(self) -> ArgumentInfo | OptionInfo | None:
        """The field's ``typer.Argument`` or ``typer.Option``, or None."""
        return self.find(ArgumentInfo) or self.find(OptionInfo)

    @property
    def value(self) -> CliValue | None:
        """The field's `CliValue`, or None."""
        return self.find(CliValue)

    @property
    def is_group(self) -> bool:
        """Whether the field adds the options of another dataclass."""
        return self.info is None and is_dataclass(self.hint)

    @property
    def default(self) -> Any:
        """The default of the field; ``inspect.Parameter.empty`` if the field is required."""
        if self.field.default_factory is not MISSING:
            return self.field.default_factory()
        return inspect.Parameter.empty if self.field.default is MISSING else self.field.default

    def parameter(self) -> inspect.Parameter:
        default = self.default
        if self.value is not None and default is not inspect.Parameter.empty:
            default = None
        return inspect.Parameter(
            self.field.name,
            inspect.Parameter.KEYWORD_ONLY,
            default=default,
            annotation=Annotated[self.hint if self.value is None else self.value.type, self.info],
        )


def _declarations(options: type) -> Iterator[_Declaration]:
    hints = get_type_hints(options, include_extras=True)
    for field in fields(options):
        hint, extras = hints[field.name], list[Any]()
        if get_origin(hint) is Annotated:
            hint, *extras = get_args(hint)
        declaration = _Declaration(field, hint, extras)
        declared = declaration.info or declaration.find(GivenOptions) or declaration.is_group
        if not declared and declaration.default is inspect.Parameter.empty:
            raise TypeError(f"{options.__name__}.{field.name} needs a typer.Option, or a default")
        yield declaration


def _parameters(options: type) -> Iterator[inspect.Parameter]:
    for each in _declarations(options):
        given = each.find(GivenOptions)
        if each.info is not None:
            yield each.parameter()
        elif given is not None:
            for other in _options_of(given):
                yield other.parameter().replace(default=None)
        elif each.is_group:
            yield from _parameters(each.hint)


def _options_of(given: GivenOptions) -> Iterator[_Declaration]:
    for each in _declarations(given.of):
        if each.info is not None and each.field.name not in given.without:
            yield each


def _build(options: type[_Options], values: Mapping[str, Any]) -> _Options:
    """Create the dataclass from the values that typer parsed."""
    arguments: dict[str, Any] = {}
    for each in _declarations(options):
        name, given = each.field.name, each.find(GivenOptions)
        if given is not None:
            read = {other.field.name: _value(other, values) for other in _options_of(given)}
            arguments[name] = {key: value for key, value in read.items() if value not in _NOT_GIVEN}
        elif each.info is not None:
            value = _value(each, values)
            if each.value is None or value is not None:
                arguments[name] = value
        elif each.is_group:
            arguments[name] = _build(each.hint, values)
    make: Callable[..., _Options] = options
    return make(**arguments)


_NOT_GIVEN: tuple[Any, ...] = (None, [], {})


def _value(declaration: _Declaration, values: Mapping[str, Any]) -> Any:
    value = values[declaration.field.name]
    if declaration.value is None or value is None:
        return value
    return declaration.value.convert(value)
