"""A recipe: the choices for a training run, and the numbers that follow from them."""

from __future__ import annotations

import functools
import hashlib
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from agentgym_gym.errors import BadOption
from agentgym_gym.options import check_options
from agentgym_gym.rollout import History
from verl_bridge._credit.estimators import BY_TURN, WITH_CRITIC
from verl_bridge.recipes._choices import (
    EVERY,
    KL_COEF,
    MAX_VALIDATION,
    Algorithm,
    Choices,
    EnvChoice,
    Thinking,
    thinking_of,
    turn_limit_of,
)
from verl_bridge.recipes._fused_kernels import problem_of, supports
from verl_bridge.recipes._gpu_memory import Sizing, choose
from verl_bridge.recipes._model_size import ModelSize, model_size
from verl_bridge.recipes._nodes import Pool, check_pools, check_servers, pools
from verl_bridge.recipes._options import DEFAULT_MODEL, named
from verl_bridge.recipes._papers import Published, algorithm_of, published
from verl_bridge.recipes._presets import LENGTHS, PRESETS, USUAL_LENGTHS, Lengths, Preset
from verl_bridge.recipes._sequence_parallel import check_sequence_parallel

__all__ = ["ALGORITHMS", "NO_SEPARATE_ADAPTERS", "RlRecipe"]

ALGORITHMS: Mapping[Algorithm, str] = {
    "grpo": "grpo",
    "ppo": "gae",
    "rloo": "rloo",
    "reinforce_plus_plus": "reinforce_plus_plus",
    "remax": "remax",
    "gigpo": "gym_gigpo",
    "turn_ppo": "gym_turn_gae",
}
"""``algorithm.adv_estimator`` by the name of the algorithm."""

_IN_GROUPS = frozenset({"grpo", "rloo", "gigpo"})  # their advantage compares samples of one prompt

REASONING = 2_048
"""Maximum tokens of a reply with reasoning: our own choice."""

_SUMMARY = 512
"""Tokens of a summary of omitted turns: our own choice."""

LORA_RATE = 3e-5
"""Learning rate of adapters, as in verl's scripts examples/tuning/*/*_grpo-lora_*.sh."""

NO_SEPARATE_ADAPTERS = "verl 0.9 sends separate engines the base model without the adapters"

_MICRO_BATCH = 2

_ENGINE_LENGTH = "actor_rollout_ref.rollout.max_model_len"


