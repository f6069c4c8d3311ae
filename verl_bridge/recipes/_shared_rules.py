"""The rules about numbers that hold for reinforcement learning and for fine-tuning alike.

Both trainers of verl have these settings, some of them under another group: each function takes its name.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from verl_bridge.recipes._rule import Rule, problem_if, warning_if
from verl_bridge.recipes._sequence_parallel import shares_heads

__all__ = ["checkpoints", "optimizer", "sequence_parallel", "steps", "without_effect"]


def optimizer(group: str) -> Sequence[Rule[Any]]:
    """Return the rules about the optimizer and adapters.

    Args:
        group: The group of the optimizer's settings.
    """
    return (
        problem_if(
            lambda s: s.total is not None and s.warmup >= s.total > 1,
            f"{group}.lr_warmup_steps={{warmup}} is not below the training steps={{total}}",
            "the training ends before its learning rate is reached",
            "lower lr_warmup_steps, or set it to -1 for lr_warmup_steps_ratio",
        ),
        problem_if(
            lambda s: s.warmup <= 0 and not 0 <= s.warmup_ratio < 1,
            f"{group}.lr_warmup_steps_ratio={{warmup_ratio}} is not from 0 to below 1, with "
            "lr_warmup_steps={warmup} not above 0",
            "it is a share of the training steps",
            "set it to 0.0, verl's default, or to a share such as 0.05",
        ),
        problem_if(
            lambda s: not s.clip_grad > 0,
            f"{group}.clip_grad={{clip_grad}} is not above 0",
            "all gradients are scaled to 0 or reversed",
            "set it to 1.0, verl's default",
        ),
        problem_if(
            lambda s: not 0 <= s.decay < 1,
            f"{group}.weight_decay={{decay}} is not from 0 to below 1",
            "the weights grow, or decay to 0",
            "set it to 0.01, verl's default",
        ),
        problem_if(
            lambda s: s.lora_rank > 0 and not s.lora_alpha > 0,
            "model.lora_alpha={lora_alpha} is not above 0, with lora_rank={lora_rank}",
            "the adapters are scaled by it, and have no effect or a reversed one",
            "set it to the rank",
        ),
    )


def sequence_parallel(group: str) -> Sequence[Rule[Any]]:
    """Return the rules about GPUs that share each sequence.

    Args:
        group: The group of the setting.
    """
    name = f"{group}.ulysses_sequence_parallel_size={{sequence_parallel}}"
    return (
        problem_if(
            lambda s: s.sequence_parallel < 1 or s.gpus * s.nodes % s.sequence_parallel > 0,
            f"{name} does not divide trainer.n_gpus_per_node={{gpus}} x nnodes={{nodes}}",
            "verl cannot form groups of GPUs for a sequence",
            "set it to 1, or to a divisor of the number of GPUs",
        ),
        problem_if(
            lambda s: (
                s.sequence_parallel > 1
                and s.heads > 0
                and not shares_heads(s.sequence_parallel, s.heads, s.key_heads)
            ),
            f"{name} does not fit the attention heads={{heads}} and key heads={{key_heads}} of the model",
            "verl stops when it loads the model",
            "set it to a divisor of the attention heads that divides the key heads, or is a multiple of them",
        ),
    )


def steps() -> Sequence[Rule[Any]]:
    """Return the rules about the number of rows and steps."""
    return (
        problem_if(
            lambda s: 0 < s.train_samples < s.batch,
            "data.train_max_samples={train_samples} is below train_batch_size={batch}",
            "verl drops incomplete batches, so there is no step",
            "raise data.train_max_samples, or set it to -1 for all rows",
        ),
        warning_if(
            lambda s: (
                s.steps is not None
                and s.epochs is not None
                and s.train_rows is not None
                and 0 < s.train_rows // s.batch * s.epochs < s.steps
            ),
            "trainer.total_training_steps={steps} is more than total_epochs={epochs} of "
            "train_files={train_rows} / train_batch_size={batch} steps",
            "verl stops after the last epoch",
            "raise trainer.total_epochs, which is an upper limit",
        ),
    )


def checkpoints(group: str) -> Sequence[Rule[Any]]:
    """Return the rules about checkpoints.

    Args:
        group: The group of the setting of their contents.
    """
    return (
        problem_if(
            lambda s: (
                s.save_freq > 0 and isinstance(s.saved, list) and not {"model", "hf_model"} & {*s.saved}
            ),
            f"{group}.save_contents={{saved}} has no model, with trainer.save_freq={{save_freq}} above 0",
            "the checkpoints have no weights",
            "add model",
        ),
        problem_if(
            lambda s: s.resume == "resume_path" and "global_step_" not in str(s.resume_path),
            "trainer.resume_from_path={resume_path} is no global_step_N, with resume_mode: resume_path",
            "verl stops after loading the models",
            "set it to the folder of a step, global_step_N, or set resume_mode: auto",
        ),
        problem_if(
            lambda s: s.no_checkpoints != "",
            "trainer.default_local_dir={no_checkpoints} cannot be written",
            "verl stops at the first checkpoint",
            "choose a folder that the training may write",
        ),
    )


def without_effect(group: str) -> Sequence[Rule[Any]]:
    """Return the rules about settings that are ignored.

    Args:
        group: The group of the optimizer's settings.
    """
    return (
        warning_if(
            lambda s: s.warmup > 0 and s.warmup_ratio > 0,
            f"{group}.lr_warmup_steps_ratio={{warmup_ratio}} and lr_warmup_steps={{warmup}} are both above 0",
            "the number of steps replaces the share",
            "delete one of them",
        ),
        problem_if(
            lambda s: s.misspelt != "",
            "data.apply_chat_template_kwargs={misspelt} is a misspelt name",
            "chat templates ignore unknown names, so thinking is not switched",
            "correct the name, such as enable_thinking",
        ),
        warning_if(
            lambda s: s.unused != "",
            "data.apply_chat_template_kwargs={unused} is not in the model's chat template",
            "chat templates ignore unknown names",
            "delete it, or correct its name",
        ),
    )
