"""Pools of environments of one kind: created on demand, used by one episode at a time, reused and closed."""

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
from agentgym_gym.errors import BadOption, SetupError
from agentgym_gym.rollout._episode import Episode
from agentgym_gym.rollout._makers import EnvMaker, creation_errors
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
    from agentgym_gym.rollout._history import History

__all__ = ["MAX_IDLE", "CallerPool", "Pool", "close_all", "shared_pool"]

MAX_IDLE = 256
"""Maximum number of idle environments over all pools; beyond it, the one idle for longest is closed."""


class Pool:
    """Environments of one kind, each used by one episode at a time.

    Args:
        env: The id of a registered environment, with its module, or a function that creates one.
        env_kwargs: Arguments of ``gymnasium.make``, only with an id.
        isolate: Where each environment runs: ``"loop"``, ``"thread"`` or ``"process"``; see
            `agentgym_gym.rollout._workers`. By default the event loop if its ``reset`` and ``step`` are
            coroutine functions, otherwise a separate thread.
        timeout: Timeout in seconds for creating an environment and for each reset and step; None for no
            limit.
        capacity: Maximum number of open environments; by default the environment's attribute ``capacity``, or
            no limit. Further episodes wait.
        memory_limit: Maximum address space of each process in bytes, with ``isolate="process"``.

    Raises:
        BadOption: An argument has an invalid value.
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
            raise BadOption("env_kwargs require the id of an environment: pass them in the function instead")
        self.make_env = env
        self.isolate = isolation_of(isolate)
        self._timeout = timeout
        self._memory_limit = memory_limit
        self._capacity = capacity
        self._facts: EnvFacts | None = None
        self._claims = set[object]()  # one for each environment that is open, being created or being closed
        self._probe: object = None  # the claim of the first environment while it is being created
        self._waiting: deque[tuple[asyncio.AbstractEventLoop, asyncio.Future[None]]] = deque()

    @property
    def env_id(self) -> str:
        """The gymnasium id of the environment; may be empty before the first one is created."""
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
        history: History | str = "all",
    ) -> Episode:
        """Return an episode, for use with ``async with``.

        Args:
            task: Number of the task, as for `Episode`.
            seed: Seed of ``reset``; None lets the environment draw one.
            options: Options of ``reset``.
            success_at: As for `Episode`.
            max_turns: As for `Episode`.
            history: As for `Episode`.

        Raises:
            BadOption: The history is not a policy.
        """
        return Episode(
            self,
            task=task,
            seed=seed,
            options=options,
            success_at=success_at,
            max_turns=max_turns,
            history=history,
        )

    async def facts(self) -> EnvFacts:
        """Return the properties of the environments; creates one if there is none yet.

        Raises:
            Exception: The error of the environment's constructor.
        """
        if self._facts is None:
            self.release(await self.acquire())
        if self._facts is None:  # pragma: no cover - acquire has set it
            raise RuntimeError("the pool has no environment")
        return self._facts

    async def text_facts(self, task: int = 0) -> EnvFacts:
        """Return the properties of the environments, after a reset that checks that observations are text.

        Args:
            task: Number of the task, or the seed. A fault of its reset is ignored.

        Raises:
            SetupError: The environment cannot be created, the observation is not text, or another mistake
                in the setup prevents episodes.
        """
        with creation_errors(self.env_id):
            facts = await self.facts()
        async with self.episode(task=task) as episode:
            error = episode.error
        if isinstance(error, SetupError):
            raise error
        return facts

    async def acquire(self) -> Worker:
        """Return an unused environment; waits while the pool is at capacity.

        Raises:
            Exception: The error of the environment's constructor.
        """
        loop = asyncio._get_running_loop()  # noqa: SLF001 - the public function raises without a loop
        claim, made = object(), list[Worker]()
        try:
            while True:
                with _lock:
                    worker = _take_idle(self, loop)
                    if worker is not None:
                        return worker
                    if self._may_open():
                        self._claims.add(claim)
                        if self._facts is None:
                            self._probe = claim
                        break
                    other = _take_idle(self, None)
                    if other is None:
                        waiter = asyncio.get_running_loop().create_future()
                        self._waiting.append((asyncio.get_running_loop(), waiter))
                if other is not None:  # it has another event loop, but counts toward this pool's capacity
                    await self.discard(other)
                    continue
                await self._wait_for(waiter)
            await self._start(claim, made)
            self._end_probe(claim)
            return made[0]
        except BaseException:  # also an interrupt before anything was created
            self._abandon(claim, made)
            raise

    def release(self, worker: Worker) -> None:
        """Return an environment to the pool for other episodes."""
        for pool, surplus in _put_idle(self, worker):
            pool._close(surplus)  # noqa: SLF001 - our own
        self._wake()

    async def discard(self, worker: Worker) -> None:
        """Close an environment instead of reusing it.

        The method does not wait for an environment that is still busy with a call.
        """
        busy = worker.busy
        closing = self._close(worker)
        if closing is not None and not busy:
            await asyncio.wait({asyncio.wrap_future(closing)}, timeout=CLOSE_SECONDS)

    async def close(self) -> None:
        """Close the idle environments."""
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
            return self._probe is None  # the capacity is known after the first environment
        most = self._facts.capacity if self._capacity is None else self._capacity
        return most is None or len(self._claims) < most

    async def _start(self, claim: object, made: list[Worker]) -> None:
        """Create an environment in a worker, the only one in `made`."""
        if self.isolate == "process":
            worker: ThreadWorker = ProcessWorker(self.make_env, self._timeout, self._memory_limit)
        else:
            worker = ThreadWorker(self.make_env, self._timeout)
        worker.claim = claim
        made.append(worker)
        await worker.make()
        check_isolation(self.isolate, worker.facts)
        self._facts = self._facts or worker.facts
        if worker.facts.awaited and self.isolate in {None, "loop"}:
            made[0] = worker.to_loop()
            made[0].claim = claim
        elif worker.facts.awaited and self.isolate == "thread":
            worker.keep_in_thread()

    def _end_probe(self, claim: object) -> None:
        """Let all waiters try again if this was the first environment, after which the capacity is known."""
        if self._probe is claim:
            self._probe = None
            self._wake(all_waiters=True)

    def _abandon(self, claim: object, made: list[Worker]) -> None:
        """Close the worker that was made, if there is one, and give up its claim."""
        if made:
            self._close(made[0], all_waiters=self._facts is None)
        elif claim in self._claims:
            self._claims.discard(claim)
            self._wake()
        self._end_probe(claim)

    async def _wait_for(self, waiter: asyncio.Future[None]) -> None:
        entry = asyncio.get_running_loop(), waiter
        try:
            await waiter
        except asyncio.CancelledError:
            with _lock:
                if entry in self._waiting:
                    self._waiting.remove(entry)
                else:
                    self._wake()  # pass the wake-up to the next waiter
            raise

    def _close(self, worker: Worker, *, all_waiters: bool = False) -> Future[Any] | None:
        """Close an environment; its capacity becomes free when it is closed, or after `CLOSE_SECONDS`."""
        pending = [all_waiters]

        def closed(_: object = None) -> None:
            with contextlib.suppress(IndexError):
                self._note_closed(worker, all_waiters=pending.pop())

        closing = worker.close()
        if closing is None:
            closed()
        else:
            closing.add_done_callback(closed)
            with contextlib.suppress(RuntimeError):  # without an event loop there are no waiters
                asyncio.get_running_loop().call_later(CLOSE_SECONDS, closed)
        return closing

    def _note_closed(self, worker: Worker, *, all_waiters: bool = False) -> None:
        """Give up the claim of an environment that was closed."""
        with _lock:
            self._claims.discard(worker.claim)
        self._wake(all_waiters=all_waiters)

    def _wake(self, *, all_waiters: bool = False) -> None:
        """Wake the first waiter, or all waiters, to try again."""
        with _lock:
            while self._waiting:
                loop, waiter = self._waiting.popleft()
                if waiter.done() or loop.is_closed():
                    continue
                loop.call_soon_threadsafe(_resolve, waiter)
                if not all_waiters:
                    return


def _resolve(waiter: asyncio.Future[None]) -> None:
    if not waiter.done():
        waiter.set_result(None)


class CallerPool:
    """One environment of the caller, which is called in the caller's thread and never closed.

    Without coroutine functions it needs no event loop.

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
        """Do nothing: the caller owns the environment, and the next reset may repair it."""


