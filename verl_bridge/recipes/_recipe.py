"""The choices for a training run, and the numbers derived from them."""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from verl_bridge.recipes._env_choice import EnvChoice, turn_limit_of
from verl_bridge.recipes._memory import GPU_MEMORY, ModelSize, Sizing, choose, model_size
from verl_bridge.recipes._names import env_part, model_part, option_of
from verl_bridge.recipes._papers import Published, algorithm_of, published
from verl_bridge.recipes._presets import LENGTHS, PRESETS, USUAL_LENGTHS, Lengths, Preset
from verl_bridge.recipes._thinking import Thinking, thinking_of
from verl_bridge.recipes._trainers import check_split, check_trainer

__all__ = [
    "ALGORITHMS",
    "ENGINES",
    "INTEGRATIONS",
    "MAX_VALIDATION",
    "PRESETS",
    "TRAINERS",
    "VERSIONS",
    "EnvChoice",
    "RlRecipe",
    "turn_limit_of",
]

VERSIONS = ("0.7", "0.8", "0.9")
ENGINES = ("sglang", "vllm")
INTEGRATIONS = ("agent-loop", "interaction")
TRAINERS = ("sync", "colocate_async", "separate_async")

ALGORITHMS: Mapping[str, str] = {
    "grpo": "grpo",
    "ppo": "gae",
    "rloo": "rloo",
    "reinforce_plus_plus": "reinforce_plus_plus",
    "remax": "remax",
    "gigpo": "gym_gigpo",
}
"""``algorithm.adv_estimator`` by the name of the algorithm."""

_IN_GROUPS = frozenset({"grpo", "rloo", "gigpo"})  # their advantage compares samples of one prompt

DEFAULT_MODEL = "Qwen/Qwen2.5-3B-Instruct"

KL_COEF = 1e-3
"""Default weight of the KL distance to the reference policy in the loss: verl's own value."""

MAX_VALIDATION = 385
"""Episodes of a validation: (1.96 x 0.5 / 0.05) squared, for a 95 % interval of ± 0.05 around one half."""

REASONING = 2_048
"""Maximum tokens of a reply with reasoning: our own choice."""

LORA_RATE = 3e-5
"""Learning rate of adapters, as in verl's scripts examples/tuning/*/*_grpo-lora_*.sh."""

_MICRO_BATCH = 2
_EVERY = 100


