"""Check a recipe's settings: verl must accept them, and they must select the loop and the reward."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator, Mapping
from importlib import metadata
from typing import Any

from verl_bridge.recipes._check_values import check_arguments, did_you_mean
from verl_bridge.recipes._compose import NOT_COMPOSED
from verl_bridge.recipes._finding import Finding, ok, problem, skipped, warning
from verl_bridge.recipes._view import INTERACTIONS, LOOP_PATH, NotReadable, View, load_yaml

__all__ = ["check_composition", "check_loop", "check_reward", "check_sizes"]

_LEGACY = ("custom_reward_function", "reward_model", "sandbox_fusion")
_OWN_LOOPS = ("tool_agent", "single_turn_agent", "diffusion_single_turn_agent")
_TOOL_LOOP = "verl.experimental.agent_loop.tool_agent_loop.ToolAgentLoop"
_DEFAULT_LOOP = "actor_rollout_ref.rollout.agent.default_agent_loop"
_REWARD = "reward.custom_reward_function"


def check_composition(view: View, *, wrong_types: bool = False) -> Iterator[Finding]:
    """Check whether the installed verl composes the settings, supports all of them, and rejects none.

    Args:
        view: The folder.
        wrong_types: Whether other findings name values of a wrong type, which cause obscure errors in verl.
    """
    if view.failed:
        yield problem(
            "settings", f"verl did not compose them: {view.failed}", "repair the installation of verl"
        )
    elif view.result is None:
        text = f"{view.not_composed}: {NOT_COMPOSED}"
        yield skipped("settings", text, "check again where the training runs")
    elif view.result["error"]:
        yield problem("settings", f"verl cannot compose them: {view.result['error']}", _repair(view))
    elif view.result["config"] is not None:
        yield from _check_keys(view, view.result, wrong_types=wrong_types)
    if view.failed or (view.result or {}).get("error"):
        yield skipped(
            "settings", f"{view.not_composed}: names among the values were not compared with verl's"
        )
    for each in (view.result or {}).get("skipped", ()):
        text = f"{each['package']} is not installed here: {each['text']}"
        yield skipped(each["check"], text, f"check again where {each['package']} is installed")
    yield from _check_old_names(view)


def _repair(view: View) -> str:
    return "repair config.yaml, or the settings after the folder" if view.overrides else "repair config.yaml"


def _check_keys(view: View, result: Mapping[str, Any], *, wrong_types: bool) -> Iterator[Finding]:
    version = metadata.version("verl")
    for key in result["unknown"]:
        advice = "delete it, or correct its name"
        near = _nearest(key, result["defaults"])
        if near:
            advice = f"did you mean {near}?"
        if key.endswith("interaction_config_path"):
            advice = "verl 0.8 deleted interactions: write the folder again, with --integration agent-loop"
        yield problem(
            "settings",
            f"verl {version} has no setting {key}, and ignores most unknown settings silently",
            advice,
        )
    if result["refused"] and wrong_types:
        yield skipped("settings", f"verl {version} does not finish its own check with the values below")
    elif result["refused"]:
        yield problem("settings", f"verl {version} rejects them: {result['refused']}", _repair(view))
    if not result["unknown"] and not result["refused"]:
        yield ok("settings", f"verl {version} composes them and has each one")


def _nearest(key: str, known: Any) -> str:
    """Return the setting of verl's with the most similar name in the same group, or an empty text."""
    *groups, last = key.split(".")
    for group in groups:
        known = known.get(group) if isinstance(known, Mapping) else None
    near = did_you_mean(last, list(map(str, known))) if isinstance(known, Mapping) else ""
    return ".".join([*groups, near]) if near else ""


def _check_old_names(view: View) -> Iterator[Finding]:
    for group in _LEGACY:
        made = view.raw.get(group)
        if isinstance(made, Mapping) and any(value is not None for value in made.values()):
            now = "reward" if group != "reward_model" else "reward.reward_model"
            name = now if group == "reward_model" else f"{now}.{group}"
            finding = warning if _installed("0.7") else problem
            yield finding(
                "settings", f"{group} is an old name, which verl 0.9 ignores silently", f"rename it to {name}"
            )


