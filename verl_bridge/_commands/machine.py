"""Defaults of this machine, and errors of writing, for ``agentgym verl init`` and ``agentgym verl sft``."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from importlib import metadata
from pathlib import Path
from typing import Any

from agentgym_gym.errors import ArgumentName, BadFile, BadOption
from verl_bridge.recipes import VERSIONS

__all__ = ["DEFAULTS", "resolved", "writing"]

DEFAULTS: Mapping[str, Any] = {"verl": None}
"""Defaults of the commands that differ from a recipe's."""


def resolved(choices: Mapping[str, Any]) -> dict[str, Any]:
    """Return the choices of a recipe with the absolute path of a model folder, and a version of verl.

    Raises:
        BadOption: No version is given, and the installed one is not supported.
    """
    made = {"verl": _installed_verl(), **choices} if "verl" not in choices else dict(choices)
    if "model" in made:
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
    except OSError as error:
        if isinstance(error, FileExistsError) and error.errno is None:
            (message,) = error.args
            raise BadFile(*([message] if isinstance(message, str) else message), path=folder) from error
        raise BadFile(f"cannot write to {folder}: {error.strerror or error}", path=folder) from error
