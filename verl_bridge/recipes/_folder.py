"""Write the folder of a recipe."""

from __future__ import annotations

import importlib
import re
import shlex
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from agentgym_gym.errors import ArgumentName, BadFile
from verl_bridge._run.replays import FAULT_BUDGET
from verl_bridge.recipes._check_earlier import last_step
from verl_bridge.recipes._filler import fill, lay_over, read_template, scalar
from verl_bridge.recipes._folder_name import name_problem
from verl_bridge.recipes._papers import LOOP_KEYS
from verl_bridge.recipes._policy_losses import LOSSES
from verl_bridge.recipes._recipe import ALGORITHMS
from verl_bridge.recipes._verl_settings import lookup

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from verl_bridge.recipes._env_shares import Share
    from verl_bridge.recipes._papers import Published
    from verl_bridge.recipes._recipe import RlRecipe

__all__ = ["RELEASES", "render", "write", "write_files"]

RELEASES: Mapping[str, str] = {"0.7": "0.7.1", "0.8": "0.8.0", "0.9": "0.9.1"}

_SCRIPTS = ("submit.sh", "slurm.sh")
"""Written for several nodes."""

_NAMES = ("config.yaml", "agent_loop.yaml", "interaction.yaml", "run.sh", *_SCRIPTS, "README.md")
_DATA = ("data/train.parquet", "data/val.parquet")

_QUOTED_ID = re.compile(r"`([\w.]+:[\w.-]+/[\w.-]+-v\d+)`")

_VAL_TEMPERATURE = "actor_rollout_ref.rollout.val_kwargs.temperature"

_ABOUT_BATCH = {
    True: "Prompts in a step: 32 as in AgentGym-RL's textcraft_train.sh, and in verl's "
    "examples/sglang_multiturn/run_qwen3_4b_dapo_multiturn.sh.",
    False: "Prompts in a step: as many episodes as 32 groups of 8 have. Our own choice.",
}

_SOURCE_OF_RATE = {
    True: "For adapters, from verl's examples/tuning/7b/qwen2-7b_grpo-lora_1_h100_fsdp_vllm.sh.",
    False: "From AgentGym-RL's examples/train/AgentGym-RL/textcraft_train.sh, and the same in verl's "
    "examples/grpo_trainer/run_qwen3-8b.sh.",
}

_ABOUT_OFFLOAD = {
    True: "Weights and optimizer are offloaded to main memory while the engine generates: by the estimate of "
    "memory they do not fit beside it, or you chose this.",
    False: "Weights and optimizer stay on the GPU while the engine generates: by the estimate of memory they "
    "fit beside it, or you chose this.",
    None: "Whether weights and optimizer are offloaded to main memory while the engine generates. The size "
    "of the model is unknown.",
}


class FolderInUse(FileExistsError):
    """A folder has the files of another recipe.

    Attributes:
        parts: The message in its parts, as in `agentgym_gym.errors.AgentGymError`.
    """

    def __init__(self, *parts: str) -> None:
        super().__init__("".join(parts))
        self.parts = parts


def render(recipe: RlRecipe, *, shares: Sequence[Share] = (), notes: Sequence[str] = ()) -> dict[str, str]:
    """Return the text of each file of a recipe's folder by its name.

    Args:
        recipe: The recipe.
        shares: The rows of each of several environments.
        notes: Sentences about the tasks, for the README.
    """
    templates = {
        "config.yaml": f"verl-{recipe.verl}.yaml",
        "agent_loop.yaml": "agent_loop.yaml",
        "run.sh": "run.sh",
        "README.md": "README.md",
    }
    if recipe.integration == "interaction":
        templates |= {"agent_loop.yaml": "tool_agent_loop.yaml", "interaction.yaml": "interaction.yaml"}
    if recipe.nodes > 1:
        templates |= {name: name for name in _SCRIPTS}
    values = {
        **_settings(recipe),
        **_hardware(recipe),
        **_loss(recipe),
        **_loop(recipe),
        **_texts(recipe, shares, notes),
    }
    files = {name: fill(read_template(template), values) for name, template in templates.items()}
    paper = recipe.published
    if paper is None:
        files["config.yaml"] = lay_over(files["config.yaml"], {}, lambda *_: "")
    else:
        files["config.yaml"] = lay_over(files["config.yaml"], _overlay(recipe, paper), paper.cite)
    return files