def check_sizes(view: View) -> Iterator[Finding]:
    """Check whether the sizes divide each other as verl requires."""
    batch = view.number("data.train_batch_size", 1024)
    samples = view.number("actor_rollout_ref.rollout.n", 1)
    gpus = view.number("trainer.n_gpus_per_node", 8) * view.number("trainer.nnodes", 1)
    mini = view.number("actor_rollout_ref.actor.ppo_mini_batch_size", 256)
    micro = view.number("actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu", 1)
    tensor = view.number("actor_rollout_ref.rollout.tensor_model_parallel_size", 2)
    estimator = view.get("algorithm.adv_estimator", "gae")
    wrong = []
    if batch * samples % gpus:
        wrong.append(
            (f"{batch} prompts x {samples} samples cannot be divided among {gpus} GPUs", "train_batch_size")
        )
    uneven = mini * samples // gpus % micro or mini * samples < gpus
    if mini > batch:
        text = f"ppo_mini_batch_size={mini} is more than train_batch_size={batch}"
        wrong.append((text, "ppo_mini_batch_size"))
    elif uneven:
        text = f"{mini} prompts x {samples} on {gpus} GPUs cannot be divided into micro-batches of {micro}"
        wrong.append((text, "ppo_micro_batch_size_per_gpu"))
    if gpus % tensor:
        wrong.append(
            (f"{gpus} GPUs cannot be divided into groups of {tensor} each", "tensor_model_parallel_size")
        )
    workers = view.number("actor_rollout_ref.rollout.agent.num_workers", 8)
    if batch * samples % workers and _installed("0.7"):
        wrong.append(
            (f"{batch} x {samples} episodes cannot be divided among {workers} workers", "agent.num_workers")
        )
    if str(estimator) in {"grpo", "rloo", "gym_gigpo"} and samples < 2:  # noqa: PLR2004
        wrong.append((f"{estimator} compares the samples of a prompt, but n={samples}", "rollout.n"))
    for text, setting in wrong:
        yield problem("sizes", text, f"change {setting}")
    if not wrong:
        yield ok("sizes", f"{batch} prompts x {samples} samples on {gpus} GPUs, {micro} at a time")


def check_loop(view: View) -> Iterator[Finding]:
    """Check whether the loop that plays the environment is defined and selected."""
    entries, findings = _entries(view, LOOP_PATH)
    interactions, more = _entries(view, INTERACTIONS)
    yield from [*findings, *more]
    if findings or more:
        return
    default = view.get(_DEFAULT_LOOP, "single_turn_agent")
    rows = [row for part in view.rows.values() for row in part]
    names = sorted({row.get("agent_name") or default for row in rows}) or [default]
    known = {str(entry["name"]): str(entry.get("_target_", "")) for entry in entries}
    for name in names:
        yield _selected(name, known, interactions)
    named = {str(entry["name"]) for entry in interactions}
    selected = {_kwargs_of(row).get("name") for row in rows}
    if interactions and rows and not selected <= named:
        missing = ", ".join(sorted(repr(name) for name in selected - named))
        yield problem(
            "loop",
            f"the rows select the interaction {missing}, which {INTERACTIONS} does not have",
            f"give one of its entries that name; it has {', '.join(sorted(named)) or 'none'}",
        )
    yield from check_arguments(entries)
    for error in (view.result or {}).get("loops") or ():
        yield problem("loop", f"agent_loop.yaml: {error}", "correct it in agent_loop.yaml")
    yield from _check_turn_limits(view, interactions)
    yield from _check_classes(view, [*entries, *interactions])


def _selected(name: str, known: Mapping[str, str], interactions: list[Mapping[str, Any]]) -> Finding:
    target = known.get(name, "")
    plays = name == "tool_agent" or target == _TOOL_LOOP
    if name not in known and name not in _OWN_LOOPS:
        return problem(
            "loop",
            f"the rows' agent_name or {_DEFAULT_LOOP} selects {name!r}, which no entry has as its name",
            f"set {LOOP_PATH} to a yaml with that name, or select one of {sorted(known) or 'its entries'}",
        )
    if not plays and name in _OWN_LOOPS:
        return problem(
            "loop",
            f"{name!r} is used, which plays no environment",
            f"set {_DEFAULT_LOOP}: gym_env, or give the rows that agent_name",
        )
    if plays and not interactions:
        return problem(
            "loop",
            f"{name!r} is verl's loop for tools, and no interaction is set: nothing is played",
            f"set {INTERACTIONS}, or use the agent loop verl_bridge.agent_loop.GymAgentLoop",
        )
    own_loop = "verl's own loop for tools and interactions"
    return ok("loop", f"{name} is used: {target or own_loop}")


