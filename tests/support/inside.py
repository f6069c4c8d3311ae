"""What tests of the public side need from inside of `agentgym_gym`, reached for here and nowhere else."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx

import agentgym_gym
from agentgym_gym import AgentGymEnv, _base_env, _exit
from agentgym_gym._http import abandoned, retry
from agentgym_gym._http.httpx_client import BlockingClient
from agentgym_gym._http.sync_driver import SyncDriver
from agentgym_gym._leasing import circuit_breaker, recognition, slots, state_folder
from agentgym_gym._leasing import journal as journals
from agentgym_gym._leasing.journal import records
from agentgym_gym._leasing.pool import LeasePool
from agentgym_gym._leasing.pools import pool_of
from agentgym_gym._text import scrub
from agentgym_gym._threads import drain_background
from agentgym_gym.errors import ServerUnreachable
from agentgym_gym.rollout._messages import estimate

if TYPE_CHECKING:
    import pytest

    from agentgym_gym._http.retry import Send
    from agentgym_gym.calls import Reply

__all__ = [
    "LeasePool",
    "SyncDriver",
    "directly",
    "estimate",
    "forget_held",
    "given_up",
    "is_closed_at_exit",
    "journals",
    "keep_files_in",
    "never_open_circuits",
    "note_given_up",
    "pool_at",
    "records",
    "release_all",
    "retry_at_once",
    "scrub",
    "slots",
    "state_folder",
    "wait_for_background",
]


class _Direct(BlockingClient):
    """A client with no proxy in between, as the engine is: a refused connection is the server's."""

    def exchange(self, request: Send) -> Reply:
        try:
            return super().exchange(request)
        except ServerUnreachable as fault:
            fault.refused = fault.refused is not False
            raise


def directly(driver: SyncDriver, transport: httpx.BaseTransport) -> None:
    """Have a driver speak by a transport of httpx as if it were the engine's own connection."""
    driver._client = _Direct(httpx.Client(transport=transport), ())


def retry_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have calls repeated without a wait."""
    monkeypatch.setattr(retry, "backoff", lambda *_: 0.0)


def never_open_circuits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have a server that fails again and again used all the same."""
    monkeypatch.setattr(circuit_breaker, "MAX_FAILURES", 1_000_000)


def keep_files_in(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep what processes tell each other of their leases in a folder."""
    monkeypatch.setattr(state_folder, "FOLDER", folder)


def note_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """Note the ids of the environments that are given up because they show something else than was told."""
    lose = recognition._lose

    def noted(lease: Any, *, uncertain: bool) -> Any:
        given_up(lease.server).add(lease.env_id)
        return lose(lease, uncertain=uncertain)

    monkeypatch.setattr(recognition, "_lose", noted)


def given_up(server: str) -> set[int]:
    """Return what was noted of a server."""
    return _given_up.setdefault(server, set())


_given_up: dict[str, set[int]] = {}


def forget_held() -> None:
    """Give up the files of ids that this process holds, as at its end."""
    journals._leave_all()


def release_all() -> None:
    """Release what this process holds, as when it ends."""
    _exit.release_all()


def wait_for_background() -> None:
    """Wait until the threads that read late replies and close environments are done."""
    for thread in list(abandoned._listening):
        thread.join(10)
    drain_background(10)


def pool_at(environment: str, server: str) -> LeasePool:
    """Return what this process knows of a server."""
    return pool_of(agentgym_gym.find(environment), server)


def is_closed_at_exit(env: AgentGymEnv) -> bool:
    """Whether an environment would be closed if the program ended now."""
    return env in _base_env._live
