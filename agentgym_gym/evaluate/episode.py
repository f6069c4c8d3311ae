"""One episode as it is played and recorded."""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from agentgym_gym._http.limits import Stats
from agentgym_gym._logging import logger
from agentgym_gym._text import scrub
from agentgym_gym._tool_calls import given, shown_reply
from agentgym_gym.actions import Action
from agentgym_gym.errors import AgentCrashed, AgentFault, AgentGymError, BadOption, Fault
from agentgym_gym.evaluate.agents import Agent, AgentReply
from agentgym_gym.evaluate.records import EpisodeRecord, StepRecord, env_id_of, goal_of

if TYPE_CHECKING:
    from agentgym_gym.evaluate.sessions import Caller, Session

__all__ = ["EpisodeInPlay"]


class EpisodeInPlay:
    """One episode, from its reset to its record.

    Args:
        session: The environment.
        agent: Who plays. Its typed actions are rendered in the environment's format, so that the record
            holds what was played.
        call: How the agent's methods are called.
    """

    def __init__(self, session: Session, agent: Agent, call: Caller) -> None:
        self._session = session
        self._agent = agent
        self._call = call
        self._info: dict[str, Any] = {}
        self._rewards: list[float] = []
        self._parse_errors: Counter[str] = Counter()
        self._messages: list[dict[str, str]] = []
        self._steps: list[StepRecord] = []
        self._fault: Mapping[str, str] | None = None
        self._agent_fault: Mapping[str, str] | None = None
        self._terminated = self._truncated = False
        self._ending = ""
        self._env_seconds = 0.0

    async def play(self, task_id: int, sample: int = 0) -> EpisodeRecord:
        """Play a task.

        Args:
            task_id: The task, or the seed.
            sample: Which of several episodes of the task this is.

        Raises:
            SetupError: It cannot be played without a change of set-up.
        """
        began = time.monotonic()
        stats = getattr(self._session.own, "stats", None)
        before = stats.copy() if isinstance(stats, Stats) else None
        try:
            await self._play(task_id, sample)
        except Fault as fault:
            self._fault = fault.as_dict()
        except AgentFault as fault:
            self._agent_fault = fault.as_dict()
        scored = self._fault is None and self._agent_fault is None
        session, info = self._session, self._info
        return EpisodeRecord(
            env_id=env_id_of(session.env),
            agent=self._agent.name,
            task_id=task_id,
            goal=goal_of(info),
            score=session.score(info, self._rewards) if scored else None,
            success=session.success(info) if scored else None,
            return_=sum(self._rewards),
            turns=len(self._rewards),
            terminated=self._terminated,
            truncated=self._truncated or self._fault is not None,
            parse_errors=dict(self._parse_errors),
            fault=self._fault,
            seconds=time.monotonic() - began,
            rewards=tuple(self._rewards),
            messages=tuple(self._messages),
            counters=stats.since(before).as_dict() if stats is not None and before is not None else None,
            sample=sample,
            agent_fault=self._agent_fault,
            ending=self._ending if scored else "",
            agent_seconds=sum(step.get("agent_seconds", 0.0) for step in self._steps),
            env_seconds=self._env_seconds,
            steps=tuple(self._steps),
        )

    async def _play(self, task_id: int, sample: int) -> None:
        began = time.perf_counter()
        try:
            observation, info = await self._session.reset(task_id)
        finally:
            self._env_seconds = time.perf_counter() - began
        self._info = {**info, "sample": sample}
        self._note("user", observation)
        await self._ask(self._agent.reset, self._session.env, observation, self._info)
        while not (self._terminated or self._truncated):
            reply = await self._reply(observation)
            if reply.action is None:
                self._ending = reply.ending
                return
            observation = await self._answer(reply.action)

    async def _reply(self, observation: str) -> AgentReply:
        """Return what the agent replies, and note it; its action is as `Session.step` takes it."""
        began = time.perf_counter()
        said = await self._ask(self._agent.act, observation, self._info)
        reply = said if isinstance(said, AgentReply) else AgentReply(said)
        step = StepRecord(**reply.step)
        step["agent_seconds"] = time.perf_counter() - began
        text, action = reply.text, reply.action
        if isinstance(action, Action):
            written = self._rendered(action)
            if self._session.reads_what_it_writes:  # then the text need not be read to be played
                text = written if text is None else text
            else:
                action = written
        if isinstance(action, str):
            action = scrub(action)
            text = action if text is None else text
        elif action is not None and not isinstance(action, Action):
            text = self._called(action, text, step)
        if text is not None:
            self._note("assistant", scrub(text))
            self._steps.append(step)
        return AgentReply(action, text, reply.ending, step)

    async def _answer(self, action: Any) -> str:
        """Return the environment's observation after an action."""
        step = self._steps[-1]
        began = time.perf_counter()
        try:
            observation, reward, self._terminated, self._truncated, info = await self._session.step(action)
        finally:
            step["env_seconds"] = time.perf_counter() - began
            self._env_seconds += step["env_seconds"]
        self._info, self._fault = info, info.get("fault")
        self._note("user", observation)
        self._rewards.append(float(reward))
        if self._session.own is not None:
            step["action"] = info.get("action")
        if isinstance(info.get("parse_error"), str):
            step["parse_error"] = info["parse_error"]
            self._parse_errors[info["parse_error"]] += 1
        ignored = info.get("ignored_actions")
        if isinstance(ignored, list) and ignored and all(isinstance(text, str) for text in ignored):
            step["ignored_actions"] = ignored
        return observation

    async def _ask(self, method: Any, *arguments: Any) -> Any:
        """Call a method of the agent.

        Raises:
            AgentFault: It raised an error that is none of this library's.
        """
        try:
            return await self._call(method, *arguments)
        except AgentGymError:
            raise
        except Exception as error:
            logger.warning("the agent %s failed", self._agent.name, exc_info=True)
            raise AgentCrashed(f"{type(error).__name__}: {error}") from error

    def _note(self, role: str, content: str) -> None:
        self._messages.append({"role": role, "content": content})

    def _rendered(self, action: Action) -> str:
        env = self._session.env
        written = getattr(env.action_space, "action_format", None)
        if written is None:
            raise BadOption(
                f"{env_id_of(env)} takes text, and the agent replied with a typed action: {action!r:.200}"
            )
        text: str = written.render(action)
        return text

    def _called(self, action: Any, text: str | None, step: StepRecord) -> str:
        """Return the text of function calls, and keep them in the step.

        Raises:
            BadOption: The environment takes text alone, or the action is none.
        """
        own = self._session.own
        if own is None:
            raise BadOption(
                f"{env_id_of(self._session.env)} takes text, and the agent replied with "
                f"{type(action).__name__}: {action!r:.200}"
            )
        reply = given(action, own.grammar)
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
        return shown_reply(reply) if text is None else text
