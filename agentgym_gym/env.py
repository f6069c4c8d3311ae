"""The gymnasium environment: a synchronous driver over one episode."""

from __future__ import annotations

import atexit
import contextlib
import os
import threading
import time
import weakref
from collections.abc import Callable, Sequence
from functools import partial
from numbers import Integral
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeVar

import gymnasium

from agentgym_gym import catalogue
from agentgym_gym.actions import Action, Verbatim
from agentgym_gym.addresses import addresses, parse_urls
from agentgym_gym.episode import Episode
from agentgym_gym.errors import BadOption, InUse
from agentgym_gym.formats import AgentGymFormat, get_format
from agentgym_gym.spaces import ReplySpace, TextSpace
from agentgym_gym.text import redact

if TYPE_CHECKING:
    import httpx

    from agentgym_gym.calls import Flow
    from agentgym_gym.catalogue import OnUnknown
    from agentgym_gym.client import SyncDriver

__all__ = ["DEFAULT_TIMEOUT", "EXIT_SECONDS", "AgentGymEnv"]

T = TypeVar("T")

_NOT_GIVEN: Any = object()

DEFAULT_TIMEOUT = 300.0
"""Seconds allowed for a reply, the figure of AgentGym's own client."""

EXIT_SECONDS = 10.0
"""Seconds that giving all environments back may take when the program ends."""


