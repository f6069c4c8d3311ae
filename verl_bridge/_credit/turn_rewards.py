"""Record the turns of an episode for credit by turn: their tokens, their rewards, and the states before them.

verl takes one score of an episode from an agent loop. The loop passes this record alongside the score, in the
column :data:`COLUMN`, to :mod:`verl_bridge._credit.advantage`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from numbers import Integral
from typing import Any, TypedDict

__all__ = ["COLUMN", "TurnLog", "TurnRecord", "state_of"]

COLUMN = "gym_turns"
"""The key of the record in the output of an agent loop, and the column of verl's batch."""


class TurnRecord(TypedDict):
    """The turns of one episode, in order.

    Attributes:
        starts: Index of the first token of each reply in the response.
        ends: Index after the last one.
        rewards: Reward of each turn, from the environment.
        states: The state in which each turn began, as :func:`state_of` returns it; empty if not recorded.
        place: Whether each reward is to be placed at the last token of its turn.
    """

    starts: list[int]
    ends: list[int]
    rewards: list[float]
    states: list[str]
    place: bool


def state_of(observation: str, info: Mapping[str, Any]) -> str:
    """Return a hash of the state of an environment: of ``info["state_key"]``, otherwise of the observation.

    Raises:
        TypeError: The ``state_key`` is neither text nor an integer.
    """
    key = info.get("state_key")
    if key is not None and not isinstance(key, str | Integral):
        raise TypeError(
            f'info["state_key"] should be text or an integer, got {type(key).__name__}: '
            "write the state as text, such as json.dumps(state, sort_keys=True)"
        )
    text = f"observation {observation}" if key is None else f"key {key}"
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()


@dataclass
class TurnLog:
    """Collects the turns of an episode while it is played.

    Attributes:
        place: Whether rewards are to be placed at the last tokens of their turns.
        with_states: Whether states are recorded.
    """

    place: bool
    with_states: bool
    _spans: list[tuple[int, int]] = field(default_factory=list)
    _states: list[str] = field(default_factory=list)

    def begin(self, observation: str, info: Mapping[str, Any]) -> None:
        """Note the state before a reply.

        A reply without an action (``info["parse_error"]``) leaves the environment in its state, and the
        observation after it describes the reply. Without a ``state_key``, the state is the same as
        in the turn before.

        Raises:
            TypeError: The ``state_key`` of `info` is neither text nor an integer.
        """
        if not self.with_states:
            return
        unchanged = self._states and info.get("parse_error") and info.get("state_key") is None
        self._states.append(self._states[-1] if unchanged else state_of(observation, info))

    def add(self, start: int, end: int) -> None:
        """Note the tokens of a reply."""
        self._spans.append((start, end))

    def forget(self) -> None:
        """Discard the tokens of all replies so far: they were removed from the response."""
        self._spans.clear()

    def record(self, rewards: Sequence[float]) -> TurnRecord | None:
        """Return the record; None if tokens of a reply were discarded.

        Args:
            rewards: Reward of each turn.
        """
        if len(self._spans) != len(rewards):
            return None
        return {
            "starts": [start for start, _ in self._spans],
            "ends": [end for _, end in self._spans],
            "rewards": list(rewards),
            "states": self._states[: len(self._spans)],
            "place": self.place,
        }
