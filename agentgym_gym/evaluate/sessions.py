"""An environment as the runner plays it: always awaited, in a thread where it cannot be by itself."""

from __future__ import annotations

import inspect
import math
import queue
import threading
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any, Protocol

from agentgym_gym._base_env import BaseTextEnv
from agentgym_gym._text import scrub
from agentgym_gym.errors import AgentGymError, BadOption, Fault
from agentgym_gym.evaluate.records import TextEnv, env_id_of

if TYPE_CHECKING:
    from agentgym_gym._episode import StepResult

__all__ = ["Caller", "OwnThread", "Session", "call_here"]


class Caller(Protocol):
    """How a function of an environment or an agent is called. It may be a coroutine function."""

    async def __call__(self, function: Callable[..., Any], /, *arguments: Any, **named: Any) -> Any:
        """Call it, await what it returns if that can be awaited, and return the result."""


async def call_here(function: Callable[..., Any], /, *arguments: Any, **named: Any) -> Any:
    """Call a function in this thread."""
    value = function(*arguments, **named)
    return await value if inspect.isawaitable(value) else value


class OwnThread:
    """Calls functions one after another in a thread of its own, so that the event loop does not wait.

    The thread starts with a call and ends with :meth:`stop`, or with the program.
    """

    def __init__(self) -> None:
        self._work: queue.SimpleQueue[Callable[[], None] | None] | None = None

    async def __call__(self, function: Callable[..., Any], /, *arguments: Any, **named: Any) -> Any:
        """Call a function in the thread; a coroutine function is awaited in the event loop."""
        import asyncio  # noqa: PLC0415 - importing the library must be cheap

        if inspect.iscoroutinefunction(function):
            return await function(*arguments, **named)
        done: Future[Any] = Future()

        def work() -> None:
            if not done.set_running_or_notify_cancel():
                return
            try:
                done.set_result(function(*arguments, **named))
            except BaseException as error:  # noqa: BLE001 - it is for whoever awaits this
                done.set_exception(error)

        if self._work is None:
            self._work = queue.SimpleQueue()
            threading.Thread(target=_serve, args=(self._work,), name="agentgym-evaluate", daemon=True).start()
        self._work.put(work)
        value = await asyncio.wrap_future(done)
        return await value if inspect.isawaitable(value) else value

    def stop(self) -> None:
        """End the thread when it has done its work. Another call starts a new one."""
        if self._work is not None:
            self._work.put(None)
            self._work = None


def _serve(queued: queue.SimpleQueue[Callable[[], None] | None]) -> None:
    while (work := queued.get()) is not None:
        work()


class Session:
    """An environment in which one episode is played after another.

    Args:
        env: The environment: AgentGym's, awaited or not, or any of gymnasium whose observations and actions
            are text.
        call: How its methods are called.

    Attributes:
        env: The environment.
        own: It without wrappers, where it is AgentGym's; else None.
        reads_what_it_writes: Whether a typed action and its text in the environment's format are the same to
            it.
    """

    def __init__(self, env: TextEnv, call: Caller) -> None:
        self.env = env
        self._call = call
        own = env.unwrapped
        self.own = own if isinstance(own, BaseTextEnv) else None
        # AgentGym's own readers may read something else from the text of an action.
        self.reads_what_it_writes = self.own is not None and self.own.parser == "default"

    async def reset(self, task_id: int) -> tuple[str, dict[str, Any]]:
        """Begin a task; for an environment that is not AgentGym's, the seed of its ``reset``.

        Raises:
            Fault: It cannot be begun.
            BadOption: The environment says something that is not text.
        """
        if self.own is not None:
            begun: tuple[str, dict[str, Any]] = await self._call(self.env.reset, options={"task_id": task_id})
            return begun
        observation, info = await self._alone(self.env.reset, seed=task_id)
        return self._text(observation), {"task_id": task_id, **info}

    async def step(self, action: Any) -> StepResult | tuple[str, float, bool, bool, dict[str, Any]]:
        """Play a turn. A fault of the environment stands in the info, and ends the episode.

        Raises:
            Fault: The environment failed and raised it.
            BadOption: The environment says something that is not text.
        """
        if self.own is not None:
            result: StepResult = await self._call(self.env.step, action)
            return result
        observation, reward, terminated, truncated, info = await self._alone(self.env.step, action)
        fault = info.get("fault")
        if isinstance(fault, Mapping):
            info = {**info, "fault": {key: str(fault.get(key)) for key in ("kind", "message")}}
            truncated = True
        value = await _failing_as_fault(call_here, _finite, reward)
        return self._text(observation), value, bool(terminated), bool(truncated), info

    async def close(self) -> None:
        """Close the environment."""
        await self._call(self.env.close)

    def score(self, info: Mapping[str, Any], rewards: list[float]) -> float:
        """Return the score of an episode: the environment's, else the sum of its rewards."""
        return float(info["score"]) if self.own is not None else math.fsum(rewards)

    def success(self, info: Mapping[str, Any]) -> bool | None:
        """Return whether the task was solved, None where the environment does not say."""
        said = info["success"] if self.own is not None else info.get("success")
        return None if said is None else bool(said)

    async def _alone(self, method: Callable[..., Any], *arguments: Any, **named: Any) -> Any:
        return await _failing_as_fault(self._call, method, *arguments, **named)

    def _text(self, observation: Any) -> str:
        if not isinstance(observation, str):
            raise BadOption(
                f"{env_id_of(self.env)} is no text environment: its observation is of type "
                f"{type(observation).__name__}, not str; wrap it in agentgym_gym.rollout.adapter.TextAdapter"
            )
        return scrub(observation)


class _Failed(Fault):
    """Another's environment raised an error."""

    @property
    def kind(self) -> str:
        return type(self.__cause__).__name__


async def _failing_as_fault(call: Caller, function: Callable[..., Any], *arguments: Any, **named: Any) -> Any:
    """Call another's code.

    Raises:
        Fault: It raised something else than one of this library's errors.
    """
    try:
        return await call(function, *arguments, **named)
    except AgentGymError:
        raise
    except Exception as error:
        raise _Failed(str(error)) from error


def _finite(reward: Any) -> float:
    value = float(reward)
    if not math.isfinite(value):
        raise ValueError(f"the reward is {value}")
    return value
