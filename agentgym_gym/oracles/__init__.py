"""Agents that know how to play one environment, to prove that it can be solved from end to end.

An oracle plays by what it is shown, as any agent does: it reads neither the server's files nor its answers
in advance. What it makes out of the observation is its own business.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

from agentgym_gym.errors import BadOption

if TYPE_CHECKING:
    from agentgym_gym.catalogue import Environment
    from agentgym_gym.evaluate.agents import Agent

__all__ = ["load"]


def load(environment: Environment) -> Agent:
    """Return a new oracle of an environment.

    Args:
        environment: The environment; its ``oracle`` says where the class is found, as ``"module:Class"``.

    Raises:
        BadOption: It has no oracle.
    """
    if environment.oracle is None:
        raise BadOption(f"there is no oracle that plays {environment.name}")
    module, _, name = environment.oracle.partition(":")
    agent: Agent = getattr(importlib.import_module(module), name)()
    return agent
