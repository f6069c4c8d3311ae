"""Placeholder until merged."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

import gymnasium

if TYPE_CHECKING:
    from gymnasium.envs.registration import EnvSpec

__all__ = ["Unregistered", "find_spec"]


class Unregistered(ValueError):
    """No environment is registered under the id."""

    transient = False


def find_spec(env_id: str) -> EnvSpec:
    """Return the spec."""
    module, colon, name = env_id.partition(":")
    try:
        if colon:
            importlib.import_module(module)
        return gymnasium.spec(name if colon else module)
    except (ImportError, gymnasium.error.Error) as error:
        raise Unregistered(f"env_id={env_id!r} is not registered: {error}") from error


def split_id(env_id: str) -> tuple[str | None, str]:
    """Return module and id."""
    module, colon, name = env_id.partition(":")
    return (module, name) if colon else (None, module)
