"""The oracle of SciWorld: plays the simulator's own solutions, which a Java process of this program finds."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from agentgym_gym.envs.sciworld import SCIWORLD
from agentgym_gym.errors import BadOption
from agentgym_gym.local_servers import ServedWorld
from agentgym_servers.sciworld._thoughts import thoughts

if TYPE_CHECKING:
    import gymnasium

    from agentgym_gym.actions import Action

__all__ = ["SciWorldOracle"]


class SciWorldOracle:
    """Plays the winning actions of a task of this project's own server."""

    name = "oracle"
    blocking = True  # a reset searches for a second or more

    def __init__(self) -> None:
        self._remaining: Iterator[tuple[str, str]] = iter(())
        self._thought = ""

    def reset(self, env: gymnasium.Env[str, Any], observation: str, info: dict[str, Any]) -> None:
        """Find the solution of a task.

        Raises:
            BadOption: The task is not from this project's own server: elsewhere the same actions may take
                another course.
        """
        served_by = info.get("served_by")
        world = ServedWorld.parse(served_by)
        if world is None or world.title != SCIWORLD.name or world.data:
            raise BadOption(
                "the oracle of SciWorld plays on this project's own server only (agentgym serve sciworld); "
                f"this task is served by: {served_by}"
            )
        # Imported here because it needs the packages of the extra.
        from agentgym_servers.sciworld._solutions import solution  # noqa: PLC0415

        path = solution(info["task_id"])
        self._remaining = iter(zip(path, thoughts(path), strict=True))

    def act(self, observation: str, info: dict[str, Any]) -> Action | None:
        """Return the next action of the solution; None after the last."""
        text, self._thought = next(self._remaining, ("", ""))
        return SCIWORLD.grammar.parse(text) if text else None

    def thought(self) -> str:
        """Return why the last action is the next one."""
        return self._thought
