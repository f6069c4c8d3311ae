"""What papers trained on these environments with: the settings that they published, each with its source.

``agentgym-rl`` and ``scalinginter-rl`` are of AgentGym-RL (arXiv 2509.08755): its training scripts under
``examples/train/``, and what these leave to ``AgentGym-RL/verl/agent_trainer/config/ppo_trainer.yaml``. The
first have one turn limit, the second a horizon that grows.

``gigpo`` is of GiGPO (arXiv 2505.10978): the scripts of verl-agent under ``examples/gigpo_trainer/``. The
advantages of GiGPO are not in verl, so the algorithm is the GRPO that the paper compares it with.

Not taken over: what belongs to the authors' machines (how many GPUs, offload), and what counts something else
there. A row of verl-agent is one turn, and here it is an episode, so that its mini-batch and the length of
its responses say nothing about a whole episode.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from agentgym_gym.rollout import split_id

__all__ = ["LIKE", "Published", "about", "published"]


@dataclass(frozen=True)
class Published:
    """The settings of one environment.

    Attributes:
        source: The paper and its script.
        turns: Turn limits, one after another.
        every: Training steps for which each of several holds.
        batch: Prompts in a step.
        group: Samples of each.
        mini_batch: Prompts in an update; None where the paper counts otherwise.
        passes: How often each step's episodes are trained on.
        epochs: Passes over the tasks.
        steps: Training steps at most; None for no such limit.
        save_freq: Steps between checkpoints; None where the script writes none.
        test_freq: Steps between validations; None where it has none.
        prompt: Tokens of a prompt.
        response: Tokens of all that follows the prompt; None where the paper counts otherwise.
        reply: Tokens of one reply.
        model: The model that is trained.
        learning_rate: Of the policy.
        kl_coef: How much the distance to the reference policy counts in the loss.
        kl_type: How verl estimates that distance.
        micro_batch: Episodes that a GPU holds at a time; None where the paper counts otherwise.
        others: More settings of verl: key, value, and how the source has it.
        said: How the source names what stands here, by the names of these attributes.
    """

    source: str
    turns: tuple[int, ...]
    batch: int
    group: int
    epochs: int
    prompt: int
    reply: int
    model: str
    kl_coef: float
    said: Mapping[str, str]
    kl_type: str = "low_var_kl"
    every: int = 100
    mini_batch: int | None = None
    passes: int = 1
    steps: int | None = None
    save_freq: int | None = None
    test_freq: int | None = None
    response: int | None = None
    learning_rate: float = 1e-6
    micro_batch: int | None = None
    others: tuple[tuple[str, Any, str], ...] = ()

    def cite(self, name: str, value: Any) -> str:
        """Return the source of one value, or nothing if it is another than the published one."""
        if name not in self.said or getattr(self, name) != value:
            return ""
        shown = list(value) if isinstance(value, tuple) else value
        return f"{self.source}: {self.said[name]} is {shown}."


_ROLLOUT = "actor_rollout_ref.rollout"

_AGENTGYM_RL_SAYS = {
    "turns": "algorithm.rounds_ctrl.rounds",
    "every": "algorithm.rounds_ctrl.steps_scaling_inter",
    "batch": "train_batch_size",
    "group": "rollout_sample_num",
    "mini_batch": "ppo_mini_batch_size",
    "passes": "ppo_inner_epochs",
    "epochs": "total_epoches",
    "save_freq": "trainer.save_freq",
    "prompt": "data.max_prompt_length",
    "response": "data.max_response_length",
    "reply": "actor_rollout_ref.rollout.max_tokens",
    "model": "pure_agent_model_name, on the hub,",
    "learning_rate": "policy_learning_rate",
    "kl_coef": "actor_rollout_ref.actor.kl_loss_coef",
    "kl_type": "actor_rollout_ref.actor.kl_loss_type",
    "micro_batch": "ppo_micro_batch_size_per_gpu",
}


def _agentgym_rl(script: str, **values: Any) -> Published:
    return Published(
        source=f"arXiv 2509.08755, examples/train/{script}",
        said=_AGENTGYM_RL_SAYS,
        model="Qwen/Qwen2.5-7B-Instruct",
        kl_coef=1e-3,
        save_freq=25,
        micro_batch=1,
        others=(
            (f"{_ROLLOUT}.max_model_len", 32_768, "actor_rollout_ref.rollout.max_model_len is 32768"),
            (
                f"{_ROLLOUT}.gpu_memory_utilization",
                0.7,
                "actor_rollout_ref.rollout.gpu_memory_utilization is 0.7",
            ),
            (
                "actor_rollout_ref.actor.entropy_coeff",
                1e-3,
                "left to AgentGym-RL's ppo_trainer.yaml, where entropy_coeff is 0.001",
            ),
        ),
        **values,
    )


_SMALL: Mapping[str, Any] = {"batch": 16, "group": 8, "mini_batch": 8, "epochs": 10, "reply": 200}
_TWICE: Mapping[str, Any] = {"batch": 32, "mini_batch": 8, "passes": 2, "reply": 512}
_WEB: Mapping[str, Any] = {
    **_TWICE,
    "mini_batch": 4,
    "group": 4,
    "epochs": 25,
    "prompt": 750,
    "response": 14_098,
}
_SEARCH: Mapping[str, Any] = {**_TWICE, "group": 4, "epochs": 20, "prompt": 1_024, "response": 8_192}
_CRAFT: Mapping[str, Any] = {**_TWICE, "group": 8, "epochs": 30, "prompt": 512, "response": 10_240}

_FIXED: Mapping[str, Published] = {
    "agentgym/BabyAI-v0": _agentgym_rl(
        "AgentGym-RL/babyai_train.sh", turns=(20,), prompt=1_024, response=4_096, **_SMALL
    ),
    "agentgym/SciWorld-v0": _agentgym_rl(
        "AgentGym-RL/sciworld_train.sh", turns=(20,), prompt=1_024, response=4_096, **_SMALL
    ),
    "agentgym/SearchQA-v0": _agentgym_rl("AgentGym-RL/searchqa_train.sh", turns=(5,), **_SEARCH),
    "agentgym/TextCraft-v0": _agentgym_rl("AgentGym-RL/textcraft_train.sh", turns=(30,), **_CRAFT),
    "agentgym/WebArena-v0": _agentgym_rl("AgentGym-RL/webarena_train.sh", turns=(15,), **_WEB),
}

_GROWING: Mapping[str, Published] = {
    "agentgym/BabyAI-v0": _agentgym_rl(
        "ScalingInter-RL/babyai_train.sh",
        turns=(6, 13, 20),
        **_TWICE,
        group=4,
        epochs=20,
        prompt=512,
        response=8_192,
    ),
    "agentgym/SciWorld-v0": _agentgym_rl(
        "ScalingInter-RL/sciworld_train.sh", turns=(10, 20, 30), prompt=1_024, response=8_192, **_SMALL
    ),
    "agentgym/SearchQA-v0": _agentgym_rl("ScalingInter-RL/searchqa_train.sh", turns=(5, 8, 10), **_SEARCH),
    "agentgym/TextCraft-v0": _agentgym_rl("ScalingInter-RL/textcraft_train.sh", turns=(10, 20, 30), **_CRAFT),
    "agentgym/WebArena-v0": _agentgym_rl(
        "ScalingInter-RL/webarena_train.sh", turns=(8, 12, 15), every=80, **_WEB
    ),
}

_ALFWORLD = Published(
    source="arXiv 2505.10978, examples/gigpo_trainer/run_alfworld.sh",
    said={
        "turns": "env.max_steps",
        "batch": "train_data_size",
        "group": "group_size",
        "steps": "trainer.total_epochs, of one step each,",
        "test_freq": "trainer.test_freq",
        "prompt": "data.max_prompt_length",
        "reply": "data.max_response_length, of a turn,",
        "model": "actor_rollout_ref.model.path",
        "learning_rate": "actor_rollout_ref.actor.optim.lr",
        "kl_coef": "actor_rollout_ref.actor.kl_loss_coef",
        "kl_type": "actor_rollout_ref.actor.kl_loss_type",
    },
    turns=(50,),
    batch=16,
    group=8,
    epochs=15,
    steps=150,
    test_freq=5,
    prompt=2_048,
    reply=512,
    model="Qwen/Qwen2.5-1.5B-Instruct",
    kl_coef=0.01,
    others=(
        (
            f"{_ROLLOUT}.val_kwargs.temperature",
            0.4,
            "actor_rollout_ref.rollout.val_kwargs.temperature is 0.4",
        ),
        (f"{_ROLLOUT}.val_kwargs.do_sample", True, "actor_rollout_ref.rollout.val_kwargs.do_sample is True"),
    ),
)

_SEARCHING = replace(
    _ALFWORLD,
    source="arXiv 2505.10978, examples/gigpo_trainer/run_search.sh",
    said={**_ALFWORLD.said, "epochs": "trainer.total_epochs", "save_freq": "trainer.save_freq"},
    turns=(4,),
    batch=256,
    group=5,
    epochs=1,
    steps=None,
    save_freq=50,
    test_freq=50,
    prompt=4_096,
    model="Qwen/Qwen2.5-7B-Instruct",
    kl_coef=1e-3,
    others=(
        (
            "actor_rollout_ref.actor.optim.lr_warmup_steps_ratio",
            0.1,
            "actor_rollout_ref.actor.optim.lr_warmup_steps_ratio is 0.1",
        ),
    ),
)

_GIGPO: Mapping[str, Published] = {
    "agentgym/ALFWorld-v0": _ALFWORLD,
    "agentgym/SearchQA-v0": _SEARCHING,
    "agentgym/WebShop-v0": replace(
        _ALFWORLD,
        source="arXiv 2505.10978, examples/gigpo_trainer/run_webshop.sh",
        turns=(15,),
        prompt=4_096,
    ),
}

LIKE: Mapping[str, Mapping[str, Published]] = {
    "agentgym-rl": _FIXED,
    "scalinginter-rl": _GROWING,
    "gigpo": _GIGPO,
}
"""The settings by the name of who published them, and by the environment's id without its module."""

