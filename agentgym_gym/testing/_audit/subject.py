"""The audited environment: makes it, plays it and explores it."""

from __future__ import annotations

import asyncio
import contextlib
import copy
import os
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from agentgym_gym.rollout import TextAdapter
from agentgym_gym.rollout._check_results import fault_of
from agentgym_gym.rollout._process import ProcessWorker
from agentgym_gym.rollout._workers import CallerWorker, ThreadWorker
from agentgym_gym.testing._audit.episodes import ActionSequence, Trace, Transition
from agentgym_gym.testing._audit.findings import NotApplicable

if TYPE_CHECKING:
    from agentgym_gym.catalogue import Environment
    from agentgym_gym.evaluate import Agent
    from agentgym_gym.rollout import EnvFacts
    from agentgym_gym.testing._audit.choices import Choices

__all__ = ["LONGEST", "OpenEnv", "Source", "Subject", "TextMaker", "failed", "here"]

LONGEST = 60
"""Turns after which an explored episode is abandoned, if the environment has no lower limit."""

EXPLORED = 40
"""Episodes of `Subject.explored`."""


@dataclass(frozen=True)
class TextMaker:
    """Makes an environment; one whose observations are not text is wrapped in `TextAdapter`.

    Attributes:
        make: Makes the environment.
        adapt: Whether to wrap it.
    """

    make: Callable[[], Any]
    adapt: bool

    def __call__(self) -> Any:
        """Make the environment."""
        env = self.make()
        return TextAdapter(env) if self.adapt else env


@dataclass(frozen=True)
class Source:
    """How a program makes the environment.

    Attributes:
        imports: Lines that import what `expression` needs.
        expression: The Python expression that makes it; empty if no program can.
        adapted: Whether the audit plays it through `TextAdapter`, which programs do not need.
    """

    imports: tuple[str, ...]
    expression: str
    adapted: bool = False


class OpenEnv:
    """An environment that plays one episode after another. Its calls run in a thread or a process.

    Args:
        worker: The worker of the environment.
        subject: The audited environment.
    """

    def __init__(self, worker: ThreadWorker | CallerWorker, subject: Subject) -> None:
        self._worker = worker
        self._subject = subject
        self._trace = Trace(0)

    @property
    def env(self) -> Any:
        """The environment, or its proxy if it is in another process."""
        return self._worker.env

    @property
    def facts(self) -> EnvFacts:
        """Its properties."""
        return self._worker.facts

    @property
    def trace(self) -> Trace:
        """The current episode."""
        return self._trace

    async def begin(self, task: int) -> Trace:
        """Reset the environment for a task. An exception becomes the error of the trace."""
        options, began = None, time.perf_counter()
        seed: int | None = task
        if self.facts.task_option is not None:
            seed, options = None, {self.facts.task_option: task}
        try:
            answer = await self._worker.reset(seed, options)
        except Exception as error:  # noqa: BLE001 - an environment may raise anything
            self._trace = failed(Trace(task), error)
            return self._trace
        seconds = time.perf_counter() - began
        observation, info = answer if isinstance(answer, tuple) and len(answer) == 2 else (answer, None)  # noqa: PLR2004
        self._trace = Trace(task, copied(observation), copied(info), reset_seconds=seconds)
        return self._trace

    async def step(self, action: str) -> Trace:
        """Play an action, also after the end. An exception becomes the error of the trace."""
        began = time.perf_counter()
        try:
            observation, reward, terminated, truncated, info = await self._worker.step(action)
        except Exception as error:  # noqa: BLE001 - an environment may raise anything
            self._trace = failed(self._trace, error, action)
            return self._trace
        seconds = time.perf_counter() - began
        step = Transition(action, copied(observation), reward, terminated, truncated, copied(info), seconds)
        self._trace = replace(self._trace, transitions=(*self._trace.transitions, step))
        return self._trace

    async def play(self, sequence: ActionSequence) -> Trace:
        """Play actions until the episode is over."""
        trace = await self.begin(sequence.task)
        for action in sequence.actions:
            if trace.over:
                break
            trace = await self.step(action)
        return trace

    async def explore(self, task: int, rng: np.random.Generator, turns: int | None = None) -> Trace:
        """Play drawn actions until the episode is over, or for a number of turns.

        Args:
            task: Number of the task.
            rng: Source of randomness.
            turns: Maximum number of turns; by default the limit of the subject.
        """
        trace = await self.begin(task)
        for _ in range(self._subject.longest if turns is None else turns):
            if trace.over:
                break
            last = trace.transitions[-1] if trace.transitions else trace
            trace = await self.step(self._subject.choices.draw(last.observation, last.info, rng))
        return trace

    async def close(self) -> None:
        """Close the environment."""
        closing = self._worker.close()
        if closing is not None and not self._worker.busy:
            await asyncio.wait({asyncio.wrap_future(closing)}, timeout=10)


