"""Plays runs: each in its folder, with shared servers, budgets and engines, until all episodes are played."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from agentgym_gym._logging import logger
from agentgym_gym.errors import AgentFault, ArgumentName, BadOption, SetupError
from agentgym_gym.evaluate._agent_setup import AgentSetup
from agentgym_gym.evaluate._chat.budget import Budget, BudgetUsedUp, RequestLimits
from agentgym_gym.evaluate._chat.rate_limit import Gate
from agentgym_gym.evaluate._env_setup import EnvSetup
from agentgym_gym.evaluate._episode_workers import Job
from agentgym_gym.evaluate._figures.prices import Price, read_prices
from agentgym_gym.evaluate._folder import RunFolder, folder_name, latest, reserved
from agentgym_gym.evaluate._interrupts import Interrupt, interruptible
from agentgym_gym.evaluate._protocols.applying import apply_protocols
from agentgym_gym.evaluate._run import ChatOptions, Run, RunLimits
from agentgym_gym.evaluate._runner import episodes_of, play_jobs
from agentgym_gym.evaluate._runs import EPISODES, RunResults, counting
from agentgym_gym.options import check_options
from agentgym_gym.rollout import read_records

if TYPE_CHECKING:
    from agentgym_gym.evaluate._engines import Engine
    from agentgym_gym.evaluate._on_ray import RayCluster
    from agentgym_gym.evaluate._protocols.applied import AppliedProtocol
    from agentgym_gym.rollout._records import EpisodeRecord

__all__ = [
    "MAX_UNASKED",
    "SLOW_SECONDS",
    "PlayedRuns",
    "PreparedRun",
    "SharedLimits",
    "Watcher",
    "play",
    "play_async",
    "play_runs",
    "prepare",
]

MAX_UNASKED = 1_000
"""The number of episodes that models play without a confirmation."""

SLOW_SECONDS = 10.0
"""The seconds of a request after which the progress shows its duration."""

_FILES = 256  # open files besides the connections


def play(
    *runs: Run,
    limits: RunLimits | None = None,
    out: str | Path | None = None,
    resume: bool = False,
    retry_faulted: bool = False,
    confirmed: bool = False,
    ray: str | None = None,
    on_episode: Callable[[EpisodeRecord], object] | None = None,
) -> RunResults:
    """Play runs, each in its folder: all episodes of one, then all of the next, without idle time.

    ::

        from agentgym_gym.evaluate import Run, RunLimits, play

        runs = [Run(name, "oracle", limit=5) for name in ("TextCraft", "Maze")]
        for result in play(*runs, limits=RunLimits(concurrency=4)):
            print(result.label, result.summary.success_rate)

    An episode that a fault ended is recorded and not scored. A run that a budget ends is returned; its
    `RunResult.stopped_by` names the budget.

    Args:
        runs: The runs. Runs in the same environment share its servers, and runs with the same model share its
            engine.
        limits: The limits that all runs share.
        out: Folder of a single run, or parent folder of several; a run's own ``folder`` takes precedence. By
            default a new folder below ``runs``.
        resume: Whether to resume runs in their folders; without a folder, the latest one of that name below
            ``runs``.
        retry_faulted: Whether to retry faulted episodes of resumed runs.
        confirmed: Whether models may play more than 1,000 episodes.
        ray: Address of a Ray cluster that plays the episodes: ``auto``, ``HOST:PORT`` or ``ray://HOST:PORT``.
        on_episode: Called with each record as soon as its episode ends.

    Raises:
        BadOption: A setting is invalid, a folder has another run, or models would play more than 1,000
            episodes without ``confirmed``.
        SetupError: No task can be played until the setup is fixed. Recorded episodes are kept.
        AgentFault: An agent failed in many episodes in a row. The episodes are kept, and can be resumed with
            ``retry_faulted``.
    """
    import asyncio  # noqa: PLC0415 - importing the library must be cheap

    with contextlib.suppress(RuntimeError):
        asyncio.get_running_loop()
        raise BadOption("an event loop runs here: use await play_async(...)")
    played = play_runs(
        runs,
        limits or RunLimits(),
        out=None if out is None else Path(out),
        resume=resume,
        retry_faulted=retry_faulted,
        ray=ray,
        watcher=_Listener(on_episode, confirmed=confirmed),
    )
    return played.results_or_raise()


async def play_async(
    *runs: Run,
    limits: RunLimits | None = None,
    out: str | Path | None = None,
    resume: bool = False,
    retry_faulted: bool = False,
    confirmed: bool = False,
    ray: str | None = None,
    on_episode: Callable[[EpisodeRecord], object] | None = None,
) -> RunResults:
    """Play runs as `play` does, in the event loop of the caller; for notebooks and async programs.

    Args:
        runs: As for `play`.
        limits: As for `play`.
        out: As for `play`.
        resume: As for `play`.
        retry_faulted: As for `play`.
        confirmed: As for `play`.
        ray: As for `play`.
        on_episode: As for `play`.

    Raises:
        BadOption: As for `play`.
        SetupError: As for `play`.
        AgentFault: As for `play`.
    """
    import asyncio  # noqa: PLC0415 - importing the library must be cheap

    interrupt = Interrupt()
    playing = asyncio.ensure_future(
        asyncio.to_thread(
            play_runs,
            runs,
            limits or RunLimits(),
            out=None if out is None else Path(out),
            resume=resume,
            retry_faulted=retry_faulted,
            ray=ray,
            watcher=_Listener(on_episode, confirmed=confirmed),
            interrupt=interrupt,
        )
    )
    try:
        played = await asyncio.shield(playing)
    except asyncio.CancelledError:
        interrupt.set()
        await asyncio.wait([playing])
        raise
    return played.results_or_raise()


class Watcher(Protocol):
    """Follows runs while they are played."""

    def confirm(self, episodes: int) -> None:
        """Called before models play many episodes; raises to stop."""

    def warn(self, text: str) -> None:
        """Called with a warning before the first episode."""

    def watch(
        self, before: Sequence[EpisodeRecord], left: int, state: Callable[[], Sequence[str]]
    ) -> contextlib.AbstractContextManager[Callable[[EpisodeRecord], object]]:
        """Return a context for the episodes, with a function that is called with each.

        Args:
            before: The episodes before a resume.
            left: Number of episodes to play.
            state: Returns the state of the requests in words.
        """


@dataclass(frozen=True)
class _Listener:
    """The watcher of `play`."""

    on_episode: Callable[[EpisodeRecord], object] | None
    confirmed: bool

    def confirm(self, episodes: int) -> None:
        if not self.confirmed:
            raise BadOption(
                (
                    f"models would play {episodes:,} episodes, more than {MAX_UNASKED:,}: pass ",
                    ArgumentName("confirmed"),
                    "=True to play them all, or ",
                    ArgumentName("limit"),
                    "=N for the first N tasks",
                )
            )

    def warn(self, text: str) -> None:
        logger.warning("%s", text)

    def watch(
        self, before: Sequence[EpisodeRecord], left: int, state: Callable[[], Sequence[str]]
    ) -> contextlib.AbstractContextManager[Callable[[EpisodeRecord], object]]:
        return contextlib.nullcontext(self.on_episode or _nothing)


def _nothing(_: object) -> None:
    """Ignore a record."""


@dataclass(frozen=True)
class PreparedRun:
    """A run with its environment and agent, before its folder is opened.

    Attributes:
        run: The run, with the settings of its protocol.
        protocol: The protocol with the deviations of the run; None if it has none.
        env: The environment, which other runs may share.
        agent: The agent.
    """

    run: Run
    protocol: AppliedProtocol | None
    env: EnvSetup
    agent: AgentSetup

    @property
    def samples(self) -> int:
        """Episodes per task."""
        return 1 if self.run.samples is None else self.run.samples

    @property
    def own_folder(self) -> Path | None:
        """The folder that the run names, or None."""
        return None if self.run.folder is None else Path(self.run.folder)

    @property
    def folder_name(self) -> str:
        """The name of the run, a valid folder name."""
        return folder_name(f"{self.env.name}-{self.agent.name}")

    @property
    def episodes(self) -> list[tuple[int, int]]:
        """Task id and sample of each episode."""
        return episodes_of(self.env.tasks, self.samples)

    def folder(self, out: Path, *, several: bool) -> Path:
        """Return the folder of the run, below the output folder if there are several runs."""
        return self.own_folder or (out / self.folder_name if several else out)

    def left(self, folder: Path | None) -> int:
        """Return the number of episodes to play, without the played ones of a resumed run."""
        planned = len(self.env.tasks) * self.samples
        if folder is None or planned <= MAX_UNASKED or not (folder / EPISODES).exists():
            return planned
        return max(0, planned - len(counting(read_records(folder / EPISODES, torn_end=True)[0])))

    def facts(self, concurrency: int) -> dict[str, Any]:
        """Return the metadata that the run records."""
        return {
            "agent": self.agent.name,
            "agent_settings": self.agent.settings(self.env.chosen.environment, self.env.system_prompt),
            "seed": self.run.seed if self.agent.is_model else self.run.seed or 0,
            "samples": self.samples,
            "concurrency": concurrency,
            **({} if self.protocol is None else {"protocol": self.protocol.facts}),
            **self.env.facts(tools=self.agent.uses_tools),
        }

    def job(
        self,
        folder: RunFolder,
        limits: RequestLimits | None,
        on_episode: Callable[[EpisodeRecord], object],
        *,
        retry_faulted: bool,
    ) -> Job:
        """Return the remaining episodes, in the form that the runner accepts.

        Args:
            folder: The open folder of the run, which receives the records.
            limits: The limits of a model's requests.
            on_episode: Called with each record, after it is in the folder.
            retry_faulted: Whether to retry the faulted episodes in the folder.
        """
        make_agent = self.agent.maker(self.env.chosen.environment, self.env.system_prompt, limits)
        served = getattr(make_agent(), "served", None)

        def add(record: EpisodeRecord) -> None:
            if limits is not None:
                folder.run["usage"] = limits.usage.as_dict()
            if callable(served):
                folder.run["model_server"] = served()
            folder.add(record)
            on_episode(record)

        return Job(
            self.env.maker(tools=self.agent.uses_tools),
            make_agent,
            folder.remaining(self.episodes, retry_faulted=retry_faulted),
            add,
            self.env.shared_servers,
            isolate=self.env.isolate,
            timeout=self.env.deadline,
            success_at=self.env.success_at,
        )


def prepare(runs: Sequence[Run]) -> list[PreparedRun]:
    """Return runs with their environments and agents; equal environments and models are shared.

    Raises:
        BadOption: There is no run, a setting is invalid, or two runs have the same environment and agent.
        UnknownEnvironment: An environment does not exist.
    """
    if not runs:
        raise BadOption("there is no run to play: pass one or several")
    envs: list[tuple[Run, EnvSetup]] = []
    engines: dict[Any, Engine] = {}
    prepared = []
    for run in runs:
        check_options(run)
        if isinstance(run.agent, ChatOptions):
            check_options(run.agent)
    for run, protocol in apply_protocols(runs):
        key = replace(run, agent="", name=None, folder=None, samples=None)
        env = next((env for known, env in envs if known == key), None)
        if env is None:
            env = EnvSetup(run)
            envs.append((key, env))
        prepared.append(PreparedRun(run, protocol, env, AgentSetup.of(run, engines)))
    places = [each.own_folder or each.folder_name for each in prepared]
    twice = next((each for each in prepared if places.count(each.own_folder or each.folder_name) > 1), None)
    if twice is not None:
        raise BadOption(
            (
                f"two agents are called {twice.agent.name!r} in {twice.env.name}: give one of them another ",
                ArgumentName("name"),
            )
        )
    return prepared


@dataclass
class PlayedRuns:
    """Runs that were played, perhaps not to their end.

    Attributes:
        out: The folder of a single run, or of the folders of several.
        folders: The folders of the runs.
        problem: The error that ended them; None if all episodes were played.
    """

    out: Path
    folders: Sequence[RunFolder] = ()
    problem: AgentFault | SetupError | KeyboardInterrupt | None = None

    @property
    def reason(self) -> str:
        """Why they ended before all episodes were played, in words; empty if they did not."""
        if isinstance(self.problem, KeyboardInterrupt):
            return "interrupted"
        if isinstance(self.problem, BudgetUsedUp):
            return str(self.problem)
        return "" if self.problem is None else f"{type(self.problem).__name__}: {self.problem}"

    @property
    def stopped_by(self) -> str | None:
        """The budget that ended them, a field of `RunLimits`; None if none did."""
        return self.problem.limit if isinstance(self.problem, BudgetUsedUp) else None

    def results_or_raise(self) -> RunResults:
        """Return the results, unless an error ended the runs; a used-up budget is none.

        Raises:
            AgentFault: It ended the runs.
            SetupError: As for `AgentFault`.
            KeyboardInterrupt: As for `AgentFault`.
        """
        if self.problem is not None and not isinstance(self.problem, BudgetUsedUp):
            raise self.problem
        return RunResults(folder.result for folder in self.folders)


def play_runs(
    runs: Sequence[Run],
    limits: RunLimits,
    *,
    out: Path | None,
    resume: bool,
    retry_faulted: bool,
    ray: str | None,
    watcher: Watcher,
    interrupt: Interrupt | None = None,
) -> PlayedRuns:
    """Play runs, and return them also if an error or an interrupt ended them.

    Args:
        runs: As for `play`.
        limits: As for `play`.
        out: As for `play`.
        resume: As for `play`.
        retry_faulted: As for `play`.
        ray: As for `play`.
        watcher: Follows the runs.
        interrupt: Ends the runs from another thread.

    Raises:
        BadOption: As for `play`.
        SetupError: The runs cannot start, so that there is no episode.
    """
    import asyncio  # noqa: PLC0415 - importing the library must be cheap

    check_options(limits)
    prepared = prepare(runs)
    shared = SharedLimits(limits, [each.agent for each in prepared], ray=ray)
    if shared.unpriced and limits.prices is not None:
        watcher.warn(f"{limits.prices} has no price of {', '.join(shared.unpriced)}: its cost is unknown")
    several = len(prepared) > 1
    name = "run" if several else prepared[0].folder_name
    out = out or (latest(name) if resume else None)
    before = [each.own_folder or (each.folder(out, several=several) if out else None) for each in prepared]
    models = [(each, at) for each, at in zip(prepared, before, strict=True) if each.agent.is_model]
    episodes = sum(each.left(at if resume else None) for each, at in models)
    if episodes > MAX_UNASKED:
        watcher.confirm(episodes)
    asyncio.run(_check_servers([each.agent for each, _ in models]))
    with contextlib.ExitStack() as stack:
        if out is None and any(each.own_folder is None for each in prepared):
            out = stack.enter_context(reserved(name))
        played = PlayedRuns(out or Path())
        folders, requests = [], []
        for each in prepared:
            folder = RunFolder(
                each.folder(played.out, several=several),
                each.facts(limits.concurrency),
                resume=resume,
                planned=each.episodes,
                price=shared.price(each.agent),
            )
            folders.append(stack.enter_context(folder))
            requests.append(shared.of(each.agent))
            if requests[-1] is not None:
                requests[-1].add(folder.previous.get("usage") or {})
        played.folders = folders
        _allow_connections(limits.concurrency)
        records = [record for folder in folders for record in folder.records]
        state = _State(shared, [each.env for each in prepared])
        cluster = stack.enter_context(_cluster(ray, limits, prepared)) if ray is not None else None
        left = sum(
            len(folder.remaining(each.episodes, retry_faulted=retry_faulted))
            for each, folder in zip(prepared, folders, strict=True)
        )
        with _noted(played, requests), watcher.watch(records, left, state) as note:
            for engine, those in groupby(
                zip(prepared, folders, requests, strict=True), key=lambda one: one[0].agent.engine
            ):
                with _same_directory(), engine if engine is not None else contextlib.nullcontext():
                    jobs = [
                        each.job(folder, request, note, retry_faulted=retry_faulted)
                        for each, folder, request in those
                    ]
                    make_worker = None if cluster is None else cluster.worker
                    work = play_jobs(jobs, concurrency=limits.concurrency, make_worker=make_worker)
                    asyncio.run(interruptible(work, interrupt))
    return played


@contextlib.contextmanager
def _noted(played: PlayedRuns, requests: Sequence[RequestLimits | None]) -> Iterator[None]:
    """Catch the errors that end runs, and store the reason and the usage in the folders.

    Raises:
        SetupError: There is no episode, so there are no results.
    """
    try:
        yield
    except (AgentFault, SetupError, KeyboardInterrupt) as problem:
        if isinstance(problem, SetupError) and not any(folder.records for folder in played.folders):
            raise
        played.problem = problem
    finally:
        for folder, request in zip(played.folders, requests, strict=True):
            if request is not None:
                folder.run["usage"] = request.usage.as_dict()
            folder.stopped = played.reason or None
            folder.stopped_by = played.stopped_by


class SharedLimits:
    """The budget of several runs, and a gate for each model server.

    Args:
        limits: The limits.
        agents: The agents of the runs.
        ray: The address of a Ray cluster, whose processes share no budget.

    Attributes:
        budget: The budget of all runs.
        unpriced: Names of the models without a price.

    Raises:
        BadOption: A limit has no effect or cannot be enforced.
    """

    def __init__(self, limits: RunLimits, agents: Sequence[AgentSetup], *, ray: str | None = None) -> None:
        given = {name: getattr(limits, name) for name in _LIMITS if getattr(limits, name) is not None}
        first = next(iter(given), None)
        if first is not None and not any(agent.is_model for agent in agents):
            raise BadOption(first, given[first], problem="is only for models: remove it")
        if first is not None and ray is not None:
            raise BadOption(
                first,
                given[first],
                problem=(
                    "cannot be enforced on a Ray cluster: remove it, or ",
                    ArgumentName("ray"),
                    f"={ray!r}",
                ),
            )
        self.prices: Mapping[str, Price] = {} if limits.prices is None else read_prices(limits.prices)
        self.budget = Budget(limits.max_tokens_total, limits.max_cost)
        self._rate = limits.requests_per_minute
        self._gates: dict[str, Gate] = {}
        models = dict.fromkeys(agent.name for agent in agents if agent.is_model)
        by_name = {agent.name: agent for agent in agents}
        self.unpriced = [name for name in models if self.price(by_name[name]) is None]
        if self.unpriced and limits.max_cost is not None:
            raise BadOption(
                "max_cost",
                limits.max_cost,
                problem=(f"needs a price of {self.unpriced[0]}: give one by ", ArgumentName("prices")),
            )
        Gate(self._rate)  # reports an invalid rate before the run

    def price(self, agent: AgentSetup) -> Price | None:
        """Return the price of a model's tokens; None if it is unknown, or the agent is not a model."""
        return agent.price(self.prices)

    def of(self, agent: AgentSetup) -> RequestLimits | None:
        """Return the limits of an agent in one environment; None if it is not a model."""
        if not agent.is_model:
            return None
        gate = self._gates.setdefault(agent.server_key, Gate(self._rate))
        return RequestLimits(gate, self.budget, self.price(agent))

    def state(self) -> list[str]:
        """Return the state of the requests in words."""
        gates = self._gates.values()
        waiting, in_flight = sum(gate.waiting for gate in gates), sum(gate.in_flight for gate in gates)
        rejected = sum(gate.rejected for gate in gates)
        words = []
        oldest = max((gate.longest_wait for gate in gates), default=0.0)
        if in_flight or waiting:
            words.append(f"requests {in_flight}" + (f" (+{waiting} waiting)" if waiting else ""))
        if oldest > SLOW_SECONDS:
            words.append(f"longest {oldest:.0f} s")
        if retries := sum(gate.retries for gate in gates):
            words.append(f"retries {retries}")
        words += [
            f"retrying {gate.faulted}: {' '.join(gate.last_fault.split()):.60}"
            for gate in gates
            if gate.faulted
        ]
        if rejected:
            words.append(f"HTTP 429 {rejected}")
        if self.budget.cost:
            words.append(f"cost {self.budget.cost:.2f}")
        return words


