"""The settings that the rules about numbers compare, and facts about the folder, as a typed record."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, get_type_hints

from verl_bridge.recipes._verl_settings import Fact, Name, Number, RlSettings, SftSettings

__all__ = ["RlNumbers", "SftNumbers", "labels"]

_ACTOR = "actor_rollout_ref.actor"
_MODEL = "actor_rollout_ref.model"
_REF = "actor_rollout_ref.ref"
_ROLLOUT = "actor_rollout_ref.rollout"
_CORRECTION = "algorithm.rollout_correction"
_SAMPLER = "trainer.v1.sampler"


@dataclass(frozen=True)
class _Shared:
    """The settings and the facts that both trainers have in the same place."""

    train_samples: Annotated[int, Number("data.train_max_samples")] = -1
    save_freq: Annotated[int, Number("trainer.save_freq")] = -1
    resume_path: Annotated[str | None, "trainer.resume_from_path"] = None

    total: Annotated[int | None, Fact("the training steps")] = None
    train_rows: Annotated[int | None, Fact("the rows of `data.train_files`")] = None
    context: Annotated[int | None, Fact("the context of the model")] = None
    heads: Annotated[int, Fact("the attention heads of the model")] = 0
    key_heads: Annotated[int, Fact("the key heads of the model")] = 0
    misspelt: Annotated[str, Fact("`data.apply_chat_template_kwargs`")] = ""
    unused: Annotated[str, Fact("`data.apply_chat_template_kwargs`, and the model's chat template")] = ""
    no_checkpoints: Annotated[str, Fact("`trainer.default_local_dir`")] = ""


@dataclass(frozen=True)
class RlNumbers(_Shared, RlSettings):
    """The settings that the rules compare, and facts about the folder.

    A setting is None if it is null, or if verl composes its default and did not do so here.
    """

    forward_by_tokens: Annotated[bool | None, f"{_ROLLOUT}.log_prob_use_dynamic_bsz"] = None
    tokens: Annotated[int, Number(f"{_ACTOR}.ppo_max_token_len_per_gpu")] = 16384
    forward_tokens: Annotated[int | None, Number(f"{_ROLLOUT}.log_prob_max_token_len_per_gpu")] = None
    ref_tokens: Annotated[int | None, Number(f"{_REF}.log_prob_max_token_len_per_gpu")] = None
    critic_tokens: Annotated[int, Number("critic.ppo_max_token_len_per_gpu")] = 32768
    critic_forward_tokens: Annotated[int | None, Number("critic.forward_max_token_len_per_gpu")] = None
    critic_parallel: Annotated[int, Number("critic.fsdp.ulysses_sequence_parallel_size")] = 1
    critic_parallel_0_7: Annotated[int, Number("critic.model.fsdp_config.ulysses_sequence_parallel_size")] = 1
    rollout_prompt: Annotated[int | None, Number(f"{_ROLLOUT}.prompt_length")] = None
    rollout_response: Annotated[int | None, Number(f"{_ROLLOUT}.response_length")] = None
    gen_batch: Annotated[int | None, Number("data.gen_batch_size")] = None

    engine: Annotated[str, f"{_ROLLOUT}.name"] = ""
    model_len: Annotated[int | None, Number(f"{_ROLLOUT}.max_model_len")] = None
    utilization: Annotated[float, Number(f"{_ROLLOUT}.gpu_memory_utilization")] = 0.5
    frees_cache: Annotated[bool, f"{_ROLLOUT}.free_cache_engine"] = True
    sequences: Annotated[int, Number(f"{_ROLLOUT}.max_num_seqs")] = 256
    batched_tokens: Annotated[int, Number(f"{_ROLLOUT}.max_num_batched_tokens")] = 8192
    load_format: Annotated[str | None, Name(f"{_ROLLOUT}.load_format")] = "dummy"
    ignores_eos: Annotated[bool, f"{_ROLLOUT}.ignore_eos"] = False
    returns_log_probs: Annotated[bool | None, f"{_ROLLOUT}.calculate_log_probs"] = None

    temperature: Annotated[float, Number(f"{_ROLLOUT}.temperature")] = 1.0
    top_p: Annotated[float, Number(f"{_ROLLOUT}.top_p")] = 1.0
    top_k: Annotated[int, Number(f"{_ROLLOUT}.top_k")] = -1
    val_temperature: Annotated[float, Number(f"{_ROLLOUT}.val_kwargs.temperature")] = 0.0
    val_top_p: Annotated[float, Number(f"{_ROLLOUT}.val_kwargs.top_p")] = 1.0
    val_top_k: Annotated[int, Number(f"{_ROLLOUT}.val_kwargs.top_k")] = -1
    val_samples: Annotated[int, Number(f"{_ROLLOUT}.val_kwargs.n")] = 1
    val_do_sample: Annotated[bool, f"{_ROLLOUT}.val_kwargs.do_sample"] = False

    rate: Annotated[float, Number(f"{_ACTOR}.optim.lr")] = 1e-6
    critic_rate: Annotated[float, Number("critic.optim.lr")] = 1e-5
    warmup: Annotated[int, Number(f"{_ACTOR}.optim.lr_warmup_steps")] = -1
    warmup_ratio: Annotated[float, Number(f"{_ACTOR}.optim.lr_warmup_steps_ratio")] = 0.0
    decay: Annotated[float, Number(f"{_ACTOR}.optim.weight_decay")] = 0.01
    clip_grad: Annotated[float, Number(f"{_ACTOR}.optim.clip_grad")] = 1.0
    old_clip_grad: Annotated[float, Number(f"{_ACTOR}.grad_clip")] = 1.0
    clip: Annotated[float, Number(f"{_ACTOR}.clip_ratio")] = 0.2
    clip_low: Annotated[float | None, Number(f"{_ACTOR}.clip_ratio_low")] = None
    clip_high: Annotated[float | None, Number(f"{_ACTOR}.clip_ratio_high")] = None
    clip_dual: Annotated[float, Number(f"{_ACTOR}.clip_ratio_c")] = 3.0
    loss: Annotated[str, f"{_ACTOR}.policy_loss.loss_mode"] = "vanilla"
    entropy: Annotated[float, Number(f"{_ACTOR}.entropy_coeff")] = 0.0
    uses_kl: Annotated[bool, f"{_ACTOR}.use_kl_loss"] = False
    kl: Annotated[float, Number(f"{_ACTOR}.kl_loss_coef")] = 0.001
    aggregation: Annotated[str, f"{_ACTOR}.loss_agg_mode"] = "token-mean"
    loss_scale: Annotated[Any, f"{_ACTOR}.loss_scale_factor"] = None
    saved: Annotated[Any, f"{_ACTOR}.checkpoint.save_contents"] = None
    lora_alpha: Annotated[float, Number(f"{_MODEL}.lora_alpha")] = 16.0

    discount: Annotated[float, Number("algorithm.gamma")] = 1.0
    lam: Annotated[float, Number("algorithm.lam")] = 1.0
    divides: Annotated[bool, "algorithm.norm_adv_by_std_in_grpo"] = True
    rewards_kl: Annotated[bool, "algorithm.use_kl_in_reward"] = False
    kl_control: Annotated[str, "algorithm.kl_ctrl.type"] = "fixed"
    reward_kl: Annotated[float, Number("algorithm.kl_ctrl.kl_coef")] = 0.001
    kl_horizon: Annotated[float, Number("algorithm.kl_ctrl.horizon")] = 10000.0
    target_kl: Annotated[float, Number("algorithm.kl_ctrl.target_kl")] = 0.1
    weight_limit: Annotated[Any, f"{_CORRECTION}.rollout_is_threshold"] = 2.0
    rejected_by: Annotated[str | None, f"{_CORRECTION}.rollout_rs"] = None
    rejection_limit: Annotated[Any, f"{_CORRECTION}.rollout_rs_threshold"] = None

    critic_warmup: Annotated[int, Number("trainer.critic_warmup")] = 0
    validates_first: Annotated[bool, "trainer.val_before_train"] = True
    only_validates: Annotated[bool, "trainer.val_only"] = False

    own_loop: Annotated[bool, Fact("the agent loop of verl_bridge")] = False
    turn_rows: Annotated[bool, Fact("`rows` of the agent loop")] = False
    loop_turns: Annotated[int | None, Fact("`max_turns` of the agent loop")] = None
    env_turns: Annotated[int | None, Fact("`max_turns` of the environments")] = None
    observation: Annotated[int | None, Fact("`max_observation_tokens` of the agent loop")] = None
    loopback: Annotated[str, Fact("`server` of the environments")] = ""
    no_episodes: Annotated[str, Fact("`episodes_dir` of the agent loop")] = ""
    no_dumps: Annotated[str, Fact("`trainer.rollout_data_dir`")] = ""


@dataclass(frozen=True)
class SftNumbers(_Shared, SftSettings):
    """The same for fine-tuning."""

    rate: Annotated[float, Number("optim.lr")] = 1e-3
    warmup: Annotated[int, Number("optim.lr_warmup_steps")] = -1
    warmup_ratio: Annotated[float, Number("optim.lr_warmup_steps_ratio")] = 0.0
    decay: Annotated[float, Number("optim.weight_decay")] = 0.01
    clip_grad: Annotated[float, Number("optim.clip_grad")] = 1.0
    lora_rank: Annotated[int, "model.lora_rank"] = 0
    lora_alpha: Annotated[float, Number("model.lora_alpha")] = 16.0
    saved: Annotated[Any, "checkpoint.save_contents"] = None
    test_freq: Annotated[int, Number("trainer.test_freq")] = -1


def labels(kind: type[RlNumbers | SftNumbers]) -> Mapping[str, str]:
    """Return the setting or the fact of each field, as the docs have it."""
    places = {name: hint.__metadata__[0] for name, hint in get_type_hints(kind, include_extras=True).items()}
    return {
        name: where.text if isinstance(where, Fact) else f"`{where if isinstance(where, str) else where.key}`"
        for name, where in places.items()
    }
