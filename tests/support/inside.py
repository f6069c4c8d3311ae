"""What tests of the public side need from inside of `agentgym_gym`, reached for here and nowhere else."""

from __future__ import annotations

import copy
import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import httpx

import agentgym_gym
from agentgym_gym import AgentGymEnv, _base_env, _exit, _threads, catalogue
from agentgym_gym._http import abandoned, limits, retry
from agentgym_gym._http.certificates import tls_context
from agentgym_gym._http.httpx_client import BlockingClient
from agentgym_gym._http.sync_driver import SyncDriver
from agentgym_gym._leasing import circuit_breaker, recognition, slots, state_folder
from agentgym_gym._leasing import journal as journals
from agentgym_gym._leasing.journal import records
from agentgym_gym._leasing.pool import LeasePool, pool_of
from agentgym_gym._leasing.pool import _pools as _pool_states
from agentgym_gym._text import scrub
from agentgym_gym._threads import drain_background
from agentgym_gym.errors import ServerUnreachable
from agentgym_gym.evaluate import _inspect_export, _play, _prepared, _shared_limits
from agentgym_gym.evaluate._chat import client as chat_client
from agentgym_gym.evaluate._engines import engine
from agentgym_gym.rollout import _pool, _specs, _workers, _writer
from agentgym_gym.rollout._history import estimate

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pytest

    from agentgym_gym import AsyncAgentGymEnv
    from agentgym_gym._http.retry import Send
    from agentgym_gym.calls import Reply
    from agentgym_gym.rollout import Episode

