"""Release of remote environments when the interpreter exits."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

from agentgym_gym._base_env import BaseTextEnv, Channel, live_envs
from agentgym_gym._http.abandoned import drain, unanswered
from agentgym_gym._http.limits import Limits
from agentgym_gym._lifecycle import RELEASE_ENVIRONMENTS, at_exit
from agentgym_gym._logging import logger
from agentgym_gym._text import redact
from agentgym_gym._threads import drain_background

if TYPE_CHECKING:
    from agentgym_gym._remote_episode import RemoteEpisode

__all__ = ["EXIT_SECONDS", "release", "release_all"]

EXIT_SECONDS = 10.0
"""Seconds allowed for releasing all environments at exit."""

_INTERRUPTED_SECONDS = 3.0  # after a Ctrl-C at exit
_MOST_NAMED = 20
_AT_ONCE = 64  # parallel releases at exit, with one connection each


def release(episode: RemoteEpisode, channel: Channel, *, timeout: float) -> bool:
    """Release the remote environments of an episode, over a new connection.

    Args:
        episode: The episode; not to be used afterwards.
        channel: The transport options.
        timeout: Seconds allowed.

    Returns:
        Whether the server released them.
    """
    from agentgym_gym._http.sync_driver import SyncDriver  # noqa: PLC0415 - see AgentGymEnv

    with contextlib.closing(
        SyncDriver(
            limits=Limits.of(timeout, {"close": timeout}),
            headers=channel.headers,
            http_client=channel.http_client,
        )
    ) as driver:
        return driver.run(episode.close())


def release_all() -> None:
    """Release all remaining remote environments at exit, within `EXIT_SECONDS`.

    Environments of the built-in client are released in parallel, because some servers take seconds for each.
    The others are released in turn, and a server that does not answer is skipped from then on. Ctrl-C
    shortens the time; a second one ends it. A warning names the environments that stay open.
    """
    envs = live_envs()  # keeps them alive
    try:
        try:
            _release_until(time.monotonic() + EXIT_SECONDS, envs)
        except KeyboardInterrupt:
            _release_until(time.monotonic() + _INTERRUPTED_SECONDS, envs)
    finally:
        _warn(envs)


def _warn(envs: Sequence[BaseTextEnv]) -> None:
    """Log the environments that stay open, and those whose creation was not answered."""
    leases = [lease for env in envs for lease in env._episode.holder.pending_releases(retry=True)]  # noqa: SLF001 - our own
    if leases:
        names = sorted(f"{lease.env_id} on {redact(lease.server)}" for lease in leases)
        text = ", ".join(names[:_MOST_NAMED])
        logger.warning("%d remote environments stay open, not closed at exit: %s", len(leases), text)
    servers = sorted({redact(call.server) for call in unanswered()})
    if servers:
        logger.warning(
            "remote environments may stay open on %s: the replies to their creation did not arrive before "
            "the exit",
            ", ".join(servers),
        )


def _release_until(deadline: float, envs: Sequence[BaseTextEnv]) -> None:
    for env in envs:
        with contextlib.suppress(Exception):
            env._end_call()  # noqa: SLF001 - our own
    drain((deadline - time.monotonic()) / 2)
    drain_background((deadline - time.monotonic()) / 2)
    unreleased = [env for env in envs if env._episode.holder.pending_releases(retry=True)]  # noqa: SLF001 - our own
    by_engine = [env for env in unreleased if env._channel.http_client is None]  # noqa: SLF001 - our own
    with contextlib.suppress(Exception):
        _release_together(by_engine, deadline)
    silent: set[str] = set()
    for env in unreleased:
        server = env._episode.holder.server  # noqa: SLF001 - our own
        if env in by_engine or server in silent or time.monotonic() > deadline:
            continue
        with contextlib.suppress(Exception):
            if not env._release():  # noqa: SLF001 - our own
                silent.add(server)


def _release_together(envs: Sequence[BaseTextEnv], deadline: float) -> None:
    """Release environments of the built-in client in parallel, in one event loop."""
    if not envs:
        return
    import asyncio  # noqa: PLC0415 - not before it is needed: importing the library must be cheap

    from agentgym_gym._event_loop import run_here  # noqa: PLC0415 - it imports asyncio
    from agentgym_gym._http.async_driver import AsyncDriver  # noqa: PLC0415 - see AgentGymEnv

    async def release_one(env: BaseTextEnv, turns: asyncio.Semaphore) -> None:
        async with turns:
            own = env.environment.wire.time_limits.get("close", 0.0)
            seconds = min(max(EXIT_SECONDS / 5, own), max(0.001, deadline - time.monotonic()))
            limits = Limits(connect=seconds, close=seconds)
            driver = AsyncDriver(limits=limits, headers=env._channel.headers)  # noqa: SLF001 - our own
            try:
                await driver.run(env._episode.close())  # noqa: SLF001 - our own
            finally:
                await driver.close()

    async def release_each() -> None:
        turns = asyncio.Semaphore(_AT_ONCE)
        work = {asyncio.ensure_future(release_one(env, turns)) for env in envs}
        _, late = await asyncio.wait(work, timeout=max(0.0, deadline - time.monotonic()))
        for each in late:
            each.cancel()
        await asyncio.gather(*work, return_exceptions=True)

    try:
        run_here(release_each())
    finally:
        for env in envs:
            env._disconnect()  # noqa: SLF001 - our own


at_exit(release_all, order=RELEASE_ENVIRONMENTS)
