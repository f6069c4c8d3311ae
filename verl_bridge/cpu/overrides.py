"""The settings with which verl's trainers run on a CPU, by version, each with its reason.

Recipes, tests and documents use them. They do not affect what is learned: data, lengths, batch sizes and
learning rates belong to the recipe.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from importlib import metadata


@dataclass(frozen=True)
class Override:
    """One setting.

    Args:
        key: in hydra's syntax; a leading ``+`` adds a key that verl's own configuration lacks.
        value: in hydra's syntax.
        reason: why a CPU needs it.
        only: the minor versions of verl that need it, such as ``("0.8", "0.9")``; None means all.
    """

    key: str
    value: str
    reason: str
    only: tuple[str, ...] | None = None

    def __str__(self) -> str:
        return f"{self.key}={self.value}"


ACTOR = "actor_rollout_ref.actor"
MODEL = "actor_rollout_ref.model"
REF = "actor_rollout_ref.ref"
ROLLOUT = "actor_rollout_ref.rollout"
FLOAT32 = "{param_dtype:fp32,reduce_dtype:fp32,buffer_dtype:fp32}"
"""Precision for verl 0.8 and 0.9, which ignore ``fsdp_config.dtype``. verl 0.7 always uses bfloat16."""

VALUE_HEAD = "verl 0.7 loads the critic by its architecture; later ones make the head themselves"

CRITIC = (
    Override("critic.strategy", "fsdp2", "FSDP 1 does not support a CPU", ("0.8", "0.9")),
    Override("critic.fsdp.strategy", "fsdp2", "FSDP 1 does not support a CPU", ("0.8", "0.9")),
    Override("+critic.fsdp.mixed_precision", FLOAT32, "bfloat16 gives other values", ("0.8", "0.9")),
    Override(
        "critic.fsdp.use_torch_compile", "False", "compiling takes longer than it saves", ("0.8", "0.9")
    ),
    Override(
        "critic.model.use_remove_padding", "False", "packed sequences need flash attention", ("0.8", "0.9")
    ),
    Override(
        "critic.model.enable_gradient_checkpointing",
        "False",
        "a tiny model needs no memory saved",
        ("0.8", "0.9"),
    ),
    Override(
        "critic.model.enable_activation_offload", "False", "they are in the machine's memory", ("0.8", "0.9")
    ),
    Override("++critic.model.override_config.attn_implementation", "sdpa", "flash attention needs a GPU"),
    # verl 0.7's trainer accepts only fsdp as critic.strategy; its engine uses the setting below it.
    Override("critic.model.fsdp_config.strategy", "fsdp2", "FSDP 1 does not support a CPU", ("0.7",)),
    Override(
        "critic.model.fsdp_config.use_torch_compile",
        "False",
        "compiling takes longer than it saves",
        ("0.7",),
    ),
    Override(
        "+critic.model_config",
        "{_target_:verl.workers.config.HFModelConfig,path:${critic.model.path},"
        "override_config:${critic.model.override_config},use_remove_padding:false,"
        "enable_gradient_checkpointing:false}",
        "0.7 reads nothing else of the critic's model; packed sequences need flash attention",
        ("0.7",),
    ),
    Override(
        "++critic.model.override_config.architectures", "[ForTokenClassification]", VALUE_HEAD, ("0.7",)
    ),
    Override("++critic.model.override_config.num_labels", "1", VALUE_HEAD, ("0.7",)),
    Override("++critic.model.override_config.classifier_dropout", "0.0", VALUE_HEAD, ("0.7",)),
)
"""Settings of the critic, which only PPO has."""

PPO = (
    Override("trainer.device", "cpu", "where tensors go", only=("0.9",)),
    Override(
        "trainer.use_legacy_worker_impl",
        "disable",
        "the legacy workers, its default, support only CUDA and NPU",
        ("0.7",),
    ),
    Override("trainer.nnodes", "1", "one machine"),
    Override("trainer.n_gpus_per_node", "1", "one worker that trains"),
    Override(
        "+ray_kwargs.ray_init.num_gpus", "1", "verl requires a GPU for its worker: Ray gets a nominal one"
    ),
    Override(
        "ray_kwargs.ray_init.num_cpus", "32", "verl starts more actors than a laptop has cores; they wait"
    ),
    Override("+ray_kwargs.ray_init.include_dashboard", "False", "one process less"),
    Override(
        "transfer_queue.backend.SimpleStorage.num_data_storage_units", "1", "seven processes less", ("0.9",)
    ),
    Override("reward.num_workers", "1", "processes cost half a GiB each"),
    Override(f"{ROLLOUT}.agent.num_workers", "1", "processes cost half a GiB each"),
    Override("data.dataloader_num_workers", "0", "processes cost half a GiB each"),
    Override(f"{ACTOR}.strategy", "fsdp2", "FSDP 1 does not support a CPU"),
    Override(f"{ACTOR}.fsdp_config.strategy", "fsdp2", "FSDP 1 does not support a CPU"),
    Override(
        f"+{ACTOR}.fsdp_config.mixed_precision",
        FLOAT32,
        "bfloat16 gives the trainer other log-probs",
        ("0.8", "0.9"),
    ),
    Override(f"{ACTOR}.fsdp_config.use_torch_compile", "False", "compiling takes longer than it saves"),
    Override(f"{ACTOR}.use_torch_compile", "False", "compiling takes longer than it saves"),
    Override(f"{MODEL}.use_remove_padding", "False", "packed sequences need flash attention"),
    Override(
        f"{MODEL}.enable_gradient_checkpointing", "False", "it saves memory that a tiny model does not use"
    ),
    Override(
        f"{MODEL}.enable_activation_offload", "False", "activations are in the machine's memory already"
    ),
    Override(f"+{MODEL}.override_config.attn_implementation", "sdpa", "flash attention needs a GPU"),
    Override(f"{REF}.strategy", "fsdp2", "FSDP 1 does not support a CPU"),
    Override(f"{REF}.fsdp_config.strategy", "fsdp2", "FSDP 1 does not support a CPU"),
    Override(
        f"+{REF}.fsdp_config.mixed_precision",
        FLOAT32,
        "the KL distance then compares values of the same precision",
        ("0.8", "0.9"),
    ),
    Override(f"{REF}.fsdp_config.use_torch_compile", "False", "compiling takes longer than it saves"),
    *CRITIC,
    Override(f"{ROLLOUT}.name", "transformers", "the rollout server of verl_bridge.cpu"),
    Override(f"{ROLLOUT}.dtype", "float32", "bfloat16 gives other log-probs than the trainer's"),
    Override(f"{ROLLOUT}.tensor_model_parallel_size", "1", "the server is one process"),
    Override(
        f"{ROLLOUT}.free_cache_engine", "False", "no GPU memory to be freed between rollout and training"
    ),
    Override(f"{ROLLOUT}.load_format", "auto", "the server loads the model's own files first"),
)
"""For ``python -m verl.trainer.main_ppo``."""

SEPARATE = (
    Override("+ray_kwargs.ray_init.num_gpus", "2", "a second nominal GPU, for the separate server"),
    Override(f"{ROLLOUT}.nnodes", "1", "one separate server"),
    Override(f"{ROLLOUT}.n_gpus_per_node", "1", "one separate server"),
    Override(f"{ROLLOUT}.checkpoint_engine.backend", "transformers", "verl's own transfers need a GPU"),
)
"""For ``trainer.v1.trainer_mode=separate_async``: additions to :data:`PPO`, and replacements in it."""

SFT = (
    Override("trainer.device", "cpu", "where tensors go"),
    Override("trainer.nnodes", "1", "one machine"),
    Override("trainer.n_gpus_per_node", "1", "one process that trains"),
    Override("engine.strategy", "fsdp2", "FSDP 1 does not support a CPU"),
    Override("+engine.mixed_precision", FLOAT32, "bfloat16 is slow, and less exact", ("0.8", "0.9")),
    Override("engine.offload_policy", "False", "they are in main memory already, and pinning needs a GPU"),
    Override("engine.use_torch_compile", "False", "compiling takes longer than it saves"),
    Override("model.use_remove_padding", "False", "packed sequences need flash attention"),
    Override(
        "model.enable_gradient_checkpointing", "False", "it saves memory that a tiny model does not use"
    ),
    Override("+model.override_config.attn_implementation", "sdpa", "flash attention needs a GPU"),
    Override("data.use_dynamic_bsz", "False", "packed sequences need flash attention"),
    Override("data.num_workers", "0", "processes cost half a GiB each"),
)
"""For ``python -m verl_bridge.cpu.sft``, which adds them itself."""

VERSIONS = ("0.7", "0.8", "0.9")
TRAINERS = ("sync", "colocate_async", "separate_async")


def cpu_overrides(version: str | None = None, trainer: str = "sync") -> list[str]:
    """Return the command-line settings with which ``main_ppo`` runs on a CPU.

    Args:
        version: of verl, such as ``0.9.1``; None uses the installed version.
        trainer: the value of ``trainer.v1.trainer_mode``, which verl 0.9 has.

    Raises:
        ValueError: an unsupported version of verl, or an unknown trainer.
    """
    if trainer not in TRAINERS:
        raise ValueError(f"trainer={trainer!r} is not one of {', '.join(TRAINERS)}")
    if trainer != "separate_async":
        return _chosen(PPO, version)
    replaced = {override.key for override in SEPARATE}
    return _chosen((*(override for override in PPO if override.key not in replaced), *SEPARATE), version)


def sft_overrides(version: str | None = None) -> list[str]:
    """Return the settings with which verl's trainer for supervised fine-tuning runs on a CPU.

    Args:
        version: as in ``cpu_overrides``.

    Raises:
        ValueError: an unsupported version of verl.
    """
    return _chosen(SFT, version)


def _chosen(overrides: tuple[Override, ...], version: str | None) -> list[str]:
    number = metadata.version("verl") if version is None else version
    minor = ".".join(number.split(".")[:2])
    if minor not in VERSIONS:
        known = " or ".join((", ".join(VERSIONS[:-1]), VERSIONS[-1]))
        raise ValueError(f"no settings for verl {number} on a CPU: install verl {known}")
    return [str(override) for override in overrides if override.only is None or minor in override.only]


if __name__ == "__main__":
    # For command lines: $(python -m verl_bridge.cpu.overrides), with separate_async for that trainer.
    print("\n".join(cpu_overrides(trainer=" ".join(sys.argv[1:]) or "sync")))  # noqa: T201
