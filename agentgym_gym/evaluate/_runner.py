"""The runner: plays episodes, sequentially or concurrently, and returns their records."""

from __future__ import annotations

import contextlib
import inspect
import itertools
from collections import Counter, deque
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from agentgym_gym.errors import AgentFault, BadOption
from agentgym_gym.evaluate._episode import AgentEpisode, call_here
from agentgym_gym.evaluate._episode_workers import Job, LocalEpisodeWorker, Servers
from agentgym_gym.rollout import CallerPool, Isolation, Pool

if TYPE_CHECKING:
    import gymnasium

    from agentgym_gym.evaluate._agents import Agent
    from agentgym_gym.evaluate._episode_workers import EpisodeWorker
    from agentgym_gym.evaluate._text_env import TextEnv
    from agentgym_gym.rollout import EpisodeRecord
    from agentgym_gym.rollout._workers import Worker

__all__ = [
    "episodes_of",
    "evaluate",
    "evaluate_async",
    "play_episode",
    "play_jobs",
    "probe_env",
]

T = TypeVar("T")

_FAULTS_IN_A_ROW = 20  # minimum number of agent faults in a row that aborts a run


def play_episode(
    env: gymnasium.Env[str, Any],
    agent: Agent,
    task_id: int,
    *,
    sample: int = 0,
    success_at: float | None = None,
) -> EpisodeRecord:
    """Play one task.

    For an environment of another library, the score is the sum of the rewards, and ``success`` is
    ``info["success"]``, if present. An error from the environment is a fault, with the error's class name as
    its kind.

    Args:
        env: The environment, as for `evaluate`.
        agent: The agent. Its typed actions are rendered in the environment's format, so that the record
            contains the text that was played.
        task_id: The task id, or the seed.
        sample: Index of the episode among the task's samples.
        success_at: Minimum return for success, for environments without ``info["success"]``; by default the
            registered ``reward_threshold``.

    Raises:
        SetupError: The task cannot be played until the setup is fixed.
    """
    play = AgentEpisode(_caller_pool(env), agent, call_here, success_at=success_at).play(task_id, sample)
    return _run_to_completion(play, agent)


def evaluate(
    env: gymnasium.Env[str, Any],
    agent: Agent,
    tasks: Iterable[int],
    *,
    samples: int = 1,
    on_episode: Callable[[EpisodeRecord], object] | None = None,
    success_at: float | None = None,
) -> list[EpisodeRecord]:
    """Play tasks one after another.

    Args:
        env: The environment: any gymnasium environment with text observations and text actions.
        agent: The agent.
        tasks: Task ids; for an environment of another library, seeds for its ``reset``.
        samples: Episodes of each task, from 1.
        on_episode: Called with each record as soon as its episode ends, so that an interrupted run loses no
            finished episode.
        success_at: Minimum return for success, for environments without ``info["success"]``; by default the
            registered ``reward_threshold``.

    Returns:
        A record for each episode. This includes faulted episodes, with their fault and without a score.

    Raises:
        SetupError: No task can be played until the setup is fixed.
        AgentFault: The agent failed in 20 episodes in a row.
    """
    pool = _caller_pool(env)

    async def play() -> list[EpisodeRecord]:
        records, watch = [], _FaultsInARow(_FAULTS_IN_A_ROW)
        for task_id, sample in episodes_of(tasks, samples):
            episode = AgentEpisode(pool, agent, call_here, success_at=success_at)
            record = await episode.play(task_id, sample)
            records.append(record)
            if on_episode is not None:
                on_episode(record)
            watch.note(record)
        return records

    return _run_to_completion(play(), agent)


def _caller_pool(env: gymnasium.Env[str, Any]) -> CallerPool:
    """Return a pool that calls an environment in this thread.

    Raises:
        BadOption: The environment must be awaited.
    """
    pool = CallerPool(env)
    if pool.facts.awaited:
        raise BadOption(f"{pool.env_id} has coroutines for methods: use evaluate_async()")
    return pool