def _check_turn_limits(view: View, interactions: list[Mapping[str, Any]]) -> Iterator[Finding]:
    """Compare verl's turn limits with the interaction's own."""
    if not interactions:
        return
    prefix = "actor_rollout_ref.rollout.multi_turn"
    replies = view.number(f"{prefix}.max_assistant_turns", 0)  # 0 and null mean no limit
    answers = view.number(f"{prefix}.max_user_turns", 0)
    left = min([replies - 1] * bool(replies) + [answers] * bool(answers), default=None)
    for entry in interactions:
        turns = (entry.get("config") or {}).get("max_turns")
        if left is not None and left < 1:
            yield problem(
                "loop",
                f"max_assistant_turns={replies} leaves no turn: verl does not play the reply that reaches it",
                f"set {prefix}.max_assistant_turns to one more than the turns to play",
            )
        elif left is not None and turns and left < turns:
            yield warning(
                "loop",
                f"verl's limits leave {left} of the {turns} turns of the interaction {entry['name']}",
                f"set {prefix}.max_assistant_turns: {turns + 1} and max_user_turns: {turns}",
            )


def _check_classes(view: View, entries: list[Mapping[str, Any]]) -> Iterator[Finding]:
    if view.result is not None and view.result["config"] is not None:
        found: Mapping[str, str | None] = view.result["classes"]
        for name, wrong in found.items():
            if wrong:
                yield problem("import", f"{name}: {wrong}", "install it, or correct its name")
            else:
                yield ok("import", f"{name} can be imported")
        return
    for entry in entries:
        target = str(entry.get("_target_") or entry.get("class_name") or "")
        if target.startswith("verl."):
            yield skipped("import", f"{view.not_composed}: {target} was not imported")
        elif not _exists(target.rpartition(".")[0]):
            yield problem("import", f"there is no module for {target}", "install it, or correct the name")
        else:
            yield skipped("import", f"{view.not_composed}: {target} exists, and was not imported")


def check_reward(view: View) -> Iterator[Finding]:
    """Check how the environment's reward reaches the trainer."""
    path = view.get(f"{_REWARD}.path")
    if not view.has_interactions:
        if path is None:
            yield ok("reward", "the agent loop passes the environment's reward to verl")
        else:
            yield warning(
                "reward",
                f"{_REWARD}.path={path} is not used: the agent loop passes the environment's reward to verl",
                "delete it, or move its reward into the environment",
            )
    elif path is None:
        yield problem(
            "reward",
            "no scorer of verl reads the environment's reward from an interaction",
            f"set {_REWARD}.path: pkg://verl_bridge.reward",
        )
    elif "verl_bridge" in str(path):
        yield ok("reward", f"{path} passes on the environment's reward")
    else:
        yield warning(
            "reward",
            f"{path} scores the episodes",
            'check that it reads the environment\'s reward from extra_info["turn_scores"]',
        )


def _entries(view: View, key: str) -> tuple[list[Mapping[str, Any]], list[Finding]]:
    """Return the entries of the yaml that a setting names, and the problems with it."""
    file = view.path(key)
    if file is None:
        return [], []
    try:
        loaded = load_yaml(file)
    except NotReadable as error:
        return [], [problem("loop", str(error), f"write it, or correct {key}")]
    whole, name = loaded, "_target_"
    if key == INTERACTIONS:
        whole, name = loaded.get("interaction") if isinstance(loaded, Mapping) else None, "class_name"
    if not isinstance(whole, list) or not all(
        isinstance(e, Mapping) and {"name", name} <= set(e) for e in whole
    ):
        form = f"a list of entries with name and {name}"
        within = " under interaction:" if key == INTERACTIONS else ""
        return [], [problem("loop", f"{file} should hold {form}{within}", "see docs/training/recipes.md")]
    return whole, []


def _kwargs_of(row: Mapping[str, Any]) -> Mapping[str, Any]:
    extra = row.get("extra_info")
    kwargs = extra.get("interaction_kwargs") if isinstance(extra, Mapping) else None
    return kwargs if isinstance(kwargs, Mapping) else {}


def _exists(module: str) -> bool:
    try:
        return importlib.util.find_spec(module) is not None
    except (ImportError, ValueError):
        return False


def _installed(minor: str) -> bool:
    try:
        return metadata.version("verl").startswith(f"{minor}.")
    except metadata.PackageNotFoundError:
        return False