@dataclass(frozen=True)
class RlRecipe(Choices):
    """The choices of a training run. The help of ``agentgym verl init`` describes most of them.

    >>> from verl_bridge.recipes import RlRecipe
    >>> RlRecipe("agentgym_gym:agentgym/TextCraft-v0", algorithm="rloo").trajectories
    16

    Attributes:
        env_id: gymnasium's id, with the module that registers it: ``"my_package:my/Env-v0"``. Empty if
            `envs` is set.
        tool_calls: Whether the model calls functions in the notation of its own chat template, as for
            :class:`verl_bridge.agent_loop.GymAgentLoop`.
        env_kwargs: Arguments of the environment, for rows without them. If `turns` is None, the turn limit
            in them applies.
        envs: Several environments to train in together, in place of `env_id` and the other arguments for
            one environment. The rows must name them, and have their arguments.
        isolate: Where each environment runs, as for :class:`EnvChoice`.
        success_at: The return that solves a task, as for :class:`EnvChoice`.
        val_tasks: Number of rows for validation of each environment, which decides the episodes of each row.

    Raises:
        BadOption: A choice is invalid, or two choices contradict each other.
    """

    def __post_init__(self) -> None:
        if not self.algorithm:
            object.__setattr__(self, "algorithm", algorithm_of(self.like))
        check_options(self)
        self._check_environments()
        self._set_defaults()
        if not self.model or not self.model.isprintable():
            raise BadOption("model", self.model, problem="is neither a path nor the name of a model")
        self._check_interaction()
        self._check_rows()
        self._check_groups()
        self._check_engine()
        self._check_trainer()
        check_servers(self.nodes, (env.env_kwargs for env in self.environments))
        self._check_sequences()
        self._check_numbers()

    def _check_interaction(self) -> None:
        """Check what verl's own loop, which plays interactions, supports."""
        mode = self.thinks.mode  # also checks whether the model has it
        if self.integration != "interaction":
            return
        loop = "use `integration`='agent-loop'"
        if self.verl != "0.7":
            raise BadOption(named(f"verl {self.verl} has no interactions (deleted in 0.8): {loop}"))
        if self.estimator in BY_TURN:
            problem = f"needs the turns of each episode, which interactions do not record: {loop}"
            raise BadOption("algorithm", self.algorithm, problem=named(problem))
        for name in ("invalid_action_penalty", "format_penalty"):
            if getattr(self, name):
                problem = f"needs this library's agent loop: {loop}"
                raise BadOption(name, getattr(self, name), problem=named(problem))
        if mode == "hide":
            problem = (
                "needs this library's agent loop: verl's loop sends the environment whole replies; "
                f"{loop}, or `thinking`='keep'"
            )
            raise BadOption("thinking", "hide", problem=named(problem))
        if self.tool_calls:
            problem = (
                f"`tool_calls` needs this library's agent loop: {loop}, or action_format='function_calling' "
                "in the environment's arguments"
            )
            raise BadOption(named(problem))
        if len(self.stages) > 1:
            problem = (
                "verl does not pass the training step to interactions, so their turn limit is constant: give "
                f"one limit, or {loop}"
            )
            raise BadOption(named(problem))

    def _check_rows(self) -> None:
        """Check what rows of turns require."""
        if self.rows == "episode":
            if self.history is not None:
                raise BadOption("history", self.history, problem=named("requires `rows`='turn'"))
            return
        if self.verl != "0.9" or self.integration != "agent-loop":
            problem = (
                "requires verl 0.9 and `integration`='agent-loop', which take several rows of an episode"
            )
            raise BadOption("rows", self.rows, problem=named(problem))
        if self.algorithm == "remax":
            problem = "requires verl's newer trainer, which has no ReMax: use `algorithm`='rloo'"
            raise BadOption("rows", self.rows, problem=named(problem))
        History.parse(self.history or "all")

    def _check_groups(self) -> None:
        """Check what the filter of groups requires."""
        if not self.filter_groups:
            return
        if self.verl != "0.9":
            problem = f"verl {self.verl} does not replace groups, as `filter_groups` requires: use verl 0.9"
            raise BadOption(named(problem))
        if self.algorithm not in _IN_GROUPS:
            problem = (
                f"does not compare the samples of a prompt, as `filter_groups` requires: use one of "
                f"{', '.join(sorted(_IN_GROUPS))}"
            )
            raise BadOption("algorithm", self.algorithm, problem=named(problem))

    def _check_engine(self) -> None:
        """Check what verl 0.7 and its engines support."""
        if self.verl != "0.7":
            return
        if self.algorithm == "remax":
            problem = (
                "verl 0.7 cannot do ReMax over an agent loop: it does not request greedy sampling for the "
                "baseline, and stops if the baseline differs from the sampled episode; use verl 0.8 or 0.9, "
                "or `algorithm`='rloo'"
            )
            raise BadOption(named(problem))
        if self.lora and self.engine == "sglang":
            problem = (
                "verl 0.7 passes no adapters to sglang: use `engine`='vllm' with lora, or verl 0.8 or 0.9"
            )
            raise BadOption(named(problem))

    def _check_trainer(self) -> None:
        """Check what verl 0.9's asynchronous trainers support."""
        trainer, separate = f"`trainer`={self.trainer!r}", self.trainer == "separate_async"
        if self.rollout_gpus and not separate:
            raise BadOption(named(f"`rollout_gpus` needs `trainer`='separate_async', unlike {trainer}"))
        if self.trainer == "sync":
            return
        if self.verl != "0.9":
            problem = f"verl {self.verl} has no {trainer}: use verl 0.9, or `trainer`='sync'"
            raise BadOption(named(problem))
        if self.algorithm == "remax":
            problem = (
                f"only verl's older trainer does ReMax, which has no {trainer}: use `trainer`='sync', or "
                "`algorithm`='rloo'"
            )
            raise BadOption(named(problem))
        if not separate:
            return
        if self.lora:
            raise BadOption(named(f"{NO_SEPARATE_ADAPTERS}: use `trainer`='colocate_async' with lora"))
        check_pools(self.nodes, self.gpus, self.separate_gpus)
        batch, mini_batch = self.size.batch, self.mini_batch
        if batch % mini_batch:
            problem = (
                f"needs a batch of whole updates, and {batch} is not a multiple of {mini_batch}: use "
                "`trainer`='colocate_async'"
            )
            raise BadOption("trainer", self.trainer, problem=named(problem))

    def _check_sequences(self) -> None:
        """Check what sequence parallelism and fused kernels require."""
        heads = self.model_size.heads if self.model_size else None
        check_sequence_parallel(self.sequence_parallel, self.training_gpus, heads)
        problem = problem_of(self.verl)
        if self.fused_kernels and problem:
            raise BadOption("fused_kernels", self.fused_kernels, problem=named(problem))

    def _check_numbers(self) -> None:
        for name, counts in (("val_tasks", [self.val_tasks]), ("turns", self.stages)):
            for count in counts:
                if count < 1:
                    raise BadOption(name, count, "at least 1")
        of_an_update = self.mini_batch * self.samples
        for count, unit in ((self.trajectories, "a step"), (of_an_update, "an update")):
            if count % self.training_gpus:
                problem = (
                    f"does not divide the {count} trajectories of {unit} by {self.algorithm} with "
                    f"`preset`={self.preset!r}, as verl requires"
                )
                if self.training_gpus == self.gpus:
                    raise BadOption("gpus", self.gpus, problem=named(problem))
                every = "`gpus`" if self.nodes == 1 else "`nodes` times `gpus`"
                less = " minus `rollout_gpus`" if self.separate_gpus else ""
                raise BadOption(named(f"{every}{less}={self.training_gpus} {problem}"))

    def _set_defaults(self) -> None:
        """Fill in the defaults."""
        paper = self.published
        usual = {"model": DEFAULT_MODEL, "turns_every": EVERY, "kl_coef": KL_COEF}
        if paper is not None:
            usual = {
                "model": paper.get("actor_rollout_ref.model.path"),
                "turns_every": paper.get("agent_loop.every", EVERY),
                "kl_coef": paper.get("actor_rollout_ref.actor.kl_loss_coef"),
            }
        usual |= {"rows": "episode", "invalid_action_penalty": 0.0}
        if paper is not None and self.integration == "agent-loop":
            usual["invalid_action_penalty"] = paper.get("agent_loop.invalid_action_penalty", 0.0)
            if self.verl == "0.9" and self.algorithm != "remax":
                usual["rows"] = paper.get("agent_loop.rows", "episode")
        for name, value in usual.items():
            if getattr(self, name) is None:
                object.__setattr__(self, name, value)
        if paper is not None and self.rows == "turn" and self.history is None:
            object.__setattr__(self, "history", paper.get("agent_loop.history"))

    @property
    def published(self) -> Published | None:
        """The published settings selected by `like`, or None.

        Raises:
            BadOption: There are none for this environment, or there are several environments.
        """
        if self.like is not None and self.several:
            raise BadOption("like", self.like, problem="has settings of one environment: choose one")
        return published(self.like, self.environments[0].env_id)

    def _check_environments(self) -> None:
        of_one = (self.env_id, self.env_kwargs, self.isolate, self.success_at is not None)
        if self.envs and any(of_one):
            raise BadOption("envs", problem="contains ids and arguments: give envs, or env_id and env_kwargs")
        ids = [env.env_id for env in self.environments]
        twice = next((env_id for env_id in ids if ids.count(env_id) > 1), None)
        if twice is not None:
            raise BadOption("env_id", twice, problem="is given twice")

    @property
    def estimator(self) -> str:
        """The name of the algorithm in verl, ``algorithm.adv_estimator``."""
        return ALGORITHMS[self.algorithm or algorithm_of(self.like)]

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
            # Their own micro-batches are for their machines; without these, the estimate of memory decides.
            sized=usual.sized
            and "actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu" not in paper.settings,
        )

    @property
    def mini_batch(self) -> int:
        """Prompts in an update; times `samples`, its rows."""
        size, paper = self.size, self.published
        if paper is not None and self.rows == "turn":
            rows = paper.get("agent_loop.rows_of_update", size.batch * self.samples)
            whole = self.training_gpus // math.gcd(self.training_gpus, self.samples)
            prompts = max(whole, rows // self.samples // whole * whole)
            # verl allows more than a batch only if it fills micro-batches by tokens.
            return int(prompts if size.sized else min(prompts, size.batch))
        if paper is None:
            # With a row for each turn a step has many more rows, and verl allows no larger mini-batch.
            return size.batch if self.rows == "turn" else size.mini_batch or size.batch
        return min(size.batch, int(paper.get("actor_rollout_ref.actor.ppo_mini_batch_size", size.batch)))

    @property
    def passes(self) -> int:
        """Updates with each episode of a step."""
        return 1 if self.published is None else self.published.get("actor_rollout_ref.actor.ppo_epochs", 1)

    @property
    def separate_gpus(self) -> int:
        """GPUs that only generate."""
        if self.trainer != "separate_async":
            return 0
        half = self.gpus // 2 if self.nodes == 1 else self.nodes // 2 * self.gpus
        return half if self.rollout_gpus is None else self.rollout_gpus

    @property
    def training_gpus(self) -> int:
        """GPUs that train, and also generate."""
        return self.nodes * self.gpus - self.separate_gpus

    @property
    def pools(self) -> tuple[Pool, Pool]:
        """The GPUs that train, and those that only generate."""
        return pools(self.nodes, self.gpus, self.separate_gpus)

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
    def rows_each(self) -> int:
        """The most rows of an episode."""
        return self.lengths.turns if self.rows == "turn" else 1

    @property
    def micro_batch(self) -> int:
        """Episodes in a micro-batch of a GPU, or of the GPUs that share a sequence, during training."""
        groups, paper = self.training_gpus // self.sequence_parallel, self.published
        of_a_gpu = self.mini_batch * self.samples // groups
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
        return math.ceil(self.val_episodes / self.val_tasks) if self.preset == "train" else None

    @property
    def val_episodes(self) -> int:
        """The least episodes of a validation."""
        paper = self.published
        return MAX_VALIDATION if paper is None else int(paper.get("agent_loop.val_episodes", MAX_VALIDATION))

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
        part = math.ceil(episode / self.sequence_parallel)
        training, separate = self.pools
        least = Sizing(
            gpus=self.training_gpus,
            tokens=part,
            forward_tokens=part,
            offload=state,
            activation_offload=state and self.checkpointing,
            checkpointing=self.checkpointing,
            reference=bool(self.kl_coef),
            critic=self.estimator in WITH_CRITIC,
            lora=self.lora,
            separate_gpus=self.separate_gpus,
            engine_gpus=math.gcd(training.gpus, separate.gpus),
            fused=bool(self.fused_kernels),
        )
        if self.size.sized:
            kernels = (False, True) if self.can_fuse else (False,)
            return choose(
                self.model_size,
                part,
                least,
                memory=self.gpu_memory,
                offload=self.offload,
                fused=kernels if self.fused_kernels is None else (self.fused_kernels,),
            )
        paper, tokens = self.published, self.micro_batch * part
        share = paper.get("actor_rollout_ref.rollout.gpu_memory_utilization") if paper else None
        return replace(least, tokens=tokens, forward_tokens=tokens, utilization=share)

    @property
    def can_fuse(self) -> bool:
        """Whether verl's fused kernels are known to compute this model's probabilities."""
        model_type = self.model_size.type if self.model_size else ""
        return supports(str(self.model), model_type) and not problem_of(self.verl)

    @property
    def engine_length(self) -> int:
        """Tokens of the longest sequence in the engine; sglang needs one more than it generates."""
        needed = self.lengths.episode + (self.engine == "sglang")
        paper = self.published
        return needed if paper is None else max(needed, paper.get(_ENGINE_LENGTH, needed))

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
            BadOption: The id of the one environment is invalid.
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
            prompt *= 2  # for the schemas of the tools: Weather's have 10,000 characters
        if self.thinks.mode in {"hide", "keep"}:
            # Room for reasoning in every reply, and for half of that on average: our own choice.
            response += turns * max(0, REASONING - reply) // 2
            reply = max(reply, REASONING)
        if self.rows == "turn":
            return self._of_a_turn(Lengths(turns, reply, prompt, response))
        return Lengths(turns, reply, prompt, response)

    def _of_a_turn(self, whole: Lengths) -> Lengths:
        """Return the limits of a row with one turn, from those of an episode.

        A prompt has the turns of the history, each of one and a half times the mean length (our own choice),
        and the summary of the other turns.
        """
        history = History.parse(self.history or "all")
        earlier = whole.turns - 1 if history.turns is None else min(history.turns, whole.turns - 1)
        shown = whole.response - whole.reply
        if history.turns is not None:
            shown = min(shown, math.ceil(1.5 * earlier * whole.response / whole.turns))
        if history.summary is not None:
            shown += _SUMMARY
        if history.tokens is not None:
            shown = min(shown, max(0, history.tokens - whole.prompt))
        return replace(whole, prompt=whole.prompt + shown, response=whole.reply)

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
        names = "+".join(_env_part(env.id) for env in self.environments)
        parts = [names, self.algorithm, self.preset, self.like, _model_part(str(self.model))]
        parts += [
            self.thinks.mode and f"thinking-{self.thinks.mode}",
            f"lora{self.lora}" if self.lora else None,
            self.policy_loss if self.policy_loss != "vanilla" else None,
            "tools" if self.tool_calls else None,
            "turns" if self.rows == "turn" else None,
            "penalized" if self.invalid_action_penalty or self.format_penalty else None,
        ]
        parts += ["corrected" if self.rollout_correction else None]
        parts += ["filtered" if self.filter_groups else None]
        parts += [self.trainer if self.trainer != "sync" else None]
        parts += [None if self.seed is None else f"seed{self.seed}"]
        return "-".join(part for part in parts if part)


def _rate_of(paper: Published) -> float:
    return float(paper.get("actor_rollout_ref.actor.optim.lr"))


_NOT_IN_NAMES = re.compile(r"[^\w.-]")


def _env_part(env_id: str) -> str:
    """Return an id without AgentGym's own namespace, as a part of a run's name."""
    return _NOT_IN_NAMES.sub("_", env_id.removeprefix("agentgym/").replace("/", "--"))


def _model_part(model: str) -> str:
    """Return the name of a model; a hash distinguishes folders of one name, whose paths may be long."""
    if not Path(model).is_absolute():
        return _NOT_IN_NAMES.sub("_", model.replace("/", "--"))
    digest = hashlib.sha256(model.encode()).hexdigest()[:6]
    return f"{_NOT_IN_NAMES.sub('_', Path(model).name)}-{digest}"
