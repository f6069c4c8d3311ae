"""Reads data files: ``agentgym_servers/WORLD/data/NAME``, stored with the code; and users' JSON files."""

from __future__ import annotations

import json
from importlib import resources
from pathlib import Path
from typing import Any

from agentgym_gym.errors import BadOption

__all__ = ["read_json", "read_text", "read_user_json"]


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
        BadOption: The file cannot be read, or is not JSON.
    """
    try:
        return json.loads(file.read_bytes())
    except (OSError, ValueError, RecursionError) as error:
        raise BadOption(f"cannot read {file}: {error!s:.200}") from error
