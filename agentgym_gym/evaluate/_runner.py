"""The runner: plays episodes, one after another or many at once, and hands over their records."""

from __future__ import annotations

import contextlib
import inspect
import itertools
from collections import Counter, deque
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from agentgym_gym.errors import AgentFault, BadOption
from agentgym_gym.evaluate._episode import AgentEpisode, call_here
from agentgym_gym.evaluate._slots import LocalSlot, Part, Servers
from agentgym_gym.rollout import CallerPool, Isolation, Pool

if TYPE_CHECKING:
    import gymnasium

    from agentgym_gym.evaluate._agents import Agent
    from agentgym_gym.evaluate._slots import Slot
    from agentgym_gym.evaluate._text_env import TextEnv
    from agentgym_gym.rollout import EpisodeRecord
    from agentgym_gym.rollout._workers import Worker

__all__ = [
    "episodes_of",
    "evaluate",
    "evaluate_async",
    "play_episode",
    "play_parts",
    "probe_env",
]

T = TypeVar("T")

_FAULTS_IN_A_ROW = 20  # at least, of the agent: then something is wrong that stays so


def play_episode(
    env: gymnasium.Env[str, Any],
    agent: Agent,
    task_id: int,
    *,
    sample: int = 0,
    success_at: float | None = None,
) -> EpisodeRecord:
    """Play one task.

    The score of another library's environment is the sum of its rewards, and ``success`` is its
    ``info["success"]``, if it has one. An error that it raises is a fault; its kind is the name of the error.

    Args:
        env: The environment, as for `evaluate`.
        agent: The agent. Its typed actions are rendered in the environment's format, so that the record holds
            what was played.
        task_id: The task, or the seed.
        sample: Which of several episodes of the task this is.
        success_at: The return from which on a task counts as solved, where the environment does not state
            ``info["success"]``; by default the registered ``reward_threshold``.

    Raises:
        SetupError: It cannot be played without a change of set-up.
    """
    play = AgentEpisode(_called_here(env), agent, call_here, success_at=success_at).play(task_id, sample)
    return _completed(play, agent)


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
        env: The environment: any of gymnasium whose observations and actions are text.
        agent: The agent.
        tasks: Task ids; for an environment that is not AgentGym's, seeds of its ``reset``.
        samples: Episodes of each task, from 1.
        on_episode: Called with each record as soon as its episode is over, so that an interrupted run keeps
            what was played.
        success_at: The return from which on a task counts as solved, where the environment does not state
            ``info["success"]``; by default the registered ``reward_threshold``.

    Returns:
        A record for each episode. An episode that could not be begun or was ended by a fault is among them,
        with its fault and without a score.

    Raises:
        SetupError: Nothing can be played without a change of set-up.
        AgentFault: The agent failed in 20 episodes in a row.
    """
    pool = _called_here(env)

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

    return _completed(play(), agent)


def _called_here(env: gymnasium.Env[str, Any]) -> CallerPool:
    """Return an environment as one that is called in this thread.

    Raises:
        BadOption: It has to be awaited.
    """
    pool = CallerPool(env)
    if pool.facts.awaited:
        raise BadOption(f"{pool.env_id} has coroutines for methods: use evaluate_async()")
    return pool


def episodes_of(tasks: Iterable[int], samples: int) -> list[tuple[int, int]]:
    """Return task and sample of each episode: all tasks once, then all once more.

    Raises:
        BadOption: There are no samples.
    """
    if samples < 1:
        raise BadOption(f"samples={samples} should be 1 or more")
    tasks = list(tasks)
    return [(task_id, sample) for sample in range(samples) for task_id in tasks]


def _completed(work: Coroutine[Any, Any, T], agent: Agent) -> T:
    """Return the result of a coroutine, without an event loop where the agent is not awaited.

    Raises:
        BadOption: An event loop is needed, and one runs in this thread already.
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
    """Play tasks, many at once.

    Args:
        make_env: Makes an environment. The attribute ``capacity`` of the first, an integer, limits how many
            are open at once.
        make_agent: Makes an agent. As many are made as play at once.
        tasks: Task ids; for an environment that is not AgentGym's, seeds of its ``reset``.
        samples: Episodes of each task, from 1.
        concurrency: Episodes at once, from 1; fewer where the environment's servers hold no more.
        on_episode: Called with each record as soon as its episode is over.
        isolate: Where each environment runs, as for `agentgym_gym.rollout.Pool`: by default, coroutines are
            awaited and any other environment has a thread of its own.
        timeout: Seconds allowed for making an environment and for each reset and step; None for any number.
        success_at: The return from which on a task counts as solved, where the environment does not state
            ``info["success"]``; by default the registered ``reward_threshold``.

    Returns:
        A record for each episode, by sample and then in the order of the tasks.

    Raises:
        SetupError: Nothing can be played without a change of set-up.
        AgentFault: The agent failed in many episodes in a row.
    """
    episodes = episodes_of(tasks, samples)
    found: dict[tuple[int, int], EpisodeRecord] = {}

    def take(record: EpisodeRecord) -> None:
        found[record.task_id, record.sample] = record
        if on_episode is not None:
            on_episode(record)

    async with probe_env(make_env, isolate=isolate, timeout=timeout) as probe:
        servers = Servers(probe.facts.capacity)
    part = Part(
        make_env,
        make_agent,
        episodes,
        take,
        servers,
        isolate=isolate,
        timeout=timeout,
        success_at=success_at,
    )
    await play_parts([part], concurrency=concurrency)
    return [found[episode] for episode in episodes]