def _overlay(recipe: RlRecipe, paper: Published) -> dict[str, Any]:
    """Return the verl settings of a paper; `lay_over` adds only those that the template lacks."""
    left_out = {"actor_rollout_ref.actor.kl_loss_coef", "actor_rollout_ref.actor.kl_loss_type"}
    if recipe.algorithm != "gigpo":
        left_out.add("algorithm.gamma")  # a discount of turns there, and of tokens in other algorithms
    if recipe.algorithm not in {"gigpo", "grpo"}:
        left_out.add("algorithm.norm_adv_by_std_in_grpo")
    if recipe.preset == "test":
        left_out.add("trainer.total_training_steps")
    return {
        key: value
        for key, value in paper.settings.items()
        if not key.startswith(LOOP_KEYS) and key not in left_out
    }


def _settings(recipe: RlRecipe) -> dict[str, Any]:
    """Return the values and conditions of ``config.yaml`` about the algorithm and the amount of training."""
    size, lengths, paper = recipe.size, recipe.lengths, recipe.published
    train = size.mini_batch is not None
    update = scalar(recipe.mini_batch * recipe.samples)
    return {
        **{name: recipe.algorithm == name for name in ALGORITHMS},
        "about_batch": _ABOUT_BATCH[recipe.samples > 1],
        "about_thinking": recipe.thinks.reason,
        "about_update": "" if paper is None else paper.cite(LOOP_KEYS + "rows_of_update", update),
        "about_validation": _about_validation(recipe),
        "adv_estimator": recipe.estimator,
        "assistant_turns": lengths.turns + 1,
        "batch": size.batch,
        "asynchronous": recipe.trainer != "sync",
        "correction": recipe.corrects,
        "critic": recipe.sizing.critic,
        "epochs": size.epochs,
        "filtered": recipe.filter_groups,
        "group": recipe.samples,
        "in_groups": train and recipe.samples > 1,
        "interaction": recipe.integration == "interaction",
        "keep": size.keep,
        "kl_coef": recipe.kl_coef,
        "learning_rate": recipe.rate,
        "lora": recipe.lora or None,
        "mini_batch": recipe.mini_batch,
        "model": recipe.model,
        "name": recipe.name,
        "no_thinking": recipe.thinks.mode == "off",
        "on_policy": recipe.mini_batch == size.batch and recipe.passes == 1 and recipe.trainer == "sync",
        "prompt": lengths.prompt,
        "reference": bool(recipe.kl_coef),
        "response": lengths.response,
        "samples_of_val": recipe.val_samples,
        "save_freq": size.save_freq,
        "seed": recipe.seed,
        "source_of_rate": _SOURCE_OF_RATE[bool(recipe.lora)] if train else "",
        "steps": size.steps if train else None,
        "test_freq": size.test_freq,
        "train": train,
        "trainer": recipe.trainer,
        "turns": lengths.turns,
        "updates": size.batch // recipe.mini_batch,
        "val_before_train": size.test_freq > 0,
        "val_temperature": 1.0 if paper is None else paper.get(_VAL_TEMPERATURE, 1.0),
    }


def _hardware(recipe: RlRecipe) -> dict[str, Any]:
    """Return the values and conditions of ``config.yaml`` about GPUs and their memory."""
    sizing, sized = recipe.sizing, recipe.size.sized
    known = sized and recipe.model_size is not None
    training, separate = recipe.pools
    chosen = recipe.fused_kernels is None
    return {
        "about_kernels": "Chosen by the estimate of memory." if chosen else "Selected with --fused-kernels.",
        "about_offload": _ABOUT_OFFLOAD[sizing.offload] if known else _ABOUT_OFFLOAD[None],
        "activation_offload": sizing.activation_offload,
        "all_gpus": recipe.nodes * recipe.gpus,
        "all_nodes": recipe.nodes,
        "checkpointing": recipe.checkpointing,
        "dynamic": sized,
        "engine": recipe.engine,
        "engine_length": recipe.engine_length,
        "forward_tokens": sizing.forward_tokens,
        "fused": sizing.fused,
        "gpus": training.gpus,
        "micro_batch": recipe.micro_batch,
        "node_gpus": recipe.gpus,
        "nodes": training.nodes,
        "offload": sizing.offload,
        "one_more": recipe.engine == "sglang",
        "parallel": recipe.sequence_parallel if recipe.sequence_parallel > 1 else None,
        "separate": recipe.separate_gpus > 0,
        "separate_gpus": separate.gpus,
        "separate_nodes": separate.nodes,
        "separate_utilization": sizing.separate_utilization if known else None,
        "several_nodes": recipe.nodes > 1,
        "sized": sized,
        "tensor_parallel": sizing.tensor_parallel,
        "tokens": sizing.tokens,
        "utilization": sizing.utilization if known else None,
    }


