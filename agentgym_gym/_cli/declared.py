"""Define the options of a command as the fields of a dataclass."""

from __future__ import annotations

import copy
import functools
import inspect
import json
import shlex
import warnings
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import MISSING, Field, dataclass, field, fields, is_dataclass
from pathlib import Path
from typing import Annotated, Any, TypeVar, get_args, get_origin, get_type_hints

import typer
from typer.models import ArgumentInfo, OptionInfo

from agentgym_gym._cli.completion import (
    complete_agent,
    complete_env,
    complete_property,
    complete_protocol,
    complete_run,
    complete_server,
    complete_split,
)
from agentgym_gym._cli.console import HELP_ALL, show_all
from agentgym_gym.errors import BadOption
from agentgym_gym.options import Option, members_of, options_of

__all__ = ["GivenOptions", "command", "json_object"]

_Options = TypeVar("_Options")
_Mark = TypeVar("_Mark")


@dataclass(frozen=True)
class GivenOptions:
    """Adds the options of another dataclass; the field maps the names of the given options to their values.

    Put it in the ``Annotated`` of a mapping field. Empty lists and mappings count as absent.

    Attributes:
        of: The dataclass that declares the options.
        without: Names of fields to exclude from the command.
        defaults: Defaults of this command instead of the dataclass's own, by field; they count as given
            unless they are None.
    """

    of: type
    without: Collection[str] = ()
    defaults: Mapping[str, Any] = field(default_factory=dict)


def command(
    options: type[_Options],
    groups: Mapping[str, Collection[str]] | None = None,
    examples: Collection[str] = (),
) -> Callable[[Callable[[_Options], None]], Callable[..., None]]:
    """Return a decorator that turns a function of a dataclass into a typer command.

    Each field ``name: Annotated[type, Option(...)]`` of the dataclass becomes an option of the command, with
    the field's default. A field whose type is a dataclass adds all options of that dataclass. Other fields
    keep their defaults. Fields of a base class come first.

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
    arguments = {
        option.argument: option.name_of(name) for name, option in _all_options(options) if option.argument
    }

    def decorate(function: Callable[[_Options], None]) -> Callable[..., None]:
        @functools.wraps(function)
        def run(context: typer.Context | None = None, **values: Any) -> None:
            # Without a context it is called as a function.
            given = {name for name in values if context is None or _is_given(context, name)}
            function(_build(options, values, given))

        signature = inspect.Signature([_CONTEXT, *parameters])
        run.__signature__ = signature  # type: ignore[attr-defined] # read by typer
        run.__annotations__ = {each.name: each.annotation for each in signature.parameters.values()}
        if examples:
            run.epilog = _epilog_of(examples)  # type: ignore[attr-defined] # read by `console.Command`
        run.usual = usual  # type: ignore[attr-defined] # as for `epilog`
        run.arguments = arguments  # type: ignore[attr-defined] # as for `epilog`
        return run

    return decorate


_CONTEXT = inspect.Parameter("context", inspect.Parameter.POSITIONAL_OR_KEYWORD, annotation=typer.Context)

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
    """Yield the fields with an `Option`, and the ones that the dataclass adds from another, by name."""
    for each in _declarations(options):
        given = each.find(GivenOptions)
        if each.option is not None:
            yield each.field.name, each.option
        elif given is not None:
            yield from (
                (name, one) for name, one in options_of(given.of).items() if name not in given.without
            )
        elif each.is_group:
            yield from _all_options(each.hint)


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
    def option(self) -> Option | None:
        """The field's `Option`, or None."""
        return self.find(Option)

    @property
    def info(self) -> ArgumentInfo | OptionInfo | None:
        """Typer's form of the field's option; None for a field without one."""
        if self.option is not None:
            return _typer_info(self.field.name, self.option)
        old = self.find(ArgumentInfo) or self.find(OptionInfo)
        if old is not None:
            warnings.warn(
                f"typer.Option for {self.field.name} is deprecated: use agentgym_gym.commands.Option; "
                "version 0.4 removes it",
                DeprecationWarning,
                stacklevel=2,
            )
        return old

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

    @property
    def parsed(self) -> tuple[Any, Callable[[Any], Any] | None]:
        """The type that typer parses, and how it is converted to the field's type, if typer has another."""
        kinds = [kind for kind in members_of(self.hint) if kind is not type(None)]
        if self.option is None:
            return self.hint, None
        converters: dict[str, Callable[[Any], Any]] = {
            "json": functools.partial(json_object, argument=self.field.name),
            "words": functools.partial(_words, argument=self.field.name),
            "numbers": functools.partial(_numbers, argument=self.field.name),
        }
        if self.option.values in converters:
            return str, converters[self.option.values]
        if any(get_origin(kind) is Sequence for kind in kinds) and str not in kinds:
            return list[str], tuple
        if len(kinds) > 1:
            return (Path, Path) if Path in kinds else (str, str)
        return self.hint, None

    def parameter(self) -> inspect.Parameter:
        """Return the field as a parameter of a function that typer reads."""
        kind, convert = self.parsed
        default = self.default
        if convert is not None and default is not inspect.Parameter.empty:
            default = None
        return inspect.Parameter(
            self.field.name,
            inspect.Parameter.KEYWORD_ONLY,
            default=default,
            annotation=Annotated[kind, self.info],
        )


