"""The numbers of the recipe. They were fixed before the runs reported in docs/training/maze.md."""

from __future__ import annotations

from dataclasses import dataclass

from trainers import Training

__all__ = ["FULL", "PHRASES", "QUICK", "REPLY_TOKENS", "SYSTEM", "Recipe"]

SYSTEM = "You are in a maze. Reach the goal."

REPLY_TOKENS = 8
"""Maximum tokens of a reply. A move is one token and the end of the turn another."""


@dataclass(frozen=True)
class Recipe(Training):
    """The settings shared by all seeds. The training tasks are the starts of the maze.

    Attributes:
        turns: Turn limit. The farthest start is 13 moves from the goal.
        shown_starts: Tasks whose oracle games the model is fine-tuned on: one in five, near and far.
        shown_success: Stopping rule of fine-tuning: it stops at the first checkpoint with this success rate
            in `sft_episodes_a_start` episodes from each of the 25 starts. If none reaches it, the last
            checkpoint is used.
        sft_from: The step of the first checkpoint that is measured.
        sft_episodes_a_start: Episodes from each start in such a measurement.
        validate_every: Steps of GRPO.
        episodes_a_start: Of the measurement before and after: 8 are 200 episodes, sampled at temperature 1.
    """

    turns: int = 20
    shown_starts: tuple[int, ...] = (1, 4, 9, 13, 21)
    shown_success: float = 0.4
    sft_from: int = 30
    sft_episodes_a_start: int = 4
    validate_every: int = 8
    episodes_a_start: int = 8


FULL = Recipe()
QUICK = Recipe(
    turns=5,
    sft_steps=4,
    sft_every=2,
    sft_from=2,
    sft_episodes_a_start=1,
    steps=2,
    prompts=8,
    rollouts=2,
    validate_every=1,
    episodes_a_start=1,
)
"""A smoke test: it runs all parts in two minutes and learns nothing."""

PHRASES = (
    SYSTEM,
    "The goal is at position ",
    ". Your current position is at position ",
    ". There are walls ",
    ". There is a wall ",
    "to your right",
    "to your left",
    "above you",
    "below you",
    "Your reply was not carried out: ",
    "A reply looks like this:",
    "move up",
    "move down",
    "move left",
    "move right",
)
"""Phrases that recur word for word; each becomes one token."""
