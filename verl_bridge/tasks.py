"""The task of a row of data: an environment and its reset."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, get_args

from agentgym_gym.rollout import Isolation, shared_pool

if TYPE_CHECKING:
    from agentgym_gym.rollout import Episode

__all__ = ["ENV_TIMEOUT", "EnvTask"]

ENV_TIMEOUT = 900.0
"""Seconds after which an environment that does not respond counts as failed."""

_KEYS = {"name", "env_id", "env_kwargs", "reset_options", "seed", "isolate", "success_at"}


@dataclass(frozen=True)
class EnvTask:
    """An environment with its reset.

    Attributes:
        env_id: gymnasium's id, with its module: ``"agentgym_gym:agentgym/Maze-v0"``.
        env_kwargs: Arguments of ``gymnasium.make``.
        options: Options of ``reset``.
        seed: Seed of ``reset``; None continues the environment's random numbers.
        isolate: Where the environment runs, as in `agentgym_gym.rollout.Pool`.
        success_at: The minimum return of a solved task, if the environment does not report its success; by
            default the registered ``reward_threshold``.
    """

    env_id: str
    env_kwargs: Mapping[str, Any] = field(default_factory=dict)
    options: Mapping[str, Any] = field(default_factory=dict)
    seed: int | None = None
    isolate: Isolation | None = None
    success_at: float | None = None

    def episode(self, *, timeout: float | None = ENV_TIMEOUT, max_turns: int | None = None) -> Episode:
        """Return an episode of the task, to be used in an ``async with`` block.

        Args:
            timeout: Seconds allowed for making the environment and for each reset and step; None for no
                limit.
            max_turns: Maximum number of turns in the episode.
        """
        pool = shared_pool(self.env_id, self.env_kwargs, isolate=self.isolate, timeout=timeout)
        return pool.episode(
            seed=self.seed, options=self.options, success_at=self.success_at, max_turns=max_turns
        )

    @classmethod
    def of(
        cls,
        row: Mapping[str, Any],
        *,
        env_id: str | None = None,
        env_kwargs: Mapping[str, Any] | str | None = None,
        reset_options: Mapping[str, Any] | str | None = None,
        seed: int | None = None,
        isolate: str | None = None,
        success_at: float | None = None,
    ) -> EnvTask:
        """Read the task of a row of data from its ``interaction_kwargs``, or from its ``extra_info``.

        Mappings may be written as JSON. In a mapping that is not, None means that the row does not have the
        key, because a column of structs has the same keys in every row.

        Args:
            row: The row, or the keyword arguments that verl makes of it.
            env_id: The environment of rows without one.
            env_kwargs: Arguments for it; the row's own override them. They do not apply to a row with an
                environment different from `env_id`.
            reset_options: Options for it, under the same rule.
            seed: Seed of rows that have none.
            isolate: Where the environment runs, under the same rule.
            success_at: The return that solves a task, under the same rule.

        Raises:
            ValueError: A key of the row has an invalid value, or there is no ``env_id``.
        """
        holder = row if row.get("interaction_kwargs") is not None else _mapping(row, "extra_info")
        own = _without_none(_mapping(holder, "interaction_kwargs"))
        unknown = sorted(set(own) - _KEYS)
        if unknown:
            raise ValueError(
                f"interaction_kwargs has the unknown keys {unknown}: arguments of the environment "
                "belong in env_kwargs, and options of its reset in reset_options"
            )
        name = own.get("env_id", env_id)
        if not isinstance(name, str) or not name:
            raise ValueError(
                f"env_id={name!r} should be the id of an environment, such as 'module:namespace/Name-v0', in "
                "interaction_kwargs or in the yaml of the agent loop"
            )
        defaults = {"env_kwargs": env_kwargs, "reset_options": reset_options}
        if env_id is not None and name != env_id:
            defaults, isolate, success_at = {}, None, None
        merged = {key: _mapping(defaults, key) | _of_row(own, key) for key in ("env_kwargs", "reset_options")}
        return cls(
            name,
            merged["env_kwargs"],
            merged["reset_options"],
            _seed(own.get("seed", seed)),
            _isolation(own.get("isolate", isolate)),
            _threshold(own.get("success_at", success_at)),
        )


def _seed(value: Any) -> int | None:
    value = _plain(value)
    if isinstance(value, float):  # pandas converts a column of integers and nulls to floats
        value = None if math.isnan(value) else int(value) if value.is_integer() else value
    if value is None or (type(value) is int and value >= 0):
        return value
    raise ValueError(f"seed={value!r} should be an integer from 0, or null")


def _isolation(value: Any) -> Isolation | None:
    if value is None or value in get_args(Isolation):
        return value  # type: ignore[no-any-return]
    raise ValueError(f"isolate={value!r} should be one of {', '.join(get_args(Isolation))}, or null")


def _threshold(value: Any) -> float | None:
    value = _plain(value)
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return None
    if type(value) in {int, float} and math.isfinite(value):
        return float(value)
    raise ValueError(f"success_at={value!r} should be a number, or null")


def _mapping(holder: Mapping[str, Any], key: str) -> dict[str, Any]:
    value = holder.get(key)
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except (ValueError, RecursionError) as error:
            raise ValueError(f"{key}={value!r:.200} is not JSON: {error}") from None
    if value is None:
        return {}
    if isinstance(value, Mapping):
        try:
            return {str(name): _plain(inner) for name, inner in value.items()}
        except RecursionError:
            raise ValueError(f"{key} is nested too deep") from None
    raise ValueError(f"{key}={value!r:.200} should be a mapping, or one written as JSON")


def _of_row(own: Mapping[str, Any], key: str) -> dict[str, Any]:
    value = _mapping(own, key)
    return value if isinstance(own.get(key), str) else _without_none(value)


def _without_none(mapping: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in mapping.items() if value is not None}


def _plain(value: Any) -> Any:
    """Convert the types of numpy and of configuration files to plain Python types."""
    if isinstance(value, Mapping):
        return {str(key): _plain(inner) for key, inner in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, str | bytes):
        return [_plain(inner) for inner in value]
    if hasattr(value, "tolist"):  # numpy's arrays and scalars
        return _plain(value.tolist())
    return value
