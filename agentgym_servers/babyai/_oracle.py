"""The oracle of BabyAI: plays the solutions that `agentgym_servers.babyai._solution` finds by task id."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from agentgym_gym.envs.babyai import BABYAI
from agentgym_gym.local_servers import ServedWorld
from agentgym_servers._frame.solution_oracle import SolutionOracle
from agentgym_servers.babyai._thoughts import Commentary

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
        self._plan: tuple[str, ...] = ()
        self._turn = 0  # the number of actions so far
        self._commentary = Commentary("")

    def reset(self, env: gymnasium.Env[str, Any], observation: str, info: dict[str, Any]) -> None:
        """Find the solution of a task.

        Raises:
            BadOption: The task is not from this project's own server.
        """
        world = ServedWorld.parse(info.get("served_by"))
        self._twin = world is not None and world.twin
        super().reset(env, observation, info)
        self._turn = 0
        self._commentary = Commentary(observation)

    def act(self, observation: str, info: dict[str, Any]) -> Action | None:
        """Return the next action of the solution; None after the last."""
        self._commentary.observe(observation, self._plan[self._turn - 1] if self._turn else None)
        self._turn += 1
        return super().act(observation, info)

    def thought(self) -> str:
        """Return what the goal needs now, where it is, and what the last action does about it."""
        action, *later = self._plan[self._turn - 1 :]
        return self._commentary.explain(action, later)

    def _solve(self, seed: int, task_id: int) -> Iterator[tuple[Action, str]]:
        # Imported here because it imports minigrid, which the extra installs.
        from agentgym_servers.babyai._solution import solve  # noqa: PLC0415

        self._plan = solve(task_id, seed, twin=self._twin) or ()
        return ((BABYAI.grammar.parse(action), "") for action in self._plan)
