"""Read TOML, which Python's standard library supports from 3.11 on, and validate the tables."""

from __future__ import annotations

import contextlib
import importlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, get_origin, get_type_hints

from agentgym_gym.errors import BadFile, BadOption, MissingExtra
from agentgym_gym.options import members_of, options_of

__all__ = ["checked", "located", "read_table", "read_toml", "toml_keys"]


def read_toml(text: str, what: str) -> dict[str, Any]:
    """Return the contents of a TOML text.

    Args:
        text: The text.
        what: A description of the text, for an error message.

    Raises:
        ValueError: It is not TOML.
        RecursionError: It is nested too deeply.
        MissingExtra: This is Python 3.10, and the package ``tomli`` is missing.
    """
    for module in ("tomllib", "tomli"):
        try:
            reader = importlib.import_module(module)
        except ModuleNotFoundError:
            continue
        found: dict[str, Any] = reader.loads(text)
        return found
    raise MissingExtra(what, extra="cli", module="tomli")


def read_table(path: Path, what: str) -> dict[str, Any]:
    """Read a TOML file.

    Args:
        path: The file.
        what: The kind of the file, for an error.

    Raises:
        BadOption: The file cannot be read, or is not TOML.
        MissingExtra: Python is 3.10 and the package tomli is not installed.
    """
    try:
        return read_toml(path.read_text("utf-8"), what)
    except OSError as error:
        raise BadFile(f"cannot read {path}: {error.strerror or error}", path=path) from error
    except (ValueError, RecursionError) as error:
        raise BadFile(f"{path} is not TOML: {error}", path=path) from None


def toml_keys(kind: type, *also: str) -> dict[str, tuple[type, ...]]:
    """Return the keys of a table from which a dataclass is created, with the types of their values.

    Args:
        kind: The dataclass. Its options are keys.
        also: Further fields that are keys.
    """
    hints = get_type_hints(kind)
    return {name: _toml_kinds(hints[name]) for name in (*also, *options_of(kind))}


@contextlib.contextmanager
def located(place: object) -> Iterator[None]:
    """Add a place, such as ``[[agents]] of run.toml``, to an error about a value that was read there.

    Raises:
        BadOption: The block raised it.
    """
    try:
        yield
    except BadOption as error:
        raise error.found_in(str(place)) from error.__cause__


def checked(known: Mapping[str, tuple[type, ...]], values: dict[str, Any]) -> dict[str, Any]:
    """Validate the keys and types of a table, and return it.

    Args:
        known: The keys, with the types of their values.
        values: The table.

    Raises:
        BadOption: A key is unknown, or its value has the wrong type.
    """
    for key, value in values.items():
        if key not in known:
            raise BadOption(f"there is no key {key!r}; the keys are {', '.join(known)}")
        kinds = known[key]
        valid = isinstance(value, kinds) and (bool in kinds or not isinstance(value, bool))
        if not valid or (isinstance(value, list) and not all(isinstance(each, str) for each in value)):
            raise BadOption(key, value, " or ".join(_IN_TOML[each] for each in kinds))
    return values


def _toml_kinds(hint: Any) -> tuple[type, ...]:
    """Return the types that a field may have in TOML; lists contain strings."""
    members, origin = members_of(hint), get_origin(hint)
    if len(members) > 1:
        return tuple(dict.fromkeys(kind for each in members for kind in _toml_kinds(each)))
    if origin is not None:
        return {Sequence: (list,), Mapping: (dict,), Literal: (str,)}[origin]
    return {float: (int, float), Path: (str,), type(None): ()}.get(hint, (hint,))


_IN_TOML = {
    str: "text",
    int: "a whole number",
    float: "a number",
    bool: "true or false",
    list: "a list of texts",
    dict: "a table",
}