_LIKE_AGENTGYM_RL = """\
The settings are those of {source}, where verl has them.
AgentGym-RL trains by a verl of its own. Different here:

- The system prompts and the action formats are this library's.
- The prompt holds the first observation too, so it is given more tokens than there.
- How many GPUs train, and whether parameters are offloaded, is yours to choose."""

_LIKE_GIGPO = """\
The settings are those of {source}, where verl has them.
The algorithm is GRPO, with which the paper compares GiGPO. verl has none of these:

- GiGPO's second advantage, among turns that begin in the same state, and its discount of 0.95.
- The penalty for an invalid action (0.1; 0.01 in SearchQA).
- A reward of 10 for success: rewards here are the environment's own, from 0 to 1. GRPO divides by the
  deviation of the group, so that the scale does not change its advantages.
- A row for each turn, whose prompt tells the last turns in short. Here a row is a whole episode. So the
  published mini-batch, which counts turns, is not taken: one update is made for each step."""


def published(like: str | None, env_id: str) -> Published | None:
    """Return what was published for an environment.

    Args:
        like: One of :data:`LIKE`, or None.
        env_id: gymnasium's id, with or without the module that registers it.

    Returns:
        The settings; None if `like` is None.

    Raises:
        ValueError: Nobody is called so, or nothing was published for this environment.
    """
    if like is None:
        return None
    if like not in LIKE:
        raise ValueError(f"like={like!r} is not one of {', '.join(LIKE)}")
    environment = split_id(env_id)[1]
    if environment not in LIKE[like]:
        raise ValueError(
            f"{like} published no settings for {environment}; it has those of {', '.join(LIKE[like])}"
        )
    return LIKE[like][environment]


def about(like: str, source: str) -> str:
    """Return what is and what is not as in the paper, in Markdown."""
    text = _LIKE_GIGPO if like == "gigpo" else _LIKE_AGENTGYM_RL
    return text.format(source=source)
