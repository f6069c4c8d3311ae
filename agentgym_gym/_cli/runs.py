"""Execute the plan of ``agentgym eval``: run each agent in each environment, each in a separate folder."""

from __future__ import annotations

import asyncio
import contextlib
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from agentgym_gym._cli.budgets import MOST_UNASKED, SLOW_SECONDS, SharedLimits, check_servers, confirm
from agentgym_gym._cli.closing import print_closing
from agentgym_gym._cli.console import ERROR, err, in_options, report
from agentgym_gym._cli.environments import PlannedEnvironment
from agentgym_gym._cli.interrupts import INTERRUPTED, interruptible
from agentgym_gym._cli.players import Player, players_of
from agentgym_gym._cli.progress import Progress
from agentgym_gym._cli.results import print_results
from agentgym_gym._cli.run_folders import folder_name, latest, reserved
from agentgym_gym.errors import AgentFault, BadOption, SetupError
from agentgym_gym.evaluate._chat.limits import BudgetUsedUp, RequestLimits
from agentgym_gym.evaluate._episode_workers import Job
from agentgym_gym.evaluate._figures.prices import Price, read_prices
from agentgym_gym.evaluate._folder import RunFolder
from agentgym_gym.evaluate._runner import episodes_of, play_jobs
from agentgym_gym.evaluate._runs import EPISODES, counting
from agentgym_gym.rollout import read_records

if TYPE_CHECKING:
    from agentgym_gym._cli.plans import RunPlan
    from agentgym_gym.evaluate._on_ray import RayCluster
    from agentgym_gym.rollout._records import EpisodeRecord

__all__ = ["play"]

_FILES = 256  # open files besides the connections


@dataclass(frozen=True)
class _Entry:
    """An agent in an environment, with the folder of the run and its episodes."""

    player: Player
    environment: PlannedEnvironment
    folder: RunFolder
    limits: RequestLimits | None
    planned: Sequence[tuple[int, int]]
    left: Sequence[tuple[int, int]]

    def job(self, on_episode: Callable[[EpisodeRecord], object]) -> Job:
        """Return the entry in the form that the runner accepts."""
        make_agent = self.player.maker(
            self.environment.chosen.environment, self.environment.system_prompt, self.limits
        )
        served = getattr(make_agent(), "served", None)

        def add(record: EpisodeRecord) -> None:
            self.store_usage()
            if callable(served):
                self.folder.run["model_server"] = served()
            self.folder.add(record)
            on_episode(record)

        make_env = self.environment.maker(tools=self.player.uses_tools)
        return Job(
            make_env,
            make_agent,
            self.left,
            add,
            self.environment.shared_servers,
            isolate=self.environment.isolate,
            timeout=self.environment.deadline,
            success_at=self.environment.success_at,
        )

    def store_usage(self) -> None:
        """Store the usage of the model, including that of unfinished episodes, in the run's record."""
        if self.limits is not None:
            self.folder.run["usage"] = self.limits.usage.as_dict()

    @property
    def unfinished(self) -> bool:
        """Whether episodes are left to play."""
        return bool(self.folder.remaining(self.planned))