_LIMITS = ("max_cost", "max_tokens_total", "requests_per_minute")


@dataclass(frozen=True)
class _State:
    """The state of requests to models and of slow environments in words, for the progress."""

    limits: SharedLimits
    envs: Collection[EnvSetup]

    def __call__(self) -> list[str]:
        waits = {env.name: env.shared_servers.calls.longest for env in self.envs}
        slow = [f"{name} waits {wait:.0f} s" for name, wait in waits.items() if wait > SLOW_SECONDS]
        return [*self.limits.state(), *slow]


async def _check_servers(agents: Sequence[AgentSetup]) -> None:
    """Check that the servers of all models accept connections.

    Raises:
        SetupError: One of them does not.
    """
    import asyncio  # noqa: PLC0415 - importing the library must be cheap

    await asyncio.gather(*(agent.check_server() for agent in agents))


def _cluster(address: str, limits: RunLimits, prepared: Sequence[PreparedRun]) -> RayCluster:
    """Return the Ray cluster that runs the episodes.

    Raises:
        BadOption: An engine serves a model on this machine only.
        MissingExtra: The package ``ray`` is not installed.
        SetupError: The cluster is not available.
    """
    if any(each.agent.engine is not None for each in prepared):
        raise BadOption(
            "ray",
            address,
            problem=(
                "and ",
                ArgumentName("launch"),
                " exclude each other: the engine listens only on this machine. Start it yourself, and give ",
                ArgumentName("model"),
                " and ",
                ArgumentName("base_url"),
            ),
        )
    from agentgym_gym.evaluate._on_ray import RayCluster  # noqa: PLC0415 - an extra

    named = {each.agent.key_variable for each in prepared} - {None}
    variables = {name: os.environ[name] for name in named if name and name in os.environ}
    return RayCluster(address, concurrency=limits.concurrency, variables=variables)


@contextlib.contextmanager
def _same_directory() -> Iterator[None]:
    """Restore the working directory on exit: environments may change it, and runs may use relative paths."""
    directory = Path.cwd()
    try:
        yield
    finally:
        with contextlib.suppress(OSError):
            os.chdir(directory)


def _allow_connections(concurrency: int) -> None:
    """Raise the limit of open files if it is too low, if the system allows it."""
    try:
        import resource  # noqa: PLC0415 - not on every system
    except ImportError:
        return
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    required = 2 * concurrency + _FILES  # a connection to the environment and one to the model
    if soft != resource.RLIM_INFINITY and soft < required:
        limit = required if hard == resource.RLIM_INFINITY else min(required, hard)
        with contextlib.suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (limit, hard))
