"""Options of ``agentgym verl init`` and ``agentgym verl sft`` for the model, verl and the GPUs."""

from __future__ import annotations

from importlib import metadata
from pathlib import Path
from typing import Annotated, Literal, TypeAlias

import typer

from agentgym_gym.errors import BadOption
from verl_bridge.recipes import VERSIONS

__all__ = ["Checkpointing", "Gpus", "Version", "installed_verl", "model_of"]

Version: TypeAlias = Annotated[
    Literal["0.7", "0.8", "0.9"] | None,
    typer.Option("--verl", help="version of verl", show_default="installed, else newest"),
]
Gpus: TypeAlias = Annotated[int, typer.Option(min=1, help="number of GPUs")]
Checkpointing: TypeAlias = Annotated[bool, typer.Option(help="recompute activations to save memory")]


def model_of(name: str) -> str:
    """Return the absolute path if the model is an existing folder, otherwise the name unchanged."""
    folder = Path(name).expanduser()
    return str(folder.resolve()) if folder.is_dir() else name


def installed_verl() -> str:
    """Return the minor version of the installed verl, or the newest supported one if verl is not installed.

    Raises:
        BadOption: The installed version is not supported.
    """
    try:
        version = metadata.version("verl")
    except metadata.PackageNotFoundError:
        return VERSIONS[-1]
    minor = ".".join(version.split(".")[:2])
    if minor not in VERSIONS:
        raise BadOption(
            f"no recipe for the installed verl {version}: give --verl, one of {', '.join(VERSIONS)}"
        )
    return minor
