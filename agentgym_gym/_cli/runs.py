"""Execute the plan of ``agentgym eval``: run each agent in each environment, each in a separate folder."""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from agentgym_gym._cli.console import ERROR, err, report
from agentgym_gym._cli.environments import PlannedEnvironment
from agentgym_gym._cli.interrupts import INTERRUPTED, interruptible
from agentgym_gym._cli.players import Player, players_of
from agentgym_gym._cli.progress import Progress
from agentgym_gym._cli.results import print_results
from agentgym_gym.errors import AgentFault, BadOption
from agentgym_gym.evaluate._episode_workers import Job
from agentgym_gym.evaluate._figures.prices import price_of, read_prices
from agentgym_gym.evaluate._folder import RunFolder
from agentgym_gym.evaluate._runner import episodes_of, play_jobs

if TYPE_CHECKING:
    from agentgym_gym._cli.plans import RunPlan
    from agentgym_gym.evaluate._on_ray import RayCluster
    from agentgym_gym.rollout._records import EpisodeRecord

__all__ = ["play"]

_FILES = 256  # open files besides the connections


@dataclass(frozen=True)
class _Entry:
    """An agent in an environment, with the folder of the run and the remaining episodes."""

    player: Player
    environment: PlannedEnvironment
    folder: RunFolder
    left: Sequence[tuple[int, int]]

    def job(self, on_episode: Callable[[EpisodeRecord], object]) -> Job:
        """Return the entry in the form that the runner accepts."""
        make_agent = self.player.maker(self.environment.chosen.environment, self.environment.system_prompt)
        served = getattr(make_agent(), "served", None)

        def add(record: EpisodeRecord) -> None:
            self.folder.add(record)
            if callable(served):
                self.folder.run["model_server"] = served()
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


def play(plan: RunPlan, *, headers: Mapping[str, str], resume: bool, retry_faulted: bool) -> None:
    """Run each agent in each environment and print the results.

    Args:
        plan: The agents, environments and settings.
        headers: HTTP headers for the environments' servers.
        resume: Whether to resume existing runs in the folders.
        retry_faulted: Whether to retry faulted episodes of resumed runs.
    """
    environments = [PlannedEnvironment(each, headers) for each in plan.environments]
    players = players_of(plan.agents, plan.seed)
    settings = {
        "several": len(environments) * len(players) > 1,
        "resume": resume,
        "retry_faulted": retry_faulted,
    }
    problem: AgentFault | None = None
    interrupted = False
    with contextlib.ExitStack() as stack:
        entries = [
            stack.enter_context(_opened(plan, player, environment, **settings))
            for player in players
            for environment in environments
        ]
        _allow_connections(plan.concurrency)
        before = [record for entry in entries for record in entry.folder.records]
        try:
            with Progress(before, sum(len(entry.left) for entry in entries)) as progress:
                make_worker = stack.enter_context(_cluster(plan, players)).worker if plan.ray else None
                for engine, served in groupby(entries, key=lambda entry: entry.player.engine):
                    with _same_directory(), engine if engine is not None else contextlib.nullcontext():
                        jobs = [entry.job(progress.note) for entry in served]
                        work = play_jobs(jobs, concurrency=plan.concurrency, make_worker=make_worker)
                        asyncio.run(interruptible(work))
        except KeyboardInterrupt:
            interrupted = True
        except AgentFault as fault:
            problem = fault
    print_results([entry.folder for entry in entries])
    if problem is not None:
        report(f"{problem}. The episodes are kept; give --resume --retry-faulted to continue")
        raise typer.Exit(ERROR)
    if interrupted:
        err.print("Interrupted; give --resume to continue the run.")
        raise typer.Exit(INTERRUPTED)
    summaries = [entry.folder.summary for entry in entries]
    if any(summary.episodes for summary in summaries) and not any(summary.scored for summary in summaries):
        raise typer.Exit(1)


@contextlib.contextmanager
def _opened(
    plan: RunPlan,
    player: Player,
    environment: PlannedEnvironment,
    *,
    several: bool,
    resume: bool,
    retry_faulted: bool,
) -> Iterator[_Entry]:
    """Open the run folder of an agent in an environment, and yield the entry with its remaining episodes."""
    name = _slug(f"{environment.chosen.id.rpartition('/')[2]}-{player.name}")
    out = Path(plan.out or f"runs/{'run' if several else name}")
    run = {
        "agent": player.name,
        "agent_settings": player.settings(environment.chosen.environment, environment.system_prompt),
        "seed": plan.seed if player.is_model else plan.seed or 0,
        "samples": plan.samples,
        "concurrency": plan.concurrency,
        **environment.facts(tools=player.uses_tools),
    }
    episodes = episodes_of(environment.tasks, plan.samples)
    prices = {} if plan.prices is None else read_prices(Path(plan.prices))
    with RunFolder(
        out / name if several else out,
        run,
        resume=resume,
        planned=episodes,
        price=price_of(player.name, prices) if player.is_model else None,
    ) as folder:
        yield _Entry(player, environment, folder, folder.remaining(episodes, retry_faulted=retry_faulted))


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


def _slug(name: str) -> str:
    """Convert a name to a valid folder name."""
    return re.sub(r"[^\w.-]+", "_", name).strip("._")[:120] or "run"


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
