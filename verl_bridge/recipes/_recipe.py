"""The choices for a training run, and the numbers derived from them."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, get_args

from agentgym_gym.rollout import Isolation, split_id
from verl_bridge.recipes._papers import Published, published

__all__ = [
    "ALGORITHMS",
    "ENGINES",
    "INTEGRATIONS",
    "PRESETS",
    "VERSIONS",
    "EnvChoice",
    "Lengths",
    "Preset",
    "RlRecipe",
    "turn_limit_of",
]

VERSIONS = ("0.7", "0.8", "0.9")
ENGINES = ("sglang", "vllm")
INTEGRATIONS = ("agent-loop", "interaction")

ALGORITHMS: Mapping[str, str] = {
    "grpo": "grpo",
    "ppo": "gae",
    "rloo": "rloo",
    "reinforce_plus_plus": "reinforce_plus_plus",
    "remax": "remax",
}
"""verl's ``algorithm.adv_estimator`` by the name of the algorithm."""

_IN_GROUPS = frozenset({"grpo", "rloo"})  # their advantage compares samples of one prompt

DEFAULT_MODEL = "Qwen/Qwen2.5-3B-Instruct"

KL_COEF = 1e-3
"""Default weight of the KL distance to the reference policy in the loss: verl's own value."""

_MICRO_BATCH = 2
_EVERY = 100

# gymnasium's own rule, but it makes the version optional and allows colons at the ends of a name.
_ENV_ID = re.compile(r"(?:[\w.]+:)?(?:[\w:-]+/)?[\w.-](?:[\w:.-]*[\w.-])?")


@dataclass(frozen=True)
class Preset:
    """The amount of training.

    Attributes:
        batch: Prompts in a step.
        epochs: Passes over the tasks.
        group: Samples of each prompt, if the algorithm compares them.
        save_freq: Steps between checkpoints, -1 for none.
        test_freq: Steps between validations, -1 for none.
    """

    batch: int
    epochs: int
    group: int
    save_freq: int
    test_freq: int


PRESETS: Mapping[str, Preset] = {
    "test": Preset(batch=8, epochs=1, group=2, save_freq=-1, test_freq=-1),
    "full": Preset(batch=128, epochs=15, group=4, save_freq=20, test_freq=10),
}


@dataclass(frozen=True)
class Lengths:
    """The length limits of episodes.

    Attributes:
        turns: Maximum replies of the model in an episode.
        reply: Maximum tokens of a reply.
        prompt: Maximum tokens of the system prompt with the first observation.
        response: Maximum tokens of the rest, observations included.
    """

    turns: int
    reply: int
    prompt: int
    response: int


_LENGTHS: Mapping[str, Lengths] = {
    "agentgym/WebShop-v0": Lengths(turns=25, reply=512, prompt=2_048, response=14_336),
    "agentgym/TextCraft-v0": Lengths(turns=20, reply=512, prompt=2_048, response=6_144),
}
_ANY = Lengths(turns=20, reply=512, prompt=2_048, response=8_192)


_LIMITS = ("max_turns", "max_episode_steps")
"""Arguments that limit the turns: of AgentGym's environments, and of ``gymnasium.make`` for any."""


def turn_limit_of(env_kwargs: Mapping[str, Any]) -> int | None:
    """Return the turn limit among the arguments of an environment, or None."""
    limits = [env_kwargs.get(name) for name in _LIMITS]
    return min((limit for limit in limits if type(limit) is int and limit > 0), default=None)


@dataclass(frozen=True)
class EnvChoice:
    """One of several environments that a run trains in.

    Args:
        env_id: gymnasium's id, with the module that registers it: ``"my_package:my/Env-v0"``.
        env_kwargs: Its arguments.
        weight: Its share of the training tasks, relative to the other weights: one of weight 2 has twice
            as many tasks in a step as one of weight 1.
        isolate: Where each environment runs, as for `agentgym_gym.rollout.Pool`; None for its default.
        success_at: The minimum return of a solved task, as for `agentgym_gym.rollout.Episode`.

    Raises:
        ValueError: The id is invalid, the weight is not a positive number, or another argument is wrong.
    """

    env_id: str
    env_kwargs: Mapping[str, Any] = field(default_factory=dict)
    weight: float = 1.0
    isolate: str | None = None
    success_at: float | None = None

    def __post_init__(self) -> None:
        if not _ENV_ID.fullmatch(self.env_id):
            raise ValueError(
                f"env={self.env_id!r} is not the id of an environment, such as 'my_package:my/Env-v0'"
            )
        if not (math.isfinite(self.weight) and self.weight > 0):
            raise ValueError(f"weight={self.weight} of {self.id} should be a positive number")
        if self.isolate is not None and self.isolate not in get_args(Isolation):
            raise ValueError(f"isolate={self.isolate!r} should be one of {', '.join(get_args(Isolation))}")
        if self.success_at is not None and not math.isfinite(self.success_at):
            raise ValueError(f"success_at={self.success_at} should be a finite number")

    @property
    def runtime(self) -> dict[str, Any]:
        """Runtime keys for the loop's yaml or for a row; empty by default."""
        keys = {"isolate": self.isolate, "success_at": self.success_at}
        return {key: value for key, value in keys.items() if value is not None}

    @property
    def id(self) -> str:
        """The id without the module."""
        return split_id(self.env_id)[1]


