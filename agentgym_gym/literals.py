"""Python literals, read from text and never run."""

from __future__ import annotations

import ast
import re
import warnings
from typing import Any

__all__ = ["expression", "plain_value", "statements"]

_NAME = "<reply of a model>"  # what a warning about it names as its file


def expression(code: str, *, strip: bool = True) -> ast.expr | None:
    """Return a piece of code as one expression, or None if it is not one.

    Args:
        code: The code.
        strip: Whether blanks and line ends around it are ignored.
    """
    _keep_quiet()
    try:
        return ast.parse(code.strip() if strip else code, _NAME, mode="eval").body
    except (SyntaxError, ValueError, MemoryError, RecursionError):
        return None


def statements(code: str) -> list[ast.stmt] | None:
    """Return a line of code as statements, or one that has a body; None if it is neither.

    It is not parsed as a program: for an error in one, Python would look for a file of the code's name.
    """
    _keep_quiet()
    try:
        return ast.parse(code.strip() + "\n", _NAME, mode="single").body
    except (SyntaxError, ValueError, MemoryError, RecursionError):
        return None


def plain_value(node: ast.expr) -> Any:
    """Return the value that an expression writes out.

    Raises:
        ValueError: It is more than a literal.
    """
    try:
        return ast.literal_eval(node)
    except (ValueError, TypeError, MemoryError, RecursionError):
        raise ValueError("not a plain value") from None


def _keep_quiet() -> None:
    """Keep a model's odd backslashes from printing a warning on the user's terminal.

    A filter for one file name affects nobody else, while ``catch_warnings`` would affect other threads. It is
    inserted only if it is not the first one already, because Python then forgets which warnings it has shown.
    """
    pattern = re.escape(_NAME)
    if not warnings.filters or getattr(warnings.filters[0][3], "pattern", None) != pattern:
        warnings.filterwarnings("ignore", module=pattern)
