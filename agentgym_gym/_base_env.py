"""What the three kinds of environment share: options, episode, tasks, and what happens at exit.

`AgentGymEnv` waits in its thread, `AsyncAgentGymEnv` in an event loop. They share all of this, and what is
done at the end of the program: what is still held is given back.
"""

from __future__ import annotations

import contextlib
import time
import weakref
from collections.abc import Mapping, Sequence
from functools import partial
from numbers import Integral
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import gymnasium

from agentgym_gym import catalogue
from agentgym_gym._addresses import addresses, parse_urls
from agentgym_gym._episode import Episode
from agentgym_gym._http.limits import DEFAULT_TIMEOUT, Limits
from agentgym_gym._lifecycle import RELEASE_ENVIRONMENTS, at_exit
from agentgym_gym._logging import logger
from agentgym_gym._text import redact
from agentgym_gym.actions import Action, Verbatim
from agentgym_gym.errors import BadOption
from agentgym_gym.formats import AgentGymFormat, get_format
from agentgym_gym.spaces import ReplySpace, TextSpace

if TYPE_CHECKING:
    import httpx

    from agentgym_gym._episode import StepResult
    from agentgym_gym.calls import Flow
    from agentgym_gym.catalogue import OnUnknown

__all__ = ["EXIT_SECONDS", "BaseTextEnv", "give_back", "live_envs"]

_NOT_GIVEN: Any = object()

EXIT_SECONDS = 10.0
"""Seconds that giving all environments back may take when the program ends."""


class BaseTextEnv(gymnasium.Env[str, str | Action]):
    """What every environment of this library is made of, and what it says of itself.

    The arguments are those of `AgentGymEnv`.
    """

    metadata: ClassVar[dict[str, Any]] = {"render_modes": ["ansi"], "render_fps": 1}  # type: ignore[misc]

    def __init__(
        self,
        environment: str,
        *,
        server: str | Sequence[str] | None = None,
        split: str | None = None,
        action_format: str = "react",
        parser: Literal["default", "agentgym"] = "default",
        on_unknown: OnUnknown | None = None,
        on_fault: Literal["truncate", "raise"] = "truncate",
        max_turns: int | None = _NOT_GIVEN,
        timeout: float | Mapping[str, float] = DEFAULT_TIMEOUT,
        max_envs_per_server: int | None = None,
        render_mode: str | None = None,
        transport: httpx.BaseTransport | None = None,
        **own_options: Any,
    ) -> None:
        self.environment = catalogue.find(environment)
        wire = self.environment.wire_with(own_options)
        options: dict[str, Any] = {
            "server": server,
            "split": split,
            "action_format": action_format,
            "parser": parser,
            "on_unknown": on_unknown,
            "on_fault": on_fault,
            "max_turns": max_turns,
            "timeout": timeout,
            "max_envs_per_server": max_envs_per_server,
            "render_mode": render_mode,
        }
        self._options: dict[str, Any] = {k: v for k, v in options.items() if v != _DEFAULTS[k]} | own_options
        if server is not None:
            parse_urls(server, "server")  # a typing mistake is told here, not at the first reset
        if max_turns is _NOT_GIVEN:
            max_turns = self.environment.max_turns
        _positive("max_turns", max_turns, "turns")
        _positive("max_envs_per_server", max_envs_per_server, "environments")
        _one_of("on_fault", on_fault, ("truncate", "raise"))
        _one_of("on_unknown", on_unknown, ("forward", "refuse", None))
        _one_of("render_mode", render_mode, ("ansi", None))
        self.render_mode = render_mode
        self.on_fault = on_fault
        self._server = server
        self._tasks = self.environment.split(split)
        written = get_format(action_format)
        self.observation_space = TextSpace()
        self.action_space = ReplySpace(written, self.environment.grammar)
        self._episode = Episode(
            self.environment,
            wire=wire,
            action_format=written if parser == "default" else self._agentgym_format(parser, action_format),
            # AgentGym's own client sends whatever a reply holds.
            on_unknown=on_unknown or ("forward" if parser == "agentgym" else self.environment.on_unknown),
            max_turns=max_turns,
            max_envs_per_server=max_envs_per_server,
        )
        self._limits = Limits.of(timeout)
        self._until = 0.0  # when the time of the episode is up
        self._transport = transport
        self._attach()
        _live.add(self)

    def _attach(self) -> None:
        """Make the driver."""
        raise NotImplementedError

    def render(self) -> str | None:
        """Return the transcript of the episode so far, or None without a render mode."""
        if self.render_mode is None:
            return None
        return "\n\n".join(f"[{message.role}]\n{message.text}" for message in self._episode.transcript)

    def __reduce__(self) -> tuple[Any, ...]:
        """Copy by making anew, by the same options, an environment that holds nothing yet."""
        return partial(type(self), self.environment.name, **self._options), ()

    @property
    def system_prompt(self) -> str:
        """What an agent must be told before the first observation: the game, the actions, how to reply."""
        instructions = self._episode.action_format.instructions(self.environment.grammar)
        return f"{self.environment.rules}\n\n{instructions}"

    @property
    def tools(self) -> list[dict[str, Any]]:
        """The actions as function tools, for a chat template or an API that takes them."""
        return self.environment.grammar.tools()

    @property
    def playing(self) -> bool:
        """Whether an episode was begun that is not over."""
        return self._episode.playing

    @property
    def tasks(self) -> Sequence[int]:
        """The task ids of the split."""
        return self._tasks

    @property
    def servers(self) -> tuple[str, ...]:
        """Base URLs of the servers used, starting the local one where none is configured."""
        return addresses(self.environment, self._server)

    def __repr__(self) -> str:
        shown = dict(self._options)
        if self._server is not None:
            several = not isinstance(self._server, str)
            shown["server"] = [*map(redact, self._server)] if several else redact(str(self._server))
        options = "".join(f", {name}={value!r}" for name, value in shown.items())
        return f"{type(self).__name__}({self.environment.name!r}{options})"

    def _draw(self, seed: int | None, options: dict[str, Any] | None) -> int:
        """Return the task to be reset to."""
        super().reset(seed=seed)
        task_id = self._choose_task(options or {})
        self._until = time.monotonic() + self._limits.episode
        _live.add(self)  # again, if it was closed
        return task_id

    def _turn(self, action: str | Action | Verbatim) -> Flow[StepResult]:
        """Play one turn, and raise the fault that ended the episode where that is wanted."""
        turn = yield from self._episode.step(action)
        if self.on_fault == "raise" and self._episode.fault is not None:
            raise self._episode.fault
        return turn

    def _closed(self) -> None:
        _live.discard(self)

    def _leave(self) -> bool:
        """Give back at exit what is held; return whether the server did its part.

        By a connection of its own, since another thread, or an event loop, may be using the environment's.
        """
        return give_back(self._episode, timeout=EXIT_SECONDS / 5, transport=self._transport)

    def _choose_task(self, options: dict[str, Any]) -> int:
        unknown = sorted(set(map(str, options)) - {"task_id"})
        if unknown:
            raise BadOption(f"reset options may hold 'task_id' alone, not {unknown}")
        task_id = options.get("task_id")
        if task_id is None:
            return int(self._tasks[int(self.np_random.integers(len(self._tasks)))])
        if not _is_whole(task_id):
            raise BadOption(f"task_id={task_id!r} should be an integer")
        task_id = int(task_id)
        if not self.environment.has_task(task_id):
            splits = {name: f"{min(ids)}..{max(ids)}" for name, ids in self.environment.splits.items()}
            raise BadOption(f"{self.environment.name} has no task {task_id}; its tasks are {splits}")
        return task_id

    def _agentgym_format(self, parser: str, action_format: str) -> AgentGymFormat:
        _one_of("parser", parser, ("default", "agentgym"))
        reader = self.environment.agentgym_readers.get(action_format)
        if reader is None:
            known = sorted(self.environment.agentgym_readers)
            raise BadOption(
                f"parser='agentgym' reads {self.environment.name} in the formats {known}, "
                f"not action_format={action_format!r}"
            )
        return AgentGymFormat(get_format(action_format), reader)


