"""The choices for a training run."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from typing import Annotated, Any, Literal, TypeAlias, get_args

from agentgym_gym.errors import BadOption
from agentgym_gym.options import Option
from agentgym_gym.rollout import Isolation, split_id
from verl_bridge._run.loop_arguments import Rows  # noqa: TC001 - read as an option
from verl_bridge.recipes._gpu_memory import GPU_MEMORY
from verl_bridge.recipes._options import (
    DEFAULT_MODEL,
    EPISODES,
    MACHINE,
    MODEL,
    TRAINING,
    Checkpointing,
    Verl,
)
from verl_bridge.recipes._papers import Like  # noqa: TC001 - read as an option
from verl_bridge.recipes._policy_losses import PolicyLoss  # noqa: TC001 - read as an option
from verl_bridge.recipes._presets import PresetName  # noqa: TC001 - read as an option

__all__ = [
    "ENGINES",
    "EVERY",
    "INTEGRATIONS",
    "KL_COEF",
    "MAX_VALIDATION",
    "Algorithm",
    "Choices",
    "EnvChoice",
    "Thinking",
    "thinking_of",
    "turn_limit_of",
]

Algorithm: TypeAlias = Literal["grpo", "ppo", "rloo", "reinforce_plus_plus", "remax", "gigpo", "turn_ppo"]
Engine: TypeAlias = Literal["sglang", "vllm"]
Integration: TypeAlias = Literal["agent-loop", "interaction"]

Mode: TypeAlias = Literal["off", "hide", "keep"]
"""No reasoning, reasoning that the environment does not see, or reasoning as part of the reply."""

ENGINES: tuple[Engine, ...] = get_args(Engine)
INTEGRATIONS: tuple[Integration, ...] = get_args(Integration)

KL_COEF = 1e-3
"""Default weight of the KL distance to the reference policy in the loss: verl's own value."""

EVERY = 100
"""Default training steps of a turn limit."""

MAX_VALIDATION = 385
"""Episodes of a validation: (1.96 x 0.5 / 0.05) squared, for a 95 % interval of ± 0.05 around one half."""

# gymnasium's own rule, but it makes the version optional and allows colons at the ends of a name.
_ENV_ID = re.compile(r"(?:[\w.]+:)?(?:[\w:-]+/)?[\w.-](?:[\w:.-]*[\w.-])?")

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
        BadOption: The id is invalid, the weight is not a positive number, or another argument is wrong.
    """

    env_id: str
    env_kwargs: Mapping[str, Any] = field(default_factory=dict)
    weight: float = 1.0
    isolate: str | None = None
    success_at: float | None = None

    def __post_init__(self) -> None:
        if not _ENV_ID.fullmatch(self.env_id):
            problem = "is not the id of an environment, such as 'my_package:my/Env-v0'"
            raise BadOption("env_id", self.env_id, problem=problem)
        if not (math.isfinite(self.weight) and self.weight > 0):
            raise BadOption("weight", self.weight, problem=f"of {self.id} should be a positive number")
        if self.isolate is not None and self.isolate not in get_args(Isolation):
            raise BadOption("isolate", self.isolate, f"one of {', '.join(get_args(Isolation))}")
        if self.success_at is not None and not math.isfinite(self.success_at):
            raise BadOption("success_at", self.success_at, "a finite number")

    @property
    def runtime(self) -> dict[str, Any]:
        """Runtime keys for the loop's yaml or for a row; empty by default."""
        keys = {"isolate": self.isolate, "success_at": self.success_at}
        return {key: value for key, value in keys.items() if value is not None}

    @property
    def id(self) -> str:
        """The id without the module."""
        return split_id(self.env_id)[1]


# Qwen3 without a suffix reasons by default, and its template has a switch; a release of 2507 has one mode.
_SWITCH = re.compile(r"qwen3(\.\d+)?-\d+(\.\d+)?b(-a\d+(\.\d+)?b)?(-base)?(-fp8|-awq)?$", re.IGNORECASE)
_ALWAYS = re.compile(r"thinking|\bqwq\b|deepseek-r1|\br1\b|reasoning|magistral|gpt-oss", re.IGNORECASE)


@dataclass(frozen=True)
class Thinking:
    """The choice and its reason.

    Attributes:
        mode: The choice; None for a model that does not reason.
        reason: The reason, for a comment.
    """

    mode: Mode | None
    reason: str


def thinking_of(model: str, chosen: Mode | None) -> Thinking:
    """Return how a recipe treats the reasoning of a model.

    Args:
        model: Name or path of the model.
        chosen: The choice; None to infer it from the name.

    Raises:
        BadOption: The model's template cannot switch reasoning off.
    """
    name = model.rstrip("/").rpartition("/")[2]
    always = _ALWAYS.search(name) is not None
    if chosen == "off" and always:
        problem = (
            f"does not fit {name}: its chat template has no switch for reasoning; use 'hide', or a model "
            "without reasoning"
        )
        raise BadOption("thinking", "off", problem=problem)
    if chosen is not None:
        return Thinking(chosen, f"--thinking {chosen}.")
    if always:
        return Thinking("hide", f"The name {name} is of a model that always reasons: --thinking hide.")
    if _SWITCH.match(name):
        return Thinking(
            "off", f"The name {name} is of a model whose template can switch reasoning off: --thinking off."
        )
    return Thinking(None, "")


