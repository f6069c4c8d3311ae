"""The actions that an audit chooses from: the environment's own, or texts that its prompt shows."""

from __future__ import annotations

import copy
import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from gymnasium import spaces

from agentgym_gym._text_space import TextSpace
from agentgym_gym.errors import ActionError
from agentgym_gym.rollout._env_facts import attribute_of, system_prompt_of

__all__ = ["Choices", "admissible", "shown_actions"]

_ADMISSIBLE = (
    "available_actions",
    "admissible_commands",
    "admissible_actions",
    "valid_actions",
    "legal_actions",
)
"""Keys of an info with a list of the actions that are possible now, in several libraries."""

_IN_MARKS = re.compile(r"`([^`\n]{1,60})`|'([^'\n]{1,60})'|\"([^\"\n]{1,60})\"|“([^”\n]{1,60})”")
_IN_BRACKETS = re.compile(r"\[[^\[\]\n]{1,40}\]")
_LISTED = re.compile(r"^\s*(?:[-*•]|\d+[.)])\s+(.{1,60})$", re.MULTILINE)
_WORD = re.compile(r"[A-Za-z][\w'-]{1,20}|\d{1,4}")

_SHARES = {"offered": 0.6, "sampled": 0.2, "shown": 0.15, "word": 0.05}
"""How often each kind of action is drawn, where the environment has it."""


class Choices:
    """Draws actions for an environment.

    Args:
        env: The environment, whose spaces and prompt are read.
        given: Actions to draw instead, if not empty.

    Attributes:
        action_format: The format of replies, if there is one.
        grammar: The grammar of actions, if there is one.
    """

    def __init__(self, env: Any, given: Sequence[str] = ()) -> None:
        self._given = list(given)
        self._prompt = system_prompt_of(env) or ""
        self._of_prompt = shown_actions(self._prompt)
        space = attribute_of(env, "action_space")
        # A plain text space contains all texts; its samples are random letters.
        plain = isinstance(space, spaces.Text) or type(space) is TextSpace
        self._space = None if plain else copy.deepcopy(space)
        self.action_format = getattr(space, "action_format", None)
        self.grammar = attribute_of(env, "grammar")

    def draw(self, observation: Any, info: Any, rng: np.random.Generator) -> str:
        """Return an action for a state.

        Args:
            observation: The last observation.
            info: The last info.
            rng: Source of randomness.
        """
        if self._given:
            return self._given[int(rng.integers(len(self._given)))]
        kinds: dict[str, list[str]] = {"offered": list(admissible(info))}
        text = observation if isinstance(observation, str) else ""
        kinds["shown"] = self._of_prompt + shown_actions(text)
        kinds["word"] = _WORD.findall(text) or _WORD.findall(self._prompt)
        possible = [kind for kind in _SHARES if kinds.get(kind) or (kind == "sampled" and self._space)]
        if not possible:
            return ""
        weights = np.array([_SHARES[kind] for kind in possible])
        kind = possible[int(rng.choice(len(possible), p=weights / weights.sum()))]
        if kind == "sampled":
            return self._sample(rng)
        action = kinds[kind][int(rng.integers(len(kinds[kind])))]
        return self.written(action) if kind == "offered" else action

    def sample(self, rng: np.random.Generator) -> str | None:
        """Return a sample of the action space; None for a plain text space, whose samples are letters."""
        return None if self._space is None else self._sample(rng)

    def reply(self, text: str) -> str:
        """Return a reply with a text in the place of the action; the text itself without an action format."""
        if self.action_format is None or self.grammar is None:
            return text
        example = self.grammar.examples[0]
        return str(self.action_format.render(example)).replace(str(example), text)

    def _sample(self, rng: np.random.Generator) -> str:
        space: Any = self._space
        space.seed(int(rng.integers(1 << 31)))
        return str(space.sample())

    def written(self, action: Any) -> str:
        """Return an action as a reply in the environment's format, if it has one.

        Args:
            action: An action as admissible text, or a typed action.
        """
        if self.action_format is None or self.grammar is None:
            return str(action)
        try:
            return str(
                self.action_format.render(self.grammar.parse(action) if isinstance(action, str) else action)
            )
        except ActionError:  # the server lists what the grammar does not read
            return str(action)


def admissible(info: Any) -> Sequence[str]:
    """Return the actions that an info lists as possible now; empty if it has no such list."""
    for key in _ADMISSIBLE if isinstance(info, Mapping) else ():
        listed = info.get(key)
        if isinstance(listed, (list, tuple)) and listed and all(isinstance(each, str) for each in listed):
            return listed
    return ()


def shown_actions(text: str) -> list[str]:
    """Return the texts in a prompt that may be actions: in quotes, backticks or brackets, and list items."""
    quoted = [part for match in _IN_MARKS.findall(text) for part in match if part]
    return list(dict.fromkeys([*quoted, *_IN_BRACKETS.findall(text), *_LISTED.findall(text)]))
