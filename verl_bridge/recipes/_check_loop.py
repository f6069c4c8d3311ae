"""Check what plays the environment in training, the agent loop or the interaction, and its reward."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from verl_bridge._run.loop_arguments import LOOP, loop_errors, unknown_arguments
from verl_bridge.horizon import Horizon
from verl_bridge.recipes._absent import is_installed
from verl_bridge.recipes._finding import Finding, ok, problem, skipped, warning
from verl_bridge.recipes._verl_settings import (
    DEFAULT_LOOP,
    INTERACTIONS,
    LOOP_PATH,
    REWARD,
    NotReadable,
    load_yaml,
)

if TYPE_CHECKING:
    from verl_bridge.recipes._check_data import Rows
    from verl_bridge.recipes._verl_settings import RlSettings

__all__ = [
    "Loops",
    "check_classes",
    "check_loop",
    "check_modules",
    "check_reward",
    "read_loops",
]

_OWN_LOOPS = ("tool_agent", "single_turn_agent", "diffusion_single_turn_agent")
_TOOL_LOOP = "verl.experimental.agent_loop.tool_agent_loop.ToolAgentLoop"


@dataclass(frozen=True)
class Loops:
    """The definitions of what plays the environment.

    Attributes:
        entries: The entries of the yaml of the agent loops.
        interactions: The entries of the yaml of the interactions.
        errors: A text and an advice for each file that cannot be read or has another form.
        arguments: The arguments of the interaction, or otherwise of the agent loop, of this library.
        turn_limit: The highest turn limit in the arguments; None without one, or if it is invalid.
    """

    entries: list[Mapping[str, Any]] = field(default_factory=list)
    interactions: list[Mapping[str, Any]] = field(default_factory=list)
    errors: list[tuple[str, str]] = field(default_factory=list)
    arguments: Mapping[str, Any] = field(default_factory=dict)

    turn_limit: int | None = None


def read_loops(settings: RlSettings) -> Loops:
    """Read the yaml files that define what plays the environment."""
    found: dict[str, list[Mapping[str, Any]]] = {LOOP_PATH: [], INTERACTIONS: []}
    arguments: Mapping[str, Any] = {}
    errors = []
    files = [(LOOP_PATH, "_target_", file) for file in settings.loops]
    files += [(INTERACTIONS, "class_name", file) for file in settings.interactions]
    for key, made_by, file in files:
        try:
            loaded = load_yaml(file)
        except NotReadable as error:
            errors.append((str(error), f"write it, or correct {key}"))
            continue
        grouped = isinstance(loaded, Mapping)
        entries = loaded.get("interaction") if grouped else loaded
        entries = entries if isinstance(entries, list) else None
        arguments = _own_arguments(entries or ()) or arguments
        fits = [isinstance(entry, Mapping) and {"name", made_by} <= set(entry) for entry in entries or ()]
        if entries is not None and all(fits) and grouped == (key == INTERACTIONS):
            found[key] = entries
        else:
            within = " under interaction:" if key == INTERACTIONS else ""
            text = f"{file} should hold a list of entries with name and {made_by}{within}"
            errors.append((text, "see docs/training/recipes.md"))
    return Loops(found[LOOP_PATH], found[INTERACTIONS], errors, arguments, _turn_limit(arguments))


def _own_arguments(entries: Iterable[Any]) -> Mapping[str, Any]:
    """Return the arguments of the first entry of this library, or an empty mapping."""
    for entry in entries:
        settings = entry.get("config", entry) if isinstance(entry, Mapping) else None
        if not isinstance(settings, Mapping):
            continue
        # A loop for several environments names none.
        if "env_id" in settings or str(entry.get("class_name") or entry.get("_target_")).startswith(
            "verl_bridge."
        ):
            return settings
    return {}


def _turn_limit(arguments: Mapping[str, Any]) -> int | None:
    try:
        horizon = Horizon.of(arguments.get("horizon"))
    except (TypeError, ValueError):
        return None
    turns = arguments.get("max_turns") if horizon is None else horizon.longest
    return turns if type(turns) is int and turns > 0 else None


def check_loop(loops: Loops, settings: RlSettings, rows: Rows | None = None) -> Iterator[Finding]:
    """Check whether the loop that plays the environment is defined and selected, and its arguments.

    Args:
        loops: The definitions.
        settings: The settings.
        rows: The rows; None if they cannot be read here.
    """
    for text, advice in loops.errors:
        yield problem("loop", text, advice)
    if loops.errors:
        return
    all_rows = [] if rows is None else [row for part in rows.parts.values() for row in part]
    default = settings.default_loop
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
            f"the rows' agent_name or {DEFAULT_LOOP} selects {name!r}, which no entry has as its name",
            f"set {LOOP_PATH} to a yaml with that name, or select one of {sorted(known) or 'its entries'}",
        )
    if not plays and name in _OWN_LOOPS:
        return problem(
            "loop",
            f"{name!r} is used, which plays no environment",
            f"set {DEFAULT_LOOP}: gym_env, or give the rows that agent_name",
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


def _check_turn_limits(settings: RlSettings, interactions: Sequence[Mapping[str, Any]]) -> Iterator[Finding]:
    """Compare verl's turn limits with the interaction's own."""
    prefix = "actor_rollout_ref.rollout.multi_turn"
    replies, answers = settings.assistant_turns, settings.user_turns
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


def check_reward(settings: RlSettings) -> Iterator[Finding]:
    """Check how the environment's reward reaches the trainer."""
    path = settings.reward
    if not settings.interactions:
        if path is None:
            yield ok("reward", "the agent loop passes the environment's reward to verl")
        else:
            yield warning(
                "reward",
                f"{REWARD}={path} is not used: the agent loop passes the environment's reward to verl",
                "delete it, or move its reward into the environment",
            )
    elif path is None:
        yield problem(
            "reward",
            "no scorer of verl reads the environment's reward from an interaction",
            f"set {REWARD}: pkg://verl_bridge.reward",
        )
    elif "verl_bridge" in str(path):
        yield ok("reward", f"{path} passes on the environment's reward")
    else:
        yield warning(
            "reward",
            f"{path} scores the episodes",
            'check that it reads the environment\'s reward from extra_info["turn_scores"]',
        )
