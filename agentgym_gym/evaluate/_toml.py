"""TOML, which Python's standard library supports from 3.11 on."""

from __future__ import annotations

import importlib
from typing import Any

from agentgym_gym.errors import MissingExtra

__all__ = ["read_toml"]


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
