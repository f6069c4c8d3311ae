"""The gymnasium environment: a synchronous driver over one episode."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import gymnasium

from agentgym_gym._base_env import EXIT_SECONDS, BaseTextEnv, live_envs, public_spec, release
from agentgym_gym._lifecycle import after_fork_in_child
from agentgym_gym.actions import Action
from agentgym_gym.errors import InUse

if TYPE_CHECKING:
    import numpy as np
    from gymnasium.envs.registration import EnvSpec

    from agentgym_gym._episode import Episode
    from agentgym_gym._http.limits import Stats
    from agentgym_gym._http.sync_driver import SyncDriver
    from agentgym_gym.actions import Verbatim
    from agentgym_gym.calls import WaitingFlow
    from agentgym_gym.spaces import ReplySpace, TextSpace

__all__ = ["AgentGymEnv"]

T = TypeVar("T")


class AgentGymEnv(BaseTextEnv, gymnasium.Env[str, str | Action]):
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
        timeout: Seconds allowed for each reply of the server; or a mapping with any of ``connect``,
            ``create``, ``reset``, ``step``, ``close`` and ``episode``, in seconds (see `Limits`).
        max_envs_per_server: Where this process holds as many remote environments on each server, ``reset``
            waits for one to be given back, as long as ``create`` may take; None for no limit.
        render_mode: ``"ansi"``, by which ``render`` returns the transcript as text, or None.
        headers: HTTP headers sent with every request, such as ``{"Authorization": "Bearer ..."}``; each
            replaces the one of the same name in the variable ``AGENTGYM_TEXTCRAFT_HEADERS`` and its like, a
            JSON object of strings, which is read when the environment is made. Their values are in no
            ``repr``, log, error or ``env.spec``; ``gymnasium.make(env.spec)`` takes them from the variable.
        http_client: What sends the requests in place of this library's own HTTP engine: a callable that makes
            an ``httpx.Client``, or its import path ``"module:function"``. The environment closes what it
            made. Or a live ``httpx.Client``, which the environment never closes; then it cannot be copied or
            pickled, and `gymnasium.make` does not take it.
        **own_options: Options that only this environment has; see its page in the documentation.

    Raises:
        UnknownEnvironment: The catalogue has no such environment.
        BadOption: An argument has a value it cannot have.
    """

    metadata: dict[str, Any] = {  # noqa: RUF012 - as gymnasium has it
        **BaseTextEnv.metadata,
        "asynchronous_entry_point": "agentgym_gym.aio:AsyncAgentGymEnv",  # for who would rather await it
    }

    observation_space: TextSpace
    action_space: ReplySpace
    _asynchronous = False
    _spec: EnvSpec | None = None

    def _attach(self) -> None:
        # Not before it is needed: importing the library must be cheap.
        from agentgym_gym._http.sync_driver import SyncDriver  # noqa: PLC0415

        channel = self._channel
        self._driver = SyncDriver(
            limits=self._limits, headers=channel.headers, http_client=channel.http_client
        )
        self._episode.stats = self._driver.stats
        self._busy = threading.RLock()
        # An environment that is dropped without close() still gives back what it holds.
        self._finalizer = weakref.finalize(self, _close, self._episode, self._driver)
        self._finalizer.atexit = False  # at exit the order matters: see _base_env.py

    @property
    def spec(self) -> EnvSpec | None:
        """The specification by which `gymnasium.make` made this environment, without headers."""
        return self._spec

    @spec.setter
    def spec(self, spec: EnvSpec | None) -> None:
        self._spec = public_spec(spec)

    @property
    def stats(self) -> Stats:
        """What was counted since this environment was made: requests, tries again, faults, seconds."""
        return self._driver.stats

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
        task_id = self._draw(seed, options)
        return self._run(self._episode.reset(task_id, self.servers))

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
        return self._run(self._turn(action))

    def close(self) -> None:
        """Give back the remote environment and close the connection. May be called again.

        Raises:
            InUse: Another thread is in the midst of a reset or a step.
        """
        self._alone(lambda: _close(self._episode, self._driver))
        self._closed()

    def _run(self, flow: WaitingFlow[T]) -> T:
        return self._alone(lambda: self._driver.run(flow, self._until))

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

    def _seed(self, seed: int | None) -> np.random.Generator:
        gymnasium.Env.reset(self, seed=seed)
        return self.np_random

    def _release(self) -> bool:
        try:
            return release(self._episode, self._channel, timeout=EXIT_SECONDS / 5)
        finally:
            if self._busy.acquire(blocking=False):
                try:
                    self._driver.close()
                finally:
                    self._busy.release()  # others may close it at exit, too


def _close(episode: Episode, driver: SyncDriver) -> None:
    try:
        driver.run(episode.close())
    finally:
        driver.close()


def _unlock_all() -> None:
    """Free a forked child's environments of the threads of its parent, which it does not have."""
    for env in live_envs():
        if isinstance(env, AgentGymEnv):
            env._busy = threading.RLock()  # noqa: SLF001 - our own


after_fork_in_child(_unlock_all)
