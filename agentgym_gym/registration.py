"""From the catalogue to gymnasium's registry."""

from __future__ import annotations

import gymnasium

from agentgym_gym import catalogue
from agentgym_gym.catalogue import Place

__all__ = ["BUILT_IN", "register"]

BUILT_IN: tuple[Place, ...] = (
    Place("TextCraft", "agentgym_gym.envs.textcraft:TEXTCRAFT"),
    Place("Maze", "agentgym_gym.envs.maze:MAZE"),
    Place("Wordle", "agentgym_gym.envs.wordle:WORDLE"),
    Place("BabyAI", "agentgym_gym.envs.babyai:BABYAI"),
    Place("ALFWorld", "agentgym_gym.envs.alfworld:ALFWORLD"),
    Place("SciWorld", "agentgym_gym.envs.sciworld:SCIWORLD"),
    Place("WebShop", "agentgym_gym.envs.webshop:WEBSHOP"),
    Place("WebArena", "agentgym_gym.envs.webarena:WEBARENA"),
    Place("SQLGym", "agentgym_gym.envs.sqlgym:SQLGYM", aliases=("BIRD",)),
    Place("SearchQA", "agentgym_gym.envs.searchqa:SEARCHQA"),
    Place("Weather", "agentgym_gym.envs.weather:WEATHER"),
    Place("Movie", "agentgym_gym.envs.movie:MOVIE"),
    Place("Academia", "agentgym_gym.envs.academia:ACADEMIA"),
    Place("Sheet", "agentgym_gym.envs.sheet:SHEET"),
    Place("TODOList", "agentgym_gym.envs.todolist:TODOLIST"),
)
"""Where the environments of this library are found."""


def register(environment: catalogue.Environment | Place) -> None:
    """Make an environment known to this library and to ``gymnasium.make``.

    Args:
        environment: The environment, or where it is found; one of the same name is replaced.
    """
    catalogue.add(environment)
    for each in environment.ids:
        gymnasium.registry.pop(each, None)
        # No max_episode_steps: the turn limit belongs to the episode, so that all drivers truncate alike.
        gymnasium.register(
            id=each,
            entry_point="agentgym_gym.env:AgentGymEnv",
            vector_entry_point="agentgym_gym.vector:AgentGymVectorEnv",
            kwargs={"environment": environment.name},
        )
