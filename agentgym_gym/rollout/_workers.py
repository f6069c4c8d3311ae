"""Workers: each owns one environment and makes one call to it at a time.

============  ==================================================================================
isolation     where the environment is created, used and closed
============  ==================================================================================
``loop``      in the event loop; for environments whose ``reset`` and ``step`` are coroutines
``thread``    in a separate thread
``process``   in a separate spawned process
============  ==================================================================================
"""

from __future__ import annotations

import asyncio
import functools
import inspect
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Coroutine
from concurrent.futures import Future, wait
from typing import Any, Literal, Protocol, TypeAlias, get_args

from agentgym_gym._logging import logger
from agentgym_gym.errors import BadOption
from agentgym_gym.rollout._call_thread import CallOutcome, CallThread, as_exception
from agentgym_gym.rollout._env_facts import EnvFacts, describe_env

__all__ = [
    "CLOSE_SECONDS",
    "BlockingEnv",
    "CallerWorker",
    "Isolation",
    "LoopWorker",
    "ThreadWorker",
    "Worker",
    "Workers",
    "check_isolation",
    "close_env",
    "isolation_of",
]

Isolation: TypeAlias = Literal["loop", "thread", "process"]

CLOSE_SECONDS = 10.0
"""Timeout in seconds for closing an environment."""

_POLL_SECONDS = 0.05


def close_env(env: Any, env_id: str) -> None:
    """Close an environment, asynchronous or not, outside of any event loop; errors are logged."""
    try:
        closed = env.close()
        if inspect.isawaitable(closed):
            asyncio.run(_in_close_seconds(closed))
    except Exception as error:  # noqa: BLE001 - its episodes are over
        _log_not_closed(env_id, error)


class Worker(ABC):
    """One environment and its current call, if any.

    Attributes:
        env: The environment, or its proxy; None before it is created.
        facts: Its properties.
        timeout: Timeout in seconds for each call; None for no limit.
        broken: Whether a call was interrupted, so that the state of the environment is unknown.
        claim: Its place in the capacity of its pool, if it has a pool.
    """

    env: Any = None
    facts: EnvFacts
    broken = False
    claim: object = None

    def __init__(self, timeout: float | None = None) -> None:
        self.timeout = timeout

    @abstractmethod
    async def reset(self, seed: int | None, options: dict[str, Any] | None) -> Any:
        """Call ``reset`` of the environment; return its result or raise its error.

        Raises:
            TimeoutError: The call timed out.
        """

    @abstractmethod
    async def step(self, action: Any) -> Any:
        """Call ``step`` of the environment; return its result or raise its error.

        Raises:
            TimeoutError: The call timed out.
        """

    @abstractmethod
    def close(self) -> Future[Any] | None:
        """Close the environment without waiting, from any thread; errors are logged.

        Returns:
            A future that is done when the environment is closed, which is after any running call has
            returned.
        """

    @property
    def busy(self) -> bool:
        """Whether an abandoned call still runs, possibly indefinitely."""
        return False

    def fits(self, loop: asyncio.AbstractEventLoop | None) -> bool:
        """Return whether the environment is usable in an event loop."""
        return True

    async def _in_time(self, call: asyncio.Future[CallOutcome]) -> Any:
        """Return the result of a call; on timeout or interruption, cancel the call if possible.

        Raises:
            TimeoutError: The call timed out.
            Exception: The error of the call.
        """
        try:
            finished, _ = await asyncio.wait({call}, timeout=self.timeout)
            if not finished:
                raise TimeoutError(f"no answer from the environment in {self.timeout:g} s")
        except BaseException:
            self.broken = True
            call.cancel()
            raise
        value, error = call.result()
        if error is not None:
            raise error
        return value


class Workers(Protocol):
    """Source of an episode's environment, such as a `Pool`.

    Attributes:
        env_id: The gymnasium id of the environment.
    """

    @property
    def env_id(self) -> str:
        """The gymnasium id of the environment."""

    async def acquire(self) -> Worker:
        """Return an unused environment."""

    def release(self, worker: Worker) -> None:
        """Return an environment for reuse."""

    async def discard(self, worker: Worker) -> None:
        """Close an environment that cannot be reused."""


class CallerWorker(Worker):
    """An environment of the caller, called in the caller's thread and never closed."""

    def __init__(self, env: Any) -> None:
        super().__init__()
        self.env, self.facts = env, describe_env(env)

    async def reset(self, seed: int | None, options: dict[str, Any] | None) -> Any:
        """Call ``reset`` of the environment with the arguments that are not None."""
        return self.env.reset(**_reset_arguments(seed, options))

    async def step(self, action: Any) -> Any:
        """Call ``step`` of the environment."""
        return self.env.step(action)

    def close(self) -> None:
        """Do nothing: the caller owns the environment."""


