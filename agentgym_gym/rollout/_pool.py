"""Pools of environments of one kind: made when needed, used by one episode at a time, reused, closed."""

from __future__ import annotations

import asyncio
import contextlib
import json
import threading
import time
import weakref
from collections import deque
from collections.abc import Callable, Mapping
from concurrent.futures import Future, wait
from typing import TYPE_CHECKING, Any

from agentgym_gym._lifecycle import RELEASE_ENVIRONMENTS, after_fork_in_child, at_exit
from agentgym_gym.errors import BadOption
from agentgym_gym.rollout._episode import Episode
from agentgym_gym.rollout._makers import EnvMaker
from agentgym_gym.rollout._process import ProcessWorker
from agentgym_gym.rollout._specs import split_id
from agentgym_gym.rollout._workers import (
    CLOSE_SECONDS,
    CallerWorker,
    Isolation,
    ThreadWorker,
    Worker,
    check_isolation,
    isolation_of,
)

if TYPE_CHECKING:
    from typing_extensions import Self

    from agentgym_gym.rollout._env_facts import EnvFacts

__all__ = ["MAX_IDLE", "CallerPool", "Pool", "close_all", "shared_pool"]

MAX_IDLE = 256
"""Environments of all pools that are kept for reuse; beyond that, the one idle for longest is closed."""


