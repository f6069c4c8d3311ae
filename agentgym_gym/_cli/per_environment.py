"""Read options ``[ENV=]VALUE``, whose values are for one of several environments."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, get_type_hints

from agentgym_gym.catalogue import find
from agentgym_gym.errors import BadOption, UnknownEnvironment
from agentgym_gym.evaluate._env_setup import text_of
from agentgym_gym.rollout._specs import split_id

__all__ = ["PerEnvironment", "file_text", "read_per_environment"]


@dataclass(frozen=True)
class PerEnvironment:
    """Marks an option ``[ENV=]VALUE`` of a dataclass of options.

    Put it in the field's ``Annotated``, next to its `Option`. The type of the field is
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
        for name, texts in _by_name(field, getattr(options, field), names).items():
            if len(texts) > 1 and not mark.several:
                raise BadOption(field, problem=f"is given twice for {name}")
            converted = [mark.convert(text) for text in texts]
            values[name][field] = converted if mark.several else converted[0]
    return values


def _by_name(option: str, values: Iterable[str] | None, names: Sequence[str]) -> dict[str, list[str]]:
    """Return the values of an option by environment; one without a name applies to the only environment.

    Raises:
        BadOption: A value does not name one of several environments, or names an unknown environment.
    """
    by_env: dict[str, list[str]] = {}
    for value in values or ():
        head, equals, tail = value.partition("=")
        name, text = None, value
        if equals:
            bare = split_id(head)[1]
            with contextlib.suppress(UnknownEnvironment):
                name, text = bare if bare in names else find(head).name, tail
        if name is None and len(names) != 1:
            reason = f"names none of {', '.join(names)}: name one, as in {names[0]}=..."
            raise BadOption(option, value, problem=reason)
        name = name or names[0]
        if name not in names:
            reason = f"is given for {name}, which has no tasks here; it may be for {', '.join(names)}"
            raise BadOption(option, problem=reason)
        by_env.setdefault(name, []).append(text)
    return by_env


def _marked(options: type) -> Iterator[tuple[str, PerEnvironment]]:
    for name, hint in get_type_hints(options, include_extras=True).items():
        for mark in getattr(hint, "__metadata__", ()):
            if isinstance(mark, PerEnvironment):
                yield name, mark