@contextlib.asynccontextmanager
async def probe_env(
    make_env: Callable[[], TextEnv], *, isolate: Isolation | None = None, timeout: float | None = None
) -> AsyncIterator[Worker]:
    """Make an environment that is not played, and close it at the end of the block.

    Args:
        make_env: Makes it.
        isolate: Where it is made.
        timeout: Seconds allowed for it; None for any number.
    """
    async with Pool(make_env, isolate=isolate, timeout=timeout) as pool:
        worker = await pool.acquire()
        try:
            yield worker
        finally:
            pool.release(worker)


async def play_parts(
    parts: Iterable[Part], *, concurrency: int = 16, make_slot: Callable[[Part], Slot] | None = None
) -> None:
    """Play several agents or environments, one part after another, with no gap between them.

    Args:
        parts: What to play.
        concurrency: Episodes at once, from 1.
        make_slot: Makes what plays one episode after another; by default in this process.

    Raises:
        BadOption: ``concurrency`` is less than 1.
        SetupError: Nothing can be played without a change of set-up.
        AgentFault: The agent failed in many episodes in a row: 20, or as many as play at once.
    """
    import asyncio  # noqa: PLC0415 - importing the library must be cheap

    if concurrency < 1:
        raise BadOption(f"concurrency={concurrency} should be 1 or more")
    jobs = _Jobs(parts)
    watch = _FaultsInARow(max(_FAULTS_IN_A_ROW, concurrency))
    first = itertools.takewhile(bool, (jobs.take(None) for _ in range(concurrency)))
    make_slot = make_slot or LocalSlot
    workers = [asyncio.ensure_future(_work(job, jobs, watch, make_slot)) for job in first]
    if not workers:
        return
    try:
        done, _ = await asyncio.wait(workers, return_when=asyncio.FIRST_EXCEPTION)
    finally:
        for worker in workers:  # once, as they then close what they hold
            worker.cancel()
        await asyncio.gather(*workers, return_exceptions=True)
    for worker in done:
        error = worker.exception()
        if error is not None:
            raise error.by if isinstance(error, _Stopped) else error


class _Stopped(Exception):
    """An agent or an environment asked the program to end: an event loop takes that from its main task alone.

    Args:
        by: What was raised: KeyboardInterrupt or SystemExit.
    """

    def __init__(self, by: BaseException) -> None:
        super().__init__(by)
        self.by = by


class _Job(NamedTuple):
    """An episode that is to be played."""

    part: Part
    task_id: int
    sample: int


class _Jobs:
    """What is left to be played, part after part, with no more at once than the servers hold."""

    def __init__(self, parts: Iterable[Part]) -> None:
        self._left = {id(part): (part, deque(part.episodes)) for part in parts}
        self._workers: Counter[Servers] = Counter()  # that play there

    def take(self, before: Part | None) -> _Job | None:
        """Return the next episode for a worker; None where there is none for it.

        Args:
            before: The part that it played before, in whose environment it goes on while episodes are left.
        """
        if before is not None:
            if self._left[id(before)][1]:
                return _Job(before, *self._left[id(before)][1].popleft())
            self._workers[before.servers] -= 1
        for part, episodes in self._left.values():
            most = part.servers.capacity
            if episodes and (most is None or self._workers[part.servers] < most):
                self._workers[part.servers] += 1
                return _Job(part, *episodes.popleft())
        return None  # those who play what is left go on with it


async def _work(
    job: _Job | None, jobs: _Jobs, watch: _FaultsInARow, make_slot: Callable[[Part], Slot]
) -> None:
    """Play one episode after another, in one environment as long as they are of the same part."""
    slot: Slot | None = None
    try:
        while job is not None:
            if slot is None or slot.part is not job.part:
                if slot is not None:
                    await slot.close()
                slot = make_slot(job.part)
            record = await slot.play(job.task_id, job.sample)
            job.part.on_episode(record)
            watch.note(record)
            job = jobs.take(job.part)
    except (KeyboardInterrupt, SystemExit) as stop:
        raise _Stopped(stop) from stop
    finally:
        if slot is not None:
            await slot.close()


class _FaultsInARow:
    """Ends a run in which the agent fails again and again.

    Args:
        most: How many episodes in a row may be ended by its faults.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._count = 0

    def note(self, record: EpisodeRecord) -> None:
        """Count an episode.

        Raises:
            AgentFault: There were too many in a row.
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