def episodes_of(tasks: Iterable[int], samples: int) -> list[tuple[int, int]]:
    """Return the task id and sample of each episode: all tasks once, then all tasks again.

    Raises:
        BadOption: ``samples`` is less than 1.
    """
    if samples < 1:
        raise BadOption("samples", samples, "1 or more")
    tasks = list(tasks)
    return [(task_id, sample) for sample in range(samples) for task_id in tasks]


def _run_to_completion(work: Coroutine[Any, Any, T], agent: Agent) -> T:
    """Return the result of a coroutine, without an event loop if the agent is not awaited.

    Raises:
        BadOption: An event loop is needed, and one already runs in this thread.
    """
    if not any(map(inspect.iscoroutinefunction, (agent.reset, agent.act))):
        try:
            work.send(None)
        except StopIteration as done:
            result: T = done.value
            return result
        work.close()
        raise BadOption(f"the agent {agent.name} or its environment awaits something: use evaluate_async()")
    import asyncio  # noqa: PLC0415 - importing the library must be cheap

    with contextlib.suppress(RuntimeError):
        asyncio.get_running_loop()
        work.close()
        raise BadOption(
            f"the agent {agent.name} is awaited, and an event loop runs here: use evaluate_async()"
        )
    return asyncio.run(work)


async def evaluate_async(
    make_env: Callable[[], TextEnv],
    make_agent: Callable[[], Agent],
    tasks: Iterable[int],
    *,
    samples: int = 1,
    concurrency: int = 16,
    on_episode: Callable[[EpisodeRecord], object] | None = None,
    isolate: Isolation | None = None,
    timeout: float | None = None,
    success_at: float | None = None,
) -> list[EpisodeRecord]:
    """Play tasks concurrently.

    Args:
        make_env: Makes an environment. The integer attribute ``capacity`` of the first one limits the number
            of open environments.
        make_agent: Makes an agent, one for each concurrent episode.
        tasks: Task ids; for an environment of another library, seeds for its ``reset``.
        samples: Episodes of each task, from 1.
        concurrency: Concurrent episodes, from 1; fewer if the capacity of the environment's servers is lower.
        on_episode: Called with each record as soon as its episode ends.
        isolate: Where each environment runs, as for `agentgym_gym.rollout.Pool`: by default, coroutines are
            awaited, and any other environment runs in its own thread.
        timeout: Timeout in seconds for making an environment and for each reset and step; None disables it.
        success_at: Minimum return for success, for environments without ``info["success"]``; by default the
            registered ``reward_threshold``.

    Returns:
        A record for each episode, by sample and then in the order of the tasks.

    Raises:
        SetupError: No task can be played until the setup is fixed.
        AgentFault: The agent failed in many episodes in a row.
    """
    episodes = episodes_of(tasks, samples)
    records: dict[tuple[int, int], EpisodeRecord] = {}

    def take(record: EpisodeRecord) -> None:
        records[record.task_id, record.sample] = record
        if on_episode is not None:
            on_episode(record)

    async with probe_env(make_env, isolate=isolate, timeout=timeout) as probe:
        servers = Servers(probe.facts.capacity)
    job = Job(
        make_env,
        make_agent,
        episodes,
        take,
        servers,
        isolate=isolate,
        timeout=timeout,
        success_at=success_at,
    )
    await play_jobs([job], concurrency=concurrency)
    return [records[episode] for episode in episodes]


@contextlib.asynccontextmanager
async def probe_env(
    make_env: Callable[[], TextEnv], *, isolate: Isolation | None = None, timeout: float | None = None
) -> AsyncIterator[Worker]:
    """Make an environment for inspection, and close it at the end of the block.

    Args:
        make_env: Makes the environment.
        isolate: Where the environment runs.
        timeout: Timeout in seconds; None for no timeout.
    """
    async with Pool(make_env, isolate=isolate, timeout=timeout) as pool:
        worker = await pool.acquire()
        try:
            yield worker
        finally:
            pool.release(worker)


