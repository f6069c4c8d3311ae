"""Record the turns of an episode for credit by turn: tokens, rewards, penalties, and the states before them.

verl takes one score of an episode from an agent loop. The loop passes this record alongside the score, in the
column :data:`COLUMN`, to :mod:`verl_bridge._credit.advantage`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from numbers import Integral
from typing import Any, NamedTuple, TypedDict

__all__ = ["COLUMN", "Penalties", "TurnLog", "TurnRecord", "join_turns", "split_turns", "state_of"]

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
        penalties: Penalty of each turn, which training subtracts from its reward.
    """

    starts: list[int]
    ends: list[int]
    rewards: list[float]
    states: list[str]
    place: bool
    penalties: list[float]


class Penalties(NamedTuple):
    """The amounts that training subtracts from the reward of a turn.

    Attributes:
        invalid_action: For a reply without an action, and for an action that the environment rejects.
        format: For a reply without an action, in addition.
    """

    invalid_action: float = 0.0
    format: float = 0.0

    def of_turn(self, info: Mapping[str, Any]) -> float:
        """Return the penalty of a turn.

        Args:
            info: The environment's info after the turn.
        """
        if info.get("parse_error"):
            return self.invalid_action + self.format
        return self.invalid_action if info.get("invalid_action") else 0.0


def split_turns(record: TurnRecord) -> list[TurnRecord]:
    """Return the record of each turn of an episode that has a row for each turn."""
    return [
        {
            "starts": [start],
            "ends": [end],
            "rewards": [reward],
            "states": record["states"][number : number + 1],
            "place": record["place"],
            "penalties": record["penalties"][number : number + 1],
        }
        for number, (start, end, reward) in enumerate(
            zip(record["starts"], record["ends"], record["rewards"], strict=True)
        )
    ]


def join_turns(records: Sequence[tuple[int, TurnRecord]]) -> TurnRecord:
    """Return the record of an episode from those of its rows.

    Args:
        records: For each row, the index of its first token in the joined response, and its record.
    """
    return {
        "starts": [offset + start for offset, record in records for start in record["starts"]],
        "ends": [offset + end for offset, record in records for end in record["ends"]],
        "rewards": [reward for _, record in records for reward in record["rewards"]],
        "states": [state for _, record in records for state in record["states"]],
        "place": any(record["place"] for _, record in records),
        "penalties": [penalty for _, record in records for penalty in record["penalties"]],
    }


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
        penalties: The penalties of turns; None if no turn is to have one.
    """

    place: bool
    with_states: bool
    penalties: Penalties | None = None
    _spans: list[tuple[int, int]] = field(default_factory=list)
    _states: list[str] = field(default_factory=list)
    _subtracted: list[float] = field(default_factory=list)

    @property
    def penalty(self) -> float:
        """The sum of the penalties so far."""
        return math.fsum(self._subtracted)

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

    def end(self, info: Mapping[str, Any]) -> None:
        """Note the penalty of a turn, by the environment's info after it."""
        self._subtracted.append(0.0 if self.penalties is None else self.penalties.of_turn(info))

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
            "penalties": self._subtracted[: len(self._spans)],
        }
