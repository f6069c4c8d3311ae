"""Wrap any gymnasium environment as a text environment."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import gymnasium
import numpy as np
from gymnasium import spaces
from gymnasium.error import ResetNeeded
from gymnasium.utils import RecordConstructorArgs

from agentgym_gym._text import shown
from agentgym_gym._text_space import TextSpace, refuse_mask
from agentgym_gym.rollout import _json_actions
from agentgym_gym.rollout._check_results import flag, number
from agentgym_gym.rollout._env_facts import system_prompt_of
from agentgym_gym.rollout._plain_data import register_type

if TYPE_CHECKING:
    from gymnasium import Space

__all__ = ["ActionText", "TextAdapter"]

_PARSE_ERROR = "BadAction"
_MAX_REASON = 400  # characters of an error message


class TextAdapter(gymnasium.Wrapper[str, str, Any, Any], RecordConstructorArgs):
    """Wraps any gymnasium environment as a text environment.

    Text that is not an action never reaches the environment. The observation is then one line with the error,
    followed by the last observation; the reward is 0, and ``info["parse_error"]`` is ``"BadAction"``. Such a
    step counts as a turn: the episode is truncated after ``env.spec.max_episode_steps`` turns.

    Args:
        env: The environment.
        observe: Converts an observation to text. By default text is unchanged, arrays are lists in brackets
            with one line per row, mappings have a line ``key: value`` for each key, tuples are written in
            brackets, and numbers have up to six significant digits.
        act: Converts text to an action, or raises ValueError. A mapping from names to actions accepts the
            names in upper or lower case. By default the text is JSON that fits the action space, such as
            ``2`` for `Discrete`; for a text space it is the action itself.
        system_prompt: Instructions for the agent; by default the instructions of ``env``, if any, and one
            sentence that describes the actions.

    Attributes:
        system_prompt: Instructions for the agent.

    Raises:
        TypeError: An argument has the wrong type, or actions of the space have no JSON form and ``act`` is
            missing.
        ValueError: The mapping is empty, repeats a name, or maps a name to an action outside the space.
    """

    def __init__(
        self,
        env: gymnasium.Env[Any, Any],
        observe: Callable[[Any], str] | None = None,
        act: Callable[[str], Any] | Mapping[str, Any] | None = None,
        system_prompt: str | None = None,
    ) -> None:
        _check_arguments(env, observe, act, system_prompt)
        if isinstance(act, Mapping):
            act = dict(act)
        # `_disable_deepcopy`, because `act` may be a method of the environment.
        RecordConstructorArgs.__init__(
            self, _disable_deepcopy=True, observe=observe, act=act, system_prompt=system_prompt
        )
        gymnasium.Wrapper.__init__(self, env)
        space = env.action_space
        self._observe = _observation_text if observe is None else observe
        self._act = act if callable(act) else None
        self._actions = _checked_actions(space, act) if isinstance(act, dict) else None
        self.observation_space = TextSpace()
        self.action_space, self._expected, sentence = _described_actions(space, act)
        own = system_prompt_of(env)
        if own and act is None and _is_text(space):
            sentence = ""
        generated = "\n\n".join(part for part in (own, sentence) if part)
        self.system_prompt = generated if system_prompt is None else system_prompt
        self._max_turns: int | None = None
        self._turns = 0
        self._playing = False
        self._text = ""
        self._info: dict[str, Any] = {}

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[str, dict[str, Any]]:
        """Reset the environment.

        Args:
            seed: Passed to the environment.
            options: Passed to the environment.

        Returns:
            The observation as text, and the info of the environment.
        """
        self._playing = False
        observation, info = self.env.reset(seed=seed, options=options)
        # Not in the constructor: gymnasium.make sets the specification afterwards, and wrappers keep a copy.
        spec = self.env.spec
        self._max_turns = None if spec is None else spec.max_episode_steps
        self._remember(observation, info)
        self._turns = 0
        self._playing = True
        return self._text, info

    def step(self, action: str) -> tuple[str, float, bool, bool, dict[str, Any]]:
        """Execute the action in a text, or report that the text is not an action.

        Args:
            action: The text.

        Returns:
            Observation (str), reward (float), terminated (bool), truncated (bool), and the info of the
            environment, with ``parse_error`` if the environment was not stepped.

        Raises:
            gymnasium.error.ResetNeeded: The episode is over, or was never started.
            TypeError: The action is not text, ``observe`` did not return text, or the environment returned no
                number as the reward or no bool as the end.
        """
        if not self._playing:
            raise ResetNeeded("the episode is over or was never started: call reset()")
        if not isinstance(action, str):
            raise TypeError(f"step takes the text of an action, not {type(action).__name__}")
        reward, terminated, truncated = 0.0, False, False
        try:
            inner = self.read(action)
        except (ValueError, RecursionError) as error:
            text, info = self._parse_error(action, error)
        else:
            observation, given_reward, terminated, truncated, info = self.env.step(inner)
            self._remember(observation, info)
            text, reward = self._text, number("reward", given_reward)
            terminated, truncated = flag("terminated", terminated), flag("truncated", truncated)
        self._turns += 1
        truncated = truncated or (self._max_turns is not None and self._turns >= self._max_turns)
        self._playing = not (terminated or truncated)
        return text, reward, terminated, truncated, info

    def read(self, text: str) -> Any:
        """Return the action of the wrapped environment that a text means.

        Args:
            text: The text of an action.

        Raises:
            ValueError: The text is not an action.
        """
        space = self.env.action_space
        if self._actions is not None:
            name = text.strip().casefold()
            if name not in self._actions:
                raise ValueError(f"expected {self._expected}")
            return copy.deepcopy(self._actions[name])
        if self._act is not None:
            action = _json_actions.fit(space, self._act(text))
        elif _is_text(space):
            action = text if text in space else text.strip()
        else:
            action = self._from_json(space, text)
        if action not in space:
            raise ValueError(f"{shown(action)} is not in the action space {shown(space)}")
        return action

    def _from_json(self, space: Space[Any], text: str) -> Any:
        try:
            return _json_actions.read(space, text)
        except ValueError as error:
            reason = f"expected {self._expected}"
            if not isinstance(space, spaces.Discrete):
                reason = f"{error}; {reason}"
            raise ValueError(reason) from None

    def _remember(self, observation: Any, info: Any) -> None:
        text = self._observe(observation)
        if not isinstance(text, str):
            raise TypeError(f"observe returned {type(text).__name__}; it should return str")
        self._text = text
        self._info = dict(info or {})

    def _parse_error(self, text: str, error: Exception) -> tuple[str, dict[str, Any]]:
        try:
            info = copy.deepcopy(self._info)  # a new object for each turn
        except Exception:  # noqa: BLE001 - it may contain any object
            info = dict(self._info)
        reason = " ".join(str(error).split())[:_MAX_REASON]
        line = f"{shown(text)} is not an action{': ' if reason else ''}{reason}"
        return f"{line}\n{self._text}", {**info, "parse_error": _PARSE_ERROR}


class ActionText(TextSpace):
    """All strings; samples are texts of actions.

    Args:
        actions: Names of actions, a text space, or a space whose samples are written as JSON.
        seed: Seed of the samples.
    """

    def __init__(
        self, actions: list[str] | Space[Any], seed: int | np.random.Generator | None = None
    ) -> None:
        super().__init__(seed)
        self._actions = actions

    def sample(self, mask: Any | None = None, probability: Any | None = None) -> str:
        """Return the text of a random action.

        Raises:
            ValueError: ``mask`` or ``probability`` is not None; text spaces support neither.
        """
        refuse_mask(mask, probability)
        if isinstance(self._actions, list):
            return self._actions[int(self.np_random.integers(len(self._actions)))]
        self._actions.seed(int(self.np_random.integers(1 << 31)))
        action = self._actions.sample()
        return action if isinstance(action, str) else _json_actions.write(action)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ActionText) and bool(other._actions == self._actions)

    __hash__ = TextSpace.__hash__

    def __repr__(self) -> str:
        return f"ActionText({self._actions!r})"


register_type(ActionText, lambda space: {"actions": space._actions})  # noqa: SLF001 - of this module


def _described_actions(
    space: Space[Any], act: Callable[[str], Any] | dict[str, Any] | None
) -> tuple[TextSpace, str, str]:
    """Return the space of action texts, their description for parse errors, and a sentence for the prompt.

    Raises:
        TypeError: Actions of the space have no JSON form, and ``act`` is None.
    """
    if isinstance(act, dict):
        names = [name.strip() for name in act]
        listed = ", ".join(names)
        sentence = f"Reply with one of these actions and nothing else: {listed}."
        return ActionText(names), f"one of {listed}", sentence
    if act is not None or _is_text(space):
        texts = TextSpace() if act is not None else ActionText(copy.deepcopy(space))
        return texts, "", "Reply with one action and nothing else."
    form = _json_actions.describe(space)
    texts = ActionText(copy.deepcopy(space))
    if isinstance(space, spaces.Discrete):
        return texts, form, f"Reply with {form} and nothing else."
    return texts, f"JSON: {form}", f"Reply with JSON and nothing else: {form}."


def _is_text(space: Space[Any]) -> bool:
    return isinstance(space, (spaces.Text, TextSpace))


def _check_arguments(env: Any, observe: Any, act: Any, system_prompt: Any) -> None:
    """Check the argument types of `TextAdapter`.

    Raises:
        TypeError: An argument has the wrong type.
    """
    if isinstance(env, gymnasium.vector.VectorEnv):
        raise TypeError(
            f"TextAdapter takes one environment, not the vector environment {type(env).__name__}; wrap each "
            "environment, as in gymnasium.make_vec(id, vectorization_mode='sync', wrappers=[TextAdapter])"
        )
    if not isinstance(env, gymnasium.Env):
        name = f"the class {env.__name__}" if isinstance(env, type) else type(env).__name__
        raise TypeError(f"TextAdapter takes an instance of gymnasium.Env, not {name}")
    if observe is not None and not callable(observe):
        raise TypeError(f"observe should be a function of an observation, not {type(observe).__name__}")
    if act is not None and not callable(act) and not isinstance(act, Mapping):
        raise TypeError(
            f"act should be a function of a text or a mapping of names to actions, not {type(act).__name__}"
        )
    if system_prompt is not None and not isinstance(system_prompt, str):
        raise TypeError(f"system_prompt should be text, not {type(system_prompt).__name__}")


def _checked_actions(space: Space[Any], act: Mapping[str, Any]) -> dict[str, Any]:
    """Return the actions of a mapping by case-folded name.

    Raises:
        TypeError: A name is not text.
        ValueError: The mapping is empty, a name is empty or repeated, or an action is outside the space.
    """
    actions: dict[str, Any] = {}
    for name, value in act.items():
        if not isinstance(name, str):
            raise TypeError(f"act maps names to actions, and {shown(name)} is not text")
        key = name.strip().casefold()
        if not key or key in actions:
            raise ValueError(f"act has the name {shown(name)} {'twice' if key else 'without a letter'}")
        try:
            action = _json_actions.fit(space, value)
        except ValueError as error:
            raise ValueError(f"act maps {shown(name)} to {shown(value)}: {error}") from None
        if action not in space:
            raise ValueError(f"act maps {shown(name)} to {shown(value)}, which is not in {shown(space)}")
        actions[key] = action
    if not actions:
        raise ValueError("act is an empty mapping: name at least one action")
    return actions


def _observation_text(observation: Any) -> str:
    """Convert an observation to text; equal observations have equal texts.

    Args:
        observation: Text, numbers, arrays, or mappings, tuples and lists of these.

    Raises:
        TypeError: The observation has another type.
    """
    if isinstance(observation, tuple) and hasattr(observation, "_asdict"):  # such as a graph
        observation = observation._asdict()
    if isinstance(observation, np.ndarray) and observation.ndim:
        return _array_text(observation)
    if isinstance(observation, Mapping):
        return _lines({key: _observation_text(value) for key, value in observation.items()})
    if isinstance(observation, (tuple, list)):
        items = [_observation_text(item) for item in observation]
        if any("\n" in item for item in items):
            return _lines(dict(enumerate(items)))
        return f"({', '.join(items)})"
    return _scalar_text(observation)


def _scalar_text(value: Any) -> str:
    if isinstance(value, (np.ndarray, np.generic)):
        value = value.item()
    if isinstance(value, str):
        return str(value)
    if value is None or isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int):
        return str(int(value))  # for an IntEnum too
    if isinstance(value, float):
        return f"{value + 0.0:.6g}"  # -0.0 is equal to 0.0
    raise TypeError(f"an observation of type {type(value).__name__} has no default text; pass observe=")


def _array_text(array: np.ndarray[Any, Any]) -> str:
    if array.ndim == 1:
        return _row_text(array)
    rows = ",\n ".join(map(_row_text, array))
    return f"[{rows}]"


def _row_text(array: np.ndarray[Any, Any]) -> str:
    return f"[{', '.join(map(_row_text if array.ndim > 1 else _scalar_text, array))}]"


def _lines(texts: Mapping[Any, str]) -> str:
    lines = []
    for key, text in texts.items():
        indented = "\n" + text if "\n" in text else f" {text}"
        lines.append(f"{key}:{indented}".replace("\n", "\n  "))
    return "\n".join(lines)
