"""The amounts of training, and the usual lengths of episodes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

__all__ = ["LENGTHS", "PRESETS", "USUAL_LENGTHS", "Lengths", "Preset", "PresetName"]

PresetName: TypeAlias = Literal["train", "test", "full"]


@dataclass(frozen=True)
class Preset:
    """The amount of training.

    Attributes:
        batch: Prompts in a step.
        epochs: Passes over the tasks; an upper limit if `steps` is set.
        group: Samples of each prompt, if the algorithm compares them.
        save_freq: Steps between checkpoints, -1 for none.
        test_freq: Steps between validations, -1 for none.
        rate: Learning rate.
        mini_batch: Prompts in an update; None for all of a step.
        steps: Training steps; None if the epochs set the length.
        keep: Checkpoints to keep; None for all.
        sized: Whether the estimate of memory chooses offload, token limits and the engine's share.
    """

    batch: int
    epochs: int
    group: int
    save_freq: int
    test_freq: int
    rate: float = 5e-7
    mini_batch: int | None = None
    steps: int | None = None
    keep: int | None = 2
    sized: bool = False


PRESETS: Mapping[PresetName, Preset] = {
    "train": Preset(
        batch=32,
        epochs=300,
        group=8,
        save_freq=25,
        test_freq=25,
        rate=1e-6,
        mini_batch=8,
        steps=300,
        keep=None,
        sized=True,
    ),
    "test": Preset(batch=8, epochs=1, group=2, save_freq=-1, test_freq=-1),
    "full": Preset(batch=128, epochs=15, group=4, save_freq=20, test_freq=10),
}
"""``train`` is to learn; ``test`` is to try a recipe; ``full`` makes 15 passes over all tasks."""


@dataclass(frozen=True)
class Lengths:
    """The length limits of episodes.

    Attributes:
        turns: Maximum replies of the model in an episode.
        reply: Maximum tokens of a reply.
        prompt: Maximum tokens of the system prompt with the first observation.
        response: Maximum tokens of the rest, observations included.
    """

    turns: int
    reply: int
    prompt: int
    response: int

    @property
    def episode(self) -> int:
        """Maximum tokens of an episode."""
        return self.prompt + self.response


LENGTHS: Mapping[str, Lengths] = {
    "agentgym/WebShop-v0": Lengths(turns=25, reply=512, prompt=2_048, response=14_336),
    "agentgym/TextCraft-v0": Lengths(turns=20, reply=512, prompt=2_048, response=6_144),
    # 20 turns would cut off 6 % of the games that its oracle wins.
    "agentgym/ALFWorld-v0": Lengths(turns=30, reply=512, prompt=2_048, response=8_192),
}
"""By the environment's id without its module."""

USUAL_LENGTHS = Lengths(turns=20, reply=512, prompt=2_048, response=8_192)
"""Of every other environment."""
