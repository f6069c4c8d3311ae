"""The audited environment: makes it, plays it and explores it."""

from __future__ import annotations

import asyncio
import contextlib
import copy
import os
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from agentgym_gym.actions import Action, Verbatim
from agentgym_gym.evaluate import AgentReply
from agentgym_gym.evaluate._episode import call_here, rendered_action
from agentgym_gym.rollout import TextAdapter
from agentgym_gym.rollout._call_thread import CallThread
from agentgym_gym.rollout._check_results import fault_of
from agentgym_gym.rollout._process import ProcessWorker
from agentgym_gym.rollout._workers import CallerWorker, ThreadWorker
from agentgym_gym.testing._audit.episodes import ActionSequence, Trace, Transition
from agentgym_gym.testing._audit.findings import NotApplicable

if TYPE_CHECKING:
    from agentgym_gym.catalogue import Environment
    from agentgym_gym.evaluate import Agent
    from agentgym_gym.evaluate._episode import Caller
    from agentgym_gym.rollout import EnvFacts
    from agentgym_gym.testing._audit.choices import Choices

__all__ = [
    "LONGEST",
    "OpenEnv",
    "Source",
    "Subject",
    "TextMaker",
    "copied",
    "failed",
    "here",
    "reset_arguments",
]

T = TypeVar("T")

LONGEST = 60
"""Turns after which an explored episode is abandoned, if the environment has no lower limit."""

EXPLORED = 40
"""Episodes of `Subject.explored`."""

SOLVED = 12
"""Episodes of `Subject.solved`."""

_MORE = 6.0
"""Seconds that a check may take beyond its share, in order to play a least number of episodes."""

