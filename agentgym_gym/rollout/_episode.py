"""One episode of a text environment: reset, turns, end and record."""

from __future__ import annotations

import asyncio
import math
import sys
import time
from collections import Counter
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from agentgym_gym._text import scrub
from agentgym_gym.rollout._call_thread import as_exception, cancelled_by_caller
from agentgym_gym.rollout._check_results import (
    TurnResult,
    check_reset,
    error_of_part,
    error_of_step,
    fault_of,
    flag,
    number,
    stated_fault,
    stated_success,
    step_facts,
)
from agentgym_gym.rollout._env_facts import EnvCounters, tools_of
from agentgym_gym.rollout._history import Conversation, History, system_message
from agentgym_gym.rollout._records import EpisodeRecord, StepRecord, goal_of
from agentgym_gym.rollout._specs import Unregistered

if TYPE_CHECKING:
    from typing_extensions import Self

    from agentgym_gym.rollout._env_facts import EnvFacts
    from agentgym_gym.rollout._workers import Worker, Workers

__all__ = ["Episode"]


class Episode:
    """One episode. Use it with ``async with``, in one task of one event loop.

    A failure of the environment is never raised: it becomes the `fault` of the episode, which is then over.

    The episode reads these keys of ``info``, if present: ``success``, ``fault``, ``goal``, ``action``,
    ``parse_error``, ``invalid_action``, ``ignored_actions`` and ``history_summary``. It ignores all others.

    Args:
        workers: Source of the environment.
        task: Number of the task: the ``task_id`` of an environment that numbers its tasks
            (``metadata["task_option"]``), otherwise a seed.
        seed: Seed of ``reset``.
        options: Options of ``reset``.
        success_at: Minimum return of a solved task, if ``info`` has no ``success``; by default the registered
            ``reward_threshold``.
        max_turns: Maximum number of turns; None leaves the limit to the environment.
        history: The part of the conversation that `chat` returns: a `History`, or its text such as
            ``"turns:4"``.

    Attributes:
        observation: The latest observation; empty after a fault.
        info: The info of the latest successful reset or step.
        rewards: Reward of each turn.
        terminated: Whether the environment ended the episode.
        truncated: Whether a turn limit or a fault ended the episode.
        over: Whether no further step is possible.
        fault: ``kind`` and ``message`` of the environment's failure, or None. An episode with a fault has no
            score, and does not count for or against the agent.
        error: The exception that caused the fault, if there is one.
        transient: Whether a retry of the task may succeed: False if the exception has an attribute
            ``transient`` that is False, or the environment sets ``info["fault"]["transient"]`` to False.
        messages: Observations (role ``user``) and replies (``assistant``), in order.
        steps: Record of each reply.
        parse_errors: Number of replies without an action, by kind.
        invalid_actions: Number of actions that the environment rejected, including parse errors.
        env_seconds: Seconds spent waiting for the environment.
        reset_seconds: The part of them that the reset took.

    Raises:
        BadOption: The history is not a policy.
    """

    def __init__(
        self,
        workers: Workers,
        *,
        task: int | None = None,
        seed: int | None = None,
        options: Mapping[str, Any] | None = None,
        success_at: float | None = None,
        max_turns: int | None = None,
        history: History | str = "all",
    ) -> None:
        self._workers = workers
        self.task, self.seed, self.options = task, seed, dict(options) if options else None
        self._success_at = success_at
        self._max_turns = max_turns
        self._history = History.parse(history)
        self._conversation: Conversation | None = None  # made by the first `chat`
        self._worker: Worker | None = None
        self.facts: EnvFacts | None = None
        self.observation = ""
        self.info: Mapping[str, Any] = {}
        self.rewards: list[float] = []
        self.terminated = self.truncated = self.over = False
        self.fault: dict[str, str] | None = None
        self.error: Exception | None = None
        self.transient = False
        self.messages: list[dict[str, str]] = []
        self.steps: list[StepRecord] = []
        self.parse_errors: Counter[str] = Counter()
        self.invalid_actions = 0
        self.env_seconds = self.reset_seconds = 0.0
        self._unplayed = False  # whether the environment has not executed the last reply
        self._stepping = False
        self._counters = EnvCounters()
        self._began = time.monotonic()

    async def __aenter__(self) -> Self:
        return await self.begin()

    async def __aexit__(self, *_: object) -> None:
        await self.end()

    async def begin(self) -> Self:
        """Acquire an environment and reset it. Without ``async with``, call `end` in a ``finally``.

        Raises:
            Unregistered: No environment is registered under the id.
        """
        try:
            await self._begin()
        except BaseException:
            await self.end()
            raise
        return self

    @property
    def env(self) -> Any:
        """The environment, for access to its attributes; an agent must not step it."""
        return None if self._worker is None else self._worker.env

    @property
    def system_prompt(self) -> str | None:
        """Instructions for the model before the first observation; None if the environment has none."""
        return None if self.facts is None else self.facts.system_prompt

    @property
    def tools(self) -> list[dict[str, Any]]:
        """The functions that the model may call, as JSON schemas; empty if the environment has none."""
        return [] if self.env is None else tools_of(self.env)

    @property
    def goal(self) -> str | None:
        """Short description of the task, if ``info`` has one."""
        return goal_of(self.info)

    @property
    def success(self) -> bool | None:
        """Whether the task is solved so far; None if unknown, as after a fault."""
        if self.fault is not None:
            return None
        stated = stated_success(self.info.get("success"))
        if stated is not None:
            return stated
        at = self._success_at
        if at is None and self.facts is not None:
            at = self.facts.success_at
        return None if at is None else math.fsum(self.rewards) >= at

    @property
    def ignored_actions(self) -> int:
        """Number of calls in replies that the environment did not execute."""
        return sum(len(step.get("ignored_actions", ())) for step in self.steps)

    @property
    def retries(self) -> int:
        """Number of requests that the environment retried, if it counts them in ``stats.retries``."""
        counters = self.counters()
        retries = counters.get("retries") if counters is not None else None
        return retries if isinstance(retries, int) else 0

    def chat(self) -> list[dict[str, str]]:
        """Return the messages of the next request to a model: system prompt, observations and replies.

        The history policy decides which turns these are. Call this method once before each reply. Token
        counts are the ``prompt_tokens`` in the steps of `add_reply`, and estimates without these.

        Raises:
            BadOption: The summary of the history is not available.
        """
        if self._conversation is None:
            self._conversation = Conversation(self._history, list(system_message(self.system_prompt)))
            for message in self.messages:
                self._conversation.add(message, self.info)
        return [dict(message) for message in self._conversation.to_send()]

    def add_reply(self, text: str, step: StepRecord | None = None) -> None:
        """Add a reply to the record before it is executed; one without a step record is never executed.

        Args:
            text: The reply of the model.
            step: Record of the reply.
        """
        message = {"role": "assistant", "content": text if text.isascii() else scrub(text)}
        record: StepRecord = {} if step is None else step
        self.messages.append(message)
        self.steps.append(record)
        self._unplayed = True
        if (conversation := self._conversation) is None:
            return
        if conversation.omitted:
            record["omitted_turns"] = conversation.omitted
        if record.get("prompt_tokens"):
            conversation.counted(record["prompt_tokens"])
        conversation.add_reply(message)

    async def step(self, action: Any) -> TurnResult:
        """Execute one turn.

        Args:
            action: The argument of the environment's ``step``: the reply of a model, as text.

        Raises:
            RuntimeError: The episode is over, or another step of it is running.
        """
        worker = self._worker
        if self.over or worker is None:
            raise RuntimeError("the episode is over: start another")
        if self._stepping:
            raise RuntimeError("a step of this episode is running: await it first")
        if not self._unplayed:
            self.add_reply(str(action))
        record = self.steps[-1]
        self._stepping = True
        self._unplayed = False
        began = time.perf_counter()
        try:
            answer = await worker.step(action)
        except (Exception, SystemExit) as error:  # noqa: BLE001 - an environment may raise anything
            return self._failed_step(error)
        except asyncio.CancelledError as cancelled:
            worker.broken = True
            if cancelled_by_caller():
                raise
            return self._failed_step(cancelled)
        except BaseException:
            worker.broken = True
            raise
        finally:
            self._stepping = False
            record["env_seconds"] = seconds = time.perf_counter() - began
            self.env_seconds += seconds
        return self._store_result(answer, record)

    def _store_result(self, answer: Any, record: StepRecord) -> TurnResult:
        """Store the result of a step."""
        try:
            observation, reward, terminated, truncated, info = answer
            if type(reward) is not float:
                reward = number("reward", reward)
            if type(terminated) is not bool or type(truncated) is not bool:
                terminated, truncated = flag("terminated", terminated), flag("truncated", truncated)
        except (TypeError, ValueError, OverflowError) as error:
            return self._failed_step(error_of_step(answer, error))
        is_info = type(info) is dict or isinstance(info, Mapping)  # fast path for a dict
        if not (isinstance(observation, str) and is_info and math.isfinite(reward)):
            return self._failed_step(error_of_part(observation, reward, info))
        if info.get("fault"):
            return self._stated_fault(info)
        if not observation.isascii():
            observation = scrub(observation)
        self.observation, self.info = observation, info
        self.rewards.append(reward)
        self.messages.append({"role": "user", "content": observation})
        if self._conversation is not None:
            self._conversation.add(self.messages[-1], info)
        self.terminated, self.truncated = terminated, truncated
        if "action" in info or "parse_error" in info or "invalid_action" in info:
            self._note(record, info)
        if self._max_turns is not None and len(self.rewards) >= self._max_turns and not terminated:
            self.truncated = truncated = True
        self.over = terminated or truncated
        return tuple.__new__(TurnResult, (observation, reward, terminated, truncated, info))

    async def end(self) -> None:
        """Release the environment, or close it if its state is unknown. Repeated calls have no effect."""
        worker, self._worker = self._worker, None
        if worker is None:
            return
        self._counters.end()  # before another episode uses the environment
        began = time.perf_counter()
        if worker.broken or not self._has_known_state():
            await self._workers.discard(worker)
        else:
            self._workers.release(worker)
        self.env_seconds += time.perf_counter() - began

    def counters(self) -> dict[str, Any] | None:
        """Return the environment's counters for this episode, if ``env.stats`` exists."""
        return self._counters.values()

    def record(
        self,
        *,
        agent: str,
        task_id: int | None = None,
        sample: int = 0,
        ending: str = "",
        agent_fault: Mapping[str, str] | None = None,
        agent_seconds: float | None = None,
    ) -> EpisodeRecord:
        """Return the record of the episode in its current state.

        Args:
            agent: Name of the agent.
            task_id: Number of the task; by default the number of the episode's task, the ``task_id`` in its
                options, its seed, or 0.
            sample: Index of the episode among several of the task.
            ending: How the episode ended, such as ``gave_up``, if the environment did not end it.
            agent_fault: Kind and message of the agent's fault that ended the episode.
            agent_seconds: Seconds spent waiting for the agent; by default the sum over its steps.
        """
        scored = self.fault is None and agent_fault is None
        returned = math.fsum(self.rewards)
        if task_id is None:
            numbers: tuple[Any, ...] = (self.task, (self.options or {}).get("task_id"), self.seed)
            task_id = next((int(number) for number in numbers if _is_whole(number)), 0)
        if agent_seconds is None:
            agent_seconds = math.fsum(step.get("agent_seconds", 0.0) for step in self.steps)
        served_by = self.info.get("served_by")
        return EpisodeRecord(
            env_id=self._workers.env_id,
            agent=agent,
            task_id=task_id,
            goal=self.goal,
            score=returned if scored else None,
            success=self.success if scored else None,
            return_=returned,
            turns=len(self.rewards),
            terminated=self.terminated,
            truncated=self.truncated or self.fault is not None,
            parse_errors=dict(self.parse_errors),
            fault=self.fault,
            seconds=time.monotonic() - self._began,
            rewards=tuple(self.rewards),
            messages=tuple(self.messages),
            counters=self.counters(),
            sample=sample,
            agent_fault=agent_fault,
            ending=ending if scored and not (self.terminated or self.truncated) else "",
            agent_seconds=agent_seconds,
            env_seconds=self.env_seconds,
            steps=tuple(self.steps),
            served_by=served_by if isinstance(served_by, str) else None,
        )

    async def _begin(self) -> None:
        began = time.perf_counter()
        try:
            self._worker = worker = await self._workers.acquire()
        except Unregistered:
            raise  # a mistake in the call, which would affect every episode
        except (Exception, SystemExit) as error:  # noqa: BLE001 - an environment may raise anything
            self._fail(error)
            return
        self.facts = worker.facts
        if self._max_turns is None or (worker.facts.max_turns or sys.maxsize) < self._max_turns:
            self._max_turns = worker.facts.max_turns
        self._counters.begin(worker.env)
        self._choose_task(worker.facts.task_option)
        resets = time.perf_counter()
        try:
            answer = await worker.reset(self.seed, self.options)
            observation, info = check_reset(answer, worker.facts.env_id)
        except (Exception, SystemExit) as error:  # noqa: BLE001 - the same
            self._fail(error)
            return
        except BaseException:
            worker.broken = True
            raise
        finally:
            ended = time.perf_counter()
            self.env_seconds, self.reset_seconds = ended - began, ended - resets
        self.info = info
        if info.get("fault"):
            self._fail_as_stated(info["fault"])
            return
        self.observation = observation if observation.isascii() else scrub(observation)
        self.messages.append({"role": "user", "content": self.observation})

    def _choose_task(self, option: str | None) -> None:
        """Convert the number of the task to an option or a seed of the reset."""
        if self.task is not None and option is not None:
            self.options = {option: self.task, **(self.options or {})}
        elif self.task is not None and self.seed is None:
            self.seed = self.task

    def _note(self, record: StepRecord, info: Mapping[str, Any]) -> None:
        facts = step_facts(info)
        record.update(facts)
        if "parse_error" in facts:
            self.parse_errors[facts["parse_error"]] += 1
        if "parse_error" in facts or info.get("invalid_action"):
            self.invalid_actions += 1

    def _has_known_state(self) -> bool:
        """Return whether the environment's state is known: it had no fault, or reported the fault itself."""
        return self.fault is None or self.error is None or hasattr(self.error, "transient")

    def _failed_step(self, error: BaseException) -> TurnResult:
        self._fail(error)
        self.rewards.append(0.0)
        return TurnResult("", 0.0, terminated=False, truncated=True, info={"fault": self.fault})

    def _stated_fault(self, info: Mapping[str, Any]) -> TurnResult:
        self._fail_as_stated(info["fault"])
        self.info = info
        self.rewards.append(0.0)
        return TurnResult("", 0.0, terminated=False, truncated=True, info={**info, "fault": self.fault})

    def _fail(self, error: BaseException) -> None:
        self.error = error = as_exception(error)
        self.fault = fault_of(error)
        self.transient = getattr(error, "transient", None) is not False
        self._end_with_fault()

    def _fail_as_stated(self, stated: Any) -> None:
        self.fault = stated_fault(stated)
        self.transient = not isinstance(stated, Mapping) or stated.get("transient") is not False
        self._end_with_fault()

    def _end_with_fault(self) -> None:
        self.observation, self.over = "", True
        self.truncated = True


def _is_whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)