@dataclass(frozen=True)
class RlRecipe:
    """The choices of a training run.

    Args:
        env_id: gymnasium's id, with the module that registers it: ``"my_package:my/Env-v0"``. Empty if
            `envs` is set.
        verl: The version of verl, ``"0.7"``, ``"0.8"`` or ``"0.9"``.
        algorithm: One of :data:`ALGORITHMS`.
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
        offload: Whether to offload unused state to main memory.
        checkpointing: Whether to recompute activations instead of storing them (gradient checkpointing).
        envs: Several environments to train in together, in place of `env_id` and the other arguments for
            one environment. The rows must name them, and have their arguments.
        isolate: Where each environment runs, as for :class:`EnvChoice`.
        success_at: The return that solves a task, as for :class:`EnvChoice`.

    Raises:
        ValueError: A choice is invalid, or two choices contradict each other.
    """

    env_id: str = ""
    verl: str = "0.9"
    algorithm: str = "grpo"
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
    offload: bool = True
    checkpointing: bool = True
    envs: Sequence[EnvChoice] = ()
    isolate: str | None = None
    success_at: float | None = None

    def __post_init__(self) -> None:
        choices: dict[str, tuple[str, ...]] = {
            "verl": VERSIONS,
            "algorithm": tuple(ALGORITHMS),
            "engine": ENGINES,
            "preset": tuple(PRESETS),
            "integration": INTEGRATIONS,
        }
        for name, allowed in choices.items():
            if getattr(self, name) not in allowed:
                raise ValueError(f"{name}={getattr(self, name)!r} is not one of {', '.join(allowed)}")
        self._check_environments()
        self._set_defaults()
        if not self.model or not self.model.isprintable():
            raise ValueError(f"model={self.model!r} is neither a path nor the name of a model")
        if self.integration == "interaction" and self.verl != "0.7":
            raise ValueError(
                f"verl {self.verl} has no interactions (deleted in 0.8): use integration='agent-loop'"
            )
        if self.algorithm == "remax" and self.verl == "0.7":
            raise ValueError(
                "verl 0.7 cannot do ReMax over an agent loop: it does not request greedy sampling for the "
                "baseline, and stops if the baseline differs from the sampled episode; use verl 0.8 or 0.9, "
                "or algorithm='rloo'"
            )
        self._check_numbers()

    def _check_numbers(self) -> None:
        limits = [("turns", limit) for limit in self.stages]
        for name, value in [("gpus", self.gpus), ("turns_every", self.turns_every), *limits]:
            if value is not None and value < 1:
                raise ValueError(f"{name}={value} should be at least 1")
        if not 0 <= (self.kl_coef or 0) < math.inf:
            raise ValueError(f"kl_coef={self.kl_coef} should be 0 or a number above it")
        if len(self.stages) > 1 and self.integration == "interaction":
            raise ValueError(
                "verl does not pass the training step to interactions, so their turn limit is constant: give "
                "one limit, or use integration='agent-loop'"
            )
        of_an_update = self.mini_batch * self.samples
        for count, unit in ((self.trajectories, "a step"), (of_an_update, "an update")):
            if count % self.gpus:
                raise ValueError(
                    f"gpus={self.gpus} does not divide the {count} trajectories of {unit} by "
                    f"{self.algorithm} with preset={self.preset!r}, as verl requires"
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
            raise ValueError(f"like={self.like!r} has settings of one environment: choose one")
        return published(self.like, self.environments[0].env_id)

    def _check_environments(self) -> None:
        of_one = (self.env_id, self.env_kwargs, self.isolate, self.success_at is not None)
        if self.envs and any(of_one):
            raise ValueError("envs contains ids and arguments: give envs, or env_id and env_kwargs")
        ids = [env.env_id for env in self.environments]
        twice = next((env_id for env_id in ids if ids.count(env_id) > 1), None)
        if twice is not None:
            raise ValueError(f"env={twice!r} is given twice")

    @property
    def size(self) -> Preset:
        """The amount of training."""
        usual, paper = PRESETS[self.preset], self.published
        if paper is None or self.preset != "full":
            return usual
        return Preset(
            batch=paper.get("data.train_batch_size"),
            epochs=paper.get("trainer.total_epochs", usual.epochs),
            group=paper.get("actor_rollout_ref.rollout.n"),
            save_freq=paper.get("trainer.save_freq", usual.save_freq),
            test_freq=paper.get("trainer.test_freq", usual.test_freq),
        )

    @property
    def mini_batch(self) -> int:
        """Prompts in an update."""
        batch, paper = self.size.batch, self.published
        if paper is None:
            return batch
        return min(batch, int(paper.get("actor_rollout_ref.actor.ppo_mini_batch_size", batch)))

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
        of_a_gpu, paper = self.mini_batch * self.samples // self.gpus, self.published
        usual = _MICRO_BATCH if of_a_gpu % _MICRO_BATCH == 0 else 1
        if paper is None:
            return usual
        return int(paper.get("actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu", usual))

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
        usual, paper = _LENGTHS.get(env.id, _ANY), self.published
        turns = max(self.stages, default=None) or turn_limit_of(env.env_kwargs) or usual.turns
        response = max(usual.response, usual.response * turns // usual.turns)
        if paper is None:
            return Lengths(turns, usual.reply, usual.prompt, response)
        longest = paper.get("data.max_response_length")
        if longest is not None:
            response = max(longest, longest * turns // max(paper.turns))
        prompt = max(usual.prompt, paper.get("data.max_prompt_length"))
        return Lengths(turns, paper.get("agent_loop.max_tokens_per_turn"), prompt, response)

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
        """A short name, from the environments and the algorithm."""
        names = [env.id.rpartition("/")[2] for env in self.environments]
        return "-".join([*names, self.algorithm, self.preset])