class ThreadWorker(Worker):
    """An environment that is created, used and closed in one thread.

    Args:
        make_env: Creates the environment.
        timeout: Timeout in seconds for each call, including the creation; None for no limit.
    """

    def __init__(self, make_env: Callable[[], Any], timeout: float | None = None) -> None:
        super().__init__(timeout)
        self._make_env = make_env
        self._thread = CallThread("agentgym-env")
        self._running: Future[CallOutcome] | None = None

    async def make(self) -> None:
        """Create the environment.

        Raises:
            Exception: The error of its constructor.
            TimeoutError: The creation timed out.
        """
        await self._call(self._make)

    async def reset(self, seed: int | None, options: dict[str, Any] | None) -> Any:
        """Call ``reset`` in the thread."""
        return await self._call(self.env.reset, **_reset_arguments(seed, options))

    async def step(self, action: Any) -> Any:
        """Call ``step`` in the thread."""
        return await self._call(self.env.step, action)

    def close(self) -> Future[Any] | None:
        """Close the environment in its thread as soon as the running call has returned."""
        if self.busy:
            self._interrupt()
        try:
            closing = self._thread.submit(self._close_env)
        except RuntimeError:  # no thread can be started, since the program is exiting
            return None
        self._thread.stop()
        return closing

    async def call(self, function: Callable[..., Any], /, *args: Any) -> Any:
        """Call a function in the thread.

        Raises:
            Exception: The error of the function.
            TimeoutError: The call timed out.
        """
        return await self._call(function, *args)

    def to_loop(self) -> LoopWorker:
        """Transfer a coroutine environment to the running event loop, and stop the thread."""
        self._thread.stop(reuse=True)
        return LoopWorker(self.env, self.facts, self.timeout)

    def keep_in_thread(self) -> None:
        """Run a coroutine environment in an event loop in the thread."""
        self.env = BlockingEnv(self.env)

    @property
    def busy(self) -> bool:
        """Whether a call runs in the thread."""
        return self._running is not None and not self._running.done()

    def _make(self) -> None:
        self.env = env = self._make_env()
        self.facts = describe_env(env)

    def _interrupt(self) -> None:
        """Stop the running call, if possible."""

    def _close_env(self) -> None:
        env, self.env = self.env, None
        if env is not None:
            close_env(env, self.facts.env_id)

    async def _call(self, function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        self._running = self._thread.submit(function, *args, **kwargs)
        return await self._in_time(asyncio.wrap_future(self._running))


class LoopWorker(Worker):
    """A coroutine environment, awaited in the running event loop.

    Without a timeout its coroutines are awaited directly; with one, each runs as a task.
    """

    def __init__(self, env: Any, facts: EnvFacts, timeout: float | None = None) -> None:
        super().__init__(timeout)
        self.env, self.facts = env, facts
        self._loop = asyncio.get_running_loop()
        self._task: asyncio.Task[CallOutcome] | None = None
        self._closing: asyncio.Task[None] | None = None
        self._closed = False  # or being closed
        if timeout is None:
            self.step = env.step  # type: ignore[method-assign]  # no call is added to a step

    async def reset(self, seed: int | None, options: dict[str, Any] | None) -> Any:
        """Await ``reset`` of the environment."""
        return await self._await(self.env.reset(**_reset_arguments(seed, options)))

    async def step(self, action: Any) -> Any:
        """Await ``step`` of the environment."""
        return await self._await(self.env.step(action))

    def fits(self, loop: asyncio.AbstractEventLoop | None) -> bool:
        """Return whether an event loop is the one of the environment."""
        return loop is self._loop

    def close(self) -> Future[Any] | None:
        """Close the environment in its event loop, or in a new one if that stops before it is closed."""
        closing: Future[None] = Future()
        closing.set_running_or_notify_cancel()  # from here on it cannot be cancelled
        if asyncio._get_running_loop() is self._loop:  # noqa: SLF001 - the public function raises without one
            self._closing = self._loop.create_task(self._close())
            self._closing.add_done_callback(functools.partial(self._closed_in_loop, closing))
        else:
            _in_thread(functools.partial(self._close_from_thread, closing))
        return closing

    async def _await(self, call: Coroutine[Any, Any, Any]) -> Any:
        if self.timeout is None:
            return await call
        # A task, to distinguish a cancellation inside the environment from one by the caller.
        self._task = asyncio.ensure_future(_outcome(call))
        return await self._in_time(self._task)

    async def _close(self) -> None:
        own = asyncio.get_running_loop() is self._loop
        if own and self._task is not None and not self._task.done():
            await asyncio.wait({self._task}, timeout=CLOSE_SECONDS)
        if self._closed:
            return
        self._closed = True
        try:
            closed = self.env.close()
            if inspect.isawaitable(closed):
                await _in_close_seconds(closed)
        except asyncio.CancelledError:  # the event loop is ending
            self._closed = False
            raise
        except asyncio.TimeoutError as error:
            if own:  # it may have been busy for the whole timeout
                self._closed = False
            else:
                _log_not_closed(self.facts.env_id, error)
        except Exception as error:  # noqa: BLE001 - its episodes are over
            _log_not_closed(self.facts.env_id, error)

    def _closed_in_loop(self, closing: Future[None], task: asyncio.Task[None]) -> None:
        """Complete a close in the event loop of the environment; close again in a new one if it failed."""
        if self._closed and not task.cancelled():
            closing.set_result(None)
        else:
            _in_thread(functools.partial(self._close_in_new_loop, closing))

    def _close_from_thread(self, closing: Future[None]) -> None:
        """Close in the event loop of the environment, as long as it runs, and else in a new one."""
        if self._loop.is_running():
            work = self._close()
            try:
                inner = asyncio.run_coroutine_threadsafe(work, self._loop)
            except RuntimeError:  # it has just ended
                work.close()
            else:
                while self._loop.is_running() and not inner.done():
                    wait({inner}, _POLL_SECONDS)
                if not inner.done():
                    self._closed = False
        self._close_in_new_loop(closing)

    def _close_in_new_loop(self, closing: Future[None]) -> None:
        try:
            if not self._closed:
                asyncio.run(self._close())
        finally:
            closing.set_result(None)


class BlockingEnv:
    """A coroutine environment with blocking methods, in a separate event loop."""

    def __init__(self, env: Any) -> None:
        self._env = env
        self._loop = asyncio.new_event_loop()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._env, name)

    def reset(self, **arguments: Any) -> Any:
        """Run ``reset`` to completion."""
        return self._loop.run_until_complete(self._env.reset(**arguments))

    def step(self, action: Any) -> Any:
        """Run ``step`` to completion."""
        return self._loop.run_until_complete(self._env.step(action))

    def close(self) -> None:
        """Run ``close`` to completion, and close the event loop."""
        try:
            closed = self._env.close()
            if inspect.isawaitable(closed):
                self._loop.run_until_complete(_in_close_seconds(closed))
        finally:
            self._loop.close()


