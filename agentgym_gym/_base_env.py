"""Common base of `AgentGymEnv` and `AsyncAgentGymEnv`: options, episode and tasks."""

from __future__ import annotations

import contextlib
import copy
import itertools
import time
import weakref
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from agentgym_gym import catalogue
from agentgym_gym._addresses import addresses, configured
from agentgym_gym._env_options import AGENTGYMS_OWN, EnvOptions, is_client, is_whole
from agentgym_gym._headers import configured_headers
from agentgym_gym._http.certificates import check_certificates
from agentgym_gym._remote_episode import RemoteEpisode
from agentgym_gym._tool_calls import normalize_action
from agentgym_gym.actions import Thought
from agentgym_gym.errors import ArgumentName, BadOption
from agentgym_gym.formats import AgentGymFormat, ReAct, get_format
from agentgym_gym.formats._react_on_one_line import ReActOnOneLine
from agentgym_gym.spaces import ReplySpace, TextSpace

if TYPE_CHECKING:
    import numpy as np
    from gymnasium.envs.registration import EnvSpec

    from agentgym_gym._env_options import FormatName, HttpClient
    from agentgym_gym._http.limits import Limits
    from agentgym_gym.actions import Grammar, StepAction
    from agentgym_gym.calls import WaitingFlow
    from agentgym_gym.catalogue import OnUnknown
    from agentgym_gym.formats import Format

__all__ = ["BaseTextEnv", "Channel", "live_envs", "public_spec"]


@dataclass(frozen=True)
class Channel:
    """The transport options of a driver.

    Attributes:
        headers: Sent with every request.
        http_client: An HTTP client, or a callable that returns one; None for the built-in client.
    """

    headers: Mapping[str, str]
    http_client: Any


