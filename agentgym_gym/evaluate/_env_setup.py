"""The environment of a run: its tasks, its servers, how it is made, and the metadata that a run records."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Mapping
from dataclasses import fields
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agentgym_gym._base_env import BaseTextEnv
from agentgym_gym._env_options import EnvOptions
from agentgym_gym._http.limits import DEFAULT_TIMEOUT
from agentgym_gym._text import redact
from agentgym_gym.errors import ArgumentName, BadFile, BadOption
from agentgym_gym.evaluate._episode_workers import Servers
from agentgym_gym.evaluate._probe import require_one_world, require_server
from agentgym_gym.evaluate._protocols.applying import UNRECORDED
from agentgym_gym.evaluate._resolve import Chosen, resolve
from agentgym_gym.evaluate._run import Run
from agentgym_gym.evaluate._selection import select_tasks, selection_text
from agentgym_gym.evaluate._world import UNAVAILABLE
from agentgym_gym.options import options_of
from agentgym_gym.rollout import Pool
from agentgym_gym.rollout._env_facts import describe_env
from agentgym_gym.rollout._workers import isolation_of

if TYPE_CHECKING:
    from agentgym_gym.evaluate._text_env import TextEnv
    from agentgym_gym.rollout import EnvFacts

__all__ = ["ENV_TIMEOUT", "EnvSetup", "text_of"]

ENV_TIMEOUT = 900.0
"""The timeout of each call to another library's environment, in seconds, so that no call blocks a run."""


