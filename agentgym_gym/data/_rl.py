"""Rows for reinforcement learning: one per task, from which the agent loop creates the environment.

The prompt of a row is only the system prompt: the first observation comes from the reset, during the rollout.
Values with different keys per row are JSON strings, since a struct column has the same keys in all rows.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from agentgym_gym.data._parquet import require_pyarrow
from agentgym_gym.env import AgentGymEnv
from agentgym_gym.errors import BadOption
from agentgym_gym.evaluate._items import Seeds
from agentgym_gym.rollout._history import row_messages

if TYPE_CHECKING:
    from agentgym_gym.catalogue import Environment
    from agentgym_gym.evaluate._items import Item

__all__ = ["Recipe", "own_prompt", "rows", "schema"]

_LOOP = "gym_env"  # verl_bridge's agent loop and interaction, which training folders define


@dataclass(frozen=True)
class Recipe:
    """The settings of one environment's tasks.

    Attributes:
        env_kwargs: Arguments for ``gymnasium.make``, as JSON values.
        system_prompt: The system prompt; None for no system prompt.
        module: The module that registers the id with gymnasium, for processes that have not imported it;
            empty if there is none.

    Raises:
        BadOption: The arguments contain headers: tokens must not be written to a file.
    """

    env_kwargs: Mapping[str, Any]
    system_prompt: str | None
    module: str = "agentgym_gym"

    def __post_init__(self) -> None:
        if "headers" in self.env_kwargs:
            raise BadOption(
                "env_kwargs contains headers, which must not be written to a file; set the variable "
                "AGENTGYM_<NAME>_HEADERS where the training runs"
            )


def own_prompt(environment: Environment, env_kwargs: Mapping[str, Any]) -> str:
    """Return the system prompt of an environment made with these arguments, without contacting a server.

    Raises:
        BadOption: The environment cannot be made with these arguments.
    """
    with contextlib.closing(AgentGymEnv(environment.name, **env_kwargs)) as env:
        return env.system_prompt


def rows(items: Iterable[Item], recipes: Mapping[str, Recipe]) -> Iterator[dict[str, Any]]:
    """Yield a row for each item.

    Args:
        items: The tasks: numbers, or seeds of environments without numbered tasks.
        recipes: The settings of the tasks, by environment name.
    """
    for index, item in enumerate(items):
        environment, recipe = item.environment, recipes[item.environment.name]
        seeded = isinstance(environment, Seeds)
        yield {
            "data_source": environment.id,
            "prompt": row_messages(recipe.system_prompt),
            "ability": "agent",
            "reward_model": {"style": "rule", "ground_truth": ""},  # the environment computes the reward
            "agent_name": _LOOP,
            "extra_info": {
                "index": index,
                "interaction_kwargs": {
                    "name": _LOOP,
                    "env_id": f"{recipe.module}:{environment.id}" if recipe.module else environment.id,
                    "env_kwargs": json.dumps(dict(recipe.env_kwargs)),
                    "reset_options": json.dumps({} if seeded else {"task_id": item.task_id}),
                    "seed": item.task_id if seeded else None,
                },
            },
        }


def schema() -> Any:
    """Return the columns of :func:`rows` as a ``pyarrow.Schema``.

    Raises:
        MissingExtra: pyarrow is not installed.
    """
    pa = require_pyarrow()
    text = pa.string()
    interaction = pa.struct(
        [
            ("name", text),
            ("env_id", text),
            ("env_kwargs", text),
            ("reset_options", text),
            ("seed", pa.int64()),
        ]
    )
    return pa.schema(
        [
            ("data_source", text),
            ("prompt", pa.list_(pa.struct([("role", text), ("content", text)]))),
            ("ability", text),
            ("reward_model", pa.struct([("style", text), ("ground_truth", text)])),
            ("agent_name", text),
            ("extra_info", pa.struct([("index", pa.int64()), ("interaction_kwargs", interaction)])),
        ]
    )
