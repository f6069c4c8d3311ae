"""One of the environments that a run trains in."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, get_args

from agentgym_gym.rollout import Isolation, split_id

__all__ = ["EnvChoice", "turn_limit_of"]

# gymnasium's own rule, but it makes the version optional and allows colons at the ends of a name.
_ENV_ID = re.compile(r"(?:[\w.]+:)?(?:[\w:-]+/)?[\w.-](?:[\w:.-]*[\w.-])?")

_LIMITS = ("max_turns", "max_episode_steps")
"""Arguments that limit the turns: of AgentGym's environments, and of ``gymnasium.make`` for any."""


def turn_limit_of(env_kwargs: Mapping[str, Any]) -> int | None:
    """Return the turn limit among the arguments of an environment, or None."""
    limits = [env_kwargs.get(name) for name in _LIMITS]
    return min((limit for limit in limits if type(limit) is int and limit > 0), default=None)


@dataclass(frozen=True)
class EnvChoice:
    """One of several environments that a run trains in.

    Args:
        env_id: gymnasium's id, with the module that registers it: ``"my_package:my/Env-v0"``.
        env_kwargs: Its arguments.
        weight: Its share of the training tasks, relative to the other weights: one of weight 2 has twice
            as many tasks in a step as one of weight 1.
        isolate: Where each environment runs, as for `agentgym_gym.rollout.Pool`; None for its default.
        success_at: The minimum return of a solved task, as for `agentgym_gym.rollout.Episode`.

    Raises:
        ValueError: The id is invalid, the weight is not a positive number, or another argument is wrong.
    """

    env_id: str
    env_kwargs: Mapping[str, Any] = field(default_factory=dict)
    weight: float = 1.0
    isolate: str | None = None
    success_at: float | None = None

    def __post_init__(self) -> None:
        if not _ENV_ID.fullmatch(self.env_id):
            raise ValueError(
                f"--env={self.env_id!r} is not the id of an environment, such as 'my_package:my/Env-v0'"
            )
        if not (math.isfinite(self.weight) and self.weight > 0):
            raise ValueError(f"weight={self.weight} of {self.id} should be a positive number")
        if self.isolate is not None and self.isolate not in get_args(Isolation):
            raise ValueError(f"--isolate={self.isolate!r} should be one of {', '.join(get_args(Isolation))}")
        if self.success_at is not None and not math.isfinite(self.success_at):
            raise ValueError(f"--success-at={self.success_at} should be a finite number")

    @property
    def runtime(self) -> dict[str, Any]:
        """Runtime keys for the loop's yaml or for a row; empty by default."""
        keys = {"isolate": self.isolate, "success_at": self.success_at}
        return {key: value for key, value in keys.items() if value is not None}

    @property
    def id(self) -> str:
        """The id without the module."""
        return split_id(self.env_id)[1]