class BaseTextEnv:
    """The base of `AgentGymEnv`, which documents the arguments, and of `AsyncAgentGymEnv`."""

    metadata: dict[str, Any] = {  # noqa: RUF012 - as gymnasium has it
        "render_modes": ["ansi"],
        "render_fps": 1,
        "task_option": "task_id",
    }

    _asynchronous: ClassVar[bool]

    def __init__(
        self,
        environment: str,
        *,
        server: str | Sequence[str] | None = EnvOptions.server,
        split: str | None = EnvOptions.split,
        action_format: FormatName | Format = EnvOptions.action_format,
        parser: Literal["default", "agentgym"] = EnvOptions.parser,
        on_unknown: OnUnknown | None = EnvOptions.on_unknown,
        on_fault: Literal["truncate", "raise"] = EnvOptions.on_fault,
        max_turns: int | None = EnvOptions.max_turns,
        timeout: float | Mapping[str, float] = EnvOptions.timeout,
        max_envs_per_server: int | None = EnvOptions.max_envs_per_server,
        render_mode: str | None = EnvOptions.render_mode,
        headers: Mapping[str, str] | None = EnvOptions.headers,
        http_client: HttpClient | None = EnvOptions.http_client,
        **own_options: Any,
    ) -> None:
        self.environment = catalogue.find(environment)
        wire = self.environment.wire_with(own_options)
        self._options = options = EnvOptions(
            server=server,
            split=split,
            action_format=action_format,
            parser=parser,
            on_unknown=on_unknown,
            on_fault=on_fault,
            max_turns=max_turns,
            timeout=timeout,
            max_envs_per_server=max_envs_per_server,
            render_mode=render_mode,
            headers=headers,
            http_client=http_client,
            own=own_options,
        )
        self.render_mode = options.render_mode
        self._tasks = self.environment.split(options.split)
        written = get_format(options.action_format)
        self.observation_space = TextSpace()
        self.action_space = ReplySpace(written, self.environment.grammar)
        default = options.parser == "default"
        self._episode = RemoteEpisode(
            self.environment,
            wire=wire,
            action_format=written if default else self._agentgym_format(options.action_format),
            # AgentGym's own client sends any action.
            on_unknown=options.on_unknown or (self.environment.on_unknown if default else "forward"),
            max_turns=self.environment.max_turns if options.max_turns is AGENTGYMS_OWN else options.max_turns,
            max_envs_per_server=options.max_envs_per_server,
            on_fault=options.on_fault,
        )
        self._server = options.server
        self._limits = options.limits(wire.time_limits)
        self._until = 0.0  # end of the time allowed for the episode
        headers = configured_headers(self.environment, options.headers)
        try:
            if options.http_client is None:
                check_certificates(configured(self.environment, options.server))
            self._channel = Channel(headers, options.make_client(asynchronous=self._asynchronous))
            self._attach()
            self._episode.holder.run = partial(_run, self._channel, self._limits)
        except TypeError as error:  # gymnasium would re-raise it with all arguments in the message
            raise BadOption("http_client", problem=f"failed: {error}") from error
        import agentgym_gym._event_loop  # noqa: F401, PLC0415 - `release_all` could not at exit

        _live.add(self)

    def _attach(self) -> None:
        """Create the driver, and the finalizer that releases the remote environment."""
        raise NotImplementedError

    def _seed(self, seed: int | None) -> np.random.Generator:
        """Seed the generator for tasks, unless the seed is None, and return it."""
        raise NotImplementedError

    def render(self) -> str | None:
        """Return the transcript of the episode so far, or None without a render mode."""
        if self.render_mode is None:
            return None
        roles = itertools.cycle(("environment", "agent"))
        return "\n\n".join(
            f"[{role}]\n{text}" for role, text in zip(roles, self._episode.transcript, strict=False)
        )

    def __reduce__(self) -> tuple[Any, ...]:
        """Copy by creating a new environment with the same options; it has no remote environment yet.

        Raises:
            BadOption: The environment has a live HTTP client, which cannot be copied.
        """
        if is_client(self._options.http_client):
            raise BadOption(
                "an environment with a live http_client cannot be copied or pickled: give a callable that "
                "makes the client, or its import path"
            )
        return partial(type(self), self.environment.name, **self._options.non_default), ()

    def read(self, action: StepAction) -> str | None:
        """Return the text that ``step`` would send to the server, without sending it.

        Args:
            action: Any argument of ``step``.

        Returns:
            The text; None if nothing would be sent, because the reply contains only a thought.

        Raises:
            ActionError: The reply contains no valid action.
            BadOption: ``step`` does not accept an object of this type.
        """
        meant = self._episode.read(normalize_action(action, self.environment.grammar)).action
        return None if isinstance(meant, Thought) else str(meant)

    @property
    def system_prompt(self) -> str:
        """The text for an agent before the first observation: the rules, the actions and the reply format."""
        instructions = self._episode.action_format.instructions(self.environment.grammar)
        return f"{self.environment.rules}\n\n{instructions}"

    @property
    def env_id(self) -> str:
        """Gymnasium's id of the environment, even if it was created from its class."""
        return self.environment.id

    @property
    def grammar(self) -> Grammar:
        """The actions of the environment."""
        return self.environment.grammar

    @property
    def action_format(self) -> Format:
        """The format that parses replies."""
        return self._episode.action_format

    @property
    def tools(self) -> list[dict[str, Any]]:
        """The actions as JSON schemas of function tools, for a chat template or an API with tool support."""
        return self.environment.grammar.tools()

    @property
    def parser(self) -> Literal["default", "agentgym"]:
        """The parser of replies."""
        return self._options.parser

    @property
    def on_fault(self) -> Literal["truncate", "raise"]:
        """The effect of a fault in a step."""
        return self._episode.on_fault

    @on_fault.setter
    def on_fault(self, value: Literal["truncate", "raise"]) -> None:
        self._episode.on_fault = value

    @property
    def playing(self) -> bool:
        """Whether an episode is running."""
        return self._episode.playing

    @property
    def tasks(self) -> Sequence[int]:
        """The task ids of the split."""
        return self._tasks

    @property
    def capacity(self) -> int | None:
        """How many environments this process can run on the servers at once; None for no limit."""
        named = configured(self.environment, self._server)
        # A local server, which is started if none is configured, does not have the limits of AgentGym's.
        limits = (self._episode.wire.capacity if named else None, self._options.max_envs_per_server)
        known = [limit for limit in limits if limit is not None]
        return min(known) * max(1, len(named)) if known else None

    @property
    def servers(self) -> tuple[str, ...]:
        """Base URLs of the servers. If none is configured, this starts the local one."""
        return addresses(self.environment, self._server)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.environment.name!r}{self._options.arguments})"

    def _draw(self, seed: int | None, options: dict[str, Any] | None) -> int:
        """Return the task for a reset, and start the time limit of its episode."""
        task_id = self._choose_task(self._seed(seed), options or {})
        self._until = time.monotonic() + self._limits.episode
        _live.add(self)  # again, in case it was closed
        return task_id

    def _closed(self) -> None:
        if not self._episode.holder.pending_releases(retry=True):
            _live.discard(self)  # otherwise the release is retried at exit

    def _release(self) -> bool:
        """Release the remote environment at exit; return whether the server did.

        Uses a separate connection, because another thread or event loop may be using the environment's.
        """
        raise NotImplementedError

    def _end_call(self) -> None:
        """Cancel a call at exit whose event loop has ended before it."""

    def _disconnect(self) -> None:
        """Close the connection at exit, after the remote environment was released."""

    def _choose_task(self, rng: np.random.Generator, options: dict[str, Any]) -> int:
        unknown = sorted(set(map(str, options)) - {"task_id"})
        if unknown:
            raise BadOption(f"reset options may hold only 'task_id', not {unknown}")
        task_id = options.get("task_id")
        if task_id is None:
            return int(self._tasks[int(rng.integers(len(self._tasks)))])
        if not is_whole(task_id):
            raise BadOption("task_id", task_id, "an integer")
        task_id = int(task_id)
        if not self.environment.has_task(task_id):
            splits = [f"{min(ids)} to {max(ids)} ({name})" for name, ids in self.environment.splits.items()]
            raise BadOption(
                "task_id", task_id, f"a task of {self.environment.name}, from {', '.join(splits)}"
            )
        return task_id

    def _agentgym_format(self, action_format: FormatName | Format) -> AgentGymFormat:
        reader = self.environment.agentgym_readers.get(get_format(action_format).name)
        if reader is None:
            known = sorted(self.environment.agentgym_readers)
            raise BadOption(
                "parser",
                "agentgym",
                problem=(
                    f"reads {self.environment.name} in the formats {known}, not ",
                    ArgumentName("action_format"),
                    f"={action_format!r}",
                ),
            )
        if action_format == ReAct.name and self.environment.grammar.style.beside_label:
            return AgentGymFormat(ReActOnOneLine(), reader)
        return AgentGymFormat(get_format(action_format), reader)


_live: weakref.WeakSet[BaseTextEnv] = weakref.WeakSet()


def live_envs() -> list[BaseTextEnv]:
    """Return the environments of this process that were not closed."""
    return list(_live)


def public_spec(spec: EnvSpec | None) -> EnvSpec | None:
    """Return a spec without headers, because its ``repr`` and JSON would show them.

    Raises:
        BadOption: It contains a live HTTP client, which `gymnasium.make` cannot copy.
    """
    if spec is None:
        return None
    if is_client(spec.kwargs.get("http_client")):
        raise BadOption(
            "gymnasium.make takes no live http_client: give a callable that makes one, or its import path; "
            "or make the environment by its class"
        )
    public = copy.copy(spec)
    public.kwargs = {name: value for name, value in spec.kwargs.items() if name != "headers"}
    return public


def _run(channel: Channel, limits: Limits, flow: WaitingFlow[bool]) -> bool:
    """Run a flow in the calling thread, over a new connection of the built-in client."""
    from agentgym_gym._http.sync_driver import SyncDriver  # noqa: PLC0415 - see AgentGymEnv

    with contextlib.closing(SyncDriver(limits=limits, headers=channel.headers)) as driver:
        return driver.run(flow)
