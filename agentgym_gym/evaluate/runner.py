"""The runner: plays episodes and records them."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from agentgym_gym._http.limits import Stats
from agentgym_gym._text import scrub
from agentgym_gym.actions import Action
from agentgym_gym.errors import Fault
from agentgym_gym.evaluate.records import EpisodeRecord, env_id_of

if TYPE_CHECKING:
    import gymnasium

    from agentgym_gym.evaluate.agents import Agent

__all__ = ["evaluate", "play_episode"]


def evaluate(
    env: gymnasium.Env[str, Any],
    agent: Agent,
    tasks: Iterable[int],
    *,
    on_episode: Callable[[EpisodeRecord], object] | None = None,
) -> list[EpisodeRecord]:
    """Play tasks one after another.

    Args:
        env: The environment.
        agent: The agent.
        tasks: Task ids.
        on_episode: Called with each record as soon as its episode is over, so that an interrupted run keeps
            what was played.

    Returns:
        A record for each task. An episode that could not be begun or was ended by a fault is among them,
        with its fault and without a score.

    Raises:
        SetupError: Nothing can be played without a change of set-up.
    """
    records = []
    for task_id in tasks:
        record = play_episode(env, agent, task_id)
        records.append(record)
        if on_episode is not None:
            on_episode(record)
    return records


def play_episode(env: gymnasium.Env[str, Any], agent: Agent, task_id: int) -> EpisodeRecord:
    """Play one task.

    Args:
        env: The environment.
        agent: The agent. Its typed actions are rendered in the environment's format, so that the record holds
            what was played.
        task_id: The task.

    Raises:
        SetupError: It cannot be played without a change of set-up.
    """
    began = time.monotonic()
    stats = getattr(env.unwrapped, "stats", None)
    before = stats.copy() if isinstance(stats, Stats) else None
    episode = _Episode()
    try:
        episode.play(env, agent, task_id)
    except Fault as fault:
        episode.fault = fault.as_dict()
        episode.truncated = True
    whole = episode.fault is None
    return EpisodeRecord(
        env_id=env_id_of(env),
        agent=agent.name,
        task_id=task_id,
        goal=episode.info.get("goal"),
        score=float(episode.info["score"]) if whole else None,
        success=bool(episode.info["success"]) if whole else None,
        return_=sum(episode.rewards),
        turns=len(episode.rewards),
        terminated=episode.terminated,
        truncated=episode.truncated,
        parse_errors=dict(episode.parse_errors),
        fault=episode.fault,
        seconds=time.monotonic() - began,
        rewards=tuple(episode.rewards),
        messages=tuple(episode.messages),
        counters=stats.since(before).as_dict() if stats is not None and before is not None else None,
    )


class _Episode:
    """What has happened so far."""

    def __init__(self) -> None:
        self.info: dict[str, Any] = {}
        self.rewards: list[float] = []
        self.parse_errors: Counter[str] = Counter()
        self.messages: list[dict[str, str]] = []
        self.fault: dict[str, str] | None = None
        self.terminated = self.truncated = False

    def play(self, env: gymnasium.Env[str, Any], agent: Agent, task_id: int) -> None:
        observation, self.info = env.reset(options={"task_id": task_id})
        self._note("user", observation)
        agent.reset(env, observation, self.info)
        while not (self.terminated or self.truncated):
            reply = agent.act(observation, self.info)
            if reply is None:
                return
            if isinstance(reply, Action):
                reply = env.action_space.action_format.render(reply)  # type: ignore[attr-defined]
            reply = scrub(reply)
            self._note("assistant", reply)
            observation, reward, self.terminated, self.truncated, self.info = env.step(reply)
            self._note("user", observation)
            self.rewards.append(float(reward))
            if "parse_error" in self.info:
                self.parse_errors[self.info["parse_error"]] += 1
            self.fault = self.info.get("fault")

    def _note(self, role: str, content: str) -> None:
        self.messages.append({"role": role, "content": content})
