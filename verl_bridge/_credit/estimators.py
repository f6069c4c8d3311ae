"""Names of estimators of advantages (``algorithm.adv_estimator``) by what they use, and their settings."""

from __future__ import annotations

import math
from typing import Any

__all__ = [
    "BY_TURN",
    "EPISODE_WEIGHT",
    "GIGPO",
    "GROUPED",
    "OMEGA",
    "SUMMING",
    "TURN_GAE",
    "WITH_CRITIC",
    "number_error",
]

GIGPO = "gym_gigpo"
"""This library's estimator that compares turns, see :mod:`verl_bridge._credit.gigpo`."""

TURN_GAE = "gym_turn_gae"
"""This library's estimator with one value for each turn, see :mod:`verl_bridge._credit.turn_gae`."""

BY_TURN = frozenset({GIGPO, TURN_GAE})
"""This library's estimators, which need the record of turns."""

WITH_CRITIC = frozenset({"gae", TURN_GAE})
"""The estimators that need a critic."""

OMEGA = "gym_gigpo_omega"
"""The setting below ``algorithm`` with the weight of its comparison of turns; 1 if it is missing."""

EPISODE_WEIGHT = "gym_episode_weight"
"""The setting below ``algorithm`` for episodes with a row for each turn: ``equal``, the default, or ``verl``
for the weight that verl's aggregation of the loss gives them."""

SUMMING = frozenset(
    {
        *("grpo", "grpo_vectorized", "grpo_passk", "gdpo", "gpg", "opo", "rloo", "rloo_vectorized"),
        *("reinforce_plus_plus_baseline", GIGPO),
    }
)
"""The estimators that use the sum of the rewards of an episode's tokens, wherever they are."""

GROUPED = SUMMING | {"optimal_token_baseline", "tir_optimal_token_baseline"}
"""The estimators whose advantages depend on the other episodes of the same prompt."""


def number_error(name: str, value: Any) -> str:
    """Return the error of a setting below ``algorithm`` that is not a number; an empty text without one."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        return f"algorithm.{name}={value!r} should be a number"
    return ""
