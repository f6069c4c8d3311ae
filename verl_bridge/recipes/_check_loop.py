"""Check what plays the environment in training, the agent loop or the interaction, and its reward."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from verl_bridge._run.loop_arguments import LOOP, loop_errors, unknown_arguments
from verl_bridge.recipes._absent import is_installed
from verl_bridge.recipes._check_files import INTERACTIONS, LOOP_PATH
from verl_bridge.recipes._finding import Finding, ok, problem, skipped, warning

if TYPE_CHECKING:
    from verl_bridge.recipes._check_files import Loops, Settings

__all__ = ["check_classes", "check_loop", "check_modules", "check_reward"]

_OWN_LOOPS = ("tool_agent", "single_turn_agent", "diffusion_single_turn_agent")
_TOOL_LOOP = "verl.experimental.agent_loop.tool_agent_loop.ToolAgentLoop"
_DEFAULT_LOOP = "actor_rollout_ref.rollout.agent.default_agent_loop"
_REWARD = "reward.custom_reward_function"


def check_loop(loops: Loops, settings: Settings, all_rows: Sequence[Mapping[str, Any]]) -> Iterator[Finding]:
    """Check whether the loop that plays the environment is defined and selected, and its arguments.

    Args:
        loops: The definitions.
        settings: The settings.
        all_rows: All rows that could be read.
    """
    for text, advice in loops.errors:
        yield problem("loop", text, advice)
    if loops.errors:
        return
    default = settings.get(_DEFAULT_LOOP, "single_turn_agent")
    known = {str(entry["name"]): str(entry.get("_target_", "")) for entry in loops.entries}
    for name in sorted({row.get("agent_name") or default for row in all_rows}) or [default]:
        yield _selected(name, known, loops)
    interactions = {str(entry["name"]) for entry in loops.interactions}
    selected = {_interaction_of(row) for row in all_rows}
    if interactions and not selected <= interactions:
        missing = ", ".join(sorted(repr(name) for name in selected - interactions))
        yield problem(
            "loop",
            f"the rows select the interaction {missing}, which {INTERACTIONS} does not have",
            f"give one of its entries that name; it has {', '.join(sorted(interactions))}",
        )
    yield from _check_arguments(loops.entries)
    yield from _check_turn_limits(settings, loops.interactions)


def _selected(name: str, known: Mapping[str, str], loops: Loops) -> Finding:
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
    if plays and not loops.interactions:
        return problem(
            "loop",
            f"{name!r} is verl's loop for tools, and no interaction is set: nothing is played",
            f"set {INTERACTIONS}, or use the agent loop verl_bridge.agent_loop.GymAgentLoop",
        )
    own_loop = "verl's own loop for tools and interactions"
    return ok("loop", f"{name} is used: {target or own_loop}")


def _interaction_of(row: Mapping[str, Any]) -> Any:
    extra = row.get("extra_info")
    kwargs = extra.get("interaction_kwargs") if isinstance(extra, Mapping) else None
    return kwargs.get("name") if isinstance(kwargs, Mapping) else None


def _check_arguments(entries: Sequence[Mapping[str, Any]]) -> Iterator[Finding]:
    """Check the arguments of our loop."""
    for entry in entries:
        if entry.get("_target_") != LOOP:
            continue
        arguments = {key: value for key, value in entry.items() if key not in {"name", "_target_"}}
        errors = [*unknown_arguments(arguments), *loop_errors(arguments)]
        for error in errors:
            yield _wrong_argument(error)
        if not errors:
            yield ok("loop", f"{entry['name']} accepts its {len(arguments)} arguments")


def _wrong_argument(error: str) -> Finding:
    return problem("loop", f"agent_loop.yaml: {error}", "correct it in agent_loop.yaml")


def _check_turn_limits(settings: Settings, interactions: Sequence[Mapping[str, Any]]) -> Iterator[Finding]:
    """Compare verl's turn limits with the interaction's own."""
    prefix = "actor_rollout_ref.rollout.multi_turn"
    replies = settings.number(f"{prefix}.max_assistant_turns", 0)  # 0 and null mean no limit
    answers = settings.number(f"{prefix}.max_user_turns", 0)
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


def check_classes(composed: Mapping[str, Any]) -> Iterator[Finding]:
    """Check whether verl can import the classes of the yaml files and the reward, and their arguments."""
    for error in composed["loops"]:
        yield _wrong_argument(error)
    for name, error in composed["classes"].items():
        if error:
            yield problem("import", f"{name}: {error}", "install it, or correct its name")
        else:
            yield ok("import", f"{name} can be imported")


def check_modules(loops: Loops, not_composed: str) -> Iterator[Finding]:
    """Check whether the modules of the classes exist, where verl did not import them.

    Args:
        loops: The definitions.
        not_composed: Why verl did not.
    """
    for entry in [] if loops.errors else [*loops.entries, *loops.interactions]:
        target = str(entry.get("_target_") or entry.get("class_name") or "")
        if target.startswith("verl."):
            yield skipped("import", f"{not_composed}: {target} was not imported")
        elif not is_installed(target.rpartition(".")[0]):
            yield problem("import", f"there is no module for {target}", "install it, or correct the name")
        else:
            yield skipped("import", f"{not_composed}: {target} exists, and was not imported")


def check_reward(settings: Settings) -> Iterator[Finding]:
    """Check how the environment's reward reaches the trainer."""
    path = settings.get(f"{_REWARD}.path")
    if not settings.has_interactions:
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
