"""Mistakes in the numbers of a folder for fine-tuning, one for each rule of `agentgym verl check`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from check_mistakes import config
from number_mistakes import SIZES, write_model
from verl_bridge.recipes import SftRecipe, write_sft

__all__ = ["SFT_MISTAKES", "SftMistake"]

_GAME = [{"role": "user", "content": "Which way?"}, {"role": "assistant", "content": "Action: left"}]


@dataclass(frozen=True)
class SftMistake:
    """Settings of a written recipe that break one rule.

    Attributes:
        settings: The changed settings, by their dotted keys.
        finding: A part of the finding's text.
        status: Its status.
        model: The ``config.json`` of a local model; None for a model on the hub.
    """

    settings: Mapping[str, Any]
    finding: str
    status: str = "problem"
    model: Mapping[str, Any] | None = None

    def __str__(self) -> str:
        shown = [f"{'.'.join(key.split('.')[-2:])}={value}" for key, value in self.settings.items()]
        return f"sft {', '.join(shown)}"

    def make(self, folder: Path, verl: str = "0.9") -> Path:
        """Write a recipe for a version of verl, with 32 games, and make the mistake in it."""
        write_sft(SftRecipe(verl=verl, batch=8, epochs=2), folder)
        (folder / "data").mkdir(exist_ok=True)
        pq.write_table(pa.Table.from_pylist([{"messages": _GAME}] * 32), folder / "data/train.parquet")
        config(self.settings)(folder)
        write_model(folder, self.model, "model.path")
        return folder


def _optim(finding: str, status: str = "problem", **settings: Any) -> SftMistake:
    return SftMistake({f"optim.{name}": value for name, value in settings.items()}, finding, status)


def _trainer(finding: str, status: str = "problem", **settings: Any) -> SftMistake:
    return SftMistake({f"trainer.{name}": value for name, value in settings.items()}, finding, status)


SFT_MISTAKES = (
    SftMistake({"engine.ulysses_sequence_parallel_size": 3}, "parallel_size=3 does not divide"),
    SftMistake(
        {"engine.ulysses_sequence_parallel_size": 2},
        "size=2 does not fit the attention heads=12 and key heads=3",
        model=SIZES,
    ),
    _optim("optim.lr=0 is not above 0", lr=0),
    _optim("optim.lr=0.1 is above 1e-2", lr=0.1),
    _optim("optim.lr=0.001 is above 5e-4, without LoRA", "warning", lr="1e-3"),
    _optim("lr_warmup_steps=20 is not below the training steps=8", lr_warmup_steps=20),
    _optim("lr_warmup_steps_ratio=5 is not from 0 to below 1", lr_warmup_steps_ratio=5),
    _optim("clip_grad=0 is not above 0", clip_grad=0),
    _optim("weight_decay=1.0 is not from 0 to below 1", weight_decay=1.0),
    SftMistake({"model.lora_rank": 16, "model.lora_alpha": 0}, "lora_alpha=0 is not above 0"),
    SftMistake({"data.train_max_samples": 4}, "train_max_samples=4 is below train_batch_size=8"),
    _trainer("total_training_steps=100 is more than total_epochs=2", "warning", total_training_steps=100),
    _trainer("save_freq=0 or test_freq=-1 is 0", save_freq=0),
    _trainer("test_freq=10 is above 0, without data.val_files", test_freq=10),
    SftMistake({"checkpoint.save_contents": ["model", "optimizer", "extra"]}, "has no hf_model", "warning"),
    SftMistake(
        {"checkpoint.save_contents": ["optimizer"], "trainer.save_freq": 2, "model.lora_rank": 16},
        "save_contents=['optimizer'] has no model",
    ),
    _trainer("resume_from_path=None is no global_step_N", resume_mode="resume_path"),
    _trainer("trainer.default_local_dir=", default_local_dir="${folder}/run.sh/checkpoints"),
    _optim("are both above 0", "warning", lr_warmup_steps=2, lr_warmup_steps_ratio=0.1),
    SftMistake(
        {"data.apply_chat_template_kwargs": {"enable_thinkng": False}},
        "kwargs=enable_thinkng is a misspelt name",
    ),
    SftMistake(
        {
            "data.apply_chat_template_kwargs": {"tone": "dry"},
            "model.custom_chat_template": "{{ messages }}",
        },
        "apply_chat_template_kwargs=tone is not in the model's chat template",
        "warning",
    ),
)
"""A mistake for each rule."""
