"""Reads data files: ``agentgym_servers/WORLD/data/NAME``, stored with the code; and users' JSON files."""

from __future__ import annotations

import json
from importlib import resources
from pathlib import Path
from typing import Any

from agentgym_gym.errors import BadOption

__all__ = ["read_json", "read_text", "read_user_json"]


_MAX_DEPTH = 100


def read_text(world: str, name: str) -> str:
    """Return the text of a data file of a world, such as ``read_text("wordle", "words.txt")``."""
    folder = resources.files(f"agentgym_servers.{world}") / "data"
    return (folder / name).read_text("utf-8")


def read_json(world: str, name: str) -> Any:
    """Return the value of a JSON data file of a world; the order of its entries is part of the world."""
    return json.loads(read_text(world, name))


def read_user_json(file: Path) -> Any:
    """Return the value of a user's JSON file.

    Raises:
        BadOption: The file cannot be read, is not JSON, or is nested too deeply.
    """
    try:
        value = json.loads(file.read_bytes())
    except (OSError, ValueError, RecursionError) as error:
        raise BadOption(f"cannot read {file}: {error!s:.200}") from error
    if _is_deeper(value, _MAX_DEPTH):
        raise BadOption(f"cannot read {file}: it is nested too deeply, more than {_MAX_DEPTH} times")
    return value


def _is_deeper(value: Any, most: int) -> bool:
    """Return whether lists and objects of JSON are nested more than some times: most code is recursive."""
    level = [value] if isinstance(value, (list, dict)) else []
    for _ in range(most):
        below = (each for outer in level for each in (outer.values() if isinstance(outer, dict) else outer))
        level = [each for each in below if isinstance(each, (list, dict))]
        if not level:
            return False
    return True
