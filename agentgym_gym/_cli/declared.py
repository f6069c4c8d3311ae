"""Define the options of a command as the fields of a dataclass."""

from __future__ import annotations

import copy
import functools
import inspect
import shlex
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import MISSING, Field, dataclass, fields, is_dataclass
from pathlib import Path
from typing import Annotated, Any, TypeVar, get_args, get_origin, get_type_hints

import typer
from typer.models import ArgumentInfo, OptionInfo

from agentgym_gym._cli.completion import complete_agent, complete_env, complete_protocol, complete_split
from agentgym_gym._cli.console import HELP_ALL, show_all
from agentgym_gym._cli.resolve_env import json_object
from agentgym_gym._option import Option, members_of, options_of

__all__ = ["CliValue", "GivenOptions", "command"]

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
    options: type[_Options],
    groups: Mapping[str, Collection[str]] | None = None,
    examples: Collection[str] = (),
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
        examples: Command lines for the end of the help.

    Raises:
        TypeError: Two fields have the same name, a field has neither an option nor a default, or a group
            names an option that does not exist.
    """
    parameters = _grouped(list(_parameters(options)), groups or {})
    usual: list[str] = []
    if any(option.usual for option in options_of(options).values()):  # its own, not those that it adds
        usual = [name for name, option in _all_options(options) if option.usual]
        parameters.append(_HELP_ALL)
    twice = [name for name, times in Counter(each.name for each in parameters).items() if times > 1]
    if twice:
        raise TypeError(f"{options.__name__} declares {', '.join(twice)} more than once")

    def decorate(function: Callable[[_Options], None]) -> Callable[..., None]:
        @functools.wraps(function)
        def run(**values: Any) -> None:
            function(_build(options, values))

        run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined] # read by typer
        run.__annotations__ = {each.name: each.annotation for each in parameters}
        if examples:
            run.epilog = _epilog_of(examples)  # type: ignore[attr-defined] # read by `console.Command`
        run.usual = usual  # type: ignore[attr-defined] # as for `epilog`
        return run

    return decorate


_HELP_ALL = inspect.Parameter(
    HELP_ALL,
    inspect.Parameter.KEYWORD_ONLY,
    default=False,
    annotation=Annotated[
        bool,
        typer.Option(
            "--help-all",
            is_eager=True,
            expose_value=False,
            callback=show_all,
            help="show all options, and more about them",
        ),
    ],
)


def _all_options(options: type) -> Iterator[tuple[str, Option]]:
    """Yield the names of fields with an `Option`, and those that the dataclass adds from another one."""
    for each in _declarations(options):
        own, given = each.find(Option), each.find(GivenOptions)
        if own is not None:
            yield each.field.name, own
        elif given is not None:
            yield from (
                (name, one) for name, one in options_of(given.of).items() if name not in given.without
            )


def _epilog_of(examples: Collection[str]) -> str:
    """Return examples as the end of a help. The backspace keeps typer from wrapping them."""
    return "\n".join(["\b", "Examples:", *(f"  {each}" for each in examples)])


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
    order = {name: rank for rank, name in enumerate(titles)}
    title_ranks = {title: rank for rank, title in enumerate(groups)}
    grouped = []
    for each in parameters:
        hint, info = get_args(each.annotation)
        rank = (-1, 0)
        if isinstance(info, OptionInfo):
            info = copy.copy(info)  # other commands have it in other groups
            title = titles.get(each.name) or (
                info.rich_help_panel if info.rich_help_panel in groups else None
            )
            info.rich_help_panel = title
            rank = title_ranks.get(str(title), len(groups)), order.get(each.name, 0)
        grouped.append((rank, each.replace(annotation=Annotated[hint, info])))
    return [each for _, each in sorted(grouped, key=lambda pair: pair[0])]


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
        option = self.find(Option)
        if option is not None:
            return _typer_option(self.field.name, self.hint, option)
        return self.find(ArgumentInfo) or self.find(OptionInfo)

    @property
    def value(self) -> CliValue | None:
        """The field's `CliValue`, or None."""
        option = self.find(Option)
        return self.find(CliValue) if option is None else _cli_value(self.field.name, self.hint, option)

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


def _typer_option(name: str, hint: Any, option: Option) -> OptionInfo:
    """Return typer's form of an option."""
    flags = [f"--{name.replace('_', '-')}"] if bool in members_of(hint) else []
    info: OptionInfo = typer.Option(
        *flags,
        help=option.help,
        metavar=option.metavar or None,
        show_default=option.default or True,
        min=option.least,
        max=option.most,
        autocompletion=_COMPLETIONS.get(option.completes),
        rich_help_panel=option.group or None,
    )
    return info


def _cli_value(name: str, hint: Any, option: Option) -> CliValue | None:
    """Return how the text of an option is converted; None if typer supports the type of the field."""
    kinds = members_of(hint)
    if option.values == "json":
        return CliValue(str, functools.partial(json_object, option=f"--{name.replace('_', '-')}"))
    if option.values == "words":
        return CliValue(str, shlex.split)
    if Path in kinds:
        return CliValue(Path, lambda path: path)
    if str in kinds:
        return CliValue(str, str)
    if any(get_origin(kind) is Sequence for kind in kinds):
        return CliValue(list[str], tuple)
    return None


_COMPLETIONS = {
    "agent": complete_agent,
    "environment": complete_env,
    "protocol": complete_protocol,
    "split": complete_split,
}


def _declarations(options: type) -> Iterator[_Declaration]:
    hints = get_type_hints(options, include_extras=True)
    for field in fields(options):
        hint, extras = hints[field.name], list[Any]()
        if get_origin(hint) is Annotated:
            hint, *extras = get_args(hint)
        yield _Declaration(field, hint, extras)


def _parameters(options: type) -> Iterator[inspect.Parameter]:
    for each in _declarations(options):
        given = each.find(GivenOptions)
        declared = each.info or given or each.is_group
        if not declared and each.default is inspect.Parameter.empty:
            raise TypeError(f"{options.__name__}.{each.field.name} needs a typer.Option, or a default")
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


_NOT_GIVEN: tuple[Any, ...] = (None, [], {}, ())


def _value(declaration: _Declaration, values: Mapping[str, Any]) -> Any:
    value = values[declaration.field.name]
    if declaration.value is None or value is None:
        return value
    return declaration.value.convert(value)
