"""AgentGym's environments for ``agentgym verl check``: their tasks, and agents that play them."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from agentgym_gym.actions import Action
from agentgym_gym.catalogue import find
from agentgym_gym.errors import AgentGymError, UnknownEnvironment
from agentgym_gym.evaluate import AgentReply, RandomAgent, load_oracle
from verl_bridge.recipes._check_catalogue import TaskFacts

__all__ = ["find_task", "players_of"]


class _TextPlayer:
    """Plays with an agent of this library, and returns its replies as text.

    Args:
        agent: The agent.
    """

    def __init__(self, agent: Any) -> None:
        self.name = str(agent.name)
        self._agent = agent
        self._env: Any = None

    async def begin(self, env: Any, observation: str, info: Mapping[str, Any]) -> None:
        """Begin an episode."""
        self._env = env
        await _awaited(self._agent.reset(env, observation, dict(info)))

    async def reply(self, observation: str, info: Mapping[str, Any]) -> str | None:
        """Return the next reply in the environment's action format, or None to give up."""
        reply = await _awaited(self._agent.act(observation, dict(info)))
        action = reply.action if isinstance(reply, AgentReply) else reply
        if isinstance(action, Action):
            text: str = self._env.action_space.action_format.render(action)
            return text
        return None if action is None else str(action)


async def _awaited(value: Any) -> Any:
    return await value if inspect.isawaitable(value) else value


def players_of(env_id: str) -> Sequence[Callable[[], _TextPlayer]]:
    """Return the makers of players for whole episodes: the oracle, if there is one, and a random agent."""
    try:
        environment = find(env_id)
        load_oracle(environment)
    except (AgentGymError, ImportError):
        return [lambda: _TextPlayer(RandomAgent())]
    return [lambda: _TextPlayer(load_oracle(environment)), lambda: _TextPlayer(RandomAgent())]


def find_task(env_id: str, task_id: Any) -> TaskFacts | None:
    """Return the catalogue's facts about a task; None if its environment is of another library."""
    try:
        environment = find(env_id)
    except UnknownEnvironment:
        return None
    if type(task_id) is int and environment.has_task(task_id):
        return TaskFacts(
            held_out=environment.held_out(task_id) or "", unwinnable=environment.unwinnable.get(task_id, "")
        )
    ids = environment.task_ids
    has = f"it has {len(ids):,}, from {ids[0]} to {ids[-1]}"
    return TaskFacts(error=f"{environment.name} has no task {task_id!r:.40}; {has}")
