"""Random names for the rows of the SQLGym server's databases."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agentgym_servers._frame.data_files import read_json

if TYPE_CHECKING:
    from agentgym_servers._frame.draw import Draw

__all__ = ["name_of"]

_NAMES = read_json("sqlgym", "names.json")
_LETTERS = "ABCDEFGHJKLMNPRSTUVWXYZ"


def name_of(kind: str, draw: Draw) -> str:
    """Return a random name.

    Args:
        kind: The kind of name: ``person``, ``title``, ``place``, ``firm`` or ``code``.
        draw: The source of random draws.
    """
    if kind == "person":
        return f"{draw.one(_NAMES['first_names'])} {draw.one(_NAMES['last_names'])}"
    if kind == "title":
        return f"The {draw.one(_NAMES['adjectives'])} {draw.one(_NAMES['nouns'])}"
    if kind == "place":
        return f"{draw.one(_NAMES['towns'])} {draw.one(_NAMES['nouns'])}"
    if kind == "firm":
        return f"{draw.one(_NAMES['adjectives'])} {draw.one(_NAMES['last_names'])}"
    return f"{draw.one(_LETTERS)}{draw.one(_LETTERS)}{draw.between(100, 999)}"
