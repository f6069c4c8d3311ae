"""The synchronous environment: it waits for the server in the calling thread."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import gymnasium

from agentgym_gym._base_env import BaseTextEnv, live_envs, public_spec
from agentgym_gym._exit import EXIT_SECONDS, release
from agentgym_gym._lifecycle import after_fork_in_child
from agentgym_gym.actions import StepAction
from agentgym_gym.errors import InUse

if TYPE_CHECKING:
    import numpy as np
    from gymnasium.envs.registration import EnvSpec

    from agentgym_gym._http.limits import Stats
    from agentgym_gym._http.sync_driver import SyncDriver
    from agentgym_gym._remote_episode import RemoteEpisode
    from agentgym_gym.calls import WaitingFlow
    from agentgym_gym.spaces import ReplySpace, TextSpace

__all__ = ["AgentGymEnv"]

T = TypeVar("T")


class AgentGymEnv(BaseTextEnv, gymnasium.Env[str, StepAction]):
    """An AgentGym environment on an HTTP server, with text observations and actions.

    ``reset(options={"task_id": 7})`` starts that task, ``reset(seed=0)`` a random one of the split. ``step``
    takes a model's reply, a typed action or a function call. The return of an episode is its score. One
    thread at a time can use an environment. ``with`` closes it.

    Every ``info`` contains:

    - ``task_id`` (int), and ``turn`` (int), the number of turns so far;
    - ``score`` (float) so far, and ``success`` (bool);
    - ``raw_reward`` (float), the server's own reward for this step, and ``agentgym_score`` (float), the score
      that AgentGym's client would report: with its parser, 0 after a reply that it does not send;
    - ``action`` (str or None), the text of the executed action.

    If applicable, it also contains ``goal`` (str) and ``available_actions`` (list of str), as returned by the
    server; ``parse_error`` (str), the kind of error, after a reply that could not be parsed;
    ``ignored_actions`` (list of str), the calls of a reply that were ignored, because only one call is
    executed per turn, and ``played_call`` (int), the position of the executed one, from 0; and ``fault``, a
    dict of ``kind`` and ``message``, if the environment failed. An episode with a fault does not count
    for or against the agent.

    Args:
        environment: Name in the catalogue, such as ``"TextCraft"``.
        server: Base URL of the server, or several URLs to distribute environments over. The default is the
            variable of the environment, such as ``AGENTGYM_TEXTCRAFT_URL``, with commas between several URLs;
            if it is not set, a local server, which the first ``reset`` starts.
        split: The name of the split from which ``reset`` selects tasks; by default ``train``,
            if there is one. ``all`` selects every task.
        action_format: The format of replies: ``"react"``, ``"function_calling"``, ``"code_as_action"``,
            ``"tags"``, ``"adapt"`` or ``"bare"``; ``"tool_calls"`` for a model that receives `tools` from its
            chat template or API, whose prompt describes no format; or a `Format`.
        parser: ``"default"``, or ``"agentgym"`` to parse replies exactly as AgentGym's own client does.
        on_unknown: Handling of actions that the grammar does not include: ``"forward"`` sends them as
            written, ``"refuse"`` answers with advice. None selects the environment's default.
        on_fault: Effect of a fault in a step: ``"truncate"`` ends the episode, ``"raise"`` also raises it.
        max_turns: Turns after which an unfinished episode is truncated, an integer from 1; None for no limit.
            The default is AgentGym's own limit.
        timeout: Seconds allowed for each reply of the server; or a mapping with any of ``connect``,
            ``create``, ``reset``, ``step``, ``close`` and ``episode``, in seconds (see `Limits`).
        max_envs_per_server: Limit of remote environments per server for this process, an integer from 1; None
            for no limit. ``reset`` waits until one is released, within the time limit of ``create``.
        render_mode: ``"ansi"``, with which ``render`` returns the transcript as text; or None.
        headers: HTTP headers sent with every request, by name, such as ``{"Authorization": "Bearer ..."}``.
            Each replaces the header of the same name, ignoring case, in the variable of the environment, such
            as ``AGENTGYM_TEXTCRAFT_HEADERS``, a JSON object of strings, which is read when the environment is
            created. The values never appear in a ``repr``, log, error message or ``env.spec``, so
            ``gymnasium.make(env.spec)`` takes headers only from the variable. A pickle does contain them.
        http_client: Sends the requests instead of the built-in client: a callable that returns an
            ``httpx.Client``, or its import path ``"module:function"``, which is imported when the environment
            is created; the environment closes that client. Or a live ``httpx.Client``, which is never closed;
            such an environment cannot be copied or pickled, and must be created from this class, not by
            ``gymnasium.make``.
        **own_options: Options of this environment only; its page in the documentation lists them.

    Raises:
        UnknownEnvironment: The catalogue has no such environment.
        BadOption: An argument, or the variable for headers, has an invalid value.
    """

    metadata: dict[str, Any] = {  # noqa: RUF012 - as gymnasium has it
        **BaseTextEnv.metadata,
        "asynchronous_entry_point": "agentgym_gym.aio:AsyncAgentGymEnv",  # for asynchronous users
        "release_entry_point": "agentgym_gym._orphans:release_left",  # for processes that may be killed
    }

    observation_space: TextSpace
    action_space: ReplySpace
    _asynchronous = False
    _spec: EnvSpec | None = None

    def _attach(self) -> None:
        # Imported on demand: importing the library must be cheap.
        from agentgym_gym._http.sync_driver import SyncDriver  # noqa: PLC0415

        channel = self._channel
        self._driver = SyncDriver(
            limits=self._limits, headers=channel.headers, http_client=channel.http_client
        )
        self._episode.stats = self._driver.stats
        self._busy = threading.RLock()
        # An environment that is garbage-collected without close() still releases its remote environment.
        self._finalizer = weakref.finalize(self, _close, self._episode, self._driver)
        self._finalizer.atexit = False  # at exit the order matters: see _exit.py

    @property
    def spec(self) -> EnvSpec | None:
        """The specification from which `gymnasium.make` created this environment, without headers."""
        return self._spec

    @spec.setter
    def spec(self, spec: EnvSpec | None) -> None:
        self._spec = public_spec(spec)

    @property
    def stats(self) -> Stats:
        """Metrics since this environment was created: requests, retries, faults, seconds."""
        return self._driver.stats

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[str, dict[str, Any]]:
        """Start a task.

        Args:
            seed: Seed of the generator that selects tasks, as in :meth:`gymnasium.Env.reset`.
            options: ``{"task_id": int}`` to choose the task; the default is a random task of the split.

        Returns:
            The first observation, from the server's current reply, and the info.

        Raises:
            BadOption: The options have other keys or values, or the environment has no such task.
            NoServer: No server is configured and none can be started.
            WrongServer: The server at the address provides another environment.
            Fault: The reset failed. There is no episode to truncate.
            InUse: Another thread is using the environment.
        """
        task_id = self._draw(seed, options)
        return self._run(self._episode.reset(task_id, self.servers))

    def step(self, action: StepAction) -> tuple[str, float, bool, bool, dict[str, Any]]:
        """Execute one turn.

        Args:
            action: The agent's reply, which the environment's format parses; a typed action; or a function
                call: a `ToolCall`, a mapping of ``name`` and ``arguments``, a call or an assistant's message
                in the format of OpenAI's API, as a mapping or as a client's object, or a list of calls.

        Returns:
            Observation (str), reward (float, the change of the score), terminated (bool), truncated (bool)
            and info.

        Raises:
            gymnasium.error.ResetNeeded: No episode is running.
            BadOption: The action is neither text nor an action of this environment nor a function call.
            Fault: The environment failed and ``on_fault="raise"``.
            InUse: Another thread is using the environment.
        """
        return self._run(self._episode.step(action))

    def close(self) -> None:
        """Release the remote environment and close the connection. It and ``reset`` may be called again.

        Raises:
            InUse: Another thread is running a reset or a step.
        """
        self._alone(lambda: _close(self._episode, self._driver))
        self._closed()

    def _run(self, flow: WaitingFlow[T]) -> T:
        return self._alone(lambda: self._driver.run(flow, self._until))

    def _alone(self, work: Callable[[], T]) -> T:
        # If Ctrl-C comes just after the lock was acquired, this thread can continue: the lock is reentrant.
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
            self._disconnect()

    def _disconnect(self) -> None:
        if self._busy.acquire(blocking=False):
            try:
                self._driver.close()
            finally:
                self._busy.release()  # another thread may also close it at exit


def _close(episode: RemoteEpisode, driver: SyncDriver) -> None:
    try:
        driver.run(episode.close())
    finally:
        driver.close()


def _unlock_all() -> None:
    """Unlock the environments in a forked child: the threads that held the locks exist only in its parent."""
    for env in live_envs():
        if isinstance(env, AgentGymEnv):
            env._busy = threading.RLock()  # noqa: SLF001 - our own


after_fork_in_child(_unlock_all)
