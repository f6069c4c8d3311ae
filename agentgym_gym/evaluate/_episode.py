"""Plays one episode with an agent: an `agentgym_gym.rollout.Episode` with the agent's replies."""

from __future__ import annotations

import inspect
import json
import time
from collections.abc import Callable, Iterator
from contextlib import AsyncExitStack, contextmanager
from typing import TYPE_CHECKING, Any, Protocol

from agentgym_gym._logging import logger
from agentgym_gym._text import scrub
from agentgym_gym._tool_calls import normalize_action, reply_text
from agentgym_gym.actions import Action
from agentgym_gym.errors import ActionError, AgentCrashed, AgentFault, AgentGymError, BadOption, SetupError
from agentgym_gym.evaluate._agents import Agent, AgentReply
from agentgym_gym.rollout import Episode, StepRecord
from agentgym_gym.rollout._env_facts import attribute_of, env_id_of

if TYPE_CHECKING:
    from agentgym_gym.rollout import EpisodeRecord
    from agentgym_gym.rollout._workers import Workers

__all__ = ["AgentEpisode", "Caller", "RunningCalls", "call_here", "rendered_action"]


class RunningCalls:
    """The running resets and steps of episodes."""

    def __init__(self) -> None:
        self._began: dict[object, float] = {}

    @contextmanager
    def noted(self, episode: object) -> Iterator[None]:
        """Note that a call of an episode is running."""
        self._began[episode] = time.monotonic()
        try:
            yield
        finally:
            del self._began[episode]

    @property
    def longest(self) -> float:
        """The seconds that the longest of them has run; 0 without any. May be read by any thread."""
        began = min(self._began.copy().values(), default=None)
        return 0.0 if began is None else time.monotonic() - began


class Caller(Protocol):
    """Calls a method of an agent, which may be a coroutine function."""

    async def __call__(self, function: Callable[..., Any], /, *arguments: Any, **named: Any) -> Any:
        """Call the function, await the result if it is awaitable, and return it."""


async def call_here(function: Callable[..., Any], /, *arguments: Any, **named: Any) -> Any:
    """Call a function in this thread, and await its result if it is awaitable."""
    value = function(*arguments, **named)
    return await value if inspect.isawaitable(value) else value


class AgentEpisode:
    """One episode of an agent, from its reset to its record.

    Args:
        workers: The source of the environment.
        agent: The agent. Its typed actions are rendered in the environment's format, so that the record
            contains the text that was played.
        call: Calls the agent's methods.
        success_at: Minimum return for success, as for `Episode`.
        calls: Where the running calls of the environment are noted.
    """

    def __init__(
        self,
        workers: Workers,
        agent: Agent,
        call: Caller,
        *,
        success_at: float | None = None,
        calls: RunningCalls | None = None,
    ) -> None:
        self._workers = workers
        self._agent = agent
        self._call = call
        self._success_at = success_at
        self._calls = RunningCalls() if calls is None else calls

    async def play(self, task_id: int, sample: int = 0) -> EpisodeRecord:
        """Play a task.

        Args:
            task_id: The task id, or the seed.
            sample: Index of the episode among the task's samples.

        Raises:
            SetupError: The task cannot be played until the setup is fixed.
        """
        agent_fault, ending = None, ""
        async with AsyncExitStack() as stack:
            with self._calls.noted(self):
                episode = await stack.enter_async_context(
                    Episode(self._workers, task=task_id, success_at=self._success_at)
                )
            try:
                if not episode.over:
                    ending = await self._play(episode, task_id, sample)
            except AgentFault as fault:
                agent_fault = fault.as_dict()
        if isinstance(episode.error, SetupError):
            raise episode.error
        return episode.record(
            agent=self._agent.name, task_id=task_id, sample=sample, ending=ending, agent_fault=agent_fault
        )

    async def _play(self, episode: Episode, task_id: int, sample: int) -> str:
        """Play the turns; return the ending if the agent ended the episode, otherwise ""."""
        info: Any = {**episode.info, "task_id": task_id, "sample": sample}
        await self._call_agent(self._agent.reset, episode.env, episode.observation, info)
        accepts_actions = getattr(getattr(episode.env, "unwrapped", None), "parser", None) == "default"
        while not episode.over:
            began = time.perf_counter()
            reply = await self._call_agent(self._agent.act, episode.observation, info)
            if not isinstance(reply, AgentReply):
                reply = AgentReply(reply)
            step: StepRecord = {**reply.step, "agent_seconds": time.perf_counter() - began}
            text, action = reply.text, reply.action
            if isinstance(action, str):
                action = action if action.isascii() else scrub(action)
                text = action if text is None else text
            elif isinstance(action, Action):
                written, action = rendered_action(
                    episode.env, action, reply.thought, as_text=not accepts_actions
                )
                text = written if text is None else text
            elif action is not None:
                text = _call_text(episode.env, action, text, step)
            if text is not None:
                episode.add_reply(text, step)
            if action is None:
                return reply.ending
            with self._calls.noted(self):
                await episode.step(action)
            info = episode.info
        return ""

    async def _call_agent(self, method: Any, *arguments: Any) -> Any:
        """Call a method of the agent.

        Raises:
            AgentFault: The agent created an impossible action, or raised an error of its own.
        """
        try:
            return await self._call(method, *arguments)
        except Exception as error:
            if isinstance(error, AgentGymError) and not isinstance(error, ActionError):
                raise
            logger.warning("the agent %s failed", self._agent.name, exc_info=True)
            raise AgentCrashed(f"{type(error).__name__}: {error}") from error


def rendered_action(env: Any, action: Action, thought: str, *, as_text: bool) -> tuple[str, Any]:
    """Return the text of a typed action, and what to play: that text, or the action itself, unparsed.

    Raises:
        BadOption: The environment has no action format.
    """
    action_format = getattr(env.action_space, "action_format", None)
    if action_format is None:
        raise BadOption(
            f"{env_id_of(env)} accepts only text, and the agent replied with a typed action: {action!r:.200}"
        )
    rendered: str = action_format.render(action, thought)
    return rendered, rendered if as_text else action


def _call_text(env: Any, action: Any, text: str | None, step: StepRecord) -> str:
    """Return the text of function calls, and store the calls in the step.

    Raises:
        BadOption: The environment accepts only text, or the action is invalid.
    """
    grammar = attribute_of(env, "grammar")
    if grammar is None:
        raise BadOption(
            f"{env_id_of(env)} accepts only text, and the agent replied with {type(action).__name__}: "
            f"{action!r:.200}"
        )
    reply = normalize_action(action, grammar)
    if isinstance(reply, tuple) and "tool_calls" not in step:
        step["tool_calls"] = [
            {
                "name": call.name,
                "arguments": call.arguments
                if isinstance(call.arguments, str)
                else json.dumps(call.arguments, ensure_ascii=False),
            }
            for call in reply
        ]
    return reply_text(reply) if text is None else text
