"""The rules about numbers for reinforcement learning: settings that verl accepts, and that spoil a training.

Settings that verl's own ``validate_config`` rejects have no rule here. docs/training/check_numbers.md is
generated from this table.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from verl_bridge._credit.estimators import BY_TURN, GIGPO, GROUPED, WITH_CRITIC
from verl_bridge.recipes import _shared_rules as shared
from verl_bridge.recipes._rule import Rule, problem_if, warning_if

if TYPE_CHECKING:
    from verl_bridge.recipes._numbers import RlNumbers

__all__ = ["RL_RULES"]

_LOAD_FORMATS = frozenset(
    {
        *("auto", "bitsandbytes", "dtensor", "dummy", "dummy_dtensor", "dummy_hf", "dummy_megatron"),
        *("fastsafetensors", "flash_rl", "gguf", "hf", "instanttensor", "layered", "megatron", "mistral"),
        *("modelexpress", "npcache", "private", "pt", "remote", "remote_instance", "runai_streamer"),
        *("runai_streamer_sharded", "safetensors", "sharded_state", "tensorizer"),
    }
)
"""The formats of vLLM and sglang, and the older ones of verl."""

_BY_TOKEN = frozenset({"gae", "reinforce_plus_plus"})
"""The estimators that discount at each token."""

_DISCOUNTING = _BY_TOKEN | BY_TURN
_WITHOUT_DISCOUNT = (GROUPED - {GIGPO}) | {"remax"}
_LENGTHS = "max_prompt_length={prompt} + max_response_length={response}"
_ASSERTED = "verl stops at the first row that is longer, after its rollout"
_AS_LONG = "set it to max_prompt_length + max_response_length or more"


def _below_one(limit: Any) -> bool:
    return isinstance(limit, int | float) and 0 < limit < 1


RL_RULES: Mapping[str, Sequence[Rule[RlNumbers]]] = {
    "Lengths": (
        problem_if(
            lambda s: s.by_tokens and s.tokens * s.sequence_parallel < s.prompt + s.response,
            "actor.ppo_max_token_len_per_gpu={tokens} x ulysses_sequence_parallel_size="
            f"{{sequence_parallel}} is below {_LENGTHS}",
            _ASSERTED,
            _AS_LONG,
        ),
        problem_if(
            lambda s: (
                s.by_tokens
                and s.forward_tokens is not None
                and s.forward_tokens * s.sequence_parallel < s.prompt + s.response
            ),
            "rollout.log_prob_max_token_len_per_gpu={forward_tokens} x ulysses_sequence_parallel_size="
            f"{{sequence_parallel}} is below {_LENGTHS}",
            _ASSERTED,
            _AS_LONG,
        ),
        problem_if(
            lambda s: (
                s.by_tokens
                and (s.uses_kl or s.rewards_kl)
                and s.ref_tokens is not None
                and s.ref_tokens * s.sequence_parallel < s.prompt + s.response
            ),
            "ref.log_prob_max_token_len_per_gpu={ref_tokens} x ulysses_sequence_parallel_size="
            f"{{sequence_parallel}} is below {_LENGTHS}",
            _ASSERTED,
            _AS_LONG,
        ),
        problem_if(
            lambda s: (
                s.by_tokens
                and s.estimator in WITH_CRITIC
                and s.critic_tokens * max(s.critic_parallel, s.critic_parallel_0_7) < s.prompt + s.response
            ),
            f"critic.ppo_max_token_len_per_gpu={{critic_tokens}} is below {_LENGTHS}",
            _ASSERTED,
            _AS_LONG,
        ),
        problem_if(
            lambda s: (
                s.by_tokens
                and s.estimator in WITH_CRITIC
                and s.critic_forward_tokens is not None
                and s.critic_forward_tokens * max(s.critic_parallel, s.critic_parallel_0_7)
                < s.prompt + s.response
            ),
            f"critic.forward_max_token_len_per_gpu={{critic_forward_tokens}} is below {_LENGTHS}",
            _ASSERTED,
            _AS_LONG,
        ),
        problem_if(
            lambda s: s.model_len is not None and s.model_len < s.prompt + s.response,
            f"rollout.max_model_len={{model_len}} is below {_LENGTHS}",
            "the engine cuts off long episodes, or rejects their prompts",
            "set it to null, or to max_prompt_length + max_response_length or more",
        ),
        warning_if(
            lambda s: s.engine == "sglang" and s.model_len == s.prompt + s.response,
            f"rollout.max_model_len={{model_len}} is just {_LENGTHS}, with rollout.name: sglang",
            "sglang needs one token more, and returns an empty last reply",
            "add 1 to max_model_len",
        ),
        problem_if(
            # With a context below prompt + response, check_context reports that.
            lambda s: (
                s.model_len is not None
                and s.context is not None
                and s.model_len > s.context >= s.prompt + s.response
            ),
            "rollout.max_model_len={model_len} is above the context={context} of the model",
            "the engine does not start",
            "set it to null, or use a model with a longer context",
        ),
        problem_if(
            lambda s: s.rollout_prompt is not None and s.rollout_prompt != s.prompt,
            "rollout.prompt_length={rollout_prompt} differs from data.max_prompt_length={prompt}",
            "rows are padded to the one, and prompts limited by the other",
            "delete rollout.prompt_length, which verl sets to data.max_prompt_length",
        ),
        problem_if(
            lambda s: s.rollout_response is not None and s.rollout_response != s.response,
            "rollout.response_length={rollout_response} differs from data.max_response_length={response}",
            "episodes end at the one, and everything else is computed for the other",
            "delete rollout.response_length, which verl sets to data.max_response_length",
        ),
        warning_if(
            lambda s: s.observation is not None and s.observation >= s.response,
            "max_observation_tokens={observation} is not below max_response_length={response}",
            "one observation can fill the episode, and the model gets no other turn",
            "lower max_observation_tokens in agent_loop.yaml, or raise data.max_response_length",
        ),
        warning_if(
            lambda s: s.loop_turns is not None and s.env_turns is not None and s.loop_turns > s.env_turns,
            "max_turns={loop_turns} of the loop is above max_turns={env_turns} of the environments",
            "the environments end each episode at their own limit",
            "set both to the same number",
        ),
    ),
    "Sizes": (
        *shared.sequence_parallel("actor"),
        problem_if(
            lambda s: s.forward_by_tokens is not None and s.forward_by_tokens != s.by_tokens,
            "rollout.log_prob_use_dynamic_bsz={forward_by_tokens} differs from "
            "actor.use_dynamic_bsz={by_tokens}",
            "verl's workers stop at the start",
            "delete rollout.log_prob_use_dynamic_bsz, which verl sets to actor.use_dynamic_bsz",
        ),
        warning_if(
            lambda s: s.mini < s.batch and s.batch % s.mini > 0 and not s.turn_rows,
            "train_batch_size={batch} is not a multiple of ppo_mini_batch_size={mini}",
            "the last update of each step is filled up with padding, or its prompts are left out",
            "change ppo_mini_batch_size to a divisor of train_batch_size",
        ),
        problem_if(
            lambda s: (
                s.gen_batch is not None
                and s.mode == "sync"
                and not s.filters_groups
                and (s.gen_batch < 1 or s.batch % s.gen_batch > 0)
            ),
            "train_batch_size={batch} is not a multiple of data.gen_batch_size={gen_batch}",
            "verl's trainer stops at its first step",
            "delete data.gen_batch_size",
        ),
        problem_if(
            lambda s: s.nodes > 1 and s.loopback != "",
            "trainer.nnodes={nodes} is more than 1, and server={loopback} is a loopback address",
            "episodes on the other machines reach no server, or one of their own",
            "start the server with an address that all machines reach, and write that address",
        ),
    ),
    "Engine": (
        problem_if(
            lambda s: not 0 < s.utilization <= 1,
            "rollout.gpu_memory_utilization={utilization} is not above 0 and at most 1",
            "it is a share of the GPU's memory, and the engine does not start",
            "set it to 0.5, verl's default",
        ),
        warning_if(
            lambda s: 0.9 < s.utilization <= 1,
            "rollout.gpu_memory_utilization={utilization} is above 0.9",
            "the trainer shares the GPU, and memory runs out when the engine wakes up",
            "set it to 0.5 to 0.7, as verl's documentation advises",
        ),
        warning_if(
            lambda s: not s.frees_cache and 0.5 < s.utilization <= 0.9 and s.mode != "separate_async",
            "rollout.free_cache_engine: false with gpu_memory_utilization={utilization} above 0.5",
            "the engine keeps this memory while the model is trained",
            "set free_cache_engine: true, or lower gpu_memory_utilization",
        ),
        problem_if(
            lambda s: s.sequences < 1,
            "rollout.max_num_seqs={sequences} is below 1",
            "the engine starts no request",
            "set it to 256, verl's default",
        ),
        warning_if(
            lambda s: 0 < s.sequences < 8 and s.batch * s.samples >= 8 * s.gpus * s.nodes,
            "rollout.max_num_seqs={sequences} is below 8, for train_batch_size={batch} x "
            "rollout.n={samples} episodes on n_gpus_per_node={gpus} x nnodes={nodes}",
            "the engine generates a few replies at a time, and a step takes many times longer",
            "set it to 256, verl's default",
        ),
        problem_if(
            lambda s: s.engine == "vllm" and s.batched_tokens < s.sequences,
            "rollout.max_num_batched_tokens={batched_tokens} is below max_num_seqs={sequences}, with "
            "rollout.name: vllm",
            "vLLM does not start",
            "set max_num_batched_tokens to 8192, verl's default",
        ),
        problem_if(
            lambda s: s.load_format not in _LOAD_FORMATS and "." not in str(s.load_format),
            "rollout.load_format={load_format} is not a format of vLLM or sglang",
            "the engine does not start",
            "set it to dummy, verl's default, or to safetensors, which LoRA requires",
        ),
        problem_if(
            lambda s: s.ignores_eos,
            "rollout.ignore_eos: true",
            "no reply ends before its limit, and the model writes the environment's turns itself",
            "set it to false",
        ),
    ),
    "Sampling": (
        problem_if(
            lambda s: s.temperature <= 0 and not s.val_do_sample,
            "rollout.temperature={temperature} is not above 0, with val_kwargs.do_sample: false",
            "the trainer divides by it, and all samples of a task are the same",
            "set it to 1.0",
        ),
        warning_if(
            lambda s: s.temperature > 1.5,
            "rollout.temperature={temperature} is above 1.5",
            "most replies are noise, without an action",
            "set it to 1.0",
        ),
        problem_if(
            lambda s: s.samples > 1 and s.top_k == 1,
            "rollout.top_k: 1 with rollout.n={samples} above 1",
            "only the likeliest token is drawn, so all samples of a task are the same",
            "set top_k to -1",
        ),
        problem_if(
            lambda s: not 0 < s.top_p <= 1 or s.top_k < -1,
            "rollout.top_p={top_p} is not above 0 and at most 1, or top_k={top_k} is below -1",
            "the engine rejects each request",
            "set top_p to 1.0 and top_k to -1",
        ),
        warning_if(
            lambda s: 0 < s.top_p < 1 or s.top_k > 1,
            "rollout.top_p={top_p} or top_k={top_k} leaves out tokens",
            "the trainer computes probabilities over all tokens, so the ratios of the loss are wrong",
            "set top_p to 1.0 and top_k to -1 for training; val_kwargs has its own",
        ),
        warning_if(
            lambda s: s.val_samples > 1 and (s.val_temperature == 0 or s.val_top_k == 1),
            "val_kwargs.n={val_samples} is above 1, with val_kwargs.temperature: 0 or top_k: 1",
            "greedy episodes of a task are copies of each other",
            "set val_kwargs.n to 1, or val_kwargs.temperature to 1.0",
        ),
        problem_if(
            lambda s: s.val_samples < 1,
            "val_kwargs.n={val_samples} is below 1",
            "a validation has no episode, and verl stops",
            "set it to 1",
        ),
        warning_if(
            lambda s: s.val_do_sample and s.val_temperature == 0,
            "val_kwargs.do_sample: true with val_kwargs.temperature: 0",
            "validations are greedy: agent loops use the temperature only",
            "set val_kwargs.temperature, or val_kwargs.do_sample: false",
        ),
        warning_if(
            lambda s: not s.val_do_sample and s.val_temperature > 0,
            "val_kwargs.do_sample: false with val_kwargs.temperature={val_temperature} above 0",
            "validations sample: agent loops use the temperature only",
            "set val_kwargs.temperature to 0, or val_kwargs.do_sample: true",
        ),
        problem_if(
            lambda s: s.val_temperature < 0 or not 0 < s.val_top_p <= 1,
            "val_kwargs.temperature={val_temperature} is below 0, or val_kwargs.top_p={val_top_p} is not "
            "above 0 and at most 1",
            "the engine rejects each request of a validation",
            "set val_kwargs.temperature to 0 or more and val_kwargs.top_p to 1.0",
        ),
    ),
    "Learning": (
        problem_if(
            lambda s: not s.rate > 0,
            "actor.optim.lr={rate} is not above 0",
            "the model does not learn, or unlearns",
            "set it to 1e-6, or 3e-5 with LoRA",
        ),
        problem_if(
            lambda s: s.rate > 1e-3,
            "actor.optim.lr={rate} is above 1e-3",
            "the first updates destroy a pretrained model",
            "set it to 1e-6, or 3e-5 with LoRA",
        ),
        warning_if(
            lambda s: 1e-5 < s.rate <= 1e-3 and s.lora_rank == 0 and s.megatron_rank == 0,
            "actor.optim.lr={rate} is above 1e-5, without LoRA",
            "published trainings of all parameters use about 1e-6, and larger rates collapse",
            "set it to 1e-6",
        ),
        warning_if(
            lambda s: 3e-4 < s.rate <= 1e-3 and (s.lora_rank > 0 or s.megatron_rank > 0),
            "actor.optim.lr={rate} is above 3e-4, with LoRA",
            "larger rates collapse, also with adapters",
            "set it to 3e-5",
        ),
        problem_if(
            lambda s: s.estimator in WITH_CRITIC and not 0 < s.critic_rate <= 1e-2,
            "critic.optim.lr={critic_rate} is not above 0 and at most 1e-2, with adv_estimator={estimator}",
            "the critic does not learn, or diverges",
            "set it to 1e-5, verl's default",
        ),
        *shared.optimizer("actor.optim"),
        problem_if(
            lambda s: s.loss == "vanilla" and not s.clip_dual > 1,
            "actor.clip_ratio_c={clip_dual} is not above 1, with policy_loss.loss_mode: vanilla",
            "verl's loss stops the training at the first update",
            "set it to 3.0, verl's default",
        ),
        problem_if(
            lambda s: (
                s.clip < 0
                or (s.clip_low is not None and s.clip_low < 0)
                or (s.clip_high is not None and s.clip_high < 0)
            ),
            "actor.clip_ratio={clip}, clip_ratio_low={clip_low} or clip_ratio_high={clip_high} is below 0",
            "the clipped range of ratios leaves out 1, where each update begins",
            "set them to 0.2, verl's default",
        ),
        warning_if(
            lambda s: (
                s.loss == "vanilla"
                and ((s.clip_low is not None and s.clip_low >= 1) or (s.clip_high or 0) > 1)
            ),
            "actor.clip_ratio_low={clip_low} is from 1, or clip_ratio_high={clip_high} is above 1, with "
            "policy_loss.loss_mode: vanilla",
            "the loss clips next to nothing, and one update may go too far",
            "set clip_ratio_low to 0.2, and clip_ratio_high to 0.2 to 0.3",
        ),
        problem_if(
            lambda s: s.uses_kl and s.kl < 0,
            "actor.kl_loss_coef={kl} is below 0, with use_kl_loss: true",
            "the loss rewards distance from the reference",
            "set it to 0.001",
        ),
        warning_if(
            lambda s: s.uses_kl and s.kl == 0,
            "actor.kl_loss_coef: 0 with use_kl_loss: true",
            "the reference is computed for each step, and has no effect",
            "set use_kl_loss: false",
        ),
        warning_if(
            lambda s: s.uses_kl and s.kl > 0.5,
            "actor.kl_loss_coef={kl} is above 0.5, with use_kl_loss: true",
            "the distance from the reference outweighs the rewards, and the model stays as it is",
            "set it to 0.001 to 0.1",
        ),
        problem_if(
            lambda s: s.entropy > 0.1,
            "actor.entropy_coeff={entropy} is above 0.1",
            "entropy outweighs the rewards, and the replies become noise",
            "set it to 0, verl's default, or to about 0.001",
        ),
        warning_if(
            lambda s: s.entropy < 0,
            "actor.entropy_coeff={entropy} is below 0",
            "the loss rewards low entropy, and the samples of a task become the same",
            "set it to 0, verl's default",
        ),
        warning_if(
            lambda s: s.passes is not None and s.passes > 8,
            "actor.ppo_epochs={passes} is above 8",
            "each episode is trained on so often that most of its tokens are clipped",
            "set it to 1 to 4",
        ),
    ),
    "Rewards and advantages": (
        problem_if(
            lambda s: not 0 <= s.discount <= 1 and s.estimator in _DISCOUNTING,
            "algorithm.gamma={discount} is not from 0 to 1, with adv_estimator={estimator}, which discounts",
            "returns grow with each turn, or change their sign",
            "set it to 1.0, verl's default",
        ),
        warning_if(
            lambda s: s.estimator in _BY_TOKEN and 0 <= s.discount < 1 and s.discount**s.response < 0.05,
            "algorithm.gamma={discount} over max_response_length={response} tokens is close to 0, with "
            "adv_estimator={estimator}, which discounts at each token",
            "early turns get no credit for the reward at the end",
            "set it to 1.0, verl's default; gym_gigpo and gym_turn_gae discount at each turn",
        ),
        warning_if(
            lambda s: s.estimator in _WITHOUT_DISCOUNT and s.discount != 1,
            "algorithm.gamma={discount} is not 1, with adv_estimator={estimator}, which does not discount",
            "it has no effect",
            "delete it, or choose gym_gigpo, gae or reinforce_plus_plus",
        ),
        problem_if(
            lambda s: s.estimator in WITH_CRITIC and not 0 <= s.lam <= 1,
            "algorithm.lam={lam} is not from 0 to 1, with adv_estimator={estimator}",
            "advantages grow with the length of the episode",
            "set it to 1.0, verl's default",
        ),
        warning_if(
            lambda s: not s.divides and not str(s.estimator).startswith(("grpo", GIGPO, "gdpo")),
            "algorithm.norm_adv_by_std_in_grpo: false with adv_estimator={estimator}, which is not GRPO",
            "only GRPO and its variants read it",
            "delete it",
        ),
        problem_if(
            lambda s: s.rewards_kl and s.reward_kl < 0,
            "algorithm.kl_ctrl.kl_coef={reward_kl} is below 0, with use_kl_in_reward: true",
            "distance from the reference is rewarded",
            "set it to 0.001, verl's default",
        ),
        problem_if(
            lambda s: (
                s.rewards_kl and s.kl_control == "adaptive" and not (s.kl_horizon > 0 and s.target_kl > 0)
            ),
            "algorithm.kl_ctrl.horizon={kl_horizon} or target_kl={target_kl} is not above 0, with "
            "kl_ctrl.type: adaptive and use_kl_in_reward: true",
            "the adaptive coefficient divides by both",
            "set horizon to 10000 and target_kl to 0.1, verl's defaults",
        ),
        warning_if(
            lambda s: s.rewards_kl and s.uses_kl,
            "algorithm.use_kl_in_reward: true with actor.use_kl_loss: true",
            "the distance from the reference is penalized twice",
            "set one of them to false",
        ),
    ),
    "Rollout correction": (
        problem_if(
            lambda s: (
                s.returns_log_probs is False
                and (s.bypass or s.weighted_by is not None or s.rejected_by is not None)
            ),
            "rollout.calculate_log_probs: false with rollout correction: rollout_is={weighted_by}, "
            "rollout_rs={rejected_by} or bypass_mode={bypass}",
            "the correction needs the engine's probabilities; without them verl skips it, or stops",
            "set rollout.calculate_log_probs: true",
        ),
        problem_if(
            lambda s: (
                s.weighted_by is not None
                and isinstance(s.weight_limit, int | float)
                and not s.weight_limit > 0
            ),
            "rollout_correction.rollout_is_threshold={weight_limit} is not above 0, with "
            "rollout_is={weighted_by}",
            "verl stops at the first step",
            "set it to 2.0, verl's default",
        ),
        warning_if(
            lambda s: s.weighted_by is not None and _below_one(s.weight_limit),
            "rollout_correction.rollout_is_threshold={weight_limit} is below 1, with "
            "rollout_is={weighted_by}",
            "equal probabilities have the ratio 1, so each token gets a smaller weight",
            "set it to 2.0, verl's default",
        ),
        problem_if(
            lambda s: s.rejected_by is not None and s.rejection_limit is None,
            "rollout_correction.rollout_rs={rejected_by} without rollout_rs_threshold",
            "verl stops at the first step",
            "set rollout_correction.rollout_rs_threshold",
        ),
        warning_if(
            lambda s: s.rejected_by is None and s.rejection_limit is not None,
            "rollout_correction.rollout_rs_threshold={rejection_limit} without rollout_rs",
            "nothing is rejected",
            "set rollout_correction.rollout_rs, or delete the threshold",
        ),
    ),
    "Steps and checkpoints": (
        *shared.steps(),
        *shared.checkpoints("actor.checkpoint"),
        problem_if(
            lambda s: s.total is not None and s.critic_warmup >= s.total > 1,
            "trainer.critic_warmup={critic_warmup} is not below the training steps={total}",
            "the policy is never updated, or only at the last step",
            "lower trainer.critic_warmup",
        ),
        warning_if(
            lambda s: s.critic_warmup > 0 and s.estimator not in WITH_CRITIC,
            "trainer.critic_warmup={critic_warmup} is above 0, with adv_estimator={estimator}",
            "there is no critic, so the episodes of these steps train nothing",
            "set it to 0",
        ),
        warning_if(
            lambda s: s.save_freq < 1 and s.total is not None and s.total >= 100,
            "trainer.save_freq={save_freq} is below 1, with the training steps={total}",
            "no checkpoint is written, also not at the end",
            "set it to 25",
        ),
        problem_if(
            lambda s: s.only_validates and not s.validates_first,
            "trainer.val_only: true with val_before_train: false",
            "verl does not validate first, and then trains",
            "set trainer.val_before_train: true",
        ),
        problem_if(
            lambda s: s.no_episodes != "",
            "episodes_dir={no_episodes} of the loop cannot be written",
            "no episode is recorded",
            "choose a folder that the training may write",
        ),
        problem_if(
            lambda s: s.no_dumps != "",
            "trainer.rollout_data_dir={no_dumps} cannot be written",
            "verl stops at the first step",
            "choose a folder that the training may write, or delete the setting",
        ),
    ),
    "Settings without effect": (
        warning_if(
            lambda s: s.own_loop and s.assistant_turns > 0,
            "rollout.multi_turn.max_assistant_turns={assistant_turns} is set",
            "the agent loop of verl_bridge ignores it",
            "set max_turns in agent_loop.yaml, and delete it",
        ),
        warning_if(
            lambda s: s.own_loop and s.user_turns > 0,
            "rollout.multi_turn.max_user_turns={user_turns} is set",
            "the agent loop of verl_bridge ignores it",
            "set max_turns in agent_loop.yaml, and delete it",
        ),
        warning_if(
            lambda s: s.clip != 0.2 and s.clip_low == 0.2 and s.clip_high == 0.2,
            "actor.clip_ratio={clip} is changed, and clip_ratio_low={clip_low} and clip_ratio_high="
            "{clip_high} not",
            "the losses use clip_ratio only where the other two are null",
            "set clip_ratio_low and clip_ratio_high",
        ),
        warning_if(
            lambda s: s.old_clip_grad != 1 and s.clip_grad == 1,
            "actor.grad_clip={old_clip_grad} is changed, and actor.optim.clip_grad={clip_grad} not",
            "verl's engines read actor.optim.clip_grad only",
            "set actor.optim.clip_grad",
        ),
        warning_if(
            lambda s: not s.uses_kl and s.kl not in {0, 0.001},
            "actor.kl_loss_coef={kl} is changed, with use_kl_loss: false",
            "the loss has no distance from the reference",
            "set use_kl_loss: true, or delete kl_loss_coef",
        ),
        warning_if(
            lambda s: not s.rewards_kl and s.reward_kl not in {0, 0.001},
            "algorithm.kl_ctrl.kl_coef={reward_kl} is changed, with use_kl_in_reward: false",
            "rewards have no distance from the reference",
            "set use_kl_in_reward: true, or actor.kl_loss_coef",
        ),
        warning_if(
            lambda s: s.loss_scale is not None and s.aggregation != "seq-mean-token-sum-norm",
            "actor.loss_scale_factor={loss_scale} is set, with another loss_agg_mode={aggregation}",
            "only seq-mean-token-sum-norm reads it",
            "delete it, or set loss_agg_mode: seq-mean-token-sum-norm",
        ),
        *shared.without_effect("actor.optim"),
    ),
}
"""The rules, by their subject."""
