"""The rules about numbers for fine-tuning: settings that verl accepts, and that spoil a training."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from verl_bridge.recipes import _shared_rules as shared
from verl_bridge.recipes._rule import Rule, problem_if, warning_if

if TYPE_CHECKING:
    from verl_bridge.recipes._numbers import SftNumbers

__all__ = ["SFT_RULES"]

SFT_RULES: Mapping[str, Sequence[Rule[SftNumbers]]] = {
    "Sizes of fine-tuning": shared.sequence_parallel("engine"),
    "Learning by fine-tuning": (
        problem_if(
            lambda s: not s.rate > 0,
            "optim.lr={rate} is not above 0",
            "the model does not learn, or unlearns",
            "set it to 1e-5, or 1e-4 with LoRA",
        ),
        problem_if(
            lambda s: s.rate > 1e-2,
            "optim.lr={rate} is above 1e-2",
            "the first updates destroy a pretrained model",
            "set it to 1e-5, or 1e-4 with LoRA",
        ),
        warning_if(
            lambda s: 5e-4 < s.rate <= 1e-2 and s.lora_rank == 0,
            "optim.lr={rate} is above 5e-4, without LoRA",
            "verl's default, 1e-3, is for an untrained model; a pretrained one forgets what it can do",
            "set it to 1e-5, or up to 2e-4 for a model below 1B",
        ),
        *shared.optimizer("optim"),
    ),
    "Steps and checkpoints of fine-tuning": (
        *shared.steps(),
        problem_if(
            lambda s: s.save_freq == 0 or s.test_freq == 0,
            "trainer.save_freq={save_freq} or test_freq={test_freq} is 0",
            "verl divides by it, and stops at the first step",
            "set it to -1 for the end only, to a number of steps, or to after_each_epoch",
        ),
        problem_if(
            lambda s: s.test_freq > 0 and not s.val_files,
            "trainer.test_freq={test_freq} is above 0, without data.val_files",
            "verl stops at the first validation",
            "set data.val_files, or test_freq to -1",
        ),
        warning_if(
            lambda s: isinstance(s.saved, list) and "hf_model" not in s.saved and s.lora_rank == 0,
            "checkpoint.save_contents={saved} has no hf_model",
            "engines and agentgym eval cannot load the checkpoints",
            "add hf_model, or merge a checkpoint by verl.model_merger",
        ),
        *shared.checkpoints("checkpoint"),
    ),
    "Settings of fine-tuning without effect": shared.without_effect("optim"),
}
"""The rules, by their subject."""
