"""``agentgym verl check``: validate a training folder."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.text import Text

from agentgym_gym.actions import Action
from agentgym_gym.catalogue import find
from agentgym_gym.commands import (
    Option,
    clean,
    command,
    configured,
    find_modules_here,
    out,
    print_json,
    probe,
)
from agentgym_gym.errors import AgentGymError, BadFile, MissingExtra, UnknownEnvironment
from agentgym_gym.evaluate import AgentReply, RandomAgent, load_oracle
from verl_bridge import recipes
from verl_bridge.recipes._check_data import TaskFacts
from verl_bridge.recipes._finding import Finding, ok, problem
from verl_bridge.recipes._overrides import check_override

if TYPE_CHECKING:
    from verl_bridge.tasks import EnvTask

__all__ = ["CheckOptions", "check"]

_STYLES = {"ok": "green", "warning": "yellow", "problem": "red", "skipped": "dim"}


@dataclass(frozen=True, kw_only=True)
class CheckOptions:
    """The options of ``agentgym verl check``."""

    folder: Annotated[Path, Option("folder written by init or sft", positional=True, metavar="DIR")]
    overrides: Annotated[
        list[str] | None,
        Option("settings to override, as for run.sh", positional=True, metavar="KEY=VALUE"),
    ] = None
    timeout: Annotated[float, Option("timeout of each environment call, in seconds", least=1)] = 60.0
    as_json: Annotated[bool, Option("print JSON instead of lines", flag="--json")] = False


@command(CheckOptions)
def check(options: CheckOptions) -> None:
    """Validate a training folder before you rent a GPU.

    It composes the settings with the installed verl, reads the tasks, and plays the first turns of each
    environment, first one episode and then two at once, and then two whole episodes. Checks whose packages
    are not installed are skipped. Exits with 1 if there is a problem. As for run.sh, the module of an
    environment of your own may be in the working directory.
    """
    folder, overrides = options.folder, options.overrides or ()
    if not folder.is_dir():
        raise BadFile(f"{folder} is not a folder: write one with agentgym verl init or sft", path=folder)
    for override in overrides:
        check_override(override)
    find_modules_here()
    try:
        findings, tasks = recipes.check(
            folder,
            overrides=overrides,
            timeout=options.timeout,
            players=_players_of,
            find_task=_find_task,
        )
    except ModuleNotFoundError as error:
        if error.name != "yaml":
            raise
        raise MissingExtra("Checking a folder", extra="cli", module="yaml") from error
    findings += _probe_servers(tasks)
    bad = any(finding.status == "problem" for finding in findings)
    if options.as_json:
        print_json({"ok": not bad, "findings": [dataclasses.asdict(finding) for finding in findings]})
    else:
        for finding in findings:
            _print(finding)
    if bad:
        raise typer.Exit(1)


def _print(finding: Finding) -> None:
    line = Text(f"{finding.status:<8} ", style=_STYLES[finding.status])
    line.append(f"{finding.check}: {' '.join(clean(finding.text).split())}", style="none")
    out.print(line)
    if finding.advice:
        out.print(Text(f"{'':<9}→ {clean(finding.advice)}"))


def _probe_servers(tasks: Iterable[EnvTask]) -> Iterator[Finding]:
    """Identify every server of AgentGym's environments, since the other checks use only one of several."""
    probed: set[tuple[str, str]] = set()
    for task in tasks:
        try:
            environment = find(task.env_id)
            headers = task.env_kwargs.get("headers")
            urls = configured(environment, task.env_kwargs.get("server"))
        except (ValueError, UnknownEnvironment):
            continue  # reported by the check of the environments
        for url in urls:
            if (environment.name, url) not in probed:
                probed.add((environment.name, url))
                result = probe(url, environment, headers)
                if result.problem:
                    advice = "start the right server there, or name it by --server or its variable"
                    yield problem("server", f"{result.url}: {result.problem}", advice)
                else:
                    yield ok("server", f"{result.url} is {environment.name}, {result.round_trip_ms} ms")


class _TextPlayer:
    """Plays with an agent of this library, and returns its replies as text.

    Args:
        agent: The agent.
    """

    def __init__(self, agent: Any) -> None:
        self.name = str(agent.name)
        self._agent = agent
        self._env: Any = None

    async def begin(self, env: Any, observation: str, info: Mapping[str, Any]) -> None:
        """Begin an episode."""
        self._env = env
        await _awaited(self._agent.reset(env, observation, dict(info)))

    async def reply(self, observation: str, info: Mapping[str, Any]) -> str | None:
        """Return the next reply in the environment's action format, or None to give up."""
        reply = await _awaited(self._agent.act(observation, dict(info)))
        action = reply.action if isinstance(reply, AgentReply) else reply
        if isinstance(action, Action):
            text: str = self._env.action_space.action_format.render(action)
            return text
        return None if action is None else str(action)


async def _awaited(value: Any) -> Any:
    return await value if inspect.isawaitable(value) else value


def _players_of(env_id: str) -> Sequence[Callable[[], _TextPlayer]]:
    """Return the makers of players for whole episodes: the oracle, if there is one, and a random agent."""
    try:
        environment = find(env_id)
        load_oracle(environment)
    except (AgentGymError, ImportError):
        return [lambda: _TextPlayer(RandomAgent())]
    return [lambda: _TextPlayer(load_oracle(environment)), lambda: _TextPlayer(RandomAgent())]


def _find_task(env_id: str, task_id: Any) -> TaskFacts | None:
    """Return the catalogue's facts about a task; None if its environment is of another library."""
    try:
        environment = find(env_id)
    except UnknownEnvironment:
        return None
    if type(task_id) is int and environment.has_task(task_id):
        return TaskFacts(
            held_out=environment.held_out(task_id) or "", unwinnable=environment.unwinnable.get(task_id, "")
        )
    ids = environment.task_ids
    has = f"it has {len(ids):,}, from {ids[0]} to {ids[-1]}"
    return TaskFacts(error=f"{environment.name} has no task {task_id!r:.40}; {has}")
