"""The numbers of the recipe. docs/training/pretrained.md reports its runs."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path

sys.path += [str(Path(__file__).resolve().parents[1] / name) for name in ("maze_training", "pipeline")]

from commands import Commands, attempts, keep_recipe
from report import curve, print_steps
from seed_results import change_between, figures_of, rate
from trainers import Training, grpo_settings, sft_settings

__all__ = [
    "ENDED",
    "EVALUATIONS",
    "GAMES",
    "Commands",
    "Evaluation",
    "SmolLM",
    "attempts",
    "change_between",
    "curve",
    "figures_of",
    "grpo_settings",
    "keep_recipe",
    "print_steps",
    "rate",
    "sft_settings",
]

ENDED = "ended"
"""The file that marks a folder as that of an ended stage."""

GAMES = {"TextCraft": None, "SQLGym": 400, "BabyAI": 380}
"""Games of the oracle for fine-tuning, from training tasks; None for all."""


@dataclass(frozen=True)
class Evaluation:
    """Tasks that no training plays.

    Attributes:
        env: The environment.
        split: Their split.
        count: The number of tasks: the first ones of a test split, and random ones of the training split.
        samples: Episodes of each task.
        kept_out: Whether they are tasks of the training split that are kept out of all training.
    """

    env: str
    split: str
    count: int
    samples: int = 1
    kept_out: bool = False

    @property
    def name(self) -> str:
        """The name of its runs."""
        return f"{self.env}-{'kept-out' if self.kept_out else self.split}"

    @property
    def title(self) -> str:
        """Its name in tables and figures."""
        split = {"train": "training", "dev": "development"}.get(self.split, self.split)
        return f"{self.env}, {split} split"


EVALUATIONS = (
    # The test tasks of TextCraft need longer plans than those of the training split.
    Evaluation("TextCraft", "train", 60, samples=2, kept_out=True),
    Evaluation("TextCraft", "test", 91),
    # The questions of the development split are about databases that the training split does not have.
    Evaluation("SQLGym", "train", 100, kept_out=True),
    Evaluation("SQLGym", "dev", 100),
    Evaluation("BabyAI", "test", 164),
)


@dataclass(frozen=True)
class SmolLM(Training):
    """The settings of both trainings.

    Attributes:
        sft_epochs: Passes over the games.
        sft_micro_batch: Games in one forward pass.
        kept_out_seed: Seed of the tasks of the training split that are kept out.
        least_turns: Turns that the oracle needs in the tasks of GRPO, at least: of easier tasks, the
            fine-tuned model wins nearly all.
        most_turns: The same, at most: of harder tasks, it wins none.
        max_turns: Turn limit of GRPO.
        reply_tokens: Maximum tokens of a reply.
        micro_batch: Episodes in one forward pass of GRPO.
        evaluation_turns: Turn limit of all evaluations: the turns of the longest game of fine-tuning.
        evaluation_tokens: Maximum tokens of a reply in all evaluations.
        zero_shot_tasks: Tasks of each evaluation that the model plays once each before any training. It wins
            none and uses all turns, so that all tasks would take hours.
    """

    sft_batch: int = 8
    sft_learning_rate: float = 2e-4
    sft_epochs: int = 2
    sft_micro_batch: int = 2
    sft_every: int = 70
    kept_out_seed: int = 0

    steps: int = 16
    prompts: int = 8
    rollouts: int = 8
    mini_batch: int = 4
    learning_rate: float = 2e-5
    warmup_steps: int = 2
    prompt_length: int = 576
    response_length: int = 576
    least_turns: int = 3
    most_turns: int = 5
    max_turns: int = 8
    reply_tokens: int = 120
    micro_batch: int = 4

    evaluation_turns: int = 12
    evaluation_tokens: int = 160
    zero_shot_tasks: int = 60
