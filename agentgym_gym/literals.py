"""Python literals, parsed from text and never executed."""

from __future__ import annotations

import ast
import re
import warnings
from typing import Any

__all__ = ["expression", "plain_value", "statements"]

_NAME = "<reply of a model>"  # the file name in warnings about it


def expression(code: str, *, strip: bool = True) -> ast.expr | None:
    """Parse code as one expression; return None if it is not one.

    Args:
        code: The code.
        strip: Whether white space around it is ignored.
    """
    _keep_quiet()
    try:
        return ast.parse(code.strip() if strip else code, _NAME, mode="eval").body
    except (SyntaxError, ValueError, MemoryError, RecursionError):
        return None


def statements(code: str) -> list[ast.stmt] | None:
    """Parse a line of code as statements, or as one compound statement; return None if it is neither.

    It is not parsed as a program: for a syntax error in one, Python would look for a file of the code's name.
    """
    _keep_quiet()
    try:
        return ast.parse(code.strip() + "\n", _NAME, mode="single").body
    except (SyntaxError, ValueError, MemoryError, RecursionError):
        return None


def plain_value(node: ast.expr) -> Any:
    """Return the value of a literal expression.

    Raises:
        ValueError: It is not a literal.
    """
    try:
        return ast.literal_eval(node)
    except (ValueError, TypeError, MemoryError, RecursionError):
        raise ValueError("not a plain value") from None


def _keep_quiet() -> None:
    """Suppress warnings about a model's invalid escapes, which Python would print on the user's terminal.

    A filter for one file name affects no other code, while ``catch_warnings`` would affect other threads. It
    is inserted only if it is not the first filter already, because an insertion resets the warnings already
    shown.
    """
    pattern = re.escape(_NAME)
    if not warnings.filters or getattr(warnings.filters[0][3], "pattern", None) != pattern:
        warnings.filterwarnings("ignore", module=pattern)
