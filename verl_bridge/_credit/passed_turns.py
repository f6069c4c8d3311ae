"""Pass the turns of a batch to this library's estimators.

verl passes the rewards of tokens to an estimator of its registry, and neither turns nor the critic's values.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, NamedTuple

import torch

from verl_bridge._credit.estimators import number_error
from verl_bridge._credit.turn_rewards import COLUMN

if TYPE_CHECKING:
    from verl_bridge._credit.turn_rewards import TurnRecord

__all__ = ["number_of", "pass_turns", "passed_values", "played_turns"]


class _Passed(NamedTuple):
    """Parts of a batch.

    Attributes:
        turns: The record of each row, or None.
        values: The critic's values, batch by response length; None without a critic.
    """

    turns: list[TurnRecord | None]
    values: torch.Tensor | None


_passed: ContextVar[_Passed] = ContextVar("_passed")


@contextlib.contextmanager
def pass_turns(data: Any) -> Iterator[None]:
    """Pass the turns and values of a ``DataProto`` to the estimator that verl calls meanwhile."""
    turns = list(data.non_tensor_batch.get(COLUMN, ()))
    token = _passed.set(_Passed(turns, data.batch.get("values", None)))
    try:
        yield
    finally:
        _passed.reset(token)


def played_turns(estimator: str, response_mask: torch.Tensor) -> dict[int, TurnRecord]:
    """Return the record of turns by row; a row of verl's padding has none.

    Args:
        estimator: The name of the estimator, for the error.
        response_mask: Batch by response length; 1 for the model's tokens.

    Raises:
        ValueError: An episode has no record of its turns.
    """
    passed = _passed.get(None)
    turns = {} if passed is None else {row: each for row, each in enumerate(passed.turns) if each is not None}
    if {*torch.nonzero(response_mask.bool().any(dim=-1)).flatten().tolist()} - turns.keys():
        raise ValueError(
            f"{estimator} needs the turns of each episode: play them with the agent loop "
            "verl_bridge.agent_loop.GymAgentLoop, without drop_reasoning, and load verl_bridge.trainer by "
            "VERL_USE_EXTERNAL_MODULES"
        )
    return turns


def passed_values(estimator: str) -> torch.Tensor:
    """Return the critic's values, batch by response length.

    Args:
        estimator: The name of the estimator, for the error.

    Raises:
        ValueError: There is no critic.
    """
    passed = _passed.get(None)
    if passed is None or passed.values is None:
        raise ValueError(f"{estimator} needs a critic: set critic.enable: true")
    return passed.values


def number_of(config: Any, name: str) -> float:
    """Return a setting below ``algorithm``; 1 for null.

    Raises:
        ValueError: It is not a number.
    """
    value = config.get(name)
    value = 1.0 if value is None else value
    if error := number_error(name, value):
        raise ValueError(error)
    return float(value)
