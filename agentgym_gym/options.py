"""Options: fields of dataclasses that Python, the command line, run files and the docs read alike."""

from __future__ import annotations

import math
import types
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

from agentgym_gym.errors import BadOption

__all__ = ["Option", "check_options", "members_of", "options_of"]


@dataclass(frozen=True)
class Option:
    """How a field is given as text. It is in the ``Annotated`` of the field's type.

    >>> from dataclasses import dataclass
    >>> from agentgym_gym.options import Option, check_options
    >>> from typing import Annotated
    >>> @dataclass(frozen=True)
    ... class Limits:
    ...     concurrency: Annotated[int, Option("concurrent episodes", least=1)] = 16
    >>> check_options(Limits(concurrency=0))
    Traceback (most recent call last):
    agentgym_gym.errors.BadOption: concurrency=0 should be a whole number, 1 or more

    Attributes:
        help: The effect of the option, in a few words.
        group: Title of its group in the help.
        default: The default in words, for a field whose own default is None.
        metavar: Placeholder of the value.
        least: Minimum of a number.
        most: Maximum of a number.
        completes: The words that a shell offers.
        values: The contents of the text: one value, a ``json`` object, ``words`` that are split as by a
            shell, ``numbers`` separated by commas, or the path of an existing ``folder``. An option of a
            sequence can be repeated unless it has ``words`` or ``numbers``.
        usual: Whether most users need the option, so that the short help lists it.
        recorded: Whether a run records the value, and can be resumed only with the same value.
        positional: Whether the command line has an argument for it instead of an option.
        flag: Its name on the command line; by default that of the field, as in ``--max-turns``.
        argument: The library's argument that it sets, if the field has another name: errors name the option
            instead.
    """

    help: str
    group: str = ""
    default: str = ""
    metavar: str = ""
    least: float | None = None
    most: float | None = None
    completes: Literal["", "agent", "environment", "property", "protocol", "run", "server", "split"] = ""
    values: Literal["one", "json", "words", "numbers", "folder"] = "one"
    usual: bool = False
    recorded: bool = True
    positional: bool = False
    flag: str = ""
    argument: str = ""

    def name_of(self, field: str) -> str:
        """Return the name on the command line of the option of a field."""
        return self.metavar if self.positional else self.flag or f"--{field.rstrip('_').replace('_', '-')}"


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
            raise BadOption(name, value, expected[1])


def _expected(hint: Any, option: Option) -> tuple[Callable[[Any], bool], str] | None:
    """Return a test of an option's value and the valid values in words; None if every value is valid."""
    kinds = members_of(hint)
    choices = [choice for kind in kinds if get_origin(kind) is Literal for choice in get_args(kind)]
    least = -math.inf if option.least is None else option.least
    most = math.inf if option.most is None else option.most
    if any(get_origin(kind) is Sequence for kind in kinds):
        return None
    limits = "" if option.least is None else f", {option.least:g} or more"
    limits = limits if option.most is None else f" from {option.least:g} to {option.most:g}"
    if choices:
        return choices.__contains__, f"one of {', '.join(choices)}"
    if int in kinds:
        return lambda value: type(value) is int and least <= value <= most, f"a whole number{limits}"
    if float in kinds:
        return (
            lambda value: type(value) in (int, float) and math.isfinite(value) and least <= value <= most,
            f"a finite number{limits}",
        )
    if bool in kinds:
        return lambda value: type(value) is bool, "True or False"
    return None


def _option(hint: Any) -> Option | None:
    if get_origin(hint) is not Annotated:
        return None
    return next((each for each in get_args(hint)[1:] if isinstance(each, Option)), None)
