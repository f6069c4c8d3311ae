"""Play episodes of any text ``gymnasium.Env``: awaited, isolated, timed, recorded, with faults as data.

Example:
    A loop around a model of your own::

        pool = Pool("agentgym_gym:agentgym/TextCraft-v0")
        async with EpisodeWriter("runs/mine") as writer, pool.episode(task=3) as episode:
            while not episode.over:
                await episode.step(await model(episode.chat()))
            await writer.write(episode.record(agent="my model"))

The modules of this package import gymnasium and the standard library, and nothing of AgentGym's protocol.
"""

from __future__ import annotations

from agentgym_gym.rollout._threads import CallThread
from agentgym_gym.rollout.episode import Episode, StepResult
from agentgym_gym.rollout.makers import EnvMaker
from agentgym_gym.rollout.messages import History
from agentgym_gym.rollout.pool import CallerPool, Pool, close_all, shared_pool
from agentgym_gym.rollout.records import EpisodeRecord, StepRecord, goal_of, read_records
from agentgym_gym.rollout.specs import Unregistered, find_spec, split_id
from agentgym_gym.rollout.workers import EnvFacts, Isolation, attribute_of, describe_env, env_id_of
from agentgym_gym.rollout.writer import EpisodeWriter, writer_at

__all__ = [
    "CallThread",
    "CallerPool",
    "EnvFacts",
    "EnvMaker",
    "Episode",
    "EpisodeRecord",
    "EpisodeWriter",
    "History",
    "Isolation",
    "Pool",
    "StepRecord",
    "StepResult",
    "Unregistered",
    "attribute_of",
    "close_all",
    "describe_env",
    "env_id_of",
    "find_spec",
    "goal_of",
    "read_records",
    "shared_pool",
    "split_id",
    "writer_at",
]