_SOLVER_TURNS = 200
"""Turns after which a solver's episode is abandoned, if the environment has no limit."""


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

    async def run(self, function: Callable[[Any], T]) -> T:
        """Call a function with the environment, in its thread, within the timeout of a call.

        Args:
            function: Takes the environment, whose ``reset`` and ``step`` are blocking.

        Raises:
            TimeoutError: The function did not return in time.
            Exception: The error of the function.
        """
        if isinstance(self._worker, CallerWorker):
            return function(self._worker.env)
        result: T = await self._worker.call(function, self._worker.env)
        return result

    async def begin(self, task: int) -> Trace:
        """Reset the environment for a task. An exception becomes the error of the trace."""
        arguments, began = reset_arguments(self.facts, task), time.perf_counter()
        try:
            answer = await self._worker.reset(arguments.get("seed"), arguments.get("options"))
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

    async def solve(self, task: int, agent: Agent, call: Caller) -> Trace:
        """Play the replies of an agent until the episode is over, or the agent ends it or fails.

        Args:
            task: Number of the task.
            agent: The agent.
            call: Calls its methods.
        """
        trace = await self.begin(task)
        with contextlib.suppress(Exception):  # a failure of the agent
            info: Any = {**trace.last_info, "task_id": task, "sample": 0}
            await call(agent.reset, self.env, trace.observation, info)
            for _ in range(self._subject.max_turns or _SOLVER_TURNS):
                if trace.over:
                    break
                observation = trace.transitions[-1].observation if trace.transitions else trace.observation
                reply = await call(agent.act, observation, info)
                text = _reply_text(self.env, reply.action if isinstance(reply, AgentReply) else reply)
                if text is None:
                    break
                trace = await self.step(text)
                info = trace.last_info
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
        self._solved: list[Trace] = []
        self._begun: dict[int, Trace] = {}
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

    def enough(self, played: int, least: int = 6) -> bool:
        """Return whether a check may end: its time is used, and it has played enough to find something.

        Args:
            played: The number of episodes, or of other parts of the check.
            least: The number to play although the time is used, for at most some seconds more.
        """
        left = self.seconds_left
        return left < 0 and (played >= least or left < -_MORE)

    def rng(self, *key: int) -> np.random.Generator:
        """Return a random generator that depends on the seed and a key only."""
        return np.random.default_rng([self.seed, *key])

    @contextlib.asynccontextmanager
    async def open(
        self,
        *,
        process: bool = False,
        make: Callable[[], Any] | None = None,
        timeout: float | None = None,
    ) -> AsyncIterator[OpenEnv]:
        """Make an environment, and close it at the end.

        Args:
            process: Whether it runs in another process.
            make: Makes the environment; by default `Subject.make`.
            timeout: Timeout of each call in seconds; by default the audit's.

        Raises:
            Exception: The error of its constructor.
        """
        worker_type = ProcessWorker if process else ThreadWorker
        worker = worker_type(make or self.make, timeout or self.timeout)
        opened = OpenEnv(worker, self)
        try:
            await worker.make()
            if worker.facts.awaited:
                worker.keep_in_thread()
            yield opened
        finally:
            await opened.close()

    def native(self, action: str) -> Any:
        """Return an action in the form of the environment without `TextAdapter`.

        Raises:
            ValueError: The text is not an action.
        """
        if not self.source.adapted:
            return action
        if self._adapter is None:
            self._adapter = TextAdapter(self.make_plain())
        return self._adapter.read(action)

    def native_literal(self, action: str) -> str:
        """Return an action as Python writes it, in the form of the environment without `TextAdapter`.

        Raises:
            ValueError: The text is not an action.
        """
        native = self.native(action)
        return repr(native.tolist() if hasattr(native, "tolist") else native)

    async def play(self, sequence: ActionSequence) -> Trace:
        """Play actions in a new environment."""
        async with self.open() as env:
            return await env.play(sequence)

    async def explored(self, *, failed: bool = False) -> Sequence[Trace]:
        """Return episodes of drawn actions, each in a new task as long as there are tasks.

        They are played once, by the first property that needs them, with one environment.

        Args:
            failed: Whether to return them also if each one fails in its reset or first step.

        Raises:
            NotApplicable: No episode can be started.
        """
        if not self._explored:
            async with self.open() as env:
                ends = 0.0
                for number in range(EXPLORED * (5 if self.thorough else 1)):
                    task = self.tasks[number % len(self.tasks)]
                    self._explored.append(await env.explore(task, self.rng(1, number)))
                    ends = ends or self._half_time()  # the first episode may have started a server
                    if self._explored[-1].timed_out or time.monotonic() > ends:
                        break
        if not failed and all(trace.error and not trace.transitions for trace in self._explored):
            raise NotApplicable(f"no episode can be started: {self._explored[0].error}")
        return self._explored

    async def solved(self) -> Sequence[Trace]:
        """Return episodes of the known solutions, each in another task; empty without a solver.

        They are played once, by the first property that needs them, with one environment.
        """
        if not self._solved:
            self._solved = await self.solve(self.tasks[:: max(1, len(self.tasks) // SOLVED)])
        return self._solved

    async def solve(self, tasks: Sequence[int]) -> list[Trace]:
        """Play the known solutions of tasks until half of the time is used; empty without a solver.

        Args:
            tasks: Numbers of the tasks.
        """
        traces: list[Trace] = []
        if self.solver is None:
            return traces
        agent, thread = self.solver(), CallThread("agentgym-solver")
        call: Caller = thread if getattr(agent, "blocking", True) else call_here
        try:
            async with self.open() as env:
                ends = 0.0
                for task in tasks:
                    traces.append(await env.solve(task, agent, call))
                    ends = ends or self._half_time()
                    if traces[-1].timed_out or time.monotonic() > ends:
                        break
        finally:
            thread.stop()
        return traces

    def _half_time(self) -> float:
        return time.monotonic() + max(2.0, self.seconds_left / 2)

    async def begun(self, tasks: Sequence[int], seconds: float) -> Sequence[Trace]:
        """Return the beginnings of tasks, without faults. Each is played once.

        Args:
            tasks: Numbers of the tasks.
            seconds: Time limit.
        """
        ends = time.monotonic() + seconds
        async with self.open() as env:
            for task in tasks:
                if task not in self._begun and time.monotonic() < ends:
                    trace = await env.begin(task)
                    self._begun[task] = trace
                    if trace.timed_out:
                        break
        return [self._begun[task] for task in tasks if task in self._begun and not self._begun[task].faulted]


def _reply_text(env: Any, action: Any) -> str | None:
    """Return the text of an agent's action; None for the end, and for calls of functions."""
    if isinstance(action, Action):
        return rendered_action(env, action, "", as_text=True)[0]
    return str(action) if isinstance(action, (str, Verbatim)) else None


def reset_arguments(facts: EnvFacts, task: int) -> dict[str, Any]:
    """Return the arguments of the reset that begins a task."""
    return {"seed": task} if facts.task_option is None else {"options": {facts.task_option: task}}


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
