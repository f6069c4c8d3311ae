"""The oracle of BabyAI: plays what `servers.babyai.solution` finds, by task id."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from agentgym_gym.envs.babyai import BABYAI
from agentgym_servers._frame.solution_oracle import SolutionOracle

if TYPE_CHECKING:
    from agentgym_gym.actions import Action

__all__ = ["BabyAIOracle"]


class BabyAIOracle(SolutionOracle):
    """Plays the actions that win, in a level of this project's own server; none where none were found."""

    blocking = True  # at a reset, it searches for up to some seconds

    def __init__(self) -> None:
        super().__init__(BABYAI, _solution)


def _solution(seed: int, task_id: int) -> Iterator[Action]:
    # Only now, because it imports minigrid, which comes with the extra.
    from agentgym_servers.babyai._solution import solve  # noqa: PLC0415

    return map(BABYAI.grammar.parse, solve(task_id, seed) or ())