def _loss(recipe: RlRecipe) -> dict[str, Any]:
    """Return the values and conditions of ``config.yaml`` about the policy loss."""
    loss = LOSSES[recipe.policy_loss]
    low, high = loss.clip or (None, None)
    return {
        "about_loss": loss.source,
        "clip_dual": loss.dual,
        "clip_high": high,
        "clip_low": low,
        "loss_mode": loss.mode,
        # Preset train has the same mean for each loss.
        "row_mean": loss.row_mean and recipe.size.mini_batch is None,
    }


def _about_validation(recipe: RlRecipe) -> str:
    """Return the reason for the number of episodes of a validation."""
    paper = recipe.published
    if paper is not None and (least := paper.get("agent_loop.val_episodes")):
        return f"Episodes of each task: together at least {least}. " + paper.cite(
            LOOP_KEYS + "val_episodes", scalar(least)
        )
    return (
        "Episodes of each task: together at least 385, so that the 95 % interval of a success rate of one "
        "half is ± 0.05 (1.96 x 0.5 / 0.05, squared) on these tasks. Our own choice."
    )


def _loop(recipe: RlRecipe) -> dict[str, Any]:
    """Return the values and conditions of ``agent_loop.yaml`` and ``interaction.yaml``."""
    paper, reply, stages = recipe.published, recipe.lengths.reply, list(recipe.stages)
    horizon = len(stages) > 1
    one = None if recipe.several else recipe.environments[0]

    def source(name: str, value: Any) -> str:
        return "" if paper is None else paper.cite(LOOP_KEYS + name, scalar(value))

    return {
        "env_id": one and one.env_id,
        "env_kwargs": one and dict(one.env_kwargs),
        "by_turn": recipe.rows == "turn",
        "format_penalty": recipe.format_penalty or None,
        "invalid_action_penalty": recipe.invalid_action_penalty or None,
        "turn_rewards": recipe.algorithm == "turn_ppo",
        "every": recipe.turns_every,
        "fault_budget": int(FAULT_BUDGET),
        "hide_reasoning": recipe.thinks.mode == "hide",
        "history": recipe.history or "all",
        "horizon": horizon,
        "isolate": one and one.isolate,
        "more_reply": recipe.thinks.mode in {"hide", "keep"},
        "reply": reply,
        "several": recipe.several,
        "source_of_history": source("history", recipe.history) if recipe.history else "",
        "source_of_penalty": source("invalid_action_penalty", recipe.invalid_action_penalty),
        "source_of_every": source("every", recipe.turns_every) if horizon else "",
        "source_of_reply": source("max_tokens_per_turn", reply),
        "source_of_turns": source("turns", stages),
        "stages": stages,
        "success_at": one and one.success_at,
        "tool_calls": recipe.tool_calls,
    }


def _texts(recipe: RlRecipe, shares: Sequence[Share], notes: Sequence[str]) -> dict[str, Any]:
    """Return the values and conditions of ``run.sh`` and ``README.md``."""
    return {
        "algorithm": recipe.algorithm,
        "env_ids": ", ".join(env.env_id for env in recipe.environments),
        "environments": " and ".join(f"`{env.env_id}`" for env in recipe.environments),
        "like": recipe.published
        and recipe.published.about(
            by_turn=recipe.rows == "turn",
            rows=recipe.mini_batch * recipe.samples,
            published_rows=recipe.published.get("agent_loop.rows_of_update"),
            other_update=recipe.mini_batch * recipe.samples
            != recipe.published.get("agent_loop.rows_of_update"),
            penalty=recipe.invalid_action_penalty or None,
            gigpo=recipe.algorithm == "gigpo",
            similarity=recipe.published.get("agent_loop.similarity"),
            divides=recipe.published.get("algorithm.norm_adv_by_std_in_grpo", True),
        ),
        "of_nodes": f" of {recipe.nodes} nodes" if recipe.nodes > 1 else "",
        "notes": "\n".join(f"- {note}" for note in notes),
        "package": shlex.quote(f"verl=={RELEASES[recipe.verl]}"),
        "shares": "\n".join(
            f"| `{share.env_id}` | {share.weight:g} | {share.rows:,} | {share.note or 'a task each'} "
            f"| {share.val:,} |"
            for share in shares
        ),
        "verl": recipe.verl,
    }


