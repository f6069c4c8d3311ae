"""Defaults of this machine, and errors of writing, for ``agentgym verl init`` and ``agentgym verl sft``."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from importlib import metadata
from pathlib import Path
from typing import Any

from agentgym_gym.errors import ArgumentName, BadFile, BadOption
from verl_bridge.recipes import VERSIONS
from verl_bridge.recipes._folder import FolderInUse

__all__ = ["DEFAULTS", "resolved", "writing"]

DEFAULTS: Mapping[str, Any] = {"verl": None}
"""Defaults of the commands that differ from a recipe's."""


def resolved(choices: Mapping[str, Any]) -> dict[str, Any]:
    """Return the choices of a recipe with the absolute path of a model folder, and a version of verl.

    Raises:
        BadOption: No version is given, and the installed one is not supported.
    """
    made = dict(choices) if "verl" in choices else {**choices, "verl": _installed_verl()}
    if made.get("model"):
        folder = Path(made["model"]).expanduser()
        made["model"] = str(folder.resolve()) if folder.is_dir() else made["model"]
    return made


def _installed_verl() -> str:
    """Return the minor version of the installed verl; without one, the newest supported."""
    try:
        version = metadata.version("verl")
    except metadata.PackageNotFoundError:
        return VERSIONS[-1]
    minor = ".".join(version.split(".")[:2])
    if minor not in VERSIONS:
        problem = f", one of {', '.join(VERSIONS)}"
        raise BadOption((f"no recipe for the installed verl {version}: give ", ArgumentName("verl"), problem))
    return minor


@contextlib.contextmanager
def writing(folder: Path) -> Iterator[None]:
    """Report the errors of writing a recipe's folder.

    Raises:
        BadFile: The folder has files that are not replaced unasked, or it cannot be written to.
    """
    try:
        yield
    except FolderInUse as error:
        raise BadFile(*error.parts, path=folder) from error
    except OSError as error:
        raise BadFile(f"cannot write to {folder}: {error.strerror or error}", path=folder) from error