def json_object(text: str, argument: str = "env_kwargs") -> dict[str, Any]:
    """Parse the value of an option that accepts a JSON object.

    Args:
        text: The value of the option.
        argument: The name of its field, for the error message.

    Raises:
        BadOption: The value is not a JSON object.
    """
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise BadOption(argument, text, problem=f"is not JSON: {error}") from None
    if not isinstance(value, dict):
        raise BadOption(argument, text, """a JSON object, such as '{"size": 5}'""")
    return value


def _words(text: str, argument: str) -> list[str]:
    try:
        return shlex.split(text)
    except ValueError as error:
        raise BadOption(argument, text, problem=f"cannot be split into words: {error}") from None


def _numbers(text: str, argument: str) -> tuple[int, ...]:
    try:
        return tuple(int(number) for number in text.split(","))
    except ValueError:
        raise BadOption(argument, text, "whole numbers, such as 20 or 10,20,30") from None


def _typer_info(name: str, option: Option) -> ArgumentInfo | OptionInfo:
    settings: dict[str, Any] = {
        "help": option.help,
        "metavar": option.metavar or None,
        "show_default": option.default or True,
        "min": option.least,
        "max": option.most,
        "autocompletion": _COMPLETIONS.get(option.completes),
        "exists": option.values == "folder",
        "file_okay": option.values != "folder",
    }
    info: ArgumentInfo | OptionInfo = (
        typer.Argument(**settings)
        if option.positional
        else typer.Option(option.name_of(name), rich_help_panel=option.group or None, **settings)
    )
    return info


_COMPLETIONS = {
    "agent": complete_agent,
    "environment": complete_env,
    "property": complete_property,
    "protocol": complete_protocol,
    "run": complete_run,
    "server": complete_server,
    "split": complete_split,
}


def _declarations(options: type) -> Iterator[_Declaration]:
    hints = get_type_hints(options, include_extras=True)
    for each in fields(options):
        hint, extras = hints[each.name], list[Any]()
        if get_origin(hint) is Annotated:
            hint, *extras = get_args(hint)
        yield _Declaration(each, hint, extras)


def _parameters(options: type) -> Iterator[inspect.Parameter]:
    for each in _declarations(options):
        given = each.find(GivenOptions)
        declared = each.info or given or each.is_group
        if not declared and each.default is inspect.Parameter.empty:
            raise TypeError(f"{options.__name__}.{each.field.name} needs an Option, or a default")
        if each.info is not None:
            yield each.parameter()
        elif given is not None:
            for other in _options_of(given):
                parameter = other.parameter()
                default = given.defaults.get(parameter.name, parameter.default)
                yield parameter.replace(default=default)
        elif each.is_group:
            yield from _parameters(each.hint)


def _options_of(given: GivenOptions) -> Iterator[_Declaration]:
    for each in _declarations(given.of):
        if each.info is not None and each.field.name not in given.without:
            yield each


def _is_given(context: typer.Context, name: str) -> bool:
    source = context.get_parameter_source(name)
    return source is not None and source.name != "DEFAULT"


def _build(options: type[_Options], values: Mapping[str, Any], on_line: Collection[str]) -> _Options:
    """Create the dataclass from the values that typer parsed, some of which are on the command line."""
    arguments: dict[str, Any] = {}
    for each in _declarations(options):
        name, given = each.field.name, each.find(GivenOptions)
        if given is not None:
            names = {*on_line, *given.defaults}
            read = {
                other.field.name: _value(other, values)
                for other in _options_of(given)
                if other.field.name in names
            }
            arguments[name] = {key: value for key, value in read.items() if value not in _NOT_GIVEN}
        elif each.info is not None:
            value = _value(each, values)
            if each.parsed[1] is None or value is not None:
                arguments[name] = value
        elif each.is_group:
            arguments[name] = _build(each.hint, values, on_line)
    make: Callable[..., _Options] = options
    return make(**arguments)


_NOT_GIVEN: tuple[Any, ...] = (None, [], {}, ())


def _value(declaration: _Declaration, values: Mapping[str, Any]) -> Any:
    value, (_, convert) = values[declaration.field.name], declaration.parsed
    return value if convert is None or value is None else convert(value)
