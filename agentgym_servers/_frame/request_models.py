"""Bodies of requests that several of AgentGym's servers read; each server defines its others."""

from __future__ import annotations

from pydantic import BaseModel

__all__ = ["EnvStepBody", "EnvTaskBody", "IdBody", "ResetBody", "StepBody"]


class IdBody(BaseModel):
    """Names an environment, or the task of a new one."""

    id: int


class StepBody(BaseModel):
    """An action, for servers that call the environment ``id``."""

    id: int
    action: str


class ResetBody(BaseModel):
    """A task, for servers that call the environment ``id``."""

    id: int
    data_idx: int


class EnvStepBody(BaseModel):
    """An action, for servers that call the environment ``env_idx``."""

    env_idx: int
    action: str


class EnvTaskBody(BaseModel):
    """A task, or the same one again, for servers that call the environment ``env_idx``."""

    env_idx: int
    id: int | None = None
