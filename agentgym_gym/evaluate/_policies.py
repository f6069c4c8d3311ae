"""Cheap policies: agents without a model or knowledge of the task, which should win next to nothing."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from agentgym_gym.actions import Verbatim
from agentgym_gym.errors import BadArguments
from agentgym_gym.evaluate._agents import RandomAgent
from agentgym_gym.rollout._records import goal_of

if TYPE_CHECKING:
    from agentgym_gym.actions import Action, Grammar
    from agentgym_gym.evaluate._agents import Agent
    from agentgym_gym.evaluate._text_env import TextEnv

__all__ = ["MOST_REPLIES", "NullAgent", "policies_of"]

MOST_REPLIES = 100
"""Number of replies after which a policy gives up, for environments without a turn limit."""

_DIGITS = " ".join(map(str, range(100)))


class NullAgent:
    """An agent that does nothing: it sends an empty reply in each turn.

    In AgentGym's environments, the reply is an empty action. Environments that forward unknown actions send
    it to the server. In other environments it is a parse error, which only costs a turn.
    """

    name = "null"
    blocking = False

    def __init__(self) -> None:
        self._reply: Verbatim | str = ""
        self._left = 0

    def reset(self, env: TextEnv, observation: str, info: dict[str, Any]) -> None:
        """Check whether the environment has an action grammar."""
        self._reply = "" if getattr(env.unwrapped, "grammar", None) is None else Verbatim("")
        self._left = MOST_REPLIES

    def act(self, observation: str, info: dict[str, Any]) -> Any:
        """Return an empty reply, or None after too many turns."""
        self._left -= 1
        return None if self._left < 0 else self._reply


class _Answer:
    """Answers at once.

    Args:
        name: Its name.
        action: The environment's action that ends an episode with an answer.
        answer: Returns the answer by the first observation and the goal.
    """

    blocking = False

    def __init__(self, name: str, action: type[Action], answer: Callable[[str, str], Any]) -> None:
        self.name = name
        self._action = action
        self._answer = answer
        self._reply: Action | None = None

    def reset(self, env: TextEnv, observation: str, info: dict[str, Any]) -> None:
        """Write the answer."""
        self._reply = _written(self._action, self._answer(observation, goal_of(info) or ""))

    def act(self, observation: str, info: dict[str, Any]) -> Action | None:
        """Return the answer, and then None."""
        reply, self._reply = self._reply, None
        return reply


def _written(action: type[Action], answer: Any) -> Action | None:
    """Return the action with an answer, or with as much of a text as it accepts; None if it accepts none."""
    while True:
        try:
            return action(answer)  # type: ignore[call-arg]
        except BadArguments:
            if not isinstance(answer, str) or not answer:
                return None
            answer = answer[: len(answer) // 2].strip()


class _FirstAdmissible:
    """Plays the first of the actions that the environment lists."""

    name = "first admissible"
    blocking = False

    def reset(self, env: TextEnv, observation: str, info: dict[str, Any]) -> None:
        """Check whether the environment has an action grammar."""
        self._write = str if getattr(env.unwrapped, "grammar", None) is None else Verbatim
        self._left = MOST_REPLIES

    def act(self, observation: str, info: dict[str, Any]) -> Verbatim | str | None:
        """Return the first action, or None without one and after too many turns."""
        self._left -= 1
        listed = info.get("available_actions") or ()
        return self._write(listed[0]) if listed and self._left >= 0 else None


class _Random(RandomAgent):
    """Samples the action space, and gives up after too many turns."""

    name = "random valid"

    def reset(self, env: TextEnv, observation: str, info: dict[str, Any]) -> None:
        super().reset(env, observation, info)
        self._left = MOST_REPLIES

    def act(self, observation: str, info: dict[str, Any]) -> str | Action | None:
        self._left -= 1
        return super().act(observation, info) if self._left >= 0 else None


class _Repeat(_Random):
    """Samples an action, and repeats it."""

    name = "repeat last"

    def reset(self, env: TextEnv, observation: str, info: dict[str, Any]) -> None:
        super().reset(env, observation, info)
        self._reply = super().act(observation, info)

    def act(self, observation: str, info: dict[str, Any]) -> str | Action | None:
        self._left -= 1
        return self._reply if self._left >= 0 else None


def policies_of(env: TextEnv) -> Mapping[str, Callable[[], Agent]]:
    """Return the cheap policies for an environment, by name.

    All environments have a policy that does nothing, one that plays the first admissible action, and one
    that plays random valid actions, or repeats one. If an action ends an episode with an answer
    (``Action.blind_answers``), there are policies for constant answers, for all numbers below 100, for the
    words of the goal, and for the first observation as the answer.

    Args:
        env: The environment.
    """
    grammar: Grammar | None = getattr(env.unwrapped, "grammar", None)
    agents: list[Callable[[], Agent]] = [NullAgent, _FirstAdmissible, _Repeat, _Random]
    for action in () if grammar is None else grammar.actions:
        if not action.blind_answers:
            continue
        answers = {f"answer {constant!r}": partial(_constant, constant) for constant in action.blind_answers}
        answers["answer 0 to 99"] = partial(_constant, _DIGITS)
        agents += [partial(_Answer, name, action, answer) for name, answer in answers.items()]
        agents += [
            partial(_Answer, "answer goal", action, lambda _page, goal: goal),
            partial(_Answer, "answer page", action, lambda page, _goal: page),
        ]
    return {make().name: make for make in agents}


def _constant(answer: Any, _page: str, _goal: str) -> Any:
    return answer
