"""Plays what ``agentgym eval`` was asked for: each agent in each environment, each in a folder of its own."""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import signal
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from agentgym_gym._base_env import BaseTextEnv
from agentgym_gym._http.limits import DEFAULT_TIMEOUT
from agentgym_gym._options import EnvOptions
from agentgym_gym._text import redact
from agentgym_gym.cli.console import ERROR, err, report
from agentgym_gym.cli.names import Chosen, resolve
from agentgym_gym.cli.players import Player, players_of
from agentgym_gym.cli.progress import Progress
from agentgym_gym.cli.results import print_results
from agentgym_gym.cli.sources import require_server
from agentgym_gym.errors import AgentFault, BadOption
from agentgym_gym.evaluate.figures.prices import price_of, read_prices
from agentgym_gym.evaluate.folder import RunFolder
from agentgym_gym.evaluate.runner import episodes_of, play_parts
from agentgym_gym.evaluate.slots import Part
from agentgym_gym.evaluate.tasks import is_tasks

if TYPE_CHECKING:
    from agentgym_gym.cli.plans import EnvironmentPlan, RunPlan
    from agentgym_gym.evaluate.on_ray import RayCluster
    from agentgym_gym.evaluate.records import EpisodeRecord, TextEnv

__all__ = ["play"]

_INTERRUPTED = 130  # the status a shell gives a command that Ctrl-C ended
_FILES = 256  # that are open beside the connections


class _Environment:
    """One environment of a run.

    Args:
        plan: What was asked for.
        headers: HTTP headers for its server.
    """

    def __init__(self, plan: EnvironmentPlan, headers: Mapping[str, str]) -> None:
        self.plan = plan
        self.chosen: Chosen = resolve(plan.id)
        self._headers = headers
        self.split = plan.split
        if plan.split is None and is_tasks(plan.tasks):
            self.split = self.chosen.evaluation_split()
        self.tasks = self.chosen.tasks(plan.tasks, self.split)
        self._looked: dict[bool, Any] = {}  # another library's may take long to make

    def maker(self, *, tools: bool) -> Callable[[], TextEnv]:
        """Return what makes the environment.

        Args:
            tools: Whether actions are tool calls, as far as no other format was asked for.
        """
        return self.chosen.maker(self.plan.env_kwargs, self._asked(tools=tools), self.plan.max_turns)

    @cached_property
    def servers(self) -> Mapping[str, Any]:
        """What is known of the servers; one of its own is started here.

        Raises:
            NoServer: None answers, or all are another environment's: now, and not by a folder full of faults.
        """
        environment, own = self.chosen.environment, self._look(tools=False)
        if environment is None or not isinstance(own, BaseTextEnv):
            return {}
        probes = require_server(environment, own.servers, self._headers)
        return {
            "server": [redact(url) for url in own.servers],
            "server_says": [found.answers for found in probes],
            "timeout": DEFAULT_TIMEOUT if self.plan.timeout is None else self.plan.timeout,
        }

    @property
    def capacity(self) -> int | None:
        """How many of it the servers hold at once; None for no limit."""
        own = self._look(tools=False)
        return own.capacity if isinstance(own, BaseTextEnv) else None

    def facts(self, *, tools: bool) -> dict[str, Any]:
        """Return what a run keeps of the environment."""
        prompt = getattr(self._look(tools=tools), "system_prompt", None)
        return {
            "env_id": self.chosen.id,
            "tasks": self.plan.tasks,
            "options": self._options(tools=tools),
            "system_prompt": prompt if isinstance(prompt, str) else None,
            **self.servers,
        }

    def _look(self, *, tools: bool) -> Any:
        """Return an environment to be asked, and not to be played."""
        if tools not in self._looked:
            env = self.maker(tools=tools)()
            self._looked[tools] = own = env.unwrapped
            if not isinstance(own, BaseTextEnv):
                env.close()
        return self._looked[tools]

    def _asked(self, *, tools: bool) -> dict[str, Any]:
        written = self.plan.action_format
        if tools and written is None and self.chosen.environment is not None:
            written = "tool_calls"
        return {
            "split": self.plan.split,
            "action_format": written,
            "parser": self.plan.parser,
            "on_unknown": self.plan.on_unknown,
            "server": self.plan.server,
            "timeout": self.plan.timeout,
            "headers": self._headers or None,
        }

    def _options(self, *, tools: bool) -> dict[str, Any]:
        """Return what the episodes depend on: a run is gone on with by the same alone."""
        environment, more, turns = self.chosen.environment, self.plan.env_kwargs, self.plan.max_turns
        public = {name: value for name, value in more.items() if name not in {"headers", "server"}}
        if environment is None:
            return {"max_turns": turns, **public}
        shown = {
            name: getattr(EnvOptions, name) if value is None else value
            for name, value in self._asked(tools=tools).items()
            if name not in {"server", "timeout", "headers"}
        }
        return {
            **shown,
            "split": self.split,
            "max_turns": environment.max_turns if turns is None else turns or None,
            **public,
        }


