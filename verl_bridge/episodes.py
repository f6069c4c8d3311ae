"""Episodes that can be awaited, over any text environment of gymnasium.

``await Episode.begin(task)`` makes or reuses an environment, ``await episode.step(reply)`` plays a turn, and
``await episode.end()``, which belongs in a ``finally``, releases the environment. A failure of the
environment is never raised: it is the episode's ``fault``.

Of ``info``, ``fault``, ``success``, ``parse_error``, ``invalid_action`` and ``ignored_actions`` are read, if
they are there.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Awaitable, Mapping
from typing import Any, NamedTuple

from verl_bridge.environments import Held, Unregistered, close_all, take
from verl_bridge.labels import labels_of
from verl_bridge.tasks import Task

__all__ = ["Episode", "StepResult", "Task", "close_all", "ignored_actions"]

_WAITS = 3  # time limits of calls that hang, one after the other, for which a call waits for a thread


class StepResult(NamedTuple):
    """What a step returned. After a fault: no observation, no reward, truncated, ``info["fault"]``."""

    observation: str
    reward: float
    terminated: bool
    truncated: bool
    info: Mapping[str, Any]


class Episode:
    """One task being played. Begin it by :meth:`begin`; use it from one task of one event loop.

    Attributes:
        task: What is played.
        observation: The first observation, then the latest; empty if there was a fault.
        rewards: Reward of each turn.
        over: Whether the environment has ended the episode, or failed.
        fault: None, or the ``kind`` and ``message`` of what went wrong in the environment. Such an episode
            says nothing about the agent.
        goal: The task in a few words, where the environment says it by ``info["goal"]``.
        transient: Whether the fault may be gone when the task is played again. It is not where the exception
            says so by an attribute ``transient``, or the environment by ``info["fault"]["transient"]``.
        replays: How often this task was played before, for its record.
    """

    def __init__(self, task: Task, timeout: float | None = None, *, replays: int = 0) -> None:
        self.task = task
        self.replays = replays
        self.observation = ""
        self.goal: str | None = None
        self.rewards: list[float] = []
        self.over = False
        self.fault: dict[str, str] | None = None
        self.transient = False
        self._timeout = timeout
        self._held: Held | None = None
        self._success = False
        self._unread = 0
        self._invalid = 0
        self._ignored = 0
        self._retries = 0
        self._playing = False

    @classmethod
    async def begin(cls, task: Task, *, timeout: float | None = None, replays: int = 0) -> Episode:
        """Start a task in an environment from the pool, or a new one.

        Args:
            task: What is to be played.
            timeout: Seconds allowed for making the environment and for each reset and step, after which it
                counts as failed; None waits for good.
            replays: How often the task was played before.

        Raises:
            ValueError: No environment is registered by the task's id.
        """
        episode = cls(task, timeout, replays=replays)
        try:
            await episode._begin()
        except BaseException:
            await episode.end()
            raise
        return episode

    async def step(self, reply: str) -> StepResult:
        """Play one turn.

        Args:
            reply: What the model wrote.

        Raises:
            RuntimeError: The episode is over or ended, or a step of it is being played.
        """
        if self.over or self._held is None:
            raise RuntimeError("the episode is over: begin another")
        if self._playing:
            raise RuntimeError("a step of this episode is being played: await it first")
        self._playing = True
        try:
            turn = await self._played(self._held.step(reply))
        finally:
            self._playing = False
        self.rewards.append(turn.reward)
        self.observation = turn.observation
        self._unread += bool(turn.info.get("parse_error"))
        self._invalid += bool(turn.info.get("parse_error") or turn.info.get("invalid_action"))
        self._ignored += len(ignored_actions(turn.info))
        self.over = turn.terminated or turn.truncated
        success = turn.info.get("success")
        self._success = bool(turn.terminated and sum(self.rewards) > 0) if success is None else bool(success)
        return turn

    async def end(self) -> None:
        """Release the environment, or close it after a fault or an interrupt. May be called again."""
        held, self._held = self._held, None
        if held is not None:
            self._retries = held.retries
            await held.leave(usable=self.fault is None)

    def record(self) -> dict[str, float]:
        """Return the numbers of the episode, always the same; the return of a faulted one is 0."""
        valid = self.fault is None
        return {
            "return": float(sum(self.rewards)) if valid else 0.0,
            "success": float(self.success),
            "turns": float(len(self.rewards)),
            "parse_errors": float(self._unread),
            "invalid_actions": float(self._invalid),
            "ignored_actions": float(self._ignored),
            "retries": float(self._retries if self._held is None else self._held.retries),
            "fault": float(not valid),
            "replays": float(self.replays),
        }

    @property
    def success(self) -> bool:
        """Whether the task is solved so far; a faulted episode solves none."""
        return self._success and self.fault is None

    def labels(self) -> dict[str, str]:
        """Return what the episode was and what its fault was, as text, always the same keys.

        Passwords in addresses are left out, and what is long is cut.
        """
        return labels_of(self.task, self.fault)

    async def _begin(self) -> None:
        self._held = take(self.task.env_id, self.task.env_kwargs)
        try:
            await self._in_time(self._held.open())
            answer = await self._in_time(self._held.reset(self.task.seed, dict(self.task.options) or None))
            observation, info = _checked(answer, ("observation", "info"))
        except Unregistered:
            raise  # a mistake in the data, which every episode would meet
        except Exception as error:  # noqa: BLE001 - whatever an environment may raise
            self._fail(_fault_of(error), error)
            return
        if info.get("fault"):
            self._fail(_stated(info["fault"]), info["fault"])
        else:
            self.observation = observation
            self.goal = info["goal"] if isinstance(info.get("goal"), str) else None

    async def _played(self, step: Awaitable[Any]) -> StepResult:
        try:
            answer = await self._in_time(step)
            observation, reward, terminated, truncated, info = _checked(
                answer, ("observation", "reward", "terminated", "truncated", "info")
            )
            reward = float(reward)
            if not math.isfinite(reward):
                raise ValueError(f"the reward is {reward}, not a number that can be summed")
        except Exception as error:  # noqa: BLE001
            fault, info = _fault_of(error), {}
            self._fail(fault, error)
        else:
            if not info.get("fault"):
                return StepResult(observation, reward, bool(terminated), bool(truncated), info)
            fault = _stated(info["fault"])
            self._fail(fault, info["fault"])
        return StepResult("", 0.0, terminated=False, truncated=True, info={**info, "fault": fault})

    async def _in_time(self, call: Awaitable[Any]) -> Any:
        if self._timeout is None or self._held is None:
            return await call
        # Not by wait_for, whose TimeoutError cannot be told from one that the environment raises.
        held, asked = self._held, time.monotonic()
        held.call_began = None  # what stands there is of the call before
        task = asyncio.ensure_future(call)
        try:
            while not task.done():
                # A call may have to wait for a thread until those before it have used up their own time.
                began = held.call_began or asked + _WAITS * self._timeout
                left = began + self._timeout - time.monotonic()
                if left <= 0:
                    raise TimeoutError(held.no_answer(self._timeout))
                await asyncio.wait({task}, timeout=left)
        finally:
            task.cancel()
        return task.result()

    def _fail(self, fault: dict[str, str], cause: Any) -> None:
        self.fault, self.over, self.observation = fault, True, ""
        says = cause.get("transient") if isinstance(cause, Mapping) else getattr(cause, "transient", None)
        self.transient = says is not False


def ignored_actions(info: Mapping[str, Any]) -> list[str]:
    """Return the calls of a reply that the environment did not play; none where it does not list them."""
    ignored = info.get("ignored_actions")
    if not isinstance(ignored, (list, tuple)):
        return []
    return [str(text) for text in ignored]


def _checked(answer: Any, names: tuple[str, ...]) -> tuple[Any, ...]:
    if not isinstance(answer, tuple) or len(answer) != len(names):
        raise TypeError(f"the environment should return {', '.join(names)}, not {answer!r:.200}")
    if not isinstance(answer[0], str):
        raise TypeError(f"the observation should be text, not {type(answer[0]).__name__}")
    if not isinstance(answer[-1], Mapping):
        raise TypeError(f"the info should be a mapping, not {type(answer[-1]).__name__}")
    return answer


def _fault_of(error: BaseException) -> dict[str, str]:
    return {"kind": type(error).__name__, "message": str(error)}


def _stated(fault: Any) -> dict[str, str]:
    said = fault if isinstance(fault, Mapping) else {"message": fault}
    return {"kind": str(said.get("kind", "Fault")), "message": str(said.get("message", ""))}
