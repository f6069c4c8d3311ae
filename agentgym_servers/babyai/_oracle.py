"""The oracle of BabyAI: plays the solutions that `agentgym_servers.babyai._solution` finds by task id."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from agentgym_gym.envs.babyai import BABYAI
from agentgym_gym.local_servers import ServedWorld
from agentgym_servers._frame.solution_oracle import SolutionOracle

if TYPE_CHECKING:
    import gymnasium

    from agentgym_gym.actions import Action

__all__ = ["BabyAIOracle"]


class BabyAIOracle(SolutionOracle):
    """Plays the winning actions on this project's own server; plays nothing if no solution was found."""

    blocking = True  # a reset searches for up to a few seconds

    def __init__(self) -> None:
        super().__init__(BABYAI, self._solve)
        self._twin = False

    def reset(self, env: gymnasium.Env[str, Any], observation: str, info: dict[str, Any]) -> None:
        """Find the solution of a task.

        Raises:
            BadOption: The task is not from this project's own server.
        """
        world = ServedWorld.parse(info.get("served_by"))
        self._twin = world is not None and world.twin
        super().reset(env, observation, info)

    def _solve(self, seed: int, task_id: int) -> Iterator[Action]:
        # Imported here because it imports minigrid, which the extra installs.
        from agentgym_servers.babyai._solution import solve  # noqa: PLC0415

        return map(BABYAI.grammar.parse, solve(task_id, seed, twin=self._twin) or ())