@dataclass(frozen=True)
class _Entry:
    """One agent in one environment, with the folder of their run."""

    player: Player
    environment: _Environment
    folder: RunFolder
    left: Sequence[tuple[int, int]]

    def part(self, on_episode: Callable[[EpisodeRecord], object]) -> Part:
        """Return it as the runner takes it."""
        make_agent = self.player.maker(self.environment.chosen.environment)
        served = getattr(make_agent(), "served", None)

        def take(record: EpisodeRecord) -> None:
            self.folder.add(record)
            if callable(served):
                self.folder.run["model_server"] = served()
            on_episode(record)

        make_env = self.environment.maker(tools=self.player.uses_tools)
        return Part(make_env, make_agent, self.left, take, self.environment.capacity)


def play(plan: RunPlan, *, headers: Mapping[str, str], resume: bool, retry_faulted: bool) -> None:
    """Play each agent in each environment, and print the results.

    Args:
        plan: What is played.
        headers: HTTP headers for the environments' servers.
        resume: Whether runs that are in the folders are gone on with.
        retry_faulted: Whether their episodes that a fault ended are played anew.
    """
    environments = [_Environment(each, headers) for each in plan.environments]
    players = players_of(plan.agents, plan.seed)
    how = {
        "several": len(environments) * len(players) > 1,
        "resume": resume,
        "retry_faulted": retry_faulted,
    }
    problem: AgentFault | None = None
    interrupted = False
    with contextlib.ExitStack() as stack:
        entries = [
            stack.enter_context(_opened(plan, player, environment, **how))
            for player in players
            for environment in environments
        ]
        _allow_connections(plan.concurrency)
        try:
            with Progress([entry.folder for entry in entries], sum(len(e.left) for e in entries)) as progress:
                make_slot = stack.enter_context(_cluster(plan, players)).slot if plan.ray else None
                for engine, served in groupby(entries, key=lambda entry: entry.player.engine):
                    with engine if engine is not None else contextlib.nullcontext():
                        parts = [entry.part(progress.note) for entry in served]
                        work = play_parts(parts, concurrency=plan.concurrency, make_slot=make_slot)
                        asyncio.run(_interruptible(work))
        except KeyboardInterrupt:
            interrupted = True
        except AgentFault as fault:
            problem = fault
    print_results([entry.folder for entry in entries], Path(plan.out))
    if problem is not None:
        report(f"{problem}. What was played is kept; --resume --retry-faulted goes on")
        raise typer.Exit(ERROR)
    if interrupted:
        err.print("Interrupted; --resume goes on from here.")
        raise typer.Exit(_INTERRUPTED)
    summaries = [entry.folder.summary for entry in entries]
    if any(summary.episodes for summary in summaries) and not any(summary.scored for summary in summaries):
        raise typer.Exit(1)


async def _interruptible(work: Coroutine[Any, Any, None]) -> None:
    """Await something, and have Ctrl-C cancel it rather than break into the midst of a callback.

    A second Ctrl-C ends the program as usual.

    Raises:
        KeyboardInterrupt: It was cancelled so.
    """
    loop, task = asyncio.get_running_loop(), asyncio.ensure_future(work)
    interrupted = False

    def interrupt() -> None:
        nonlocal interrupted
        interrupted = True
        task.cancel()
        loop.remove_signal_handler(signal.SIGINT)

    # Not on every system, and in the main thread alone.
    with contextlib.suppress(NotImplementedError, RuntimeError, ValueError):
        loop.add_signal_handler(signal.SIGINT, interrupt)
    try:
        await task
    except asyncio.CancelledError:
        if interrupted:
            raise KeyboardInterrupt from None
        raise
    finally:
        with contextlib.suppress(NotImplementedError, RuntimeError, ValueError):
            loop.remove_signal_handler(signal.SIGINT)


@contextlib.contextmanager
def _opened(
    plan: RunPlan,
    player: Player,
    environment: _Environment,
    *,
    several: bool,
    resume: bool,
    retry_faulted: bool,
) -> Iterator[_Entry]:
    """Open the folder of an agent in an environment, and yield both with what is left to be played."""
    name = _slug(f"{environment.chosen.id.rpartition('/')[2]}-{player.name}")
    out = Path(plan.out or f"runs/{'run' if several else name}")
    run = {
        "agent": player.name,
        "agent_settings": player.settings(environment.chosen.environment),
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
    """Return the Ray cluster that plays the episodes.

    Raises:
        BadOption: A model is served on this machine alone.
        MissingExtra: The package ``ray`` is missing.
        SetupError: There is no cluster.
    """
    if any(player.engine is not None for player in players):
        raise BadOption(
            "--ray cannot be given with --launch: the engine listens on this machine alone. Start it by "
            "itself, and give --model and --base-url"
        )
    from agentgym_gym.evaluate.on_ray import RayCluster  # noqa: PLC0415 - an extra

    named = {player.plan.api_key_variable or "OPENAI_API_KEY" for player in players if player.is_model}
    variables = {name: os.environ[name] for name in named if name in os.environ}
    return RayCluster(str(plan.ray), concurrency=plan.concurrency, variables=variables)


def _slug(name: str) -> str:
    """Return a name as that of a folder."""
    return re.sub(r"[^\w.-]+", "_", name).strip("._")[:120] or "run"


def _allow_connections(concurrency: int) -> None:
    """Raise this process's limit of open files, as far as the system lets it, where it is too low."""
    try:
        import resource  # noqa: PLC0415 - not on every system
    except ImportError:
        return
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = 2 * concurrency + _FILES  # a connection to the environment and one to the model
    if soft != resource.RLIM_INFINITY and soft < wanted:
        most = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        with contextlib.suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))