@dataclass(frozen=True)
class Choices:
    """The choices for a training run, as `RlRecipe` documents them."""

    env_id: str = ""
    _: KW_ONLY
    model: Annotated[
        str | None,
        Option(MODEL, TRAINING, default=f"from --like, else {DEFAULT_MODEL}", usual=True),
    ] = None
    like: Annotated[
        Like | None, Option("paper whose published settings are the defaults", TRAINING, usual=True)
    ] = None
    preset: Annotated[
        PresetName,
        Option("amount of training; test is short, full 15 epochs", TRAINING, usual=True),
    ] = "test"
    algorithm: Annotated[
        Algorithm | None,
        Option("training algorithm", TRAINING, default="from --like, else grpo", usual=True),
    ] = None
    policy_loss: Annotated[PolicyLoss, Option("policy loss, with its clipping", TRAINING)] = "vanilla"
    kl_coef: Annotated[
        float | None,
        Option(
            "coefficient of the KL penalty; 0 for no reference policy",
            TRAINING,
            default=f"from --like, else {KL_COEF}",
            least=0,
        ),
    ] = None
    lora: Annotated[
        int, Option("train adapters of this rank; 0 for all weights", TRAINING, metavar="RANK", least=0)
    ] = 0
    rollout_correction: Annotated[
        bool, Option("importance-sample rollout tokens (rollout correction)", TRAINING)
    ] = False
    trainer: Annotated[
        Literal["sync", "colocate_async", "separate_async"],
        Option("verl 0.9's trainer; the asynchronous ones overlap generation and training", TRAINING),
    ] = "sync"
    filter_groups: Annotated[
        bool, Option("verl 0.9: replace groups whose episodes all score the same", TRAINING)
    ] = False
    turns: Annotated[
        int | Sequence[int] | None,
        Option(
            "turn limit of all environments; several are training stages",
            EPISODES,
            default="per environment",
            metavar="N[,N]",
            values="numbers",
            usual=True,
        ),
    ] = None
    turns_every: Annotated[
        int | None,
        Option(
            "training steps per stage of --turns",
            EPISODES,
            default=f"from --like, else {EVERY}",
            least=1,
        ),
    ] = None
    thinking: Annotated[
        Mode | None,
        Option(
            "the model's reasoning: off, hidden from the environment, or kept",
            EPISODES,
            default="by model name",
        ),
    ] = None
    invalid_action_penalty: Annotated[
        float | None,
        Option(
            "subtract from the reward of turns without a valid action",
            TRAINING,
            default="from --like, else 0",
            least=0,
        ),
    ] = None
    format_penalty: Annotated[
        float,
        Option("subtract in addition for each reply without an action", TRAINING, least=0),
    ] = 0.0
    rows: Annotated[
        Rows | None,
        Option(
            "rows of a batch: whole episodes, or single turns",
            EPISODES,
            default="from --like, else episode",
        ),
    ] = None
    history: Annotated[
        str | None,
        Option(
            "with --rows turn: all, turns:K, tokens:N, with or without summary",
            EPISODES,
            default="from --like, else all",
        ),
    ] = None
    tool_calls: bool = False
    verl: Verl = "0.9"
    engine: Annotated[Engine, Option("inference engine", MACHINE, usual=True)] = "sglang"
    integration: Annotated[
        Integration, Option("integration with verl; interaction is for verl 0.7 only", MACHINE)
    ] = "agent-loop"
    nodes: Annotated[int, Option("number of nodes", MACHINE, least=1)] = 1
    gpus: Annotated[int, Option("GPUs of each node", MACHINE, least=1)] = 4
    rollout_gpus: Annotated[
        int | None, Option("GPUs that only generate, for separate_async", MACHINE, default="half", least=1)
    ] = None
    sequence_parallel: Annotated[
        int, Option("GPUs that share each sequence in training (Ulysses)", MACHINE, least=1)
    ] = 1
    gpu_memory: Annotated[
        float, Option("memory of a GPU, for the memory estimate", MACHINE, metavar="GB", least=1)
    ] = GPU_MEMORY
    offload: Annotated[
        bool | None,
        Option(
            "offload unused weights and states to CPU memory",
            MACHINE,
            default="by the memory estimate for train, else on",
            flag="--offload/--no-offload",
        ),
    ] = None
    checkpointing: Checkpointing = True
    fused_kernels: Annotated[
        bool | None,
        Option(
            "compute log-probabilities without the logits of all tokens",
            MACHINE,
            default="by the memory estimate for train, else off",
            flag="--fused-kernels/--no-fused-kernels",
        ),
    ] = None
    seed: Annotated[
        int | None, Option("seed of the order of tasks", "Environments and tasks", default="verl's", least=0)
    ] = None
    env_kwargs: Mapping[str, Any] = field(default_factory=dict)
    envs: Sequence[EnvChoice] = ()
    isolate: str | None = None
    success_at: float | None = None
    val_tasks: int = MAX_VALIDATION
