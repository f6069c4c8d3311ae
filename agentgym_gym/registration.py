"""From the catalogue to gymnasium's registry."""

from __future__ import annotations

import gymnasium

from agentgym_gym import catalogue
from agentgym_gym.envs.academia import ACADEMIA
from agentgym_gym.envs.alfworld import ALFWORLD
from agentgym_gym.envs.babyai import BABYAI
from agentgym_gym.envs.maze import MAZE
from agentgym_gym.envs.movie import MOVIE
from agentgym_gym.envs.sciworld import SCIWORLD
from agentgym_gym.envs.searchqa import SEARCHQA
from agentgym_gym.envs.sheet import SHEET
from agentgym_gym.envs.sqlgym import SQLGYM
from agentgym_gym.envs.textcraft import TEXTCRAFT
from agentgym_gym.envs.todolist import TODOLIST
from agentgym_gym.envs.weather import WEATHER
from agentgym_gym.envs.webarena import WEBARENA
from agentgym_gym.envs.webshop import WEBSHOP
from agentgym_gym.envs.wordle import WORDLE

__all__ = ["BUILT_IN", "register"]

BUILT_IN: tuple[catalogue.Environment, ...] = (
    TEXTCRAFT,
    MAZE,
    WORDLE,
    BABYAI,
    ALFWORLD,
    SCIWORLD,
    WEBSHOP,
    WEBARENA,
    SQLGYM,
    SEARCHQA,
    WEATHER,
    MOVIE,
    ACADEMIA,
    SHEET,
    TODOLIST,
)


def register(environment: catalogue.Environment) -> None:
    """Make an environment known to this library and to ``gymnasium.make``.

    Args:
        environment: The environment; one of the same name is replaced.
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