def isolation_of(text: str | None) -> Isolation | None:
    """Return the isolation with a name.

    Raises:
        BadOption: No isolation has this name.
    """
    kinds = get_args(Isolation)
    if text is None or text in kinds:
        return text  # type: ignore[return-value]
    raise BadOption("isolate", text, f"one of {', '.join(kinds)}")


def check_isolation(isolate: str | None, facts: EnvFacts) -> None:
    """Check that an environment supports an isolation.

    Raises:
        BadOption: The isolation is ``"loop"``, and the environment has no coroutine functions.
    """
    if isolate == "loop" and not facts.awaited:
        raise BadOption(
            "isolate",
            "loop",
            problem=f"awaits reset and step, and {facts.env_id} has no coroutine functions: use "
            "'thread' or 'process'",
        )


def _reset_arguments(seed: int | None, options: dict[str, Any] | None) -> dict[str, Any]:
    """Return the arguments that are set: some environments accept no seed or no options."""
    arguments: dict[str, Any] = {} if seed is None else {"seed": seed}
    if options is not None:
        arguments["options"] = options
    return arguments


async def _outcome(call: Coroutine[Any, Any, Any]) -> CallOutcome:
    try:
        return await call, None
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # noqa: BLE001 - sys.exit and a cancellation are failures of this call
        return None, as_exception(error)


def _in_thread(work: Callable[[], None]) -> None:
    """Run a function in a new thread, or in this one if the program is exiting."""
    try:
        threading.Thread(target=work, name="agentgym-close", daemon=True).start()
    except RuntimeError:
        work()


async def _in_close_seconds(closing: Any) -> None:
    await asyncio.wait_for(closing, CLOSE_SECONDS)


def _log_not_closed(env_id: str, error: BaseException) -> None:
    logger.warning("closing %s failed: %s: %s", env_id, type(error).__name__, error)
