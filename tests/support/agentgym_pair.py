"""One task played by AgentGym's own client and by an environment of this library, on one server."""

from __future__ import annotations

from types import ModuleType
from typing import Any, NamedTuple

import agentgym_gym
from agentgym_gym import AgentGymEnv
from agentgym_gym.evaluate import load_oracle

__all__ = [
    "NAMES",
    "Pair",
    "StepResult",
    "address_of",
    "first_reply",
    "is_full_score",
    "sample",
    "stem_of",
    "winning_replies",
]

_STEMS = {
    "ALFWorld": "AlfWorld",
    "SciWorld": "Sciworld",
    "SQLGym": "SqlGym",
    "TODOList": "Todo",
    "WebArena": "Webarena",
    "WebShop": "Webshop",
}
_THOUGHT = "I know what to do next."
_PREFIXES = {"Maze": "/maze", "Wordle": "/wordle"}

NAMES = tuple(each.name for each in agentgym_gym.environments() if each.of_agentgym and each.local_server)
"""The environments of AgentGym with a local server."""


class StepResult(NamedTuple):
    """The result of one reply."""

    observation: str
    reward: float
    done: bool


class Pair:
    """AgentGym's client and an environment with AgentGym's parser, each with an environment on the server.

    Args:
        agentenv_envs: AgentGym's module ``agentenv.envs``.
        name: The environment.
        url: The address of its server, without the prefix of the routes.
        action_format: A format that AgentGym's client reads there.
        options: Further options of `AgentGymEnv`.

    Attributes:
        client: AgentGym's client.
        env: The environment of this library. It has no limit of turns, as AgentGym's client has none.
        info: The info of its last step.
    """

    def __init__(
        self, agentenv_envs: ModuleType, name: str, url: str, action_format: str = "react", **options: Any
    ) -> None:
        self.name = name
        client = getattr(agentenv_envs, f"{stem_of(name)}EnvClient")
        self.client = client(address_of(name, url), data_len=1, action_format=action_format)
        own = {"parser": "agentgym", "action_format": action_format, "max_turns": None, **options}
        self.env = AgentGymEnv(name, server=url, **own)
        self.info: dict[str, Any] = {}

    def reset(self, task_id: int) -> tuple[str, str]:
        """Start a task on both; return both observations, the client's and the environment's."""
        self.client.reset(task_id)
        observation, self.info = self.env.reset(options={"task_id": task_id})
        return self.client.observe(), observation

    def step(self, reply: str) -> tuple[StepResult | None, StepResult]:
        """Play a reply on both; return the client's result, None if it raised an error, and the other."""
        try:
            output = self.client.step(reply)
        except Exception:  # noqa: BLE001 - AssertionError, KeyError and others
            theirs = None
        else:
            theirs = StepResult(output.state, output.reward, output.done)
        observation, _, terminated, truncated, self.info = self.env.step(reply)
        assert not truncated, self.info
        return theirs, StepResult(observation, self.info["agentgym_score"], terminated)

    def close(self) -> None:
        """Close the environment; most of AgentGym's clients cannot be closed."""
        self.env.close()


def stem_of(name: str) -> str:
    """Return the beginning of the names of AgentGym's classes for an environment."""
    return _STEMS.get(name, name)


def address_of(name: str, url: str) -> str:
    """Return the address that AgentGym's client takes for a server."""
    return url + _PREFIXES.get(name, "")


def sample(name: str, count: int) -> list[int]:
    """Return tasks of all splits that hold only tasks that can be won, or all of them if there are fewer."""
    splits = agentgym_gym.find(name).splits
    tasks = sorted({task for split, tasks in splits.items() if split != "all" for task in tasks})
    count = min(count, len(tasks))
    return [tasks[number * len(tasks) // count] for number in range(count)]


def is_full_score(name: str, score: float) -> bool:
    """Return whether AgentGym's client reports this score for a game that is won."""
    if name == "BabyAI":  # it pays less for each step
        return 0.5 < score <= 1
    return score == (100 if name == "SciWorld" else 1)


def first_reply(env: AgentGymEnv, task_id: int) -> str:
    """Return the first reply with which the oracle wins a task, without playing it."""
    oracle = load_oracle(env.environment)
    observation, info = env.reset(options={"task_id": task_id})
    oracle.reset(env, observation, info)
    return env.action_format.render(oracle.act(observation, info), _THOUGHT)


def winning_replies(env: AgentGymEnv, task_id: int) -> list[str]:
    """Return the replies with which the oracle wins a task, after it has played them."""
    oracle = load_oracle(env.environment)
    observation, info = env.reset(options={"task_id": task_id})
    oracle.reset(env, observation, info)
    replies, over = [], False
    while not over:
        action = oracle.act(observation, info)
        assert action is not None, f"the oracle does not win task {task_id}"
        replies.append(env.action_format.render(action, _THOUGHT))
        observation, _, terminated, truncated, info = env.step(replies[-1])
        over = terminated or truncated
    assert info["success"], f"the oracle does not win task {task_id}"
    return replies