_lock = threading.RLock()
_idle: list[tuple[Pool, Worker]] = []  # in order of last use, most recent last
_shared: weakref.WeakValueDictionary[str, Pool] = weakref.WeakValueDictionary()


def shared_pool(
    env_id: str,
    env_kwargs: Mapping[str, Any],
    *,
    isolate: Isolation | None = None,
    timeout: float | None = None,
) -> Pool:
    """Return the pool of an environment, shared by all callers in this process.

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
    """Close the idle environments of all event loops; also called at exit.

    Waits at most `CLOSE_SECONDS`. Called in an event loop, it does not wait for the environments that run on
    that loop.
    """
    with _lock:
        idle, _idle[:] = list(_idle), []
    deadline = time.monotonic() + CLOSE_SECONDS
    here = asyncio._get_running_loop()  # noqa: SLF001 - the public function raises without a loop
    closing: list[Future[Any]] = []
    for pool, worker in idle:
        future = pool._close(worker)  # noqa: SLF001 - our own
        if future is not None and not (here is not None and _runs_on(worker, here)):
            closing.append(future)
    wait(closing, timeout=max(0.0, deadline - time.monotonic()))


def _runs_on(worker: Worker, loop: asyncio.AbstractEventLoop) -> bool:
    return worker.fits(loop) and not worker.fits(None)


def _take_idle(pool: Pool, loop: asyncio.AbstractEventLoop | None) -> Worker | None:
    """Return an idle environment of a pool that fits an event loop; without a loop, any one of the pool."""
    with _lock:
        for index in reversed(range(len(_idle))):
            owner, worker = _idle[index]
            if owner is pool and (loop is None or worker.fits(loop)):
                del _idle[index]
                return worker
    return None


def _put_idle(pool: Pool, worker: Worker) -> list[tuple[Pool, Worker]]:
    """Add an environment to the idle ones; return the ones beyond `MAX_IDLE`."""
    with _lock:
        _idle.append((pool, worker))
        surplus, _idle[:] = _idle[:-MAX_IDLE], _idle[-MAX_IDLE:]
    return surplus


def _reset_after_fork() -> None:
    """Reset the state in a forked child: the threads and event loops belong to its parent."""
    global _lock  # noqa: PLW0603 - another thread of the parent may have held it
    _lock = threading.RLock()
    _idle.clear()
    _shared.clear()


after_fork_in_child(_reset_after_fork)
at_exit(close_all, order=RELEASE_ENVIRONMENTS - 1)
