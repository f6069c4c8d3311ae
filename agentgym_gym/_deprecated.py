"""Keep an old public name for one minor version: the rule of docs/stability.md."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from typing import Any

from agentgym_gym._imports import import_object

__all__ = ["deprecated_names"]


def deprecated_names(
    module_name: str, replacements: Mapping[str, str], *, removed_in: str
) -> Callable[[str], Any]:
    """Return a module's ``__getattr__`` for its old names, each of which warns and returns its replacement.

    Args:
        module_name: The ``__name__`` of the module.
        replacements: The import path ``"module:NAME"`` of the replacement of each old name.
        removed_in: The version that removes the old names.
    """

    def __getattr__(name: str) -> Any:  # noqa: N807 - the module binds it to this name
        if name not in replacements:
            raise AttributeError(f"module {module_name!r} has no attribute {name!r}")
        path = replacements[name]
        replacement = import_object(path)
        # `from package import old` looks the name up twice, first by `importlib`, whose frames `warnings`
        # skips; both warnings have the place of the import, and Python's default filter shows one.
        warnings.warn(
            f"{module_name}.{name} is deprecated: use {path.replace(':', '.')}; "
            f"version {removed_in} removes the old name",
            DeprecationWarning,
            stacklevel=2,
        )
        return replacement

    return __getattr__
