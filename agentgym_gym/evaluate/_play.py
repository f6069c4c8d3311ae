"""Plays runs: each in its folder, with shared servers, budgets and engines, until all episodes are played."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from agentgym_gym._logging import logger
from agentgym_gym.errors import AgentFault, ArgumentName, BadOption, SetupError
from agentgym_gym.evaluate._chat.budget import BudgetUsedUp, RequestLimits
from agentgym_gym.evaluate._folder import RunFolder, latest, reserved
from agentgym_gym.evaluate._interrupts import Interrupt, interruptible
from agentgym_gym.evaluate._notebook import RunProgress, in_notebook
from agentgym_gym.evaluate._prepared import MAX_UNASKED, PreparedRun, prepare
from agentgym_gym.evaluate._run import Run, RunLimits
from agentgym_gym.evaluate._runner import play_jobs
from agentgym_gym.evaluate._runs import RunResults
from agentgym_gym.evaluate._shared_limits import RequestsState, SharedLimits
from agentgym_gym.options import check_options

if TYPE_CHECKING:
    from agentgym_gym.evaluate._agent_setup import AgentSetup
    from agentgym_gym.evaluate._on_ray import RayCluster
    from agentgym_gym.rollout._records import EpisodeRecord

__all__ = ["PlayedRuns", "Watcher", "play", "play_async", "play_runs"]

_FILES = 256  # open files besides the connections
_WAKE_SECONDS = 0.2


def play(
    *runs: Run,
    limits: RunLimits | None = None,
    out: str | Path | None = None,
    resume: bool = False,
    retry_faulted: bool = False,
    confirmed: bool = False,
    ray: str | None = None,
    on_episode: Callable[[EpisodeRecord], object] | None = None,
    progress: bool | None = None,
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
        progress: Whether to show the progress: a bar in a notebook, otherwise lines on standard error. By
            default only in a notebook.

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
        watcher=_Listener(on_episode, confirmed=confirmed, progress=progress),
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
    progress: bool | None = None,
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
        progress: As for `play`.

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
            watcher=_Listener(on_episode, confirmed=confirmed, progress=progress),
            interrupt=interrupt,
        )
    )
    try:
        # A notebook's kernel cancels in a signal handler, which does not wake the event loop.
        while not playing.done():
            await asyncio.wait([playing], timeout=_WAKE_SECONDS)
    except asyncio.CancelledError:
        interrupt.set()
        await asyncio.wait([playing])
        raise
    return playing.result().results_or_raise()


class Watcher(Protocol):
    """Follows runs while they are played."""

    def confirm(self, episodes: int) -> None:
        """Called before models play many episodes; raises to stop."""

    def warn(self, text: str) -> None:
        """Called with a warning about the runs."""

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
    progress: bool | None

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

    @contextlib.contextmanager
    def watch(
        self,
        before: Sequence[EpisodeRecord],
        left: int,
        state: Callable[[], Sequence[str]],
    ) -> Iterator[Callable[[EpisodeRecord], object]]:
        listeners = [] if self.on_episode is None else [self.on_episode]
        shown = in_notebook() if self.progress is None else self.progress
        with contextlib.ExitStack() as stack:
            if shown:
                listeners.append(stack.enter_context(RunProgress(before, left)).note)

            def note(record: EpisodeRecord) -> None:
                for listener in listeners:
                    listener(record)

            yield note


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
    shared = SharedLimits(limits, [each.agent for each in prepared], ray=ray, notify=watcher.warn)
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
                requests[-1].streak.accepted = any(record.scored for record in folder.records)
        played.folders = folders
        _allow_connections(limits.concurrency)
        records = [record for folder in folders for record in folder.records]
        state = RequestsState(shared, [each.env for each in prepared])
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
