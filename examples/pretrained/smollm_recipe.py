"""The numbers of the recipes. docs/training/pretrained.md reports their runs."""

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
    "RECIPES",
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


@dataclass(frozen=True)
class Evaluation:
    """Tasks that no training plays.

    Attributes:
        env: The environment.
        split: Their split.
        count: The number of tasks: the first ones of a test split, and random ones of the training split.
        samples: Episodes of each task.
        kept_out: Whether they are tasks of the training split that are kept out of all training.
        zero_shot: Whether they are also played before any training.
        new_families: Whether they are kept out with their families (``craft_families.py``): no training
            prompt shows a recipe of one. Only in TextCraft.
    """

    env: str
    split: str
    count: int
    samples: int = 1
    kept_out: bool = False
    zero_shot: bool = True
    new_families: bool = False

    @property
    def name(self) -> str:
        """The name of its runs."""
        if self.new_families:
            return f"{self.env}-new-families"
        return f"{self.env}-{'kept-out' if self.kept_out else self.split}"

    @property
    def title(self) -> str:
        """Its name in tables and figures."""
        if self.new_families:
            return f"{self.env}, new families"
        split = {"train": "training split", "dev": "development split", "test": "test split"}
        return f"{self.env}, {split.get(self.split, self.split)}"


@dataclass(frozen=True)
class SmolLM(Training):
    """The settings of the stages. By default, fine-tuning in three environments and GRPO in one of them.

    Attributes:
        games: Environments with the number of the oracle's games for fine-tuning, from training tasks; None
            for all.
        evaluations: The tasks to play after each training.
        learns: The environment of GRPO; None for fine-tuning only.
        sft_epochs: Passes over the games.
        sft_micro_batch: Games in one forward pass.
        kept_out_seed: Seed of the tasks of the training split that are kept out.
        least_turns: Turns that the oracle needs in the tasks of GRPO, at least: of easier tasks, the
            fine-tuned model wins nearly all.
        most_turns: The same, at most: of harder tasks, it wins none.
        new_tasks: The number of tasks of GRPO, none of which fine-tuning has, of any number of turns; None
            for the tasks of fine-tuning.
        filter_groups: Whether GRPO drops and replaces groups whose episodes all have the same score.
        max_turns: Turn limit of GRPO.
        reply_tokens: Maximum tokens of a reply.
        micro_batch: Episodes in one forward pass of GRPO.
        evaluation_turns: Turn limit of all evaluations: the turns of the longest game of fine-tuning.
        evaluation_tokens: Maximum tokens of a reply in all evaluations.
        zero_shot_tasks: Tasks of each evaluation that the model plays once each before any training. It wins
            none and uses all turns, so that all tasks would take hours.
    """

    games: tuple[tuple[str, int | None], ...] = (("TextCraft", None), ("SQLGym", 400), ("BabyAI", 380))
    evaluations: tuple[Evaluation, ...] = (
        # The test tasks of TextCraft need longer plans than those of the training split.
        Evaluation("TextCraft", "train", 60, samples=2, kept_out=True),
        Evaluation("TextCraft", "test", 91, zero_shot=False),
        # The questions of the development split are about databases that the training split does not have.
        Evaluation("SQLGym", "train", 100, kept_out=True),
        Evaluation("SQLGym", "dev", 100),
        Evaluation("BabyAI", "test", 164),
    )
    learns: str | None = "TextCraft"

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
    new_tasks: int | None = None
    filter_groups: bool = False
    max_turns: int = 8
    reply_tokens: int = 120
    micro_batch: int = 4

    evaluation_turns: int = 12
    evaluation_tokens: int = 160
    zero_shot_tasks: int = 60


RECIPES = {
    "smollm": SmolLM(),
    "smollm-families": SmolLM(
        kept_out_seed=5,  # of the seeds 0 to 7 the one that leaves the most training tasks
        evaluations=(
            Evaluation("TextCraft", "train", 60, samples=2, kept_out=True, new_families=True),
            *SmolLM.evaluations[1:],
        ),
    ),
    "smollm-alfworld": SmolLM(
        games=(("ALFWorld", 400),),
        evaluations=(
            # Rooms that no training task is in, and rooms of training tasks.
            Evaluation("ALFWorld", "test_unseen", 100),
            Evaluation("ALFWorld", "test_seen", 100, zero_shot=False),
        ),
        learns=None,
        sft_every=25,
        prompt_length=800,
        response_length=1_248,
        evaluation_turns=24,
        evaluation_tokens=100,
    ),
    "smollm-sqlgym": SmolLM(
        games=(("SQLGym", 400),),
        evaluations=(
            Evaluation("SQLGym", "train", 200, samples=2, kept_out=True, zero_shot=False),
            # Questions about databases that no training task has.
            Evaluation("SQLGym", "dev", 200, samples=2, zero_shot=False),
        ),
        learns="SQLGym",
        # A third of the groups have signal, so that a step plays some 90 episodes for the 32 that it learns.
        steps=20,
        prompts=4,
        # The longest of 400 prompts has 368 tokens, and the longest answer 227.
        prompt_length=416,
        response_length=304,
        new_tasks=800,
        filter_groups=True,
        sft_every=25,
    ),
}
"""The recipes by name."""