class EnvSetup:
    """The environment of one or several runs.

    Args:
        run: The run, with the settings of its protocol.
        any_split: Whether ``all`` means the tasks of all splits if the run names no split; otherwise it
            means the split for evaluation.

    Attributes:
        selection: The tasks to play.
        isolate: Where each environment runs, as for `agentgym_gym.rollout.Pool`.
        success_at: The return at which a task counts as solved, as for `agentgym_gym.rollout.Episode`.
        deadline: The timeout of each call to the environment, in seconds; None for AgentGym's environments,
            whose requests have their own timeouts.

    Raises:
        UnknownEnvironment: The environment does not exist.
        BadOption: The tasks do not exist, a setting is invalid, or the system prompt file cannot be read.
    """

    def __init__(self, run: Run, *, any_split: bool = False) -> None:
        self.run = run
        self.chosen: Chosen = resolve(run.env)
        self._headers = run.headers or {}
        self.selection = select_tasks(self.chosen, run, any_split=any_split)
        self.tasks = self.selection.tasks
        self.isolate = isolation_of(run.isolate)
        self.success_at = _threshold(run.success_at)
        self.deadline = _deadline(run.env_timeout, self.chosen)
        prompt = run.system_prompt
        self.system_prompt = text_of(prompt) if isinstance(prompt, Path) else prompt
        self._samples: dict[bool, Any] = {}
        self._described: EnvFacts | None = None  # creating another library's may take long

    @property
    def name(self) -> str:
        """The id of the environment without its namespace, such as ``TextCraft-v0``."""
        return self.chosen.id.rpartition("/")[2]

    def maker(self, *, tools: bool) -> Callable[[], TextEnv]:
        """Return a factory for the environment.

        Args:
            tools: Whether actions are tool calls, unless the plan names another format.
        """
        return self.chosen.maker(self.run.env_kwargs, self._own_arguments(tools=tools), self.run.max_turns)

    @cached_property
    def servers(self) -> Mapping[str, Any]:
        """The metadata of the servers; a local server is started here if needed.

        Raises:
            NoServer: No server responds, or all of them serve other environments.
            BadOption: The servers have different worlds, whose scores would be averaged.
        """
        environment = self.chosen.environment
        own = None if environment is None else self._sample(tools=False)
        if environment is None or not isinstance(own, BaseTextEnv):
            return {}
        probes = require_server(environment, own.servers, self._headers)
        require_one_world(probes)
        return {
            "server": [redact(url) for url in own.servers],
            "server_says": [probe.answers for probe in probes],
            "served_by": [probe.served_by for probe in probes],
            "server_make": [UNAVAILABLE if probe.problem else probe.made_by for probe in probes],
            "timeout": DEFAULT_TIMEOUT if self.run.timeout is None else self.run.timeout,
        }

    @cached_property
    def shared_servers(self) -> Servers:
        """The servers of the environment, shared by all agents.

        Raises:
            NoServer: As for `servers`.
        """
        served_by = self.servers.get("served_by", ())
        if not all(served_by) or not served_by:
            return Servers(self._describe(tools=False).capacity)
        # AgentGym's servers have a fixed capacity; this project's own servers do not.
        per_server = self.run.env_kwargs.get("max_envs_per_server")
        return Servers(None if per_server is None else per_server * len(served_by))

    @property
    def tool_schemas(self) -> list[Any]:
        """The schemas that a request with native tool calls contains."""
        return list(getattr(self._sample(tools=True), "tools", None) or ())

    def facts(self, *, tools: bool) -> dict[str, Any]:
        """Return the metadata of the environment that a run records."""
        own = self._describe(tools=tools).system_prompt
        return {
            "env_id": self.chosen.id,
            "tasks": selection_text(self.run.tasks),
            "selection": self.selection.facts,
            "options": self._options(tools=tools),
            "system_prompt": own if self.system_prompt is None else self.system_prompt,
            "isolate": self.isolate,
            "env_timeout": self.deadline,
            **self.servers,
        }

    def _describe(self, *, tools: bool) -> EnvFacts:
        """Return the properties of the environment; another library's is created with the run's isolation.

        Raises:
            BadOption: The environment cannot be created, or its observations are not text.
        """
        if self.chosen.environment is not None:
            return describe_env(self._sample(tools=tools))
        if self._described is None:
            self._described = asyncio.run(self._make_and_describe())
        return self._described

    async def _make_and_describe(self) -> EnvFacts:
        async with Pool(self.maker(tools=False), isolate=self.isolate, timeout=self.deadline) as pool:
            return await pool.text_facts(self.tasks[0])

    def _sample(self, *, tools: bool) -> Any:
        """Return an AgentGym environment to read its attributes; it is never reset."""
        if tools not in self._samples:
            self._samples[tools] = self.maker(tools=tools)().unwrapped
        return self._samples[tools]

    def _own_arguments(self, *, tools: bool) -> dict[str, Any]:
        action_format = self.run.action_format
        if tools and action_format is None and self.chosen.environment is not None:
            action_format = "tool_calls"
        declared = {name: getattr(self.run, name) for name in _ARGUMENTS}
        return {**declared, "action_format": action_format, "headers": self._headers or None}

    def _options(self, *, tools: bool) -> dict[str, Any]:
        """Return the options that affect the episodes: a run can be resumed only with the same ones."""
        environment, more, turns = self.chosen.environment, self.run.env_kwargs, self.run.max_turns
        public = {name: value for name, value in more.items() if name not in UNRECORDED}
        if self.success_at is not None:  # runs of earlier versions lack it
            public["success_at"] = self.success_at
        if environment is None:
            return {"max_turns": turns, **public}
        shown = {
            name: getattr(EnvOptions, name) if value is None else value
            for name, value in self._own_arguments(tools=tools).items()
            if _ARGUMENTS.get(name)
        }
        return {
            **shown,
            "split": self.selection.split,
            "max_turns": environment.max_turns if turns is None else turns or None,
            **public,
        }


# The settings that are arguments of AgentGym's environments, by name, and whether a run records them.
_ARGUMENTS = {
    name: option.recorded
    for name, option in options_of(Run).items()
    if name in {each.name for each in fields(EnvOptions)} - {"max_turns"}
}


def text_of(file: Path) -> str:
    """Return the text of a file that an option names, without the final newline.

    Raises:
        BadOption: The file cannot be read, or is empty.
    """
    try:
        text = file.read_text("utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise BadFile(f"cannot read {file}: {error}", path=file) from error
    if not text.strip():
        raise BadFile(f"{file} is empty", path=file)
    return text.removesuffix("\n")  # the newline at the end of a text file is not content


def _threshold(number: float | None) -> float | None:
    if number is None or math.isfinite(number):
        return None if number is None else float(number)
    raise BadOption("success_at", number, "a finite number")


def _deadline(seconds: float | None, chosen: Chosen) -> float | None:
    if chosen.environment is not None:
        if seconds is not None:
            raise BadOption(
                "env_timeout",
                seconds,
                problem=(
                    f"is not for {chosen.id}, whose requests have a timeout: give ",
                    ArgumentName("timeout"),
                    "=SECONDS instead",
                ),
            )
        return None
    if seconds is not None and not 0 < seconds < math.inf:
        raise BadOption("env_timeout", seconds, "a number of seconds above 0")
    return ENV_TIMEOUT if seconds is None else float(seconds)
