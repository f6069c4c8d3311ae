"""Pass the environment's reward to verl's reward manager.

:class:`verl_bridge.agent_loop.GymAgentLoop` passes the reward to verl itself and does not need this module.
:class:`verl_bridge.interaction.GymInteraction` cannot: verl 0.7.1 keeps the scores of its turns in
``turn_scores``, which none of its own scorers reads. Its runs need these settings:

.. code-block:: text

    reward.custom_reward_function.path=pkg://verl_bridge.reward
    reward.custom_reward_function.name=compute_score
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from verl_bridge._run.labels import labels_of
from verl_bridge.numbers import numbers_of_unplayed
from verl_bridge.tasks import EnvTask

if TYPE_CHECKING:
    from typing_extensions import Self

__all__ = ["TurnScore", "compute_score"]


class TurnScore(float):
    """The reward of a turn, with the record of the episode up to it.

    verl carries only the scores of the turns from an interaction to the reward manager, and nothing else.

    Attributes:
        record: The numbers of :func:`verl_bridge.numbers.numbers_of` and the labels of
            ``verl_bridge._run.labels.labels_of``, in one.
    """

    record: dict[str, Any]

    def __new__(cls, value: float, record: Mapping[str, Any]) -> Self:
        """Create the score of a turn."""
        score = super().__new__(cls, value)
        score.record = dict(record)
        return score

    def __reduce__(self) -> tuple[Any, ...]:
        """Preserve the record when the score is pickled."""
        return TurnScore, (float(self), self.record)


def compute_score(
    data_source: str,
    solution_str: str,  # noqa: ARG001 - verl passes all of them by name
    ground_truth: Any,  # noqa: ARG001
    extra_info: Mapping[str, Any] | None = None,
    **kwargs: Any,  # noqa: ARG001
) -> dict[str, Any]:
    """Return the environment's reward; the signature is verl's for a custom reward function.

    Args:
        data_source: The environment of an unplayed episode whose row names none.
        solution_str: Not used.
        ground_truth: Not used.
        extra_info: ``turn_scores`` has the reward of each turn, and ``interaction_kwargs`` the task.
        **kwargs: Not used.

    Returns:
        ``score``, which is the episode's return, and its record, always under the same keys. An episode
        without any turn scores 0.

    Raises:
        ValueError: There are no turn scores, because no environment was played.
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
        raise ValueError(f"the turn_scores of {data_source!r} do not come from verl_bridge's GymInteraction")
    return {"score": record["return"], **record}


def _unplayed(row: Mapping[str, Any], data_source: str) -> dict[str, Any]:
    """Return the record of an episode without any turn."""
    try:
        task = EnvTask.of(row)
    except ValueError:  # the environment is in the yaml, which is not available here
        task = EnvTask(data_source)
    return {**numbers_of_unplayed(), "cut": 1.0, **labels_of(task, None)}
