"""The options that recipes for reinforcement learning and for fine-tuning share."""

from __future__ import annotations

from typing import Annotated, Literal, TypeAlias, get_args

from agentgym_gym.errors import ArgumentName
from agentgym_gym.options import Option

__all__ = [
    "DEFAULT_MODEL",
    "EPISODES",
    "MACHINE",
    "MODEL",
    "TRAINING",
    "VERSIONS",
    "Checkpointing",
    "Gpus",
    "Verl",
    "named",
]

TRAINING, EPISODES, MACHINE = "Training", "Episodes", "Machine"
"""Groups of options in a help."""

DEFAULT_MODEL = "Qwen/Qwen2.5-3B-Instruct"

MODEL = "model folder, or name on the hub"

Verl: TypeAlias = Annotated[
    Literal["0.7", "0.8", "0.9"], Option("version of verl", MACHINE, default="installed, else newest")
]

VERSIONS: tuple[Literal["0.7", "0.8", "0.9"], ...] = get_args(get_args(Verl)[0])

Gpus: TypeAlias = Annotated[int, Option("number of GPUs", MACHINE, least=1)]

Checkpointing: TypeAlias = Annotated[
    bool,
    Option("recompute activations to save memory", MACHINE, flag="--checkpointing/--no-checkpointing"),
]


def named(message: str) -> tuple[str, ...]:
    """Return an error's message in its parts: names of arguments are between backticks."""
    parts = message.split("`")
    return tuple(ArgumentName(part) if number % 2 else part for number, part in enumerate(parts))
