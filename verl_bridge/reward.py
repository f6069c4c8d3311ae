"""The environment's reward, handed to verl's reward manager.

:class:`verl_bridge.agent_loop.GymAgentLoop` hands verl the reward itself, and needs nothing of this.
:class:`verl_bridge.interaction.GymInteraction` cannot: verl 0.7.1 keeps the scores of its turns in
``turn_scores``, where no scorer of its own looks. So the run must be told::

    reward.custom_reward_function.path=pkg://verl_bridge.reward
    reward.custom_reward_function.name=compute_score
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from verl_bridge._log_labels import labels_of
from verl_bridge.numbers import numbers_of_unplayed
from verl_bridge.tasks import EnvTask

if TYPE_CHECKING:
    from typing_extensions import Self

__all__ = ["TurnScore", "compute_score"]


class TurnScore(float):
    """The reward of a turn, with the record of the episode up to it.

    verl carries the scores of the turns to the reward manager, and nothing else that an interaction says.

    Attributes:
        record: The numbers of :func:`verl_bridge.numbers.numbers_of` and the labels of
            ``verl_bridge._log_labels.labels_of``, in one.
    """

    record: dict[str, Any]

    def __new__(cls, value: float, record: Mapping[str, Any]) -> Self:
        """Make the score of a turn."""
        score = super().__new__(cls, value)
        score.record = dict(record)
        return score

    def __reduce__(self) -> tuple[Any, ...]:
        """Keep the record on the way to another process."""
        return TurnScore, (float(self), self.record)


def compute_score(
    data_source: str,
    solution_str: str,  # noqa: ARG001 - verl gives all of them by name
    ground_truth: Any,  # noqa: ARG001
    extra_info: Mapping[str, Any] | None = None,
    **kwargs: Any,  # noqa: ARG001
) -> dict[str, Any]:
    """Return what the environment paid: verl's signature of a custom reward function.

    Args:
        data_source: The environment of an episode that was never played, where the row names none.
        solution_str: Not used.
        ground_truth: Not used.
        extra_info: ``turn_scores`` holds the reward of each turn, and ``interaction_kwargs`` the task.
        **kwargs: Not used.

    Returns:
        ``score``, which is the episode's return, and its record, always the same keys. An episode of which
        nothing was played scores 0.

    Raises:
        ValueError: There are no scores of turns, because nothing was played in an environment.
    """
    row = extra_info or {}
    scores = row.get("turn_scores")
    if scores is None:
        raise ValueError(
            f"a sample of {data_source!r} has no turn_scores: no interaction was played. Set "
            "actor_rollout_ref.rollout.agent.default_agent_loop=tool_agent and "
            "actor_rollout_ref.rollout.multi_turn.interaction_config_path, or give the rows an agent_name"
        )
    record = getattr(scores[-1], "record", None) if len(scores) else _unplayed(row, data_source)
    if record is None:
        raise ValueError(f"the turn_scores of {data_source!r} are not those of verl_bridge's GymInteraction")
    return {"score": record["return"], **record}


def _unplayed(row: Mapping[str, Any], data_source: str) -> dict[str, Any]:
    """Return the record of an episode of which no turn was played."""
    try:
        task = EnvTask.of(row)
    except ValueError:  # the row leaves the environment to the yaml, which is not known here
        task = EnvTask(data_source)
    return {**numbers_of_unplayed(), "cut": 1.0, **labels_of(task, None)}
