"""Reading text as Python without ever running it."""

from __future__ import annotations

import ast
import re
import warnings
from typing import Any

__all__ = ["expression", "plain_value"]

_NAME = "<reply of a model>"  # what a warning about it names as its file


def expression(code: str) -> ast.expr | None:
    """Return the one expression that a code is, or None where it is none."""
    _keep_quiet()
    try:
        return ast.parse(code.strip(), _NAME, mode="eval").body
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
    """See to it that a model's odd backslashes print no warning on the user's terminal.

    A filter for the one name does no harm to others, where ``catch_warnings`` would to other threads. It is
    put where it does not stand first already, because each time Python forgets which warnings it has shown.
    """
    pattern = re.escape(_NAME)
    if not warnings.filters or getattr(warnings.filters[0][3], "pattern", None) != pattern:
        warnings.filterwarnings("ignore", module=pattern)