_DEFAULTS: dict[str, Any] = BaseTextEnv.__init__.__kwdefaults__ or {}

_live: weakref.WeakSet[BaseTextEnv] = weakref.WeakSet()


def live_envs() -> list[BaseTextEnv]:
    """Return the environments of this process that were not closed."""
    return list(_live)


def give_back(episode: Episode, *, timeout: float, transport: httpx.BaseTransport | None = None) -> bool:
    """Give back what an episode holds, by a connection of its own.

    Args:
        episode: The episode; not to be used afterwards.
        timeout: Seconds allowed.
        transport: Moves the requests in place of a network connection, for tests.

    Returns:
        Whether the server did its part.
    """
    from agentgym_gym._http.sync_driver import SyncDriver  # noqa: PLC0415 - see AgentGymEnv

    driver = SyncDriver(limits=Limits.of(timeout), transport=transport)
    try:
        return driver.run(episode.close())
    finally:
        driver.close()


def _is_whole(value: object) -> bool:
    return isinstance(value, Integral) and not isinstance(value, bool)


def _positive(name: str, value: Any, unit: str) -> None:
    if value is not None and not (_is_whole(value) and value >= 1):
        raise BadOption(f"{name}={value!r} should be a positive number of {unit}, or None for no limit")


def _one_of(name: str, value: object, allowed: tuple[object, ...]) -> None:
    if value not in allowed:
        raise BadOption(f"{name}={value!r} is not one of {allowed}")


def release_all() -> None:
    """Release at exit the remote environments that are still held.

    A server that does not answer is asked once, and all of it takes `EXIT_SECONDS` at most.
    """
    deadline = time.monotonic() + EXIT_SECONDS
    silent: set[str] = set()
    late = 0
    for env in live_envs():
        lease = env._episode.lease  # noqa: SLF001 - our own
        server = lease.server if lease else ""
        if server in silent:
            continue
        if time.monotonic() > deadline:
            late += lease is not None
            continue
        with contextlib.suppress(Exception):
            if not env._leave():  # noqa: SLF001 - our own
                silent.add(server)
    if late:
        logger.warning("%d remote environments stay open: there was no time to close them at exit", late)


at_exit(release_all, order=RELEASE_ENVIRONMENTS)