def write(
    recipe: RlRecipe,
    folder: Path,
    *,
    shares: Sequence[Share] = (),
    notes: Sequence[str] = (),
    force: bool = False,
) -> list[Path]:
    """Write the folder of a recipe, except its data.

    Args:
        recipe: The recipe.
        folder: The target; created if it does not exist.
        shares: The rows of each of several environments.
        notes: Sentences about the tasks, for the README.
        force: Whether to replace existing files.

    Returns:
        The paths written.

    Raises:
        FileExistsError: One of the files exists and ``force`` is false; nothing was written.
        OSError: The folder cannot be written to.
    """
    return write_files(folder, render(recipe, shares=shares, notes=notes), (*_NAMES, *_DATA), force=force)


def write_files(folder: Path, files: Mapping[str, str], names: Iterable[str], *, force: bool) -> list[Path]:
    """Write the files of a recipe.

    Args:
        folder: The target; created if it does not exist.
        files: Their texts by their names, ``run.sh`` among them.
        names: All files that such a folder may contain.
        force: Whether to replace existing files.

    Returns:
        The paths written.

    Raises:
        FileExistsError: One of the names exists and ``force`` is false, or the folder has checkpoints of
            another environment, model or algorithm; nothing was written.
        OSError: The folder cannot be written to.
        BadFile: verl cannot train in a folder of this name.
    """
    unusable = name_problem(folder)
    if unusable:
        raise BadFile(f"{unusable}; choose another folder", path=folder)
    existing = [name for name in names if (folder / name).exists()]
    if existing and not force:
        problem = f"{folder} already has {', '.join(existing)}: choose another folder, or pass "
        raise FolderInUse(problem, ArgumentName("force"))
    _refuse_other_run(folder, files)
    folder.mkdir(parents=True, exist_ok=True)
    for name in existing:  # also the interaction of an earlier recipe, and its tasks
        (folder / name).unlink()
    for name, text in files.items():
        (folder / name).write_text(text, "utf-8")
    for name in files:
        if name.endswith(".sh"):
            (folder / name).chmod(0o755)
    return [folder / name for name in files]


def _refuse_other_run(folder: Path, files: Mapping[str, str]) -> None:
    """Raise an error if a new recipe would continue from the checkpoints of another training.

    Args:
        folder: The folder, with the files of the earlier recipe.
        files: The texts of the new recipe by their names.

    Raises:
        FolderInUse: The earlier training had another environment, model or algorithm, or it is unknown.
    """
    checkpoints = folder / "checkpoints"
    step = last_step(checkpoints)
    if step is None:
        return
    old = _identity({name: path.read_text("utf-8") for name in _NAMES if (path := folder / name).is_file()})
    new = _identity(files)
    changes = [
        f"{name} {old.get(name) or 'unknown'}, now {new[name]}" for name in new if old.get(name) != new[name]
    ]
    if changes:
        problem = (
            f"{checkpoints} has step {step} of another training ({'; '.join(changes)}), and verl would "
            "resume from its weights: move or delete it, or choose another folder"
        )
        raise FolderInUse(problem)


def _identity(files: Mapping[str, str]) -> dict[str, str]:
    """Return the environment, model and algorithm of a recipe by its files, as far as they can be read."""
    config = _yaml(files.get("config.yaml", ""))
    algorithm = lookup(config, "algorithm.adv_estimator")
    if algorithm is None:
        return {"model": str(lookup(config, "model.path")), "algorithm": "fine-tuning"}
    return {
        "environment": ", ".join(_environments(files)),
        "model": str(lookup(config, "actor_rollout_ref.model.path")),
        "algorithm": str(algorithm),
    }


def _environments(files: Mapping[str, str]) -> list[str]:
    """Return the ids of the environments; a recipe of several has them only in its README and its rows."""
    entries = _yaml(files.get("agent_loop.yaml", ""))
    interactions = _yaml(files.get("interaction.yaml", ""))
    if isinstance(interactions, Mapping):
        entries = [lookup(entry, "config") for entry in interactions.get("interaction") or ()]
    ids = [lookup(entry, "env_id") for entry in entries] if isinstance(entries, list) else []
    return sorted(
        {str(env_id) for env_id in ids if env_id} or set(_QUOTED_ID.findall(files.get("README.md", "")))
    )


def _yaml(text: str) -> Any:
    yaml = importlib.import_module("yaml")
    try:
        return yaml.safe_load(text)
    except (yaml.YAMLError, RecursionError):
        return None