__all__ = [
    "LeasePool",
    "SyncDriver",
    "advance_clock",
    "choose_engine_port",
    "directly",
    "estimate",
    "folder_of_files",
    "forget_certificates",
    "forget_held",
    "forget_registrations",
    "forget_threads",
    "given_up",
    "is_closed_at_exit",
    "keep_files_in",
    "known_ports",
    "limit_calls",
    "limit_close",
    "limit_engine",
    "limit_exported_log",
    "limit_idle",
    "limit_progress",
    "limit_replies",
    "limit_slow",
    "limit_times",
    "limit_unasked",
    "limit_writing",
    "list_leases_of",
    "never_open_circuits",
    "note_given_up",
    "pause_model",
    "pool_at",
    "records",
    "release_all",
    "retry_at_once",
    "scrub",
    "slots",
    "wait_for_background",
    "warn_again",
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


def keep_files_in(folder: Path | None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep the files of leases in a folder, or in one that is looked for again."""
    monkeypatch.setattr(state_folder, "FOLDER", folder)


def folder_of_files() -> Path:
    """Return the folder in which the files of leases are kept now."""
    return Path(state_folder.FOLDER)


def list_leases_of(processes: Sequence[object], monkeypatch: pytest.MonkeyPatch) -> None:
    """Replace the records of processes in the folder."""
    monkeypatch.setattr(journals, "records", lambda _: processes)


def note_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """Note the ids of the environments that are given up because they show another observation."""
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


def warn_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have it logged again in this process where leases cannot be saved."""
    monkeypatch.setattr(journals, "_warned", set())


def release_all() -> None:
    """Release what this process holds, as when it ends."""
    _exit.release_all()


def forget_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    """Forget the threads that read and write files, so that new ones have to be started."""
    monkeypatch.setattr(_threads, "_files", _threads._Workers("agentgym-files", 4))


def wait_for_background() -> None:
    """Wait until the threads that read late replies and close environments are done."""
    for thread in list(abandoned._listening):
        thread.join(10)
    drain_background(10)


def pool_at(environment: str, server: str) -> LeasePool:
    """Return this process's state of a server."""
    return pool_of(agentgym_gym.find(environment), server)


def known_ports() -> set[int | None]:
    """Return the ports of all servers of which this process keeps a state, such as free environments."""
    return {urlsplit(server).port for _, server in list(_pool_states)}


def advance_clock(environment: str, server: str, seconds: float) -> None:
    """Let seconds pass for this process's state of a server."""
    pool = pool_at(environment, server)
    now = pool.clock
    pool.clock = pool.breaker.clock = lambda: now() + seconds


def is_closed_at_exit(env: AgentGymEnv) -> bool:
    """Whether an environment would be closed if the program ended now."""
    return env in _base_env._live


def forget_registrations(monkeypatch: pytest.MonkeyPatch) -> None:
    """Forget after the test which environments its modules register."""
    monkeypatch.setattr(catalogue, "_known", dict(catalogue._known))
    monkeypatch.setattr(_specs, "_registrations", copy.deepcopy(_specs._registrations))
    monkeypatch.setattr(_specs, "_observed", set(_specs._observed))


def limit_idle(monkeypatch: pytest.MonkeyPatch, number: int) -> None:
    """Limit how many environments a pool of the rollout keeps for later episodes."""
    monkeypatch.setattr(_pool, "MAX_IDLE", number)


def limit_times(env: AgentGymEnv | AsyncAgentGymEnv, **seconds: float) -> None:
    """Set time limits of an environment from now on, by the names of its option `timeout`."""
    env._driver.limits = dataclasses.replace(env._driver.limits, **seconds)


def limit_calls(episode: Episode, seconds: float) -> None:
    """Limit the seconds of each following call of an episode's environment, which was reset already."""
    assert episode._worker is not None
    episode._worker.timeout = seconds


def limit_close(monkeypatch: pytest.MonkeyPatch, seconds: float) -> None:
    """Limit the seconds in which the rollout closes an environment."""
    monkeypatch.setattr(_workers, "CLOSE_SECONDS", seconds)


def limit_writing(monkeypatch: pytest.MonkeyPatch, *, seconds: float, waiting: int) -> None:
    """Limit the seconds that an episode waits to be written, and how many episodes wait."""
    monkeypatch.setattr(_writer, "PATIENCE", seconds)
    monkeypatch.setattr(_writer, "MOST_WAITING", waiting)


def pause_model(monkeypatch: pytest.MonkeyPatch, seconds: float) -> None:
    """Set the pause before a model's server gets a request for the second time."""
    monkeypatch.setattr(chat_client, "FIRST_PAUSE_SECONDS", seconds)


def forget_certificates() -> None:
    """Forget the certificate authorities that requests to models trust, to read them again."""
    tls_context.cache_clear()


def limit_engine(monkeypatch: pytest.MonkeyPatch, *, grace: float, poll: float) -> None:
    """Set the seconds that an engine has to end, and those between two looks at whether it is ready."""
    monkeypatch.setattr(engine, "GRACE_SECONDS", grace)
    monkeypatch.setattr(engine, "POLL_SECONDS", poll)


def limit_exported_log(monkeypatch: pytest.MonkeyPatch, episodes: int) -> None:
    """Limit the episodes of one log that is exported to inspect_ai."""
    monkeypatch.setattr(_inspect_export, "MOST_EPISODES", episodes)


def choose_engine_port(monkeypatch: pytest.MonkeyPatch, port: int) -> None:
    """Have an engine choose this port first, as if another program took it meanwhile."""
    chosen, free = [port], engine._free_port
    monkeypatch.setattr(engine, "_free_port", lambda: chosen.pop() if chosen else free())


def limit_progress(monkeypatch: pytest.MonkeyPatch, *, look: float, line: float) -> None:
    """Set the seconds between two looks of `agentgym eval` at its progress, and between two lines of it."""
    from agentgym_gym._cli import progress

    monkeypatch.setattr(progress, "BAR_SECONDS", look)
    monkeypatch.setattr(progress, "LINE_SECONDS", line)


def limit_slow(monkeypatch: pytest.MonkeyPatch, seconds: float) -> None:
    """Set the seconds after which the progress names an environment that does not reply."""
    monkeypatch.setattr(_shared_limits, "SLOW_SECONDS", seconds)


def limit_unasked(monkeypatch: pytest.MonkeyPatch, episodes: int) -> None:
    """Limit the episodes of a model that `agentgym eval` plays without a confirmation."""
    for module in (_play, _prepared):
        monkeypatch.setattr(module, "MAX_UNASKED", episodes)


def limit_replies(monkeypatch: pytest.MonkeyPatch, size: int) -> None:
    """Limit the bytes of a reply."""
    monkeypatch.setattr(limits, "MAX_REPLY_BYTES", size)
