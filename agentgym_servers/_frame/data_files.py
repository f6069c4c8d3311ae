"""Reads the data files that are stored with the code: ``agentgym_servers/WORLD/data/NAME``."""

from __future__ import annotations

import json
from importlib import resources
from typing import Any

__all__ = ["read_json", "read_text"]


def read_text(world: str, name: str) -> str:
    """Return the text of a data file of a world, such as ``read_text("wordle", "words.txt")``."""
    folder = resources.files(f"agentgym_servers.{world}") / "data"
    return (folder / name).read_text("utf-8")


def read_json(world: str, name: str) -> Any:
    """Return the value of a JSON data file of a world; the order of its entries is part of the world."""
    return json.loads(read_text(world, name))
