"""Read options ``[ENV=]VALUE``, whose values are for one of several environments."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, get_type_hints

from agentgym_gym._cli.options import text_of
from agentgym_gym._cli.resolve_env import all_by_name, by_name

__all__ = ["PerEnvironment", "file_text", "read_per_environment"]


@dataclass(frozen=True)
class PerEnvironment:
    """Marks an option ``[ENV=]VALUE`` of a dataclass of options.

    Put it in the field's ``Annotated``, next to its ``typer.Option``. The type of the field is
    ``list[str] | None``.

    Attributes:
        convert: Converts a value; a function of a module, as the annotations of a class are read by name.
        several: Whether an environment may have several values, which are read as a list.
    """

    convert: Callable[[str], Any] = str
    several: bool = False


def file_text(path: str) -> str:
    """Return the text of a file whose path is the value of an option.

    Raises:
        BadOption: The file cannot be read, or is empty.
    """
    return text_of(Path(path))


def read_per_environment(options: Any, names: Sequence[str]) -> dict[str, dict[str, Any]]:
    """Return the given values of all fields with a `PerEnvironment`, by environment and then by field.

    Args:
        options: The options of a command, an instance of a dataclass.
        names: The names of the environments. Values for the only environment need no name.

    Raises:
        BadOption: A value is invalid, does not name one of several environments, names another environment,
            or is a second one where only one is allowed.
    """
    values: dict[str, dict[str, Any]] = {name: {} for name in names}
    for field, mark in _marked(type(options)):
        option, texts = f"--{field.replace('_', '-')}", getattr(options, field)
        if mark.several:
            for name, several in all_by_name(option, texts, names).items():
                values[name][field] = list(map(mark.convert, several))
        else:
            for name, text in by_name(option, texts, names).items():
                values[name][field] = mark.convert(text)
    return values


def _marked(options: type) -> Iterator[tuple[str, PerEnvironment]]:
    for name, hint in get_type_hints(options, include_extras=True).items():
        for mark in getattr(hint, "__metadata__", ()):
            if isinstance(mark, PerEnvironment):
                yield name, mark
