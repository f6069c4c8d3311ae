"""verl's settings of a training folder, and the ones that the checks compare as typed records."""

from __future__ import annotations

import importlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, NamedTuple, TypeVar, get_type_hints

from verl_bridge._credit.estimators import OMEGA

__all__ = [
    "DEFAULT_LOOP",
    "INTERACTIONS",
    "LOOP_PATH",
    "REWARD",
    "Fact",
    "Name",
    "NotReadable",
    "Number",
    "RlSettings",
    "Settings",
    "SftSettings",
    "counts",
    "load_yaml",
    "lookup",
    "read_settings",
]

INTERACTIONS = "actor_rollout_ref.rollout.multi_turn.interaction_config_path"
"""The setting with the yaml of the interactions; null without interactions."""

LOOP_PATH = "actor_rollout_ref.rollout.agent.agent_loop_config_path"
"""The setting with the yaml of the agent loops."""

DEFAULT_LOOP = "actor_rollout_ref.rollout.agent.default_agent_loop"
"""The setting with the agent loop of rows that name none."""

REWARD = "reward.custom_reward_function.path"
"""The setting with the file or the module of the reward function."""


class NotReadable(ValueError):
    """A file of the folder is missing or invalid."""


def load_yaml(file: Path) -> Any:
    """Return the contents of a YAML file.

    Raises:
        NotReadable: It does not exist, or is not YAML.
        ModuleNotFoundError: PyYAML is not installed.
    """
    yaml = importlib.import_module("yaml")
    try:
        return yaml.safe_load(file.read_text("utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise NotReadable(f"cannot read {file}: {error}") from None
    except (yaml.YAMLError, RecursionError) as error:
        raise NotReadable(f"{file} is not YAML: {' '.join(str(error).split())}") from None


def lookup(settings: Any, key: str) -> Any:
    """Return the value of a dotted key in nested mappings, or None if it is not set."""
    for part in key.split("."):
        settings = settings.get(part) if isinstance(settings, Mapping) else None
    return settings


@dataclass(frozen=True)
class Settings:
    """All settings of a folder, by their dotted keys.

    Attributes:
        folder: The folder.
        values: All settings if verl composed them, otherwise the ones in ``config.yaml`` and the overrides.
    """

    folder: Path
    values: Mapping[str, Any]

    def get(self, key: str, default: Any = None) -> Any:
        """Return a setting.

        Args:
            key: Its dotted key.
            default: The value if it is not set, or null.
        """
        value = lookup(self.values, key)
        if isinstance(value, str) and value.startswith("${") and value.endswith("}"):
            return self.get(value[2:-1], default)  # an interpolation, which only verl resolves in full
        if isinstance(value, str):
            value = value.replace("${folder}", str(self.folder))
        return default if value is None else value

    def is_null(self, key: str) -> bool:
        """Return whether a setting is there, and null."""
        group, _, last = key.rpartition(".")
        within = lookup(self.values, group) if group else self.values
        return isinstance(within, Mapping) and last in within and within[last] is None

    def paths(self, key: str) -> list[Path]:
        """Return a setting that is one path or several, resolved as in run.sh; empty if it is not set."""
        value = self.get(key)
        several = value if isinstance(value, list) else [value]
        return [
            self.folder / Path(str(each).replace("${folder}", str(self.folder))).expanduser()
            for each in several
            if each is not None
        ]


class Count(NamedTuple):
    """The key of a setting that is an integer from 1.

    Attributes:
        key: The dotted key.
        nullable: Whether it can also be null, as by verl's default.
    """

    key: str
    nullable: bool = False


class Files(NamedTuple):
    """The key of a setting that is a path, or several."""

    key: str


class Number(NamedTuple):
    """The key of a setting that is a number; PyYAML reads 1e-6 as text, and verl as a number."""

    key: str


class Fact(NamedTuple):
    """A field that is no setting: something about the folder that a check adds.

    Attributes:
        text: Its description in the docs.
    """

    text: str


class Name(NamedTuple):
    """The key of a setting that is a text; null, unlike a setting that is not there, stays None."""

    key: str


_ACTOR = "actor_rollout_ref.actor"
_MODEL = "actor_rollout_ref.model"
_ROLLOUT = "actor_rollout_ref.rollout"
_V1 = "trainer.v1"


@dataclass(frozen=True)
class _Settings:
    """The settings that both trainers have in the same place; each field has its key, and verl's default."""

    gpus: Annotated[int, Count("trainer.n_gpus_per_node")] = 1
    nodes: Annotated[int, Count("trainer.nnodes")] = 1
    epochs: Annotated[int | None, Count("trainer.total_epochs")] = None
    steps: Annotated[int | None, Count("trainer.total_training_steps", nullable=True)] = None
    resume: Annotated[str, "trainer.resume_mode"] = "auto"
    checkpoints: Annotated[Sequence[Path], Files("trainer.default_local_dir")] = ()
    train_files: Annotated[Sequence[Path], Files("data.train_files")] = ()
    val_files: Annotated[Sequence[Path], Files("data.val_files")] = ()
    template_options: Annotated[Mapping[str, Any] | None, "data.apply_chat_template_kwargs"] = None

    @property
    def all_gpus(self) -> int:
        """GPUs that train."""
        return self.gpus * self.nodes


@dataclass(frozen=True)
class RlSettings(_Settings):
    """The settings of verl's trainer for reinforcement learning that the checks use."""

    batch: Annotated[int, Count("data.train_batch_size")] = 1024
    prompt: Annotated[int, Count("data.max_prompt_length")] = 512
    response: Annotated[int, Count("data.max_response_length")] = 512
    by_tokens: Annotated[bool, f"{_ACTOR}.use_dynamic_bsz"] = False
    samples: Annotated[int, Count(f"{_ROLLOUT}.n")] = 1
    mini: Annotated[int, Count(f"{_ACTOR}.ppo_mini_batch_size")] = 256
    micro: Annotated[int, Count(f"{_ACTOR}.ppo_micro_batch_size_per_gpu", nullable=True)] = 1
    passes: Annotated[int | None, Count(f"{_ACTOR}.ppo_epochs")] = None
    tensor_parallel: Annotated[int, Count(f"{_ROLLOUT}.tensor_model_parallel_size")] = 2
    forward_micro: Annotated[
        int | None, Count(f"{_ROLLOUT}.log_prob_micro_batch_size_per_gpu", nullable=True)
    ] = None
    sequence_parallel: Annotated[int, Number(f"{_ACTOR}.ulysses_sequence_parallel_size")] = 1
    workers: Annotated[int, Count(f"{_ROLLOUT}.agent.num_workers")] = 8
    gpus: Annotated[int, Count("trainer.n_gpus_per_node")] = 8

    model: Annotated[str | None, Name(f"{_MODEL}.path")] = ""
    critic: Annotated[str | None, Name("critic.model.path")] = ""
    tokenizer: Annotated[Any, f"{_MODEL}.tokenizer_path"] = None
    lora_rank: Annotated[int, f"{_MODEL}.lora_rank"] = 0
    megatron_rank: Annotated[int, f"{_MODEL}.lora.rank"] = 0
    merges_adapters: Annotated[bool, f"{_MODEL}.lora.merge"] = False

    estimator: Annotated[str, "algorithm.adv_estimator"] = "gae"
    gamma: Annotated[Any, "algorithm.gamma"] = 1.0
    lam: Annotated[Any, "algorithm.lam"] = 1.0
    critic_enabled: Annotated[Any, "critic.enable"] = None
    omega: Annotated[Any, f"algorithm.{OMEGA}"] = None
    filters_groups: Annotated[bool, "algorithm.filter_groups.enable"] = False
    filter_metric: Annotated[str | None, Name("algorithm.filter_groups.metric")] = "reward"
    filter_inflight: Annotated[int, "algorithm.filter_groups.max_inflight_gen_batches"] = 1
    filter_batches: Annotated[int, "algorithm.filter_groups.max_num_gen_batches"] = 0
    bypass: Annotated[bool, "algorithm.rollout_correction.bypass_mode"] = False
    weighted_by: Annotated[str | None, "algorithm.rollout_correction.rollout_is"] = None

    loops: Annotated[Sequence[Path], Files(LOOP_PATH)] = ()
    interactions: Annotated[Sequence[Path], Files(INTERACTIONS)] = ()
    default_loop: Annotated[str, DEFAULT_LOOP] = "single_turn_agent"
    assistant_turns: Annotated[int, f"{_ROLLOUT}.multi_turn.max_assistant_turns"] = 0  # no limit
    user_turns: Annotated[int, f"{_ROLLOUT}.multi_turn.max_user_turns"] = 0  # no limit
    reward: Annotated[str | None, REWARD] = None

    mode: Annotated[str, f"{_V1}.trainer_mode"] = "sync"
    use_v1: Annotated[bool, "trainer.use_v1"] = True
    stale_after: Annotated[Any, f"{_V1}.sampler.max_off_policy_threshold"] = None
    stale_strategy: Annotated[str, f"{_V1}.sampler.max_off_policy_strategy"] = "drop"
    colocate_warmup: Annotated[int, f"{_V1}.colocate_async.num_warmup_batches"] = 1
    separate_warmup: Annotated[int, f"{_V1}.separate_async.num_warmup_batches"] = 1
    sync_every: Annotated[int, f"{_V1}.separate_async.parameter_sync_step"] = 4
    engine_gpus: Annotated[int, f"{_ROLLOUT}.n_gpus_per_node"] = 8
    engine_nodes: Annotated[int, f"{_ROLLOUT}.nnodes"] = 0
    backend: Annotated[str, f"{_ROLLOUT}.checkpoint_engine.backend"] = "naive"
    keeps_log_probs: Annotated[bool, f"{_ROLLOUT}.calculate_log_probs"] = False

    @property
    def separate_gpus(self) -> int:
        """GPUs that only generate."""
        return self.engine_gpus * self.engine_nodes


@dataclass(frozen=True)
class SftSettings(_Settings):
    """The settings of verl's trainer for fine-tuning that the checks use."""

    batch: Annotated[int, Count("data.train_batch_size")] = 256
    micro: Annotated[int, Count("data.micro_batch_size_per_gpu")] = 4
    longest: Annotated[int, Count("data.max_length")] = 1024
    packed_tokens: Annotated[int, Count("data.max_token_len_per_gpu")] = 8192
    packed: Annotated[bool, "data.use_dynamic_bsz"] = True
    sequence_parallel: Annotated[int, Number("engine.ulysses_sequence_parallel_size")] = 1
    messages: Annotated[str, "data.messages_key"] = "messages"
    truncation: Annotated[str, "data.truncation"] = "error"
    model: Annotated[str | None, Name("model.path")] = ""
    tokenizer: Annotated[Any, "model.tokenizer_path"] = None


R = TypeVar("R", bound=_Settings)


def read_settings(kind: type[R], settings: Settings) -> R:
    """Return the settings that the checks use, with verl's defaults for the missing ones.

    Integers of another type, which `check_types` reports, are replaced by the default, too.
    """
    values: dict[str, Any] = {}
    for name, where in _places(kind).items():
        if isinstance(where, Fact):
            continue
        key, default = where if isinstance(where, str) else where.key, getattr(kind, name)
        value = settings.get(key, default)
        if isinstance(where, Files):
            value = settings.paths(key)
        elif isinstance(where, Name):
            value = None if settings.is_null(key) else str(value)
        elif isinstance(where, Number):
            value = _number(value, default)
        elif type(default) is int and type(value) is not int:
            value = default
        values[name] = value
    return kind(**values)


def _number(value: Any, default: float | None) -> float | None:
    """Return a number, or the default for a value that is none."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        return value
    try:
        return float(value)
    except (TypeError, ValueError):
        return default


def counts(kind: type[RlSettings | SftSettings]) -> dict[str, bool]:
    """Return the keys of the settings that are integers from 1, each with whether it can also be null."""
    return dict(where for where in _places(kind).values() if isinstance(where, Count))


def _places(kind: type) -> dict[str, str | Count | Fact | Files | Name | Number]:
    hints = get_type_hints(kind, include_extras=True)
    return {name: hint.__metadata__[0] for name, hint in hints.items()}
