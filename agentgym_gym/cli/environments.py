"""An environment as a command is to play it: made from a plan, with the facts that a run keeps of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agentgym_gym._base_env import BaseTextEnv
from agentgym_gym._http.limits import DEFAULT_TIMEOUT
from agentgym_gym._options import EnvOptions
from agentgym_gym._text import redact
from agentgym_gym.cli.names import Chosen, resolve
from agentgym_gym.cli.options import text_of
from agentgym_gym.cli.sources import require_server
from agentgym_gym.errors import AgentGymError, BadOption
from agentgym_gym.evaluate.slots import Places
from agentgym_gym.rollout import describe_env
from agentgym_gym.rollout.workers import close_env

if TYPE_CHECKING:
    from agentgym_gym.cli.plans import EnvironmentPlan
    from agentgym_gym.evaluate.text_env import TextEnv
    from agentgym_gym.rollout import EnvFacts

__all__ = ["PlannedEnvironment"]


class PlannedEnvironment:
    """One environment of a run.

    Args:
        plan: What was asked for.
        headers: HTTP headers for its server.
        any_split: Whether ``all`` tasks are those of all splits where the plan names none; else they are
            those of the one that models are measured on.

    Raises:
        UnknownEnvironment: There is none of that name.
        BadOption: It has no such tasks, or the file with its system prompt cannot be read.
    """

    def __init__(self, plan: EnvironmentPlan, headers: Mapping[str, str], *, any_split: bool = False) -> None:
        self.plan = plan
        self.chosen: Chosen = resolve(plan.id)
        self._headers = headers
        self.split = plan.split
        if plan.split is None and not any_split and plan.tasks == "all":
            self.split = self.chosen.evaluation_split()
        whole = any_split and plan.tasks == "all" and plan.split is None
        # A range is of all splits where none is named; `all` is of the first.
        self.tasks = self.chosen.tasks(":" if whole and self.chosen.environment else plan.tasks, self.split)
        self.system_prompt = None if plan.system_prompt is None else text_of(Path(plan.system_prompt))
        self._probed: dict[bool, tuple[Any, EnvFacts]] = {}  # another library's may take long to make

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
        environment, own = self.chosen.environment, self._probe(tools=False)[0]
        if environment is None or not isinstance(own, BaseTextEnv):
            return {}
        probes = require_server(environment, own.servers, self._headers)
        return {
            "server": [redact(url) for url in own.servers],
            "server_says": [found.answers for found in probes],
            "served_by": [found.served_by for found in probes],
            "timeout": DEFAULT_TIMEOUT if self.plan.timeout is None else self.plan.timeout,
        }

    @cached_property
    def places(self) -> Places:
        """Where it is played, by whichever agent.

        Raises:
            NoServer: As for `servers`.
        """
        served_by = self.servers.get("served_by", ())
        if not all(served_by) or not served_by:
            return Places(self._probe(tools=False)[1].capacity)
        # The number of places is that of AgentGym's server; this project's own have no fixed one.
        most = self.plan.env_kwargs.get("max_envs_per_server")
        return Places(None if most is None else most * len(served_by))

    def facts(self, *, tools: bool) -> dict[str, Any]:
        """Return what a run keeps of the environment."""
        own = self._probe(tools=tools)[1].system_prompt
        return {
            "env_id": self.chosen.id,
            "tasks": self.plan.tasks,
            "options": self._options(tools=tools),
            "system_prompt": own if self.system_prompt is None else self.system_prompt,
            **self.servers,
        }

    def _probe(self, *, tools: bool) -> tuple[Any, EnvFacts]:
        """Return an environment for its attributes, not to be played, and its properties.

        Raises:
            BadOption: It cannot be made.
        """
        if tools not in self._probed:
            try:
                env: Any = self.maker(tools=tools)()
            except AgentGymError:
                raise
            except Exception as error:  # another's constructor may raise anything
                raise BadOption(
                    f"{self.chosen.id} cannot be made: {type(error).__name__}: {error}"
                ) from error
            own = getattr(env, "unwrapped", env)
            self._probed[tools] = own, describe_env(env)
            if not isinstance(own, BaseTextEnv):
                close_env(env, self.chosen.id)
        return self._probed[tools]

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