def play(
    plan: RunPlan, *, headers: Mapping[str, str], resume: bool, retry_faulted: bool, yes: bool = False
) -> None:
    """Run each agent in each environment and print the results.

    Args:
        plan: The agents, environments and settings.
        headers: HTTP headers for the environments' servers.
        resume: Whether to resume existing runs in the folders.
        retry_faulted: Whether to retry faulted episodes of resumed runs.
        yes: Whether models may play any number of episodes without a confirmation.
    """
    began = time.monotonic()
    environments = [PlannedEnvironment(each, headers, seed=plan.seed or 0) for each in plan.environments]
    players = players_of(plan.agents, plan.seed)
    prices = {} if plan.prices is None else read_prices(Path(plan.prices))
    limits = SharedLimits(plan, players, prices)
    several = len(environments) * len(players) > 1
    runs = [
        _Run(plan, player.under(each.plan.protocol), each, several)
        for player in players
        for each in environments
    ]
    name = "run" if several else runs[0].name
    out = Path(plan.out) if plan.out else latest(name) if resume else None
    confirm(sum(run.left(out if resume else None) for run in runs if run.player.is_model), yes=yes)
    check_servers(players)
    ending = _Ending()
    with contextlib.ExitStack() as stack:
        out = stack.enter_context(reserved(name)) if out is None else out
        entries = [
            stack.enter_context(run.opened(out, limits, prices, resume=resume, retry_faulted=retry_faulted))
            for run in runs
        ]
        _allow_connections(plan.concurrency)
        before = [record for entry in entries for record in entry.folder.records]
        with ending.noted(entries):
            left = sum(len(entry.left) for entry in entries)
            with Progress(before, left, state=lambda: [*limits.state(), *_slow(environments)]) as progress:
                make_worker = stack.enter_context(_cluster(plan, players)).worker if plan.ray else None
                for engine, served in groupby(entries, key=lambda entry: entry.player.engine):
                    with _same_directory(), engine if engine is not None else contextlib.nullcontext():
                        jobs = [entry.job(progress.note) for entry in served]
                        work = play_jobs(jobs, concurrency=plan.concurrency, make_worker=make_worker)
                        asyncio.run(interruptible(work))
    folders = [entry.folder for entry in entries]
    print_results(folders)
    unfinished = [entry.unfinished for entry in entries]
    seconds = time.monotonic() - began
    print_closing(folders, unfinished, seconds, raised=ending.raised, out=None if plan.out else out)
    ending.exit()
    summaries = [folder.summary for folder in folders]
    if any(summary.episodes for summary in summaries) and not any(summary.scored for summary in summaries):
        raise typer.Exit(1)


def _slow(environments: Sequence[PlannedEnvironment]) -> list[str]:
    """Return the environments whose server has not answered a call for a while, for the progress display."""
    longest = [(each.shared_servers.calls.longest, each.chosen.name) for each in environments]
    return [
        f"{name.rpartition('/')[2]} waits {seconds:.0f} s"
        for seconds, name in longest
        if seconds > SLOW_SECONDS
    ]


@dataclass
class _Ending:
    """Why a command ended before all episodes were played.

    Attributes:
        problem: The error that ended it; None if all episodes were played.
    """

    problem: AgentFault | SetupError | KeyboardInterrupt | None = None

    @contextlib.contextmanager
    def noted(self, entries: Sequence[_Entry]) -> Iterator[None]:
        """Catch the errors that end a run, and store the reason in the folders.

        Raises:
            SetupError: There is no episode, so there are no results to print.
        """
        try:
            yield
        except (AgentFault, SetupError, KeyboardInterrupt) as problem:
            if isinstance(problem, SetupError) and not any(entry.folder.records for entry in entries):
                raise
            self.problem = problem
        finally:
            for entry in entries:
                entry.store_usage()
                entry.folder.stopped = self.reason or None

    @property
    def reason(self) -> str:
        """The reason in words; empty if all episodes were played."""
        if isinstance(self.problem, KeyboardInterrupt):
            return "interrupted"
        if isinstance(self.problem, BudgetUsedUp):
            return str(self.problem)
        return "" if self.problem is None else f"{type(self.problem).__name__}: {self.problem}"

    @property
    def raised(self) -> str:
        """The option of the budget that was used up; empty if none was."""
        if not isinstance(self.problem, BudgetUsedUp):
            return ""
        return f"--{self.problem.limit.replace('_', '-')}"

    def exit(self) -> None:
        """Print the reason and end the command, unless all episodes were played.

        Raises:
            typer.Exit: There is a reason.
            SetupError: The setup must change before the run can continue.
        """
        if isinstance(self.problem, KeyboardInterrupt):
            err.print("Interrupted; give --resume to continue the run.")
            raise typer.Exit(INTERRUPTED)
        if isinstance(self.problem, BudgetUsedUp):
            reason = in_options(self.problem, [self.raised])
            err.print(f"Stopped: {reason}. Episodes in progress do not count.")
            raise typer.Exit(1)
        if isinstance(self.problem, SetupError):
            raise self.problem
        if self.problem is not None:
            report(f"{self.problem}. The episodes are kept; give --resume --retry-faulted to continue")
            raise typer.Exit(ERROR)


