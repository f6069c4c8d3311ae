"""The numbers of an episode that verl carries to its metrics."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from agentgym_gym.rollout import Episode

__all__ = ["numbers_of", "numbers_of_unplayed"]


def numbers_of(episode: Episode, replays: int = 0) -> dict[str, float]:
    """Return the numbers of an episode, always under the same keys; the return of a faulted one is 0.

    Args:
        episode: The episode.
        replays: How often the task was played before.

    Returns:
        ``return``, ``success`` (NaN if the environment does not report it and no threshold is set),
        ``turns``, ``parse_errors``, ``invalid_actions``, ``ignored_actions``, ``retries``, ``fault`` and
        ``replays``.
    """
    valid, success = episode.fault is None, episode.success
    unknown = math.nan if valid else 0.0
    return {
        "return": math.fsum(episode.rewards) if valid else 0.0,
        "success": unknown if success is None else float(success),
        "turns": float(len(episode.rewards)),
        "parse_errors": float(episode.parse_errors.total()),
        "invalid_actions": float(episode.invalid_actions),
        "ignored_actions": float(episode.ignored_actions),
        "retries": float(episode.retries),
        "fault": float(not valid),
        "replays": float(replays),
    }


def numbers_of_unplayed() -> dict[str, float]:
    """Return the numbers of an episode without any turn."""
    names = ("return", "success", "turns", "parse_errors", "invalid_actions", "ignored_actions", "retries")
    return dict.fromkeys((*names, "fault", "replays"), 0.0)
