"""The settings of verl that a recipe makes, each with its reason, and how they are written as YAML."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

from verl_bridge.recipes._recipe import ALGORITHMS

if TYPE_CHECKING:
    from verl_bridge.recipes._papers import Published
    from verl_bridge.recipes._recipe import Recipe

__all__ = ["LOOP", "Setting", "settings", "to_yaml"]

LOOP = "gym_env"
"""What the rows call the loop and the interaction."""

_MODEL = "actor_rollout_ref.model"
_ACTOR = "actor_rollout_ref.actor"
_REF = "actor_rollout_ref.ref"
_ROLLOUT = "actor_rollout_ref.rollout"


class Setting(NamedTuple):
    """A setting that differs from verl's own, or should be seen.

    Attributes:
        key: Where it stands, in dots.
        value: A JSON value.
        why: The comment above it; empty for none.
    """

    key: str
    value: Any
    why: str = ""


def settings(recipe: Recipe) -> list[Setting]:
    """Return the settings of a recipe in the order in which they are written."""
    made = [
        *_data(recipe),
        *_policy(recipe),
        *_rollout(recipe),
        *_algorithm(recipe),
        *_trainer(recipe),
    ]
    return made if recipe.published is None else [*_cited(recipe, recipe.published, made)]


_PUBLISHED = {
    "data.train_batch_size": "batch",
    "data.max_prompt_length": "prompt",
    "data.max_response_length": "response",
    f"{_MODEL}.path": "model",
    f"{_ACTOR}.optim.lr": "learning_rate",
    f"{_ACTOR}.ppo_mini_batch_size": "mini_batch",
    f"{_ACTOR}.ppo_micro_batch_size_per_gpu": "micro_batch",
    f"{_ACTOR}.ppo_epochs": "passes",
    f"{_ACTOR}.kl_loss_coef": "kl_coef",
    f"{_ACTOR}.kl_loss_type": "kl_type",
    f"{_ROLLOUT}.n": "group",
    "trainer.total_epochs": "epochs",
    "trainer.total_training_steps": "steps",
    "trainer.save_freq": "save_freq",
    "trainer.test_freq": "test_freq",
}
"""What of a paper stands under a key of verl."""


def _cited(recipe: Recipe, paper: Published, made: Iterable[Setting]) -> Iterator[Setting]:
    """Yield settings with the sources of those that are as published, and those that only the paper has."""
    others = [Setting(key, value, f"{paper.source}: {said}.") for key, value, said in paper.others]
    if paper.steps is not None and recipe.preset == "full":
        others.append(Setting("trainer.total_training_steps", paper.steps))
    if paper.passes > 1:
        others.append(Setting(f"{_ACTOR}.ppo_epochs", paper.passes))
    for setting in [*made, *others]:
        name = _PUBLISHED.get(setting.key)
        source = paper.cite(name, setting.value) if name else ""
        yield setting._replace(why=" ".join(filter(None, (setting.why, source))))


def _data(recipe: Recipe) -> list[Setting]:
    lengths = recipe.lengths
    return [
        Setting("data.train_files", "${folder}/data/train.parquet"),
        Setting("data.val_files", "${folder}/data/val.parquet"),
        Setting("data.train_batch_size", recipe.size.batch, "Prompts in a step."),
        Setting(
            "data.max_prompt_length", lengths.prompt, "Tokens of the system prompt and the first observation."
        ),
        Setting(
            "data.max_response_length",
            lengths.response,
            f"Tokens of all replies and the observations between them, in up to {lengths.turns} turns. An "
            "episode that uses them up is cut off.",
        ),
    ]


def _policy(recipe: Recipe) -> list[Setting]:
    micro, paper = recipe.micro_batch, recipe.published
    one = "one update for each step, so that all of it is on-policy."
    return [
        Setting(f"{_MODEL}.path", recipe.model),
        Setting(
            f"{_MODEL}.enable_gradient_checkpointing",
            recipe.checkpointing,
            "Computes activations again instead of keeping them: long episodes do not fit otherwise.",
        ),
        Setting(
            f"{_MODEL}.enable_activation_offload",
            recipe.offload and recipe.checkpointing,
            "Those that are kept wait in the machine's memory.",
        ),
        Setting(f"{_ACTOR}.optim.lr", 5e-7 if paper is None else paper.learning_rate),
        Setting(
            f"{_ACTOR}.ppo_mini_batch_size",
            recipe.mini_batch,
            "Prompts, not episodes"
            + (f": {one}" if recipe.mini_batch == recipe.size.batch and not _again(paper) else "."),
        ),
        Setting(f"{_ACTOR}.ppo_micro_batch_size_per_gpu", micro, "Episodes at a time; out of memory: 1."),
        *_reference(recipe),
        Setting(
            f"{_ACTOR}.fsdp_config.param_offload",
            recipe.offload,
            "Parameters wait in the machine's memory while the engine generates. They stay in fp32, verl's "
            "default: bfloat16 has no room for steps of this learning rate.",
        ),
        Setting(f"{_ACTOR}.fsdp_config.optimizer_offload", recipe.offload),
    ]


def _again(paper: Published | None) -> bool:
    """Whether the episodes of a step are trained on more than once."""
    return paper is not None and paper.passes > 1


def _reference(recipe: Recipe) -> list[Setting]:
    use = Setting(f"{_ACTOR}.use_kl_loss", bool(recipe.kl_coef))
    if not recipe.kl_coef:
        return [use._replace(why="No reference policy: nothing holds the policy near the model it began as.")]
    return [
        use._replace(why="Keeps the policy near the model that it began as, the reference."),
        Setting(f"{_ACTOR}.kl_loss_coef", recipe.kl_coef, "How much the distance counts in the loss."),
        Setting(f"{_ACTOR}.kl_loss_type", "low_var_kl"),
        Setting(f"{_REF}.log_prob_micro_batch_size_per_gpu", recipe.micro_batch),
        Setting(f"{_REF}.fsdp_config.param_offload", recipe.offload),
    ]


def _rollout(recipe: Recipe) -> list[Setting]:
    shared = [
        Setting(f"{_ROLLOUT}.name", recipe.engine),
        Setting(f"{_ROLLOUT}.n", recipe.samples, "Episodes of each prompt."),
        Setting(
            f"{_ROLLOUT}.tensor_model_parallel_size",
            1,
            "GPUs that share a model when it generates; verl's own 2 does not go into an odd number of them.",
        ),
        Setting(f"{_ROLLOUT}.log_prob_micro_batch_size_per_gpu", recipe.micro_batch),
    ]
    loops = Setting(f"{_ROLLOUT}.agent.agent_loop_config_path", "${folder}/agent_loop.yaml")
    if recipe.integration == "agent-loop":
        why = "verl's own default plays one turn, and no environment."
        return [*shared, Setting(f"{_ROLLOUT}.agent.default_agent_loop", LOOP, why), loops]
    turns = recipe.lengths.turns
    return [
        *shared,
        Setting(f"{_ROLLOUT}.multi_turn.enable", True),
        Setting(f"{_ROLLOUT}.multi_turn.interaction_config_path", "${folder}/interaction.yaml"),
        Setting(
            f"{_ROLLOUT}.multi_turn.max_assistant_turns",
            turns + 1,
            f"One more than the {turns} turns: verl does not play the reply that reaches this limit.",
        ),
        Setting(f"{_ROLLOUT}.multi_turn.max_user_turns", turns),
        Setting(
            f"{_ROLLOUT}.agent.default_agent_loop",
            "tool_agent",
            "The loop that speaks to interactions; verl's own default does not.",
        ),
        loops._replace(why=f"What the rows call {LOOP} is that same loop."),
        Setting(
            "reward.custom_reward_function.path",
            "pkg://verl_bridge.reward",
            "No scorer of verl's looks where an interaction puts the rewards.",
        ),
    ]


def _algorithm(recipe: Recipe) -> list[Setting]:
    estimator = Setting("algorithm.adv_estimator", ALGORITHMS[recipe.algorithm])
    if recipe.algorithm == "remax":
        why = "ReMax: one greedy episode of each prompt is played beside it, and its score is the baseline."
        why_older = "verl's newer trainer plays no baselines; its older one does."
        older = Setting("trainer.use_v1", False, why_older)
        return [estimator._replace(why=why), *([older] if recipe.verl == "0.9" else [])]
    if recipe.algorithm == "reinforce_plus_plus" and recipe.verl != "0.9":
        why = (
            f"verl {recipe.verl} credits the last reply of an episode alone: its sum of rewards to come "
            "begins anew at each observation. verl 0.9 credits every reply."
        )
        return [estimator._replace(why=why)]
    if recipe.algorithm != "ppo":
        return [estimator]
    engine = "critic.model.fsdp_config" if recipe.verl == "0.7" else "critic.fsdp"
    return [
        estimator._replace(why="PPO: advantages by a critic, which is trained beside the policy."),
        Setting("critic.model.path", f"${{{_MODEL}.path}}", "It begins as the same model, with a new head."),
        *(_VALUE_HEAD if recipe.verl == "0.7" else ()),
        Setting("critic.model.enable_gradient_checkpointing", recipe.checkpointing),
        Setting("critic.model.enable_activation_offload", recipe.offload and recipe.checkpointing),
        Setting(
            "critic.ppo_micro_batch_size_per_gpu",
            recipe.micro_batch,
            "verl's check asks for it; its workers go by critic.ppo_max_token_len_per_gpu.",
        ),
        Setting(f"{engine}.param_offload", recipe.offload),
        Setting(f"{engine}.optimizer_offload", recipe.offload),
    ]


_VALUE_HEAD = (
    Setting(
        "critic.model.override_config.architectures",
        ["ForTokenClassification"],
        "By this the new workers load it with that head: one value for each token, and no dropout.",
    ),
    Setting("critic.model.override_config.num_labels", 1),
    Setting("critic.model.override_config.classifier_dropout", 0.0),
)


def _trainer(recipe: Recipe) -> list[Setting]:
    size = recipe.size
    workers = Setting(
        "trainer.use_legacy_worker_impl",
        "disable",
        "The old workers divide 0 by 0 where all episodes of a micro-batch failed, and skip the update.",
    )
    return [
        *([workers] if recipe.verl == "0.7" else []),
        Setting("trainer.project_name", "verl_bridge"),
        Setting("trainer.experiment_name", recipe.name),
        Setting("trainer.default_local_dir", "${folder}/checkpoints"),
        Setting("trainer.n_gpus_per_node", recipe.gpus),
        Setting("trainer.logger", ["console"], "run.sh adds wandb where WANDB_API_KEY is set."),
        Setting("trainer.total_epochs", size.epochs),
        Setting("trainer.save_freq", size.save_freq, "In steps, not epochs; -1 is never."),
        Setting("trainer.max_actor_ckpt_to_keep", 2, "verl keeps all, until the disk is full."),
        Setting("trainer.test_freq", size.test_freq, "In steps, not epochs; -1 is never."),
        Setting(
            "trainer.val_before_train", size.test_freq > 0, "What the model can do before it is trained."
        ),
    ]


def to_yaml(made: Iterable[Setting], width: int = 100) -> str:
    """Return settings as YAML, each group in one place and in the order of its first setting."""
    tree: dict[str, Any] = {}
    for setting in made:
        *groups, last = setting.key.split(".")
        node = tree
        for group in groups:
            node = node.setdefault(group, {})
        node[last] = setting
    return "\n".join(_lines(tree, 0, width)) + "\n"


def _lines(tree: dict[str, Any], depth: int, width: int) -> list[str]:
    pad = "  " * depth
    lines: list[str] = []
    for key, value in tree.items():
        if isinstance(value, Setting):
            lines += [f"{pad}# {line}" for line in _wrapped(value.why, width - len(pad) - 2)]
            lines.append(f"{pad}{key}: {_scalar(value.value)}")
        else:
            lines += ([""] if not depth else []) + [f"{pad}{key}:", *_lines(value, depth + 1, width)]
    return lines


def _scalar(value: Any) -> str:
    if isinstance(value, float):
        text = repr(value)
        return text if "." in text else f"{value:.1e}"  # YAML takes 5e-07 for text, as it has no point
    return json.dumps(value, ensure_ascii=False)


def _wrapped(text: str, width: int) -> list[str]:
    lines: list[str] = []
    for word in text.split():
        if lines and len(lines[-1]) + 1 + len(word) <= width:
            lines[-1] += f" {word}"
        else:
            lines.append(word)
    return lines
