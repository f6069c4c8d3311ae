"""Runs with their environments and agents, before their folders are opened."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agentgym_gym.errors import ArgumentName, BadOption
from agentgym_gym.evaluate._agent_setup import AgentSetup
from agentgym_gym.evaluate._env_setup import EnvSetup
from agentgym_gym.evaluate._episode_workers import Job
from agentgym_gym.evaluate._folder import RunFolder, folder_name
from agentgym_gym.evaluate._protocols.applying import apply_protocols
from agentgym_gym.evaluate._run import ChatOptions, Run
from agentgym_gym.evaluate._runner import episodes_of
from agentgym_gym.evaluate._runs import EPISODES, counting
from agentgym_gym.options import check_options
from agentgym_gym.rollout import read_records

if TYPE_CHECKING:
    from agentgym_gym.evaluate._chat.budget import RequestLimits
    from agentgym_gym.evaluate._engines import Engine
    from agentgym_gym.evaluate._protocols.applied import AppliedProtocol
    from agentgym_gym.rollout._records import EpisodeRecord

__all__ = ["MAX_UNASKED", "PreparedRun", "prepare"]

MAX_UNASKED = 1_000
"""The number of episodes that models play without a confirmation."""


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
        before = folder.previous.get("model_server")
        if before:
            folder.run["model_server"] = before

        def add(record: EpisodeRecord) -> None:
            if limits is not None:
                folder.run["usage"] = limits.usage.as_dict()
            if callable(served):
                folder.run["model_server"] = _joined(before, served())
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


def _joined(before: Any, now: Mapping[str, list[str]]) -> dict[str, list[str]]:
    """Return what a model server reported before a run was resumed, and since."""
    known = before if isinstance(before, Mapping) else {}
    return {name: sorted({*known.get(name, ()), *now.get(name, ())}) for name in sorted({*known, *now})}


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
