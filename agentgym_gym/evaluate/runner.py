"""The runner: plays episodes and records them."""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from agentgym_gym._http.limits import Stats
from agentgym_gym._text import scrub
from agentgym_gym.actions import Action
from agentgym_gym.env import AgentGymEnv
from agentgym_gym.errors import AgentGymError, BadOption, Fault
from agentgym_gym.evaluate.records import EpisodeRecord, env_id_of, goal_of

if TYPE_CHECKING:
    import gymnasium

    from agentgym_gym.evaluate.agents import Agent

__all__ = ["evaluate", "play_episode"]

T = TypeVar("T")


def evaluate(
    env: gymnasium.Env[str, Any],
    agent: Agent,
    tasks: Iterable[int],
    *,
    on_episode: Callable[[EpisodeRecord], object] | None = None,
) -> list[EpisodeRecord]:
    """Play tasks one after another.

    Args:
        env: The environment: any of gymnasium whose observations and actions are text.
        agent: The agent.
        tasks: Task ids; for an environment that is not AgentGym's, seeds of its ``reset``.
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

    The score of an environment that is not AgentGym's is the sum of its rewards, and ``success`` is what its
    info says, if it does. An error that it raises is a fault, whose kind is the name of the error.

    Args:
        env: The environment, as for `evaluate`.
        agent: The agent. Its typed actions are rendered in the environment's format, so that the record holds
            what was played.
        task_id: The task, or the seed.

    Raises:
        SetupError: It cannot be played without a change of set-up.
        BadOption: The environment says something that is not text.
    """
    began = time.monotonic()
    stats = getattr(env.unwrapped, "stats", None)
    before = stats.copy() if isinstance(stats, Stats) else None
    episode = _Episode() if isinstance(env.unwrapped, AgentGymEnv) else _OtherEpisode()
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
        goal=goal_of(episode.info),
        score=episode.score if whole else None,
        success=episode.success if whole else None,
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

    @property
    def score(self) -> float:
        return float(self.info["score"])

    @property
    def success(self) -> bool | None:
        return bool(self.info["success"])

    def play(self, env: gymnasium.Env[str, Any], agent: Agent, task_id: int) -> None:
        observation = self._reset(env, task_id)
        self._note("user", observation)
        agent.reset(env, observation, self.info)
        while not (self.terminated or self.truncated):
            reply = agent.act(observation, self.info)
            if reply is None:
                return
            if isinstance(reply, Action):
                reply = _rendered(env, reply)
            reply = scrub(str(reply))
            self._note("assistant", reply)
            observation, reward = self._step(env, reply)
            self._note("user", observation)
            self.rewards.append(reward)
            if isinstance(self.info.get("parse_error"), str):
                self.parse_errors[self.info["parse_error"]] += 1

    def _reset(self, env: gymnasium.Env[str, Any], task_id: int) -> str:
        observation, self.info = env.reset(options={"task_id": task_id})
        return observation

    def _step(self, env: gymnasium.Env[str, Any], reply: str) -> tuple[str, float]:
        observation, reward, self.terminated, self.truncated, self.info = env.step(reply)
        self.fault = self.info.get("fault")
        return observation, float(reward)

    def _note(self, role: str, content: str) -> None:
        self.messages.append({"role": role, "content": content})


class _OtherEpisode(_Episode):
    """The same in an environment that promises no more than gymnasium's interface."""

    @property
    def score(self) -> float:
        return math.fsum(self.rewards)

    @property
    def success(self) -> bool | None:
        said = self.info.get("success")
        return None if said is None else bool(said)

    def _reset(self, env: gymnasium.Env[str, Any], task_id: int) -> str:
        observation, info = _alone(env.reset, seed=task_id)
        self.info = {"task_id": task_id, **info}
        return _text(env, observation)

    def _step(self, env: gymnasium.Env[str, Any], reply: str) -> tuple[str, float]:
        observation, reward, terminated, truncated, info = _alone(env.step, reply)
        self.terminated, self.truncated, self.info = bool(terminated), bool(truncated), info
        fault = info.get("fault")
        if isinstance(fault, Mapping):
            self.fault = {key: str(fault.get(key)) for key in ("kind", "message")}
            self.truncated = True
        return _text(env, observation), _alone(_finite, reward)


class _Failed(Fault):
    """Another's environment raised an error."""

    @property
    def kind(self) -> str:
        return type(self.__cause__).__name__


def _alone(call: Callable[..., T], *arguments: Any, **named: Any) -> T:
    """Call another's code.

    Raises:
        Fault: It raised something else than one of this library's errors.
    """
    try:
        return call(*arguments, **named)
    except AgentGymError:
        raise
    except Exception as error:
        raise _Failed(str(error)) from error


def _finite(reward: Any) -> float:
    value = float(reward)
    if not math.isfinite(value):
        raise ValueError(f"the reward is {value}")
    return value


def _text(env: gymnasium.Env[str, Any], observation: Any) -> str:
    if not isinstance(observation, str):
        raise BadOption(
            f"{env_id_of(env)} is no text environment: its observation is of type "
            f"{type(observation).__name__}, and should be str"
        )
    return scrub(observation)


def _rendered(env: gymnasium.Env[str, Any], action: Action) -> str:
    written = getattr(env.action_space, "action_format", None)
    if written is None:
        raise BadOption(
            f"{env_id_of(env)} takes text, and the agent replied with a typed action: {action!r:.200}"
        )
    text: str = written.render(action)
    return text
