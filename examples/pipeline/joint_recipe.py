"""The numbers of the recipe: docs/training/pipeline.md."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[1] / "maze_training"))  # modules of both examples

from commands import Commands, folders_of, keep_recipe
from recipe import HELD_OUT as MAZE_HELD_OUT
from recipe import PHRASES as MAZE_PHRASES
from trainers import Training, grpo_settings, sft_settings

__all__ = [
    "FULL",
    "HELD_OUT",
    "MISTAKES",
    "PHRASES",
    "QUICK",
    "TURNS",
    "Commands",
    "JointRecipe",
    "folders_of",
    "grpo_settings",
    "keep_recipe",
    "sft_settings",
]

TURNS = {"Maze": 20, "TextCraft": 8}
"""Turn limits, as in the two run files."""


HELD_OUT = {"Maze": MAZE_HELD_OUT, "TextCraft": (6, 53, 58, 68, 73, 77, 79, 88, 89, 94)}
"""Tasks that no training plays: starts of Maze, and tasks of TextCraft drawn from those of one craft."""


@dataclass(frozen=True)
class JointRecipe(Training):
    """The settings shared by all seeds.

    Attributes:
        craft_weight: How often the games of TextCraft are in the data. They are so short that the model would
            learn Maze's long before them.
        shown_success: Stopping rule of fine-tuning: it stops at the first checkpoint with at least this
            success rate on the trained tasks of each of these environments. If there is none, the last one is
            used.
        sft_from: The step of the first checkpoint that is measured.
        look_samples: Episodes of each task in such a measurement.
        samples: Episodes of each task in the evaluations before and after GRPO.
    """

    sft_steps: int = 75
    sft_batch: int = 35  # all games
    sft_learning_rate: float = 2.5e-3
    steps: int = 40
    prompts: int = 20
    mini_batch: int = 5
    prompt_length: int = 96

    craft_weight: int = 3
    shown_success: tuple[tuple[str, float], ...] = (("Maze", 0.4), ("TextCraft", 0.25))
    sft_from: int = 36
    look_samples: int = 4
    samples: int = 8


FULL = JointRecipe()
QUICK = JointRecipe(
    sft_steps=4,
    sft_every=2,
    sft_from=2,
    look_samples=1,
    steps=2,
    prompts=8,
    rollouts=2,
    mini_batch=4,
    samples=1,
)
"""A smoke test: it runs all parts in some minutes and learns nothing."""

PHRASES = (
    *MAZE_PHRASES[1:],  # not the prompt of that example
    "system\n",
    "user\n",
    "assistant\n",
    "Crafting commands:\n",
    "\n\nGoal: craft",
    "craft",
    "get",
    "Got",
    " using",
    "Could not find",
    "Could not find enough items to craft minecraft:",
    "Could not find a valid recipe for ItemTagWithCount",
    "the place for the action is empty.",
    "there is more than one action in the reply.",
    "' is not one of the actions: get, craft, inventory.",
    "' is not one of the actions: move.",
    "\nA reply looks like this:\n\nget 1 oak logs",
    "\nA reply looks like this:\n\nmove right",
)
"""Phrases that recur word for word; each becomes one token."""

MISTAKES = (
    "Could not find a valid recipe for ItemTagWithCount(item_tag=ItemTag(tag=None, item_id='minecraft:clay')",
    "expected 'get <count> <item>', got 'get'",
    "expected 'craft <count> <item> using <ingredients>', got 'craft'",
    "expected 'move <direction>', got 'move'",
)
"""Observations that no oracle causes, as training text for the tokenizer."""
