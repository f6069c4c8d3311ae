"""Objects by their import path, ``"module:NAME"``."""

from __future__ import annotations

import functools
import importlib
from typing import Any

__all__ = ["import_object"]


def import_object(path: str) -> Any:
    """Import a module and return one of its objects.

    Args:
        path: ``"module:NAME"``, where NAME may have attributes, as in ``"module:Class.method"``.

    Raises:
        ValueError: The path has another form.
        ImportError: There is no such module.
        AttributeError: The module has no such object.
        Exception: The module raised it during its import.
    """
    module, _, name = path.partition(":")
    if not module or not name:
        raise ValueError(f"{path!r:.200} should be 'module:NAME'")
    return functools.reduce(getattr, name.split("."), importlib.import_module(module))
