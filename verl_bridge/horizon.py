"""A turn limit for episodes that depends on the training step.

A stepwise horizon is the curriculum of ScalingInter-RL (arXiv 2509.08755): short episodes first, longer ones
later. The step is verl's own number, which starts at 1 and continues when a run is resumed. verl passes it to
its worker, but not to agent loops, except in the default trainer of 0.9; :mod:`verl_bridge.trainer` passes it
on.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

__all__ = ["Horizon", "Moment", "now"]


@dataclass(frozen=True)
class Moment:
    """The training step in which an episode is played.

    Attributes:
        step: The training step, from 1; 0 before the first.
        validation: Whether the episode is part of a validation; None if unknown.
    """

    step: int
    validation: bool | None


now: ContextVar[Moment | None] = ContextVar("now", default=None)
"""The moment of the current context's episode; None if verl does not pass it on."""


@dataclass(frozen=True)
class Horizon:
    """A turn limit that is constant or grows in stages.

    Args:
        turns: The limits of the stages, in order.
        every: Training steps of a stage; the last has no end.
        validation: Whether validations use the limit of their step; otherwise they use the last limit.

    Raises:
        ValueError: There is no stage, or a number is below 1.
    """

    turns: tuple[int, ...]
    every: int = 1
    validation: bool = False

    def __post_init__(self) -> None:
        if not self.turns:
            raise ValueError(
                "horizon: turns should be a list of one turn limit or more, such as [10, 20, 30]"
            )
        for name, value in (*(("turns", limit) for limit in self.turns), ("every", self.every)):
            if not isinstance(value, int) or isinstance(value, bool) or value < 1:
                raise ValueError(f"horizon: {name}={value!r} should be an integer from 1")

    @classmethod
    def of(cls, settings: Mapping[str, Any] | None) -> Horizon | None:
        """Create a horizon from a mapping in the yaml; None for None.

        Args:
            settings: ``turns``, a list; ``every``, required if there is more than one limit; ``validation``.

        Raises:
            ValueError: It has other keys, or an invalid value.
        """
        if settings is None:
            return None
        allowed = {"turns", "every", "validation"}
        if not isinstance(settings, Mapping) or not {"turns"} <= set(settings) <= allowed:
            raise ValueError(
                f"horizon={settings!r} should have turns and every, as in {{turns: [10, 20, 30], every: 100}}"
                ", and may have validation"
            )
        turns = settings["turns"]
        turns = (turns,) if isinstance(turns, int) else tuple(turns)
        if len(turns) > 1 and "every" not in settings:
            raise ValueError("horizon: several turn limits require every, the training steps of a stage")
        return cls(turns, settings.get("every", 1), bool(settings.get("validation", False)))

    @property
    def longest(self) -> int:
        """The highest limit of all stages."""
        return max(self.turns)

    def at(self, step: int) -> int:
        """Return the limit of a training step; steps before 1 use the first limit."""
        return self.turns[min(max(step - 1, 0) // self.every, len(self.turns) - 1)]

    def limit(self, moment: Moment | None) -> int:
        """Return the limit of an episode.

        Raises:
            ValueError: The limit depends on the step, and verl does not pass the step on.
        """
        if len(set(self.turns)) == 1:
            return self.turns[0]
        if moment is None:
            raise ValueError(
                "horizon: the turn limit depends on the training step, which verl does not pass on: set "
                "VERL_USE_EXTERNAL_MODULES=verl_bridge.trainer in the environment of the run"
            )
        return self.turns[-1] if moment.validation and not self.validation else self.at(moment.step)
