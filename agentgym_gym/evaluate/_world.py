"""The world on which a run was played, in the words that every table, page and export shows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from agentgym_gym.local_servers import ServedWorld

if TYPE_CHECKING:
    from agentgym_gym.rollout._records import EpisodeRecord

__all__ = ["AGENTGYM", "UNAVAILABLE", "UNKNOWN", "in_world", "is_agentgyms", "world_label", "world_of"]

AGENTGYM = "AgentGym's server"
UNKNOWN = "server of unknown make"

UNAVAILABLE = "unavailable"
"""The recorded make of a server that did not respond when the run started."""

_TOOLS = "/list_envs /create /step /observation /reset"
_GAMES = (
    "/maze/create /maze/step /maze/reset /maze/available_actions /maze/observation /maze/detail "
    "/wordle/create /wordle/step /wordle/reset /wordle/filtered_vocab /wordle/observation /wordle/detail"
)
_AGENTGYM_ROUTES = {
    "Academia": _TOOLS,
    "ALFWorld": "/create /step /reset /available_actions /observation /detail",
    "BabyAI": "/create /step /reset /observation /close /render",
    "Maze": _GAMES,
    "Movie": _TOOLS,
    "SciWorld": "/create /step /reset /close /observation /action_hint /goals /detail /object_tree /state",
    "SearchQA": "/create /step /observation /reset /close",
    "Sheet": _TOOLS,
    "SQLGym": _TOOLS,
    "TextCraft": "/create /step /reset /observation /commands /goal /detail /close",
    "TODOList": _TOOLS,
    "Weather": _TOOLS,
    "WebShop": "/list_envs /create /step /available_actions /instruction_text /observation /state /reset",
    "Wordle": _GAMES,
}
"""Routes of AgentGym's servers by environment. WebArena's server has no OpenAPI description."""

_AGENTGYM_TITLE = "FastAPI"  # FastAPI's default; this project's servers have the title of their environment


def is_agentgyms(environment: str, description: Any) -> bool:
    """Return whether an OpenAPI description comes from AgentGym's server.

    Args:
        environment: The environment's name.
        description: The description, as returned by the server. The server should have no header of this
            project, and the greeting of the environment.
    """
    if environment not in _AGENTGYM_ROUTES or not isinstance(description, Mapping):
        return False
    info, paths = description.get("info"), description.get("paths")
    if not isinstance(info, Mapping) or not isinstance(paths, Mapping):
        return False
    return info.get("title") == _AGENTGYM_TITLE and paths.keys() >= set(_AGENTGYM_ROUTES[environment].split())


def world_label(served_by: str | None, *, agentgym: bool = False) -> str:
    """Return the label of the world of one server, such as ``local world 2, seed 0``.

    Args:
        served_by: The header in which this project's servers name their world; None for other servers.
        agentgym: Whether a server without this header was recognised as AgentGym's.
    """
    world = ServedWorld.parse(served_by)
    if world is None:
        known = AGENTGYM if agentgym else UNKNOWN
        return f"{UNKNOWN}: {served_by}" if served_by else known
    parts = [f"local world {world.version}"]
    if world.data:
        parts.append("own data")
    elif world.seed is not None:
        parts.append(f"seed {world.seed}")
    if world.twin:
        parts.append("twin")
    if world.judge is not None:
        parts.append(f"judge {world.judge}")
    if world.simplifications is not None:
        parts.append(f"simplified {world.simplifications}")
    return ", ".join(parts)


def world_of(env_id: str, facts: Mapping[str, Any], records: Iterable[EpisodeRecord] = ()) -> str | None:
    """Return the label of the world on which a run was played. Scores of different labels are not comparable.

    Args:
        env_id: The environment's gymnasium id.
        facts: The facts about the run.
        records: Its episodes.

    Returns:
        The label; several, joined by ``and``, if the servers had different worlds; None for environments of
        other libraries.
    """
    served_by, made_by = _listed(facts.get("served_by")), _listed(facts.get("server_make"))
    makes = made_by if len(made_by) == len(served_by) else [None] * len(served_by)
    labels = {
        world_label(_text(header), agentgym=make == "agentgym")
        for header, make in zip(served_by, makes, strict=True)
        if make != UNAVAILABLE
    }
    headers = {(record.served_by, record.scored) for record in records}
    labels |= {world_label(header) for header, _ in headers if header is not None}
    if not served_by and (None, True) in headers:
        labels.add(UNKNOWN)
    if not env_id.rpartition(":")[2].startswith("agentgym/"):
        labels = {label for label in labels if label not in {AGENTGYM, UNKNOWN}}
        return " and ".join(sorted(labels)) or None
    return " and ".join(sorted(labels)) or UNKNOWN


def in_world(env_id: str, world: str | None) -> str:
    """Return the name of an environment with its world, such as ``WebShop-v0 (local world 2, seed 0)``."""
    name = env_id.rpartition("/")[2]
    return name if world is None else f"{name} ({world})"


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) and value else None
