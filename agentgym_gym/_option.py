"""Options: fields of dataclasses that Python, the command line, run files and the docs read alike."""

from __future__ import annotations

import math
import types
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from typing import Annotated, Any, Literal, TypeAlias, Union, get_args, get_origin, get_type_hints

from agentgym_gym._http.limits import DEFAULT_TIMEOUT
from agentgym_gym._options import FormatName
from agentgym_gym.errors import Argument, BadOption

__all__ = [
    "FORMAT_NAMES",
    "ActionFormat",
    "EnvTimeout",
    "Isolate",
    "MaxTurns",
    "OnUnknown",
    "Option",
    "Parser",
    "Server",
    "SuccessAt",
    "Timeout",
    "check_options",
    "members_of",
    "options_of",
]


@dataclass(frozen=True)
class Option:
    """How a field is given as text. It is in the ``Annotated`` of the field's type.

    >>> from dataclasses import dataclass
    >>> from agentgym_gym._option import Option, options_of
    >>> from typing import Annotated
    >>> @dataclass(frozen=True)
    ... class Limits:
    ...     concurrency: Annotated[int, Option("concurrent episodes", least=1)] = 16
    >>> options_of(Limits)["concurrency"].help
    'concurrent episodes'

    Attributes:
        help: The effect of the option, in a few words.
        group: Title of its group in the help.
        default: The default in words, for a field whose own default is None.
        metavar: Placeholder of the value.
        least: Minimum of a number.
        most: Maximum of a number.
        completes: The words that a shell offers.
        values: The contents of the text: one value, a ``json`` object, or ``words`` that are split as by a
            shell. An option of a sequence can be repeated unless it has ``words``.
        usual: Whether most users need the option, so that the short help lists it.
        recorded: Whether a run records the value, and can be resumed only with the same value.
    """

    help: str
    group: str = ""
    default: str = ""
    metavar: str = ""
    least: float | None = None
    most: float | None = None
    completes: Literal["", "agent", "environment", "protocol", "split"] = ""
    values: Literal["one", "json", "words"] = "one"
    usual: bool = False
    recorded: bool = True


def options_of(kind: type) -> dict[str, Option]:
    """Return the options of a dataclass by the names of its fields; other fields are left out."""
    hints = get_type_hints(kind, include_extras=True)
    found = {each.name: _option(hints[each.name]) for each in fields(kind)}
    return {name: option for name, option in found.items() if option is not None}


def members_of(hint: Any) -> tuple[Any, ...]:
    """Return the types of a union, or the type itself if it is none."""
    return get_args(hint) if get_origin(hint) in (Union, types.UnionType) else (hint,)


def check_options(options: Any) -> None:
    """Check the values of a dataclass's options against their types and limits.

    Args:
        options: An instance. None is valid for every option; only numbers, flags and choices are checked.

    Raises:
        BadOption: A value is invalid.
    """
    kind = type(options)
    hints = get_type_hints(kind)
    for name, option in options_of(kind).items():
        value = getattr(options, name)
        expected = None if value is None else _expected(hints[name], option)
        if expected is not None and not expected[0](value):
            raise BadOption(Argument(name), f"={value!r:.80} should be {expected[1]}")


def _expected(hint: Any, option: Option) -> tuple[Callable[[Any], bool], str] | None:
    """Return a test of an option's value and the valid values in words; None if every value is valid."""
    kinds = members_of(hint)
    choices = [choice for kind in kinds if get_origin(kind) is Literal for choice in get_args(kind)]
    least = -math.inf if option.least is None else option.least
    most = math.inf if option.most is None else option.most
    limits = "" if option.least is None else f", {option.least:g} or more"
    limits = limits if option.most is None else f" from {option.least:g} to {option.most:g}"
    if choices:
        return choices.__contains__, f"one of {', '.join(choices)}"
    if int in kinds:
        return lambda value: type(value) is int and least <= value <= most, f"a whole number{limits}"
    if float in kinds:
        return (
            lambda value: type(value) in (int, float) and least <= value <= most,
            f"a finite number{limits}",
        )
    if bool in kinds:
        return lambda value: type(value) is bool, "True or False"
    return None


def _option(hint: Any) -> Option | None:
    if get_origin(hint) is not Annotated:
        return None
    return next((each for each in get_args(hint)[1:] if isinstance(each, Option)), None)


FORMAT_NAMES = "react, function_calling, code_as_action, tags, adapt, bare, tool_calls"
"""The names of the action formats, for help lines."""

_ENVIRONMENT = "Environment"

Server: TypeAlias = Annotated[
    str | Sequence[str] | None,
    Option(
        "server URL, or several separated by commas",
        _ENVIRONMENT,
        default="its variable, else a local server",
        usual=True,
        recorded=False,
    ),
]

ActionFormat: TypeAlias = Annotated[
    FormatName | None,
    Option(f"action format: {FORMAT_NAMES}", _ENVIRONMENT, default="react", metavar="FORMAT"),
]

Parser: TypeAlias = Annotated[
    Literal["default", "agentgym"] | None,
    Option("reply parser; agentgym parses as AgentGym's own client does", _ENVIRONMENT),
]

OnUnknown: TypeAlias = Annotated[
    Literal["forward", "refuse"] | None,
    Option("handling of actions outside the environment's grammar", _ENVIRONMENT),
]

MaxTurns: TypeAlias = Annotated[
    int | None,
    Option("turn limit; 0 for none", _ENVIRONMENT, default="the environment's, else 100", least=0),
]

Timeout: TypeAlias = Annotated[
    float | None,
    Option(
        "timeout of each server request, in seconds",
        _ENVIRONMENT,
        default=f"{DEFAULT_TIMEOUT:g}",
        recorded=False,
    ),
]

Isolate: TypeAlias = Annotated[
    Literal["loop", "thread", "process"] | None,
    Option("where each environment runs", _ENVIRONMENT, default="loop or thread"),
]

SuccessAt: TypeAlias = Annotated[
    float | None,
    Option("return that counts as success if none is reported", _ENVIRONMENT, metavar="RETURN"),
]

EnvTimeout: TypeAlias = Annotated[
    float | None,
    Option("timeout of each call to another library's environment, in seconds", _ENVIRONMENT, default="900"),
]