@dataclass(frozen=True)
class RlRecipe:
    """The choices of a training run.

    Args:
        env_id: gymnasium's id, with the module that registers it: ``"my_package:my/Env-v0"``. Empty if
            `envs` is set.
        verl: The version of verl, ``"0.7"``, ``"0.8"`` or ``"0.9"``.
        algorithm: One of :data:`ALGORITHMS`; by default that of `like`, else ``"grpo"``.
        engine: The inference engine, one of :data:`ENGINES`.
        preset: One of :data:`PRESETS`.
        integration: How verl plays the environment, one of :data:`INTEGRATIONS`; only verl 0.7 has
            interactions.
        model: Name or path of the model; by default that of `like`, else :data:`DEFAULT_MODEL`.
        gpus: Number of GPUs, all in one machine.
        env_kwargs: Arguments of the environment, for rows without them.
        turns: Maximum replies in an episode, in every environment; by default those of `like`, else those
            in its arguments, else a suitable number. Several numbers are the stages of a horizon, in order.
        turns_every: Training steps of a stage; by default those of `like`, else 100.
        kl_coef: Weight of the KL distance to a reference policy, which is the initial model, in the loss; 0
            for no reference policy. By default that of `like`, else :data:`KL_COEF`.
        like: The publication whose settings are the defaults, one of :data:`LIKE`; only preset ``"full"``
            uses its amount of training. The settings are for one environment.
        offload: Whether to offload unused state to main memory; None for the estimate's choice with preset
            ``"train"``, else true.
        checkpointing: Whether to recompute activations instead of storing them (gradient checkpointing).
        envs: Several environments to train in together, in place of `env_id` and the other arguments for
            one environment. The rows must name them, and have their arguments.
        isolate: Where each environment runs, as for :class:`EnvChoice`.
        success_at: The return that solves a task, as for :class:`EnvChoice`.
        gpu_memory: Memory of a GPU in GB, for the estimate.
        thinking: The model's reasoning: ``"off"``, ``"hide"`` from the environment, or ``"keep"``; by default
            inferred from the model's name.
        lora: Rank of adapters to train instead of the whole model; 0 for none.
        rollout_correction: Whether to weight tokens by the ratio of the trainer's and the engine's
            probabilities.
        seed: Seed of the order of the tasks; None for verl's.
        tool_calls: Whether the model calls functions in the notation of its own chat template, as for
            :class:`verl_bridge.agent_loop.GymAgentLoop`.
        trainer: How generation and training alternate, one of :data:`TRAINERS`; only verl 0.9 has others than
            ``"sync"``.
        rollout_gpus: Number of the GPUs that only generate, with ``"separate_async"``; by default half.
        val_tasks: Number of rows for validation of each environment, which decides the episodes of each row.

    Raises:
        ValueError: A choice is invalid, or two choices contradict each other.
    """

    env_id: str = ""
    verl: str = "0.9"
    algorithm: str = ""
    engine: str = "sglang"
    preset: str = "test"
    integration: str = "agent-loop"
    model: str | None = None
    gpus: int = 4
    env_kwargs: Mapping[str, Any] = field(default_factory=dict)
    turns: int | Sequence[int] | None = None
    turns_every: int | None = None
    kl_coef: float | None = None
    like: str | None = None
    offload: bool | None = None
    checkpointing: bool = True
    envs: Sequence[EnvChoice] = ()
    isolate: str | None = None
    success_at: float | None = None
    gpu_memory: float = GPU_MEMORY
    thinking: str | None = None
    lora: int = 0
    rollout_correction: bool = False
    seed: int | None = None
    tool_calls: bool = False
    trainer: str = "sync"
    rollout_gpus: int | None = None
    val_tasks: int = MAX_VALIDATION

    def __post_init__(self) -> None:
        if not self.algorithm:
            object.__setattr__(self, "algorithm", algorithm_of(self.like))
        choices: dict[str, tuple[str, ...]] = {
            "verl": VERSIONS,
            "algorithm": tuple(ALGORITHMS),
            "engine": ENGINES,
            "preset": tuple(PRESETS),
            "integration": INTEGRATIONS,
            "trainer": TRAINERS,
        }
        for name, allowed in choices.items():
            if getattr(self, name) not in allowed:
                raise ValueError(
                    f"{option_of(name)}={getattr(self, name)!r} is not one of {', '.join(allowed)}"
                )
        self._check_environments()
        self._set_defaults()
        if not self.model or not self.model.isprintable():
            raise ValueError(f"--model={self.model!r} is neither a path nor the name of a model")
        self._check_model_options()
        if self.integration == "interaction" and self.verl != "0.7":
            raise ValueError(
                f"verl {self.verl} has no interactions (deleted in 0.8): use --integration='agent-loop'"
            )
        if self.algorithm == "remax" and self.verl == "0.7":
            raise ValueError(
                "verl 0.7 cannot do ReMax over an agent loop: it does not request greedy sampling for the "
                "baseline, and stops if the baseline differs from the sampled episode; use verl 0.8 or 0.9, "
                "or --algorithm='rloo'"
            )
        if self.algorithm == "gigpo" and self.integration == "interaction":
            raise ValueError(
                "--algorithm='gigpo' needs the turns of each episode, which interactions do not record: use "
                "--integration='agent-loop'"
            )
        check_trainer(self.trainer, verl=self.verl, algorithm=self.algorithm, lora=self.lora)
        check_split(
            self.trainer,
            gpus=self.gpus,
            rollout_gpus=self.separate_gpus,
            batch=self.size.batch,
            mini_batch=self.mini_batch,
        )
        self._check_numbers()

    def _check_model_options(self) -> None:
        if self.thinks.mode == "hide" and self.integration == "interaction":
            raise ValueError(
                "--thinking='hide' needs this library's agent loop: verl's loop sends the environment whole "
                "replies; use --integration='agent-loop', or --thinking='keep'"
            )
        if self.tool_calls and self.integration == "interaction":
            raise ValueError(
                "--tools=native needs this library's agent loop: use --integration='agent-loop', or "
                "action_format='function_calling' in the environment's arguments"
            )
        if self.lora and self.engine == "sglang" and self.verl == "0.7":
            raise ValueError(
                "verl 0.7 passes no adapters to sglang: use --engine='vllm' with lora, or verl 0.8 or 0.9"
            )
        if not 0 < self.gpu_memory < math.inf:
            raise ValueError(f"--gpu-memory={self.gpu_memory} should be a number of GB above 0")

    def _check_numbers(self) -> None:
        limits = [("turns", limit) for limit in self.stages]
        if self.lora < 0 or (self.seed or 0) < 0:
            raise ValueError(f"--lora={self.lora} and --seed={self.seed} should be 0 or above")
        counts = [("gpus", self.gpus), ("turns_every", self.turns_every), ("val", self.val_tasks)]
        for name, value in [*counts, *limits]:
            if value is not None and value < 1:
                raise ValueError(f"{option_of(name)}={value} should be at least 1")
        if not 0 <= (self.kl_coef or 0) < math.inf:
            raise ValueError(f"--kl-coef={self.kl_coef} should be 0 or a number above it")
        if len(self.stages) > 1 and self.integration == "interaction":
            raise ValueError(
                "verl does not pass the training step to interactions, so their turn limit is constant: give "
                "one limit, or use --integration='agent-loop'"
            )
        of_an_update = self.mini_batch * self.samples
        for count, unit in ((self.trajectories, "a step"), (of_an_update, "an update")):
            if count % self.training_gpus:
                name = "--gpus" if self.training_gpus == self.gpus else "--gpus minus --rollout-gpus"
                raise ValueError(
                    f"{name}={self.training_gpus} does not divide the {count} trajectories of {unit} by "
                    f"{self.algorithm} with --preset={self.preset!r}, as verl requires"
                )

    def _set_defaults(self) -> None:
        """Fill in the defaults."""
        paper = self.published
        usual = {"model": DEFAULT_MODEL, "turns_every": _EVERY, "kl_coef": KL_COEF}
        if paper is not None:
            usual = {
                "model": paper.get("actor_rollout_ref.model.path"),
                "turns_every": paper.get("agent_loop.every", _EVERY),
                "kl_coef": paper.get("actor_rollout_ref.actor.kl_loss_coef"),
            }
        for name, value in usual.items():
            if getattr(self, name) is None:
                object.__setattr__(self, name, value)

    @property
    def published(self) -> Published | None:
        """The published settings selected by `like`, or None.

        Raises:
            ValueError: There are none for this environment, or there are several environments.
        """
        if self.like is not None and self.several:
            raise ValueError(f"--like={self.like!r} has settings of one environment: choose one")
        return published(self.like, self.environments[0].env_id)

    def _check_environments(self) -> None:
        of_one = (self.env_id, self.env_kwargs, self.isolate, self.success_at is not None)
        if self.envs and any(of_one):
            raise ValueError("envs contains ids and arguments: give envs, or env_id and env_kwargs")
        ids = [env.env_id for env in self.environments]
        twice = next((env_id for env_id in ids if ids.count(env_id) > 1), None)
        if twice is not None:
            raise ValueError(f"--env={twice!r} is given twice")

    @property
    def size(self) -> Preset:
        """The amount of training."""
        usual, paper = PRESETS[self.preset], self.published
        if paper is None and usual.mini_batch and self.algorithm not in _IN_GROUPS:
            # As many episodes as in groups, each of another prompt.
            return replace(
                usual, batch=usual.batch * usual.group, mini_batch=usual.mini_batch * usual.group, group=1
            )
        if paper is None or self.preset == "test":
            return usual if paper is None else replace(usual, rate=_rate_of(paper))
        return Preset(
            batch=paper.get("data.train_batch_size"),
            epochs=paper.get("trainer.total_epochs", usual.epochs),
            group=paper.get("actor_rollout_ref.rollout.n"),
            save_freq=paper.get("trainer.save_freq", usual.save_freq),
            test_freq=paper.get("trainer.test_freq", usual.test_freq),
            rate=_rate_of(paper),
            steps=paper.get("trainer.total_training_steps"),
            keep=usual.keep,
        )

    @property
    def mini_batch(self) -> int:
        """Prompts in an update."""
        size, paper = self.size, self.published
        if paper is None:
            return size.mini_batch or size.batch
        return min(size.batch, int(paper.get("actor_rollout_ref.actor.ppo_mini_batch_size", size.batch)))

    @property
    def passes(self) -> int:
        """Updates with each episode of a step."""
        return 1 if self.published is None else self.published.get("actor_rollout_ref.actor.ppo_epochs", 1)

    @property
    def separate_gpus(self) -> int:
        """GPUs that only generate."""
        half = self.gpus // 2 if self.trainer == "separate_async" else 0
        return half if self.rollout_gpus is None else self.rollout_gpus

    @property
    def training_gpus(self) -> int:
        """GPUs that train, and also generate."""
        return self.gpus - self.separate_gpus

    @property
    def corrects(self) -> bool:
        """Whether tokens are weighted; always with tokens of earlier weights."""
        return self.rollout_correction or self.trainer != "sync"

    @property
    def samples(self) -> int:
        """Samples of each prompt."""
        return self.size.group if self.algorithm in _IN_GROUPS else 1

    @property
    def trajectories(self) -> int:
        """Episodes of a step."""
        return self.size.batch * self.samples

    @property
    def micro_batch(self) -> int:
        """Episodes in a micro-batch of a GPU during training."""
        of_a_gpu, paper = self.mini_batch * self.samples // self.training_gpus, self.published
        usual = _MICRO_BATCH if of_a_gpu % _MICRO_BATCH == 0 else 1
        if paper is None:
            return usual
        return int(paper.get("actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu", usual))

    @property
    def rate(self) -> float:
        """The learning rate."""
        size = self.size
        return LORA_RATE if self.lora and size.mini_batch else size.rate

    @property
    def val_samples(self) -> int | None:
        """Episodes of each task in a validation; None for verl's default."""
        return math.ceil(MAX_VALIDATION / self.val_tasks) if self.preset == "train" else None

    @property
    def thinks(self) -> Thinking:
        """How the model's reasoning is treated."""
        return thinking_of(str(self.model), self.thinking)

    @functools.cached_property
    def model_size(self) -> ModelSize | None:
        """The size of the model, if it is known."""
        return model_size(str(self.model))

    @functools.cached_property
    def sizing(self) -> Sizing:
        """The settings that decide the memory."""
        episode, state = self.lengths.episode, self.offload is not False
        least = Sizing(
            gpus=self.training_gpus,
            tokens=episode,
            forward_tokens=episode,
            offload=state,
            activation_offload=state and self.checkpointing,
            checkpointing=self.checkpointing,
            reference=bool(self.kl_coef),
            critic=self.algorithm == "ppo",
            lora=self.lora,
            separate_gpus=self.separate_gpus,
        )
        if self.size.sized:
            return choose(self.model_size, episode, least, memory=self.gpu_memory, offload=self.offload)
        paper, tokens = self.published, self.micro_batch * episode
        share = paper.get("actor_rollout_ref.rollout.gpu_memory_utilization") if paper else None
        return replace(least, tokens=tokens, forward_tokens=tokens, utilization=share)

    @property
    def stages(self) -> tuple[int, ...]:
        """The chosen turn limits, in order; empty for the usual one."""
        if self.turns is None:
            paper = self.published
            return () if paper is None else paper.turns
        return (self.turns,) if isinstance(self.turns, int) else tuple(self.turns)

    @property
    def environments(self) -> tuple[EnvChoice, ...]:
        """The environments to train in, one or several.

        Raises:
            ValueError: The id of the one environment is invalid.
        """
        return tuple(self.envs) or (
            EnvChoice(self.env_id, self.env_kwargs, isolate=self.isolate, success_at=self.success_at),
        )

    @property
    def several(self) -> bool:
        """Whether there is more than one environment, so that each row must name its own."""
        return len(self.environments) > 1

    def lengths_of(self, env: EnvChoice) -> Lengths:
        """Return the length limits for an environment.

        More turns than usual get proportionally more tokens.
        """
        usual, paper = LENGTHS.get(env.id, USUAL_LENGTHS), self.published
        turns = max(self.stages, default=None) or turn_limit_of(env.env_kwargs) or usual.turns
        response = max(usual.response, usual.response * turns // usual.turns)
        reply, prompt = usual.reply, usual.prompt
        if paper is not None:
            longest = paper.get("data.max_response_length")
            if longest is not None:
                response = max(longest, longest * turns // max(paper.turns))
            reply = paper.get("agent_loop.max_tokens_per_turn")
            prompt = max(prompt, paper.get("data.max_prompt_length"))
        if self.tool_calls:
            prompt *= 2  # for the schemas of the tools, of which Weather's have 10,000 characters
        if self.thinks.mode in {"hide", "keep"}:
            # Room for reasoning in every reply, and for half of that on average: our own choice.
            response += turns * max(0, REASONING - reply) // 2
            reply = max(reply, REASONING)
        return Lengths(turns, reply, prompt, response)

    @property
    def lengths(self) -> Lengths:
        """The longest limits of all environments."""
        each = [self.lengths_of(env) for env in self.environments]
        return Lengths(
            turns=max(lengths.turns for lengths in each),
            reply=max(lengths.reply for lengths in each),
            prompt=max(lengths.prompt for lengths in each),
            response=max(lengths.response for lengths in each),
        )

    @property
    def name(self) -> str:
        """The name of the run, different for each choice that makes another run."""
        names = "+".join(env_part(env.id) for env in self.environments)
        parts = [names, self.algorithm, self.preset, self.like, model_part(str(self.model))]
        parts += [
            self.thinks.mode and f"thinking-{self.thinks.mode}",
            f"lora{self.lora}" if self.lora else None,
            "tools" if self.tool_calls else None,
        ]
        parts += ["corrected" if self.rollout_correction else None]
        parts += [self.trainer if self.trainer != "sync" else None]
        parts += [None if self.seed is None else f"seed{self.seed}"]
        return "-".join(part for part in parts if part)


def _rate_of(paper: Published) -> float:
    return float(paper.get("actor_rollout_ref.actor.optim.lr"))
