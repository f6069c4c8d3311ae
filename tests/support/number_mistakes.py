"""Mistakes in the numbers of a training folder, one for each rule of `agentgym verl check`."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from check_mistakes import TEXTCRAFT, config, loop
from verl_bridge.recipes import RlRecipe, seeded, write, write_rows

SIZES = {
    "hidden_size": 768,
    "intermediate_size": 2048,
    "num_hidden_layers": 12,
    "num_attention_heads": 12,
    "num_key_value_heads": 3,
    "vocab_size": 32000,
}
"""A ``config.json`` with 12 attention heads and 3 key heads."""

ACTOR, ROLLOUT = "actor_rollout_ref.actor", "actor_rollout_ref.rollout"
CORRECTION = "algorithm.rollout_correction"
LORA = {"actor_rollout_ref.model.lora_rank": 16}


def write_model(folder: Path, model: Mapping[str, Any] | None, key: str) -> None:
    """Write the ``config.json`` of a local model, if there is one, and name it by a setting."""
    if model is not None:
        (folder / "model").mkdir()
        (folder / "model/config.json").write_text(json.dumps(dict(model)))
        config({key: "model"})(folder)


@dataclass(frozen=True)
class NumberMistake:
    """Settings of a written recipe that break one rule.

    Attributes:
        settings: The changed settings, by their dotted keys.
        finding: A part of the finding's text.
        status: Its status.
        loop: The changed arguments of the agent loop.
        algorithm: The algorithm of the recipe.
        preset: The preset of the recipe.
        env_kwargs: Arguments of the environment in each of 16 rows; None for a folder without rows.
        model: The ``config.json`` of a local model; None for a model on the hub.
    """

    settings: Mapping[str, Any]
    finding: str
    status: str = "problem"
    loop: Mapping[str, Any] = field(default_factory=dict)
    algorithm: str = "grpo"
    preset: str = "train"
    env_kwargs: Mapping[str, Any] | None = None
    model: Mapping[str, Any] | None = None

    def __str__(self) -> str:
        changed = {**self.settings, **self.loop, **(self.env_kwargs or {})}
        shown = [f"{'.'.join(key.split('.')[-2:])}={value}" for key, value in changed.items()]
        return f"{self.algorithm} {', '.join(shown)}"

    def make(self, folder: Path, verl: str = "0.9") -> Path:
        """Write a recipe for a version of verl, and make the mistake in it."""
        choices = {"algorithm": self.algorithm, "preset": self.preset}
        write(RlRecipe(TEXTCRAFT, verl=verl, engine="vllm", **choices), folder)
        config(self.settings)(folder)
        loop(self.loop)(folder)
        if self.env_kwargs is not None:
            rows = seeded(TEXTCRAFT, range(16), "Craft it.")
            for row in rows:
                row["extra_info"]["interaction_kwargs"]["env_kwargs"] = json.dumps(dict(self.env_kwargs))
            write_rows(folder / "data/train.parquet", rows)
        write_model(folder, self.model, "actor_rollout_ref.model.path")
        return folder


def _actor(finding: str, status: str = "problem", **settings: Any) -> NumberMistake:
    return NumberMistake({f"{ACTOR}.{name}": value for name, value in settings.items()}, finding, status)


def _rollout(finding: str, status: str = "problem", **settings: Any) -> NumberMistake:
    return NumberMistake({f"{ROLLOUT}.{name}": value for name, value in settings.items()}, finding, status)


def _optim(finding: str, status: str = "problem", **settings: Any) -> NumberMistake:
    return NumberMistake(
        {f"{ACTOR}.optim.{name}": value for name, value in settings.items()}, finding, status
    )


def _val(finding: str, status: str = "problem", **settings: Any) -> NumberMistake:
    return NumberMistake(
        {f"{ROLLOUT}.val_kwargs.{name}": value for name, value in settings.items()}, finding, status
    )


FIELD_TEST = (
    # lengths
    _actor("actor.ppo_max_token_len_per_gpu=4096", use_dynamic_bsz=True, ppo_max_token_len_per_gpu=4096),
    _rollout("max_model_len=4096 is below max_prompt_length=2048", max_model_len=4096),
    _rollout("response_length=2048 differs from data.max_response_length", response_length=2048),
    _rollout("gpu_memory_utilization=1.2 is not above 0 and at most 1", gpu_memory_utilization=1.2),
    _rollout("load_format=dumy is not a format", load_format="dumy"),
    _rollout("max_num_seqs=0 is below 1", max_num_seqs=0),
    _optim("optim.lr=0.01 is above 1e-3", lr=0.01),
    _actor("kl_loss_coef=-0.001 is below 0", kl_loss_coef=-0.001),
    _actor("entropy_coeff=1.0 is above 0.1", entropy_coeff=1.0),
    _optim("lr_warmup_steps=400 is not below the training steps=300", lr_warmup_steps=400),
    NumberMistake(
        {f"{CORRECTION}.rollout_is": "token", f"{ROLLOUT}.calculate_log_probs": False},
        "calculate_log_probs: false with rollout correction: rollout_is=token",
    ),
    NumberMistake(
        {"data.apply_chat_template_kwargs": {"enable_thinkng": False}},
        "kwargs=enable_thinkng is a misspelt name",
    ),
    NumberMistake(
        {f"{ROLLOUT}.multi_turn.max_assistant_turns": 5}, "max_assistant_turns=5 is set", "warning"
    ),
    NumberMistake(
        {},
        "max_turns=30 of the loop is above max_turns=10 of the environments",
        "warning",
        loop={"max_turns": 30},
        env_kwargs={"max_turns": 10},
    ),
    _val("val_kwargs.n=4 is above 1", "warning", n=4, temperature=0, do_sample=False),
    NumberMistake(
        {"trainer.nnodes": 2},
        "nnodes=2 is more than 1, and server=http://127.0.0.1:36001",
        env_kwargs={"server": "http://127.0.0.1:36001"},
    ),
    NumberMistake(
        {"trainer.default_local_dir": "${folder}/run.sh/checkpoints"}, "trainer.default_local_dir="
    ),
    NumberMistake({}, "episodes_dir=", loop={"episodes_dir": "run.sh/episodes"}),
    # sglang, the context
    _rollout("max_model_len=8192 is just", "warning", name="sglang", max_model_len=8192),
    NumberMistake(
        {f"{ROLLOUT}.max_model_len": 65536},
        "max_model_len=65536 is above the context=32768 of the model",
        model={"max_position_embeddings": 32768},
    ),
    # the same settings elsewhere
    _rollout("rollout.log_prob_max_token_len_per_gpu=4096", log_prob_max_token_len_per_gpu=4096),
    NumberMistake(
        {"actor_rollout_ref.ref.log_prob_max_token_len_per_gpu": 4096},
        "ref.log_prob_max_token_len_per_gpu=4096",
    ),
    NumberMistake(
        {"critic.ppo_max_token_len_per_gpu": 4096}, "critic.ppo_max_token_len_per_gpu=4096", algorithm="ppo"
    ),
    _rollout("prompt_length=512 differs from data.max_prompt_length=2048", prompt_length=512),
    _optim("actor.optim.lr=0.0 is not above 0", lr=0.0),
    _optim("optim.lr=0.0005 is above 1e-5, without LoRA", "warning", lr="5e-4"),
    _optim("lr_warmup_steps_ratio=10 is not from 0 to below 1", lr_warmup_steps_ratio=10),
    NumberMistake({"trainer.rollout_data_dir": "${folder}/run.sh/rollouts"}, "trainer.rollout_data_dir="),
)
"""The mistakes that a field test made, and that `check` did not find then."""

FURTHER = (
    NumberMistake(
        {"critic.forward_max_token_len_per_gpu": 4096},
        "critic.forward_max_token_len_per_gpu=4096",
        algorithm="ppo",
    ),
    NumberMistake(
        {},
        "max_observation_tokens=6144 is not below max_response_length=6144",
        "warning",
        loop={"max_observation_tokens": 6144},
    ),
    # sizes
    _actor("ulysses_sequence_parallel_size=3 does not divide", ulysses_sequence_parallel_size=3),
    NumberMistake(
        {f"{ACTOR}.ulysses_sequence_parallel_size": 2},
        "size=2 does not fit the attention heads=12 and key heads=3",
        model=SIZES,
    ),
    _rollout("log_prob_use_dynamic_bsz=False differs", log_prob_use_dynamic_bsz=False),
    _actor("train_batch_size=32 is not a multiple of ppo_mini", "warning", ppo_mini_batch_size=24),
    NumberMistake({"data.gen_batch_size": 24}, "is not a multiple of data.gen_batch_size=24"),
    NumberMistake({"data.train_max_samples": 16}, "train_max_samples=16 is below train_batch_size=32"),
    # the engine
    _rollout("gpu_memory_utilization=0.97 is above 0.9", "warning", gpu_memory_utilization=0.97),
    _rollout("free_cache_engine: false", "warning", free_cache_engine=False, gpu_memory_utilization=0.6),
    _rollout("max_num_seqs=2 is below 8", "warning", max_num_seqs=2),
    _rollout("max_num_batched_tokens=128 is below max_num_seqs=256", max_num_batched_tokens=128),
    _rollout("ignore_eos: true", ignore_eos=True),
    # sampling
    NumberMistake(
        {f"{ROLLOUT}.temperature": 0, f"{ROLLOUT}.val_kwargs": {"do_sample": False, "temperature": 0}},
        "rollout.temperature=0 is not above 0",
    ),
    _rollout("rollout.temperature=2.0 is above 1.5", "warning", temperature=2.0),
    _rollout("rollout.top_k: 1 with rollout.n=8", top_k=1),
    _rollout("rollout.top_p=0 is not above 0", top_p=0),
    _rollout("top_p=0.9 or top_k=-1 leaves out tokens", "warning", top_p=0.9),
    _val("val_kwargs.n=0 is below 1", n=0),
    _val("do_sample: true with val_kwargs.temperature: 0", "warning", do_sample=True, temperature=0),
    _val("do_sample: false with val_kwargs.temperature=0.7", "warning", do_sample=False, temperature=0.7),
    _val("val_kwargs.temperature=-1 is below 0", temperature=-1),
    # learning
    NumberMistake({f"{ACTOR}.optim.lr": 5e-4, **LORA}, "optim.lr=0.0005 is above 3e-4, with LoRA", "warning"),
    NumberMistake({"critic.optim.lr": 0.1}, "critic.optim.lr=0.1 is not above 0", algorithm="ppo"),
    _optim("clip_grad=0 is not above 0", clip_grad=0),
    _optim("weight_decay=1.0 is not from 0 to below 1", weight_decay=1.0),
    _actor("clip_ratio_c=1.0 is not above 1", clip_ratio_c=1.0),
    _actor("clip_ratio_high=-0.2 is below 0", clip_ratio_high=-0.2),
    _actor("clip_ratio_low=20 is from 1", "warning", clip_ratio_low=20),
    _actor("kl_loss_coef: 0 with use_kl_loss: true", "warning", kl_loss_coef=0),
    _actor("kl_loss_coef=1.0 is above 0.5", "warning", kl_loss_coef=1.0),
    _actor("entropy_coeff=-0.01 is below 0", "warning", entropy_coeff=-0.01),
    _actor("ppo_epochs=20 is above 8", "warning", ppo_epochs=20),
    NumberMistake({**LORA, "actor_rollout_ref.model.lora_alpha": 0}, "lora_alpha=0 is not above 0"),
    # rewards and advantages
    NumberMistake({"algorithm.gamma": 1.5}, "gamma=1.5 is not from 0 to 1", algorithm="ppo"),
    NumberMistake(
        {"algorithm.gamma": 0.95}, "gamma=0.95 over max_response_length=6144", "warning", algorithm="ppo"
    ),
    NumberMistake({"algorithm.gamma": 0.9}, "gamma=0.9 is not 1, with adv_estimator=grpo", "warning"),
    NumberMistake({"algorithm.lam": 1.1}, "lam=1.1 is not from 0 to 1", algorithm="ppo"),
    NumberMistake(
        {"algorithm.norm_adv_by_std_in_grpo": False},
        "norm_adv_by_std_in_grpo: false with adv_estimator=rloo",
        "warning",
        algorithm="rloo",
    ),
    NumberMistake(
        {
            f"{ACTOR}.use_kl_loss": False,
            "algorithm.use_kl_in_reward": True,
            "algorithm.kl_ctrl.kl_coef": -0.1,
        },
        "kl_ctrl.kl_coef=-0.1 is below 0",
    ),
    NumberMistake(
        {
            f"{ACTOR}.use_kl_loss": False,
            "algorithm.use_kl_in_reward": True,
            "algorithm.kl_ctrl.type": "adaptive",
            "algorithm.kl_ctrl.horizon": 0,
        },
        "kl_ctrl.horizon=0 or target_kl=0.1 is not above 0",
    ),
    NumberMistake({"algorithm.use_kl_in_reward": True}, "with actor.use_kl_loss: true", "warning"),
    # rollout correction
    NumberMistake(
        {f"{CORRECTION}.rollout_is": "token", f"{CORRECTION}.rollout_is_threshold": 0},
        "rollout_is_threshold=0 is not above 0",
    ),
    NumberMistake(
        {f"{CORRECTION}.rollout_is": "token", f"{CORRECTION}.rollout_is_threshold": 0.5},
        "rollout_is_threshold=0.5 is below 1",
        "warning",
    ),
    NumberMistake({f"{CORRECTION}.rollout_rs": "seq_mean_k1"}, "rollout_rs=seq_mean_k1 without"),
    NumberMistake({f"{CORRECTION}.rollout_rs_threshold": 2.0}, "=2.0 without rollout_rs", "warning"),
    # steps and checkpoints
    NumberMistake(
        {"data.train_batch_size": 16, f"{ACTOR}.ppo_mini_batch_size": 16, "trainer.total_epochs": 5},
        "total_training_steps=300 is more than total_epochs=5 of train_files=16 / train_batch_size=16",
        "warning",
        env_kwargs={},
    ),
    NumberMistake({"trainer.critic_warmup": 300}, "critic_warmup=300 is not below", algorithm="ppo"),
    NumberMistake({"trainer.critic_warmup": 10}, "critic_warmup=10 is above 0, with", "warning"),
    NumberMistake({"trainer.save_freq": 0}, "save_freq=0 is below 1", "warning"),
    _actor("save_contents=['optimizer'] has no model", **{"checkpoint.save_contents": ["optimizer"]}),
    NumberMistake({"trainer.resume_mode": "resume_path"}, "resume_from_path=None is no global_step_N"),
    NumberMistake(
        {"trainer.val_only": True, "trainer.val_before_train": False},
        "val_only: true with val_before_train: false",
    ),
    # settings without effect
    NumberMistake({f"{ROLLOUT}.multi_turn.max_user_turns": 5}, "max_user_turns=5 is set", "warning"),
    _actor("clip_ratio=0.3 is changed", "warning", clip_ratio=0.3, clip_ratio_low=0.2, clip_ratio_high=0.2),
    _actor("grad_clip=0.5 is changed", "warning", grad_clip=0.5),
    _optim("are both above 0", "warning", lr_warmup_steps=10, lr_warmup_steps_ratio=0.1),
    _actor("kl_loss_coef=0.01 is changed", "warning", use_kl_loss=False, kl_loss_coef=0.01),
    NumberMistake({"algorithm.kl_ctrl.kl_coef": 0.01}, "kl_ctrl.kl_coef=0.01 is changed", "warning"),
    _actor("loss_scale_factor=100 is set", "warning", loss_scale_factor=100),
    NumberMistake(
        {
            "data.apply_chat_template_kwargs": {"tone": "dry"},
            "actor_rollout_ref.model.custom_chat_template": "{{ messages }}",
        },
        "apply_chat_template_kwargs=tone is not in the model's chat template",
        "warning",
    ),
)
"""The mistakes of the other rules."""

NUMBER_MISTAKES = (*FIELD_TEST, *FURTHER)
