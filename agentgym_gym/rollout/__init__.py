"""Run episodes of any text ``gymnasium.Env``: asynchronous, isolated, timed, recorded, with faults as data.

Example:
    A loop around your own model::

        pool = Pool("agentgym_gym:agentgym/TextCraft-v0")
        async with EpisodeWriter("runs/mine") as writer, pool.episode(task=3) as episode:
            while not episode.over:
                await episode.step(await model(episode.chat()))
            await writer.write(episode.record(agent="my model"))

The modules of this package import gymnasium, numpy and the standard library, but not AgentGym's protocol.
Each name imports its module on first access.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from agentgym_gym.rollout._adapter import TextAdapter
    from agentgym_gym.rollout._env_facts import (
        EnvFacts,
        attribute_of,
        describe_env,
        env_id_of,
        system_prompt_of,
    )
    from agentgym_gym.rollout._episode import Episode, StepResult
    from agentgym_gym.rollout._makers import EnvMaker
    from agentgym_gym.rollout._messages import (
        Conversation,
        History,
        Message,
        drop_blank_system,
        row_messages,
        system_message,
    )
    from agentgym_gym.rollout._pool import CallerPool, Pool, close_all, shared_pool
    from agentgym_gym.rollout._process import EnvProcessDied
    from agentgym_gym.rollout._records import EpisodeRecord, StepRecord, goal_of, read_records
    from agentgym_gym.rollout._specs import Unregistered, find_spec, split_id
    from agentgym_gym.rollout._threads import CallThread
    from agentgym_gym.rollout._workers import Isolation
    from agentgym_gym.rollout._writer import EpisodeWriter, writer_at

__all__ = [
    "CallThread",
    "CallerPool",
    "Conversation",
    "EnvFacts",
    "EnvMaker",
    "EnvProcessDied",
    "Episode",
    "EpisodeRecord",
    "EpisodeWriter",
    "History",
    "Isolation",
    "Message",
    "Pool",
    "StepRecord",
    "StepResult",
    "TextAdapter",
    "Unregistered",
    "attribute_of",
    "close_all",
    "describe_env",
    "drop_blank_system",
    "env_id_of",
    "find_spec",
    "goal_of",
    "read_records",
    "row_messages",
    "shared_pool",
    "split_id",
    "system_message",
    "system_prompt_of",
    "writer_at",
]

_LAZY = {
    "_threads": ("CallThread",),
    "_adapter": ("TextAdapter",),
    "_episode": ("Episode", "StepResult"),
    "_env_facts": ("EnvFacts", "attribute_of", "describe_env", "env_id_of", "system_prompt_of"),
    "_makers": ("EnvMaker",),
    "_messages": (
        "Conversation",
        "History",
        "Message",
        "drop_blank_system",
        "row_messages",
        "system_message",
    ),
    "_pool": ("CallerPool", "Pool", "close_all", "shared_pool"),
    "_process": ("EnvProcessDied",),
    "_records": ("EpisodeRecord", "StepRecord", "goal_of", "read_records"),
    "_specs": ("Unregistered", "find_spec", "split_id"),
    "_workers": ("Isolation",),
    "_writer": ("EpisodeWriter", "writer_at"),
}
"""Public names by module."""

_MODULE_OF = {name: module for module, names in _LAZY.items() for name in names}

if not TYPE_CHECKING:  # with a `__getattr__`, type checkers would accept any name

    def __getattr__(name: str) -> object:
        """Import a public name on first access.

        Raises:
            AttributeError: The package has no such name.
        """
        if name not in _MODULE_OF:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        value = globals()[name] = getattr(import_module(f"{__name__}.{_MODULE_OF[name]}"), name)
        return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
