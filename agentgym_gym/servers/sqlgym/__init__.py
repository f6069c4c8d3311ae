"""The SQLGym server: AgentGym's protocol over databases that are made here, or over BIRD's.

A statement is executed by a process of its own (`judges`, `worker`), which can read one database and nothing
else. What is asked is of a `world`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    from fastapi import FastAPI

__all__ = ["create_app"]


def create_app(
    *,
    max_envs: int | None = None,
    max_body_bytes: int | None = None,
    keep_seconds: float | None = None,
    seed: int = 0,
    data: Path | None = None,
) -> FastAPI:
    """Build a server with no environments yet.

    Args:
        max_envs: How many environments it holds at a time; None for 4,096.
        max_body_bytes: How large a request body may be, past which it is answered 413; None for 1 MiB.
        keep_seconds: For how long it keeps an environment that nobody asks for; None for an hour.
        seed: Of the databases and the questions.
        data: A folder with BIRD's databases and questions; None for those that are made here.

    Raises:
        BadOption: A limit is below 1, or the folder is none of BIRD's.
    """
    # Only now: an oracle imports the world, and needs nothing of what the server needs.
    from agentgym_gym.servers.sqlgym.routes import build  # noqa: PLC0415

    return build(
        max_envs=max_envs, max_body_bytes=max_body_bytes, keep_seconds=keep_seconds, seed=seed, data=data
    )