class Pool:
    """Environments of one kind, each used by one episode at a time.

    Args:
        env: The id of a registered environment, with its module, or what makes one.
        env_kwargs: Arguments of ``gymnasium.make``, with an id.
        isolate: Where each environment runs: ``"loop"``, ``"thread"`` or ``"process"``, see
            `agentgym_gym.rollout._workers`. By default the event loop if its ``reset`` and ``step`` are
            coroutine functions, else a thread of its own.
        timeout: Seconds allowed for making an environment and for each reset and step; None for any number.
        capacity: How many environments may be open at once; by default the environment's attribute
            ``capacity``, or any number. Further episodes wait.
        memory_limit: Bytes of address space for each process, with ``isolate="process"``.

    Raises:
        BadOption: An argument has a value it cannot have.
    """

    def __init__(
        self,
        env: str | Callable[[], Any],
        env_kwargs: Mapping[str, Any] | None = None,
        *,
        isolate: Isolation | None = None,
        timeout: float | None = None,
        capacity: int | None = None,
        memory_limit: int | None = None,
    ) -> None:
        if isinstance(env, str):
            env = EnvMaker(env, dict(env_kwargs or {}), release_if_killed=True)
        elif env_kwargs:
            raise BadOption("env_kwargs go with the id of an environment: have the function pass them")
        self.make_env = env
        self.isolate = isolation_of(isolate)
        self._timeout = timeout
        self._memory_limit = memory_limit
        self._capacity = capacity
        self._facts: EnvFacts | None = None
        self._probing = False  # whether the first environment is being made
        self._open = 0
        self._waiting: deque[tuple[asyncio.AbstractEventLoop, asyncio.Future[None]]] = deque()

    @property
    def env_id(self) -> str:
        """Gymnasium's id of the environment, as far as it is known."""
        if self._facts is not None:
            return self._facts.env_id
        return split_id(self.make_env.env_id)[1] if isinstance(self.make_env, EnvMaker) else ""

    def episode(
        self,
        *,
        task: int | None = None,
        seed: int | None = None,
        options: Mapping[str, Any] | None = None,
        success_at: float | None = None,
        max_turns: int | None = None,
    ) -> Episode:
        """Return an episode, which begins and ends as an ``async with`` block does.

        Args:
            task: Number of the task, as for `Episode`.
            seed: Seed of ``reset``; None lets the environment draw.
            options: Options of ``reset``.
            success_at: As for `Episode`.
            max_turns: As for `Episode`.
        """
        return Episode(
            self, task=task, seed=seed, options=options, success_at=success_at, max_turns=max_turns
        )

    async def facts(self) -> EnvFacts:
        """Return the properties of its environments; makes one if none was made yet.

        Raises:
            Exception: The error of the environment's constructor.
        """
        if self._facts is None:
            self.release(await self.acquire())
        if self._facts is None:  # pragma: no cover - acquire has set it
            raise RuntimeError("the pool has made no environment")
        return self._facts

    async def acquire(self) -> Worker:
        """Return an environment that nobody uses; waits where `capacity` of them are in use.

        Raises:
            Exception: The error of the environment's constructor.
        """
        loop = asyncio._get_running_loop()  # noqa: SLF001 - the public function raises without a loop
        while True:
            with _lock:
                worker = _take_idle(self, loop)
                if worker is not None:
                    return worker
                if self._may_open():
                    self._open += 1
                    self._probing = self._facts is None
                    break
                other = _take_idle(self, None)
                if other is None:
                    waiter = asyncio.get_running_loop().create_future()
                    self._waiting.append((asyncio.get_running_loop(), waiter))
            if other is not None:  # of another event loop, which holds a place of this pool
                await self.discard(other)
                continue
            await self._wait_for(waiter)
        worker = await self._start()
        with _lock:
            first, self._probing = self._probing, False
        if first:
            self._wake(everyone=True)
        return worker

    def release(self, worker: Worker) -> None:
        """Put an environment back, to be used by another episode."""
        for pool, surplus in _put_idle(self, worker):
            pool._close(surplus)  # noqa: SLF001 - our own
        self._wake()

    async def discard(self, worker: Worker) -> None:
        """Close an environment instead of reusing it.

        One that is still busy with a call is not waited for.
        """
        busy = worker.busy
        closing = self._close(worker)
        if closing is not None and not busy:
            await asyncio.wait({asyncio.wrap_future(closing)}, timeout=CLOSE_SECONDS)

    async def close(self) -> None:
        """Close the environments that no episode uses."""
        with _lock:
            idle = [worker for pool, worker in _idle if pool is self]
            _idle[:] = [each for each in _idle if each[0] is not self]
        await asyncio.gather(*map(self.discard, idle))

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    def _may_open(self) -> bool:
        if self._facts is None:
            return not self._probing  # the first environment states the capacity
        most = self._facts.capacity if self._capacity is None else self._capacity
        return most is None or self._open < most

    async def _start(self) -> Worker:
        if self.isolate == "process":
            worker: ThreadWorker = ProcessWorker(self.make_env, self._timeout, self._memory_limit)
        else:
            worker = ThreadWorker(self.make_env, self._timeout)
        try:
            await worker.make()
            check_isolation(self.isolate, worker.facts)
        except BaseException:
            with _lock:
                self._probing = False
            self._close(worker, everyone=self._facts is None)
            raise
        self._facts = self._facts or worker.facts
        if worker.facts.awaited and self.isolate in {None, "loop"}:
            return worker.to_loop()
        if worker.facts.awaited and self.isolate == "thread":
            worker.keep_in_thread()
        return worker

    async def _wait_for(self, waiter: asyncio.Future[None]) -> None:
        place = asyncio.get_running_loop(), waiter
        try:
            await waiter
        except asyncio.CancelledError:
            with _lock:
                if place in self._waiting:
                    self._waiting.remove(place)
                else:
                    self._wake()  # its turn is another's
            raise

    def _close(self, worker: Worker, *, everyone: bool = False) -> Future[Any] | None:
        """Close an environment; its place is free when that is done, or after `CLOSE_SECONDS`."""
        pending = [everyone]

        def leave(_: object = None) -> None:
            with contextlib.suppress(IndexError):
                self._left(everyone=pending.pop())

        closing = worker.close()
        if closing is None:
            leave()
        else:
            closing.add_done_callback(leave)
            with contextlib.suppress(RuntimeError):  # without an event loop nobody waits for the place
                asyncio.get_running_loop().call_later(CLOSE_SECONDS, leave)
        return closing

    def _left(self, *, everyone: bool = False) -> None:
        """Note that an environment is gone."""
        with _lock:
            self._open -= 1
        self._wake(everyone=everyone)

    def _wake(self, *, everyone: bool = False) -> None:
        """Let the first of those who wait look again, or all of them."""
        with _lock:
            while self._waiting:
                loop, waiter = self._waiting.popleft()
                if waiter.done() or loop.is_closed():
                    continue
                loop.call_soon_threadsafe(_set, waiter)
                if not everyone:
                    return