class Subject:
    """The audited environment.

    Args:
        make: Makes the environment, whose observations and actions are text.
        make_plain: Makes it without `TextAdapter`.
        source: How a program makes it.
        facts: Its properties.
        choices: Draws its actions.
        tasks: Numbers of the tasks to play.
        solver: Makes an agent that plays known solutions; None if there is none.
        environment: Its entry in the catalogue; None if it has none.
        splits: Task numbers by split; empty if it has none.
        seed: Seed of everything that is drawn.
        thorough: Whether to play more: all tasks, and more episodes of each property.
        timeout: Timeout of each call of the environment, in seconds.
        origin: The working directory and the variables before the environment was made first.

    Attributes:
        deadline: When the current property should end, as of `time.monotonic`.
        references: Reproducible episodes, which `references.references` plays once.
        failed: Names of properties that failed before; they may explain other failures.
    """

    def __init__(
        self,
        make: Callable[[], Any],
        make_plain: Callable[[], Any],
        source: Source,
        facts: EnvFacts,
        choices: Choices,
        tasks: Sequence[int],
        *,
        solver: Callable[[], Agent] | None = None,
        environment: Environment | None = None,
        splits: Mapping[str, Sequence[int]] | None = None,
        seed: int = 0,
        thorough: bool = False,
        timeout: float = 30.0,
        origin: tuple[str, Mapping[str, str]] | None = None,
    ) -> None:
        self.make, self.make_plain, self.source = make, make_plain, source
        self.facts, self.choices, self.tasks = facts, choices, tuple(tasks)
        self.solver, self.environment, self.splits = solver, environment, dict(splits or {})
        self.seed, self.thorough, self.timeout = seed, thorough, timeout
        self.deadline = time.monotonic() + 3600
        self.origin = origin or here()
        self.references: list[Trace] = []
        self.failed: set[str] = set()
        self._explored: list[Trace] = []
        self._adapter: TextAdapter | None = None

    @property
    def max_turns(self) -> int | None:
        """The declared turn limit, if there is one."""
        if self.facts.max_turns is not None:
            return self.facts.max_turns
        return self.environment.max_turns if self.environment is not None else None

    @property
    def longest(self) -> int:
        """Turns after which an explored episode is abandoned."""
        return min(self.max_turns or LONGEST, LONGEST)

    @property
    def seconds_left(self) -> float:
        """Seconds until the current property should end."""
        return self.deadline - time.monotonic()

    def rng(self, *key: int) -> np.random.Generator:
        """Return a random generator that depends on the seed and a key only."""
        return np.random.default_rng([self.seed, *key])

    @contextlib.asynccontextmanager
    async def open(
        self, *, process: bool = False, make: Callable[[], Any] | None = None
    ) -> AsyncIterator[OpenEnv]:
        """Make an environment, and close it at the end.

        Args:
            process: Whether it runs in another process.
            make: Makes it; by default `make` of the subject.

        Raises:
            Exception: The error of its constructor.
        """
        worker = (ProcessWorker if process else ThreadWorker)(make or self.make, self.timeout)
        opened = OpenEnv(worker, self)
        try:
            await worker.make()
            if worker.facts.awaited:
                worker.keep_in_thread()
            yield opened
        finally:
            await opened.close()

    def native_literal(self, action: str) -> str:
        """Return an action as Python writes it, in the form of the environment without `TextAdapter`.

        Raises:
            ValueError: The text is not an action.
        """
        if not self.source.adapted:
            return repr(action)
        if self._adapter is None:
            self._adapter = TextAdapter(self.make_plain())
        native = self._adapter.read(action)
        return repr(native.tolist() if hasattr(native, "tolist") else native)

    async def play(self, sequence: ActionSequence) -> Trace:
        """Play actions in a new environment."""
        async with self.open() as env:
            return await env.play(sequence)

    async def explored(self) -> Sequence[Trace]:
        """Return episodes of drawn actions, each in a new task as long as there are tasks.

        They are played once, by the first property that needs them, with one environment.

        Raises:
            NotApplicable: No episode can be started.
        """
        if not self._explored:
            ends = min(self.deadline, time.monotonic() + max(2.0, self.seconds_left / 2))
            async with self.open() as env:
                for number in range(EXPLORED * (5 if self.thorough else 1)):
                    task = self.tasks[number % len(self.tasks)]
                    self._explored.append(await env.explore(task, self.rng(1, number)))
                    if self._explored[-1].timed_out or time.monotonic() > ends:
                        break
        if all(trace.error and not trace.transitions for trace in self._explored):
            raise NotApplicable(f"no episode can be started: {self._explored[0].error}")
        return self._explored


def here() -> tuple[str, dict[str, str]]:
    """Return the working directory and the variables."""
    return os.getcwd(), dict(os.environ)  # noqa: PTH109 - for a process


def copied(value: Any) -> Any:
    """Return a copy of a value that an environment may change later."""
    if isinstance(value, (str, int, float, bool, type(None))):
        return value
    try:
        return copy.deepcopy(value)
    except Exception:  # noqa: BLE001 - an object of any library
        return value


def failed(trace: Trace, error: Exception, action: str | None = None) -> Trace:
    """Return a trace that an exception ended, in an action or in the reset."""
    fault = fault_of(error)
    timed_out = isinstance(error, (TimeoutError, asyncio.TimeoutError))
    unplayed = () if action is None else (action,)
    return replace(
        trace, error=f"{fault['kind']}: {fault['message']}", timed_out=timed_out, unplayed=unplayed
    )
