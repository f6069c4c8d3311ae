"""The numbers of the recipe: docs/training/maze.md."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from trainers import Training

from agentgym_gym import find

__all__ = [
    "FULL",
    "HELD_OUT",
    "HISTORY",
    "PHRASES",
    "QUICK",
    "REPLY_TOKENS",
    "SYSTEM",
    "TRAINED",
    "Recipe",
    "env_kwargs",
    "rows_of_turns",
]

SYSTEM = "You are in a maze. Reach the goal."

REPLY_TOKENS = 8
"""Maximum tokens of a reply. A move is one token and the end of the turn another."""

HISTORY = "turns:2"
"""The part of the conversation in a prompt, with a row for each turn."""

TRAINED = find("Maze").split("train")
"""The starts that the trainings play."""

HELD_OUT = find("Maze").split("test")
"""The starts of validations and measurements. Their fields are on the paths from some trained starts."""


@dataclass(frozen=True)
class Recipe(Training):
    """The settings shared by all seeds.

    Attributes:
        turns: Turn limit. The farthest start is 13 moves from the goal.
        shown_starts: Trained starts whose oracle games the model is fine-tuned on, near and far.
        shown_success: Stopping rule of fine-tuning: it stops at the first checkpoint with this success rate
            in `sft_episodes_a_start` episodes from each of the trained starts. If none reaches it, the last
            checkpoint is used.
        sft_from: The step of the first checkpoint that is measured.
        sft_episodes_a_start: Episodes from each start in such a measurement.
        validate_every: Steps of GRPO.
        validation_episodes: Episodes from each held-out start in a validation.
        episodes_a_start: Episodes from each held-out start in the measurement before and after: 40 are 200
            episodes, sampled at temperature 1.
    """

    turns: int = 20
    shown_starts: tuple[int, ...] = (1, 4, 9, 13, 19)
    shown_success: float = 0.4
    sft_from: int = 30
    sft_episodes_a_start: int = 5
    validate_every: int = 8
    validation_episodes: int = 20
    episodes_a_start: int = 40


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
    validation_episodes=2,
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


def env_kwargs(url: str, turns: int) -> dict[str, Any]:
    """Return the arguments of the environment; a reply with anything besides one move loses its turn."""
    return {
        "server": url,
        "action_format": "bare",
        "parser": "default",
        "on_unknown": "refuse",
        "max_turns": turns,
    }


def rows_of_turns(recipe: Recipe) -> Recipe:
    """Return a recipe with a row for each turn, whose prompt has two earlier turns.

    verl counts rows in a mini-batch, and a step has about eight rows for each episode: eight updates in place
    of four.
    """
    return replace(recipe, mini_batch=recipe.prompts, prompt_length=192, response_length=REPLY_TOKENS)