@dataclass(frozen=True)
class _Run:
    """An agent in an environment, before its folder is opened."""

    plan: RunPlan
    player: Player
    environment: PlannedEnvironment
    several: bool

    @property
    def name(self) -> str:
        """The name of the run, a valid folder name."""
        return folder_name(f"{self.environment.chosen.id.rpartition('/')[2]}-{self.player.name}")

    def folder(self, out: Path) -> Path:
        """Return the folder of the run in the output folder of the command."""
        return out / self.name if self.several else out

    def left(self, out: Path | None) -> int:
        """Return the number of episodes to play, without those of the run that is resumed in a folder."""
        planned = len(self.environment.tasks) * self.plan.samples
        if out is None or planned <= MOST_UNASKED or not (self.folder(out) / EPISODES).exists():
            return planned
        return max(0, planned - len(counting(read_records(self.folder(out) / EPISODES, torn_end=True)[0])))

    @contextlib.contextmanager
    def opened(
        self,
        out: Path,
        limits: SharedLimits,
        prices: Mapping[str, Price],
        *,
        resume: bool,
        retry_faulted: bool,
    ) -> Iterator[_Entry]:
        """Open the folder of the run, and yield the entry with its remaining episodes."""
        plan, player, environment = self.plan, self.player, self.environment
        facts = {
            "agent": player.name,
            "agent_settings": player.settings(environment.chosen.environment, environment.system_prompt),
            "seed": plan.seed if player.is_model else plan.seed or 0,
            "samples": plan.samples,
            "concurrency": plan.concurrency,
            **environment.facts(tools=player.uses_tools),
        }
        planned = episodes_of(environment.tasks, plan.samples)
        with RunFolder(
            self.folder(out), facts, resume=resume, planned=planned, price=player.price(prices)
        ) as folder:
            own = limits.of(player)
            if own is not None:
                own.add(folder.previous.get("usage") or {})
            left = folder.remaining(planned, retry_faulted=retry_faulted)
            yield _Entry(player, environment, folder, own, planned, left)


def _cluster(plan: RunPlan, players: Sequence[Player]) -> RayCluster:
    """Return the Ray cluster that runs the episodes.

    Raises:
        BadOption: An engine serves a model on this machine only.
        MissingExtra: The package ``ray`` is not installed.
        SetupError: The cluster is not available.
    """
    if any(player.engine is not None for player in players):
        raise BadOption(
            "--ray and --launch exclude each other: the engine listens only on this machine. Start it "
            "yourself, and give --model and --base-url"
        )
    from agentgym_gym.evaluate._on_ray import RayCluster  # noqa: PLC0415 - an extra

    named = {player.plan.api_key_variable or "OPENAI_API_KEY" for player in players if player.is_model}
    variables = {name: os.environ[name] for name in named if name in os.environ}
    return RayCluster(str(plan.ray), concurrency=plan.concurrency, variables=variables)


@contextlib.contextmanager
def _same_directory() -> Iterator[None]:
    """Restore the working directory on exit: environments may change it, and plans may use relative paths."""
    directory = Path.cwd()
    try:
        yield
    finally:
        with contextlib.suppress(OSError):
            os.chdir(directory)


def _allow_connections(concurrency: int) -> None:
    """Raise the limit of open files if it is too low, as far as the system allows."""
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