class AgentGymEnv(gymnasium.Env[str, str | Action]):
    """An AgentGym environment on an HTTP server, played in text.

    ``reset(options={"task_id": 7})`` starts a given task, ``reset(seed=0)`` one drawn from the split.
    ``step`` takes what a model wrote, or a typed action. The episode's return is its score.

    Every ``info`` holds ``task_id``, ``turn`` (turns used), ``score`` (so far), ``success``, ``raw_reward``
    (the server's own, of this step), ``agentgym_score`` (what AgentGym's client would report) and ``action``
    (the words sent to the server, or None); ``goal`` and ``available_actions`` where the server states them;
    ``parse_error`` (the kind) after a reply that could not be read; ``fault`` (a dict of ``kind`` and
    ``message``) when the environment failed: such an episode says nothing about the agent.

    Args:
        environment: Name in the catalogue, such as ``"TextCraft"``.
        server: Base URL of the server, or several to spread over; else the variable
            ``AGENTGYM_TEXTCRAFT_URL`` and its like; else a local server, started when it is first needed.
        split: Which tasks ``reset`` draws from; the environment's first split by default.
        action_format: How a reply wraps its action: ``react``, ``function_calling``, ``code_as_action``,
            ``tags``, ``adapt`` or ``bare``.
        parser: ``"default"``, or ``"agentgym"`` to read replies exactly as AgentGym's own client does.
        on_unknown: Whether an action the grammar does not know is sent in the agent's words (``"forward"``)
            or answered with advice (``"refuse"``); by default what the environment says.
        on_fault: What a fault does to a step: ``"truncate"`` ends the episode, ``"raise"`` raises it.
        max_turns: Turns after which an unfinished episode is truncated; AgentGym's own limit by default, None
            for no limit.
        timeout: Seconds allowed for each reply of the server.
        render_mode: ``"ansi"``, by which ``render`` returns the transcript as text, or None.
        transport: Moves the requests in place of a network connection, for tests.
        **own_options: Options that only this environment has; see its page in the documentation.

    Raises:
        UnknownEnvironment: The catalogue has no such environment.
        BadOption: An argument has a value it cannot have.
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
        timeout: float = DEFAULT_TIMEOUT,
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
            "render_mode": render_mode,
        }
        self._options: dict[str, Any] = {k: v for k, v in options.items() if v != _DEFAULTS[k]} | own_options
        if server is not None:
            parse_urls(server, "server")  # a typing mistake is told here, not at the first reset
        if max_turns is _NOT_GIVEN:
            max_turns = self.environment.max_turns
        if max_turns is not None and not (_is_whole(max_turns) and max_turns >= 1):
            raise BadOption(
                f"max_turns={max_turns!r} should be a positive number of turns, or None for no limit"
            )
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
        )
        # Not before it is needed, because httpx imports its own command line, and with it rich and click,
        # wherever these are installed.
        from agentgym_gym.client import SyncDriver  # noqa: PLC0415

        self._driver = SyncDriver(timeout=timeout, transport=transport)
        self._transport = transport
        self._busy = threading.RLock()
        # An environment that is dropped without close() still gives back what it holds.
        self._finalizer = weakref.finalize(self, _close, self._episode, self._driver)
        self._finalizer.atexit = False  # at exit the order matters: see _close_all
        _open.add(self)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[str, dict[str, Any]]:
        """Start a task.

        Args:
            seed: Seeds the drawing of tasks, as in :meth:`gymnasium.Env.reset`.
            options: ``{"task_id": int}`` to choose the task; else one is drawn from the split.

        Returns:
            The first observation, as the server said it at this reset, and the info.

        Raises:
            BadOption: The options are not as said, or the environment has no such task.
            NoServer: No server is configured and none can be started.
            WrongServer: Another environment answers at the address.
            Fault: The environment could not be reset; there is no episode that could be truncated.
        """
        super().reset(seed=seed)
        task_id = self._choose_task(options or {})
        servers = addresses(self.environment, self._server)
        _open.add(self)  # again, if it was closed
        return self._run(self._episode.reset(task_id, servers))

    def step(self, action: str | Action | Verbatim) -> tuple[str, float, bool, bool, dict[str, Any]]:
        """Play one turn.

        Args:
            action: What the agent wrote, read by the environment's format, or a typed action.

        Returns:
            Observation, reward (the change of the score), terminated, truncated, info.

        Raises:
            gymnasium.error.ResetNeeded: The episode is over, or none was begun.
            BadOption: The action is neither text nor an action of this environment.
            Fault: The environment failed and ``on_fault="raise"``.
        """
        turn = self._run(self._episode.step(action))
        if self.on_fault == "raise" and self._episode.fault is not None:
            raise self._episode.fault
        return turn

    def render(self) -> str | None:
        """Return the transcript of the episode so far, or None without a render mode."""
        if self.render_mode is None:
            return None
        return "\n\n".join(f"[{message.role}]\n{message.text}" for message in self._episode.transcript)

    def close(self) -> None:
        """Give back the remote environment and close the connection. May be called again.

        Raises:
            InUse: Another thread is in the midst of a reset or a step.
        """
        self._alone(lambda: _close(self._episode, self._driver))
        _open.discard(self)

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
        return f"AgentGymEnv({self.environment.name!r}{options})"

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

    def _leave(self) -> bool:
        """Give everything back at exit; return whether the server did its part."""
        driver = type(self._driver)(timeout=EXIT_SECONDS / 5, transport=self._transport)
        try:
            return driver.run(self._episode.close())
        finally:
            driver.close()
            if self._busy.acquire(blocking=False):
                try:
                    self._driver.close()
                finally:
                    self._busy.release()  # others may close it at exit, too

    def _run(self, flow: Flow[T]) -> T:
        return self._alone(lambda: self._driver.run(flow))

    def _alone(self, work: Callable[[], T]) -> T:
        # Should Ctrl-C come just after it was acquired, this thread can go on: the lock is reentrant.
        alone = False
        try:
            alone = self._busy.acquire(blocking=False)
            if not alone:
                raise InUse("this environment is in use by another thread; make one for each thread")
            return work()
        finally:
            if alone:
                self._busy.release()


_DEFAULTS: dict[str, Any] = AgentGymEnv.__init__.__kwdefaults__ or {}

_open: weakref.WeakSet[AgentGymEnv] = weakref.WeakSet()


def _is_whole(value: object) -> bool:
    return isinstance(value, Integral) and not isinstance(value, bool)


def _one_of(name: str, value: object, allowed: tuple[object, ...]) -> None:
    if value not in allowed:
        raise BadOption(f"{name}={value!r} is not one of {allowed}")


def _close(episode: Episode, driver: SyncDriver) -> None:
    try:
        driver.run(episode.close())
    finally:
        driver.close()


def _unlock_all() -> None:
    """Free a forked child's environments of the threads of its parent, which it does not have."""
    for env in list(_open):
        env._busy = threading.RLock()  # noqa: SLF001 - our own


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_unlock_all)


# Registered after `servers.local` was imported, and so run before it stops the local servers.
@atexit.register
def _close_all() -> None:
    """Give back what is still held, by drivers of its own: a thread may be using the environment's.

    A server that does not answer is asked once, and all of it ends in time: nobody waits for an exit.
    """
    deadline = time.monotonic() + EXIT_SECONDS
    silent: set[str] = set()
    for env in list(_open):
        lease = env._episode.lease  # noqa: SLF001 - our own
        server = lease.server if lease else ""
        if server in silent or time.monotonic() > deadline:
            continue
        with contextlib.suppress(Exception):
            if not env._leave():  # noqa: SLF001 - our own
                silent.add(server)