async def play_jobs(
    jobs: Iterable[Job], *, concurrency: int = 16, make_worker: Callable[[Job], EpisodeWorker] | None = None
) -> None:
    """Play several agents or environments, one job after another, without idle time between them.

    Args:
        jobs: The jobs to play.
        concurrency: Concurrent episodes, from 1.
        make_worker: Makes the worker that plays episodes of a job, one at a time; by default in this process.

    Raises:
        BadOption: ``concurrency`` is less than 1.
        SetupError: No task can be played until the setup is fixed.
        AgentFault: The agent failed in many episodes in a row: 20, or ``concurrency`` if that is more.
    """
    import asyncio  # noqa: PLC0415 - importing the library must be cheap

    if concurrency < 1:
        raise BadOption("concurrency", concurrency, "1 or more")
    queue = _Queue(jobs)
    watch = _FaultsInARow(max(_FAULTS_IN_A_ROW, concurrency))
    first = itertools.takewhile(bool, (queue.take(None) for _ in range(concurrency)))
    make_worker = make_worker or LocalEpisodeWorker
    running = [asyncio.ensure_future(_work(each, queue, watch, make_worker)) for each in first]
    if not running:
        return
    try:
        done, _ = await asyncio.wait(running, return_when=asyncio.FIRST_EXCEPTION)
    finally:
        for task in running:  # only once, because they close their workers on cancellation
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)
    for task in done:
        error = task.exception()
        if error is not None:
            raise error.by if isinstance(error, _Stopped) else error


class _Stopped(Exception):
    """An agent or an environment ended the program. An event loop accepts that only from its main task.

    Args:
        by: The original KeyboardInterrupt or SystemExit.
    """

    def __init__(self, by: BaseException) -> None:
        super().__init__(by)
        self.by = by


class _Assignment(NamedTuple):
    """An episode to play."""

    job: Job
    task_id: int
    sample: int


class _Queue:
    """The queue of remaining episodes, job by job, limited by the capacity of the servers."""

    def __init__(self, jobs: Iterable[Job]) -> None:
        self._left = {id(job): (job, deque(job.episodes)) for job in jobs}
        self._in_use: Counter[Servers] = Counter()  # number of workers by servers

    def take(self, before: Job | None) -> _Assignment | None:
        """Return the next episode for a worker, or None if there is none.

        Args:
            before: The worker's previous job. The worker keeps its environment while this job has episodes.
        """
        if before is not None:
            if self._left[id(before)][1]:
                return _Assignment(before, *self._left[id(before)][1].popleft())
            self._in_use[before.servers] -= 1
        for job, episodes in self._left.values():
            most = job.servers.capacity
            if episodes and (most is None or self._in_use[job.servers] < most):
                self._in_use[job.servers] += 1
                return _Assignment(job, *episodes.popleft())
        return None  # the other workers finish the remaining episodes


async def _work(
    assignment: _Assignment | None,
    queue: _Queue,
    watch: _FaultsInARow,
    make_worker: Callable[[Job], EpisodeWorker],
) -> None:
    """Play episodes one after another. Episodes of the same job share one environment."""
    worker: EpisodeWorker | None = None
    try:
        while assignment is not None:
            if worker is None or worker.job is not assignment.job:
                if worker is not None:
                    await worker.close()
                worker = make_worker(assignment.job)
            record = await worker.play(assignment.task_id, assignment.sample)
            assignment.job.on_episode(record)
            watch.note(record)
            assignment = queue.take(assignment.job)
    except (KeyboardInterrupt, SystemExit) as stop:
        raise _Stopped(stop) from stop
    finally:
        if worker is not None:
            await worker.close()


class _FaultsInARow:
    """Aborts a run in which the agent keeps failing.

    Args:
        most: Number of consecutive episodes with agent faults at which the run is aborted.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._count = 0

    def note(self, record: EpisodeRecord) -> None:
        """Count an episode.

        Raises:
            AgentFault: Too many consecutive episodes had agent faults.
        """
        if record.agent_fault is None:
            self._count = 0
            return
        self._count += 1
        if self._count >= self._most:
            raise AgentFault(
                f"the last {self._count} episodes were ended by faults of the agent {record.agent}; the last "
                f"one: {record.agent_fault['kind']}: {record.agent_fault['message']}"
            )
