"""The oracle of BabyAI: plays what `servers.babyai.solution` finds, by task id."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from agentgym_gym.envs.babyai import BABYAI
from agentgym_gym.oracles._own_world import seed_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    import gymnasium

    from agentgym_gym.actions import Action

__all__ = ["BabyAIOracle"]


class BabyAIOracle:
    """Plays the actions that win, in a level of this project's own server."""

    name = "oracle"
    blocking = True  # at a reset, it searches for up to some seconds

    def __init__(self) -> None:
        self._plan: Iterator[str] = iter(())

    def reset(self, env: gymnasium.Env[str, Any], observation: str, info: dict[str, Any]) -> None:
        """Look for the actions that win the task.

        Raises:
            BadOption: It is not played on this project's own server.
        """
        seed = seed_of(info, BABYAI.name)
        # Only now, because it imports minigrid, which comes with the extra.
        from agentgym_gym.servers.babyai.solution import solve  # noqa: PLC0415

        self._plan = iter(solve(int(info["task_id"]), seed) or ())

    def act(self, observation: str, info: dict[str, Any]) -> Action | None:
        """Return the next action; None where no actions that win were found, or all are played."""
        text = next(self._plan, None)
        return None if text is None else BABYAI.grammar.parse(text)
