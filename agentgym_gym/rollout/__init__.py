"""Run episodes of any text ``gymnasium.Env``: asynchronous, isolated, timed, recorded, with faults as data.

Example:
    A loop around your own model::

        import asyncio

        from agentgym_gym.rollout import EpisodeWriter, Pool

        async def model(messages):
            return "Action: inventory"  # your model's reply to the chat so far

        async def main():
            pool = Pool("agentgym_gym:agentgym/TextCraft-v0")
            async with EpisodeWriter("runs/mine") as writer, pool.episode(task=3) as episode:
                while not episode.over:
                    await episode.step(await model(episode.chat()))
                await writer.write(episode.record(agent="my model"))

        asyncio.run(main())

The modules of this package import gymnasium, numpy and the standard library, but not AgentGym's protocol.
Each name imports its module on first access.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from agentgym_gym.rollout._adapter import TextAdapter
    from agentgym_gym.rollout._check_results import TurnResult
    from agentgym_gym.rollout._env_facts import (
        EnvFacts,
    )
    from agentgym_gym.rollout._episode import Episode
    from agentgym_gym.rollout._history import (
        NOT_CARRIED_OUT,
        Conversation,
        History,
        Message,
        drop_blank_system,
        merge_system,
    )
    from agentgym_gym.rollout._makers import EnvMaker
    from agentgym_gym.rollout._pool import CallerPool, Pool, close_all, shared_pool
    from agentgym_gym.rollout._process import EnvProcessDied
    from agentgym_gym.rollout._records import EpisodeRecord, StepRecord, read_records
    from agentgym_gym.rollout._specs import Unregistered, find_spec, split_id
    from agentgym_gym.rollout._workers import Isolation
    from agentgym_gym.rollout._writer import EpisodeWriter, writer_at

__all__ = [
    "NOT_CARRIED_OUT",
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
    "TextAdapter",
    "TurnResult",
    "Unregistered",
    "close_all",
    "drop_blank_system",
    "find_spec",
    "merge_system",
    "read_records",
    "shared_pool",
    "split_id",
    "writer_at",
]

_LAZY = {
    "_adapter": ("TextAdapter",),
    "_check_results": ("TurnResult",),
    "_episode": ("Episode",),
    "_env_facts": ("EnvFacts",),
    "_makers": ("EnvMaker",),
    "_history": (
        "NOT_CARRIED_OUT",
        "Conversation",
        "History",
        "Message",
        "drop_blank_system",
        "merge_system",
    ),
    "_pool": ("CallerPool", "Pool", "close_all", "shared_pool"),
    "_process": ("EnvProcessDied",),
    "_records": ("EpisodeRecord", "StepRecord", "read_records"),
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