def _set(waiter: asyncio.Future[None]) -> None:
    if not waiter.done():
        waiter.set_result(None)


class CallerPool:
    """One environment of the caller, which is called in the caller's thread and never closed.

    Without coroutines no event loop is needed.

    Args:
        env: The environment.
    """

    def __init__(self, env: Any) -> None:
        self._worker = CallerWorker(env)
        self.facts = self._worker.facts
        self.env_id = self.facts.env_id

    async def acquire(self) -> Worker:
        """Return the environment."""
        return self._worker

    def release(self, worker: Worker) -> None:
        """Do nothing."""

    async def discard(self, worker: Worker) -> None:
        """Do nothing: the next reset is the environment's chance."""


_lock = threading.RLock()
_idle: list[tuple[Pool, Worker]] = []  # the one used last is last
_shared: weakref.WeakValueDictionary[str, Pool] = weakref.WeakValueDictionary()


def shared_pool(
    env_id: str,
    env_kwargs: Mapping[str, Any],
    *,
    isolate: Isolation | None = None,
    timeout: float | None = None,
) -> Pool:
    """Return the pool of an environment, the same for all callers in this process.

    Args:
        env_id: As for `EnvMaker`.
        env_kwargs: As for `EnvMaker`.
        isolate: As for `Pool`.
        timeout: As for `Pool`.
    """
    key = json.dumps([env_id, dict(env_kwargs), isolate, timeout], sort_keys=True, default=repr)
    with _lock:
        pool = _shared.get(key)
        if pool is None:
            maker = EnvMaker(env_id, dict(env_kwargs), release_if_killed=True)
            pool = _shared[key] = Pool(maker, isolate=isolate, timeout=timeout)
        return pool


def close_all() -> None:
    """Close the environments that no episode uses, those of other event loops too; also called at exit.

    Waits `CLOSE_SECONDS` at most. Called in an event loop, it does not wait for the environments that are
    awaited there.
    """
    with _lock:
        idle, _idle[:] = list(_idle), []
    deadline = time.monotonic() + CLOSE_SECONDS
    here = asyncio._get_running_loop()  # noqa: SLF001 - the public function raises without a loop
    closing: list[Future[Any]] = []
    for pool, worker in idle:
        future = pool._close(worker)  # noqa: SLF001 - our own
        if future is not None and not (here is not None and _is_of(worker, here)):
            closing.append(future)
    wait(closing, timeout=max(0.0, deadline - time.monotonic()))


def _is_of(worker: Worker, loop: asyncio.AbstractEventLoop) -> bool:
    return worker.fits(loop) and not worker.fits(None)


def _take_idle(pool: Pool, loop: asyncio.AbstractEventLoop | None) -> Worker | None:
    """Return an idle environment of a pool; without a loop, also one of another event loop."""
    with _lock:
        for place in reversed(range(len(_idle))):
            owner, worker = _idle[place]
            if owner is pool and (loop is None or worker.fits(loop)):
                del _idle[place]
                return worker
    return None


def _put_idle(pool: Pool, worker: Worker) -> list[tuple[Pool, Worker]]:
    """Keep an environment; return those that are too many."""
    with _lock:
        _idle.append((pool, worker))
        surplus, _idle[:] = _idle[:-MAX_IDLE], _idle[-MAX_IDLE:]
    return surplus


def _forget() -> None:
    """Start empty in a forked child: the threads and event loops are its parent's."""
    global _lock  # noqa: PLW0603 - another thread of the parent may have held it
    _lock = threading.RLock()
    _idle.clear()
    _shared.clear()


after_fork_in_child(_forget)
at_exit(close_all, order=RELEASE_ENVIRONMENTS - 1)
