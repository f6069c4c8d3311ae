"""Groups without signal, which verl 0.9's filter drops and replaces: only played episodes are their members.

With ``algorithm.filter_groups`` verl drops a group whose rows all have the same score. It counts the 0 of a
faulted episode as a score, so it would keep (1, 1, 1, fault), although all advantages of this group are 0.
:mod:`verl_bridge.trainer` wraps verl's functions with this module: verl's filter then gets one row of each
played episode. A group with fewer than two of them is dropped, because there is nothing to compare.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from verl_bridge._credit.sessions import last_rows
from verl_bridge._run.metrics import extras_of_rows, record_in
from verl_bridge._run.run_checks import MOST_FAILED, log

__all__ = ["DROPPED", "DROPPED_SCORE", "REFILLED", "GroupFilter", "filter_of"]

DROPPED = "env/dropped_groups"
"""The metric with the number of groups that the filter dropped."""

DROPPED_SCORE = "env/dropped_groups_score"
"""The metric with the mean score of the dropped groups that have at least two played episodes."""

REFILLED = "env/refilled_groups"
"""The metric with the number of groups that were started to replace dropped, stale or failed ones."""

_ATTRIBUTE = "verl_bridge_groups"

Records = list[dict[str, Any]]


def filter_of(buffer: Any) -> GroupFilter | None:
    """Return the record of a replay buffer's filter, or None if the buffer does not filter groups."""
    if getattr(buffer, "filter_groups_metric", None) is None:
        return None
    if not hasattr(buffer, _ATTRIBUTE):
        setattr(buffer, _ATTRIBUTE, GroupFilter(buffer))
    result: GroupFilter = getattr(buffer, _ATTRIBUTE)
    return result


class GroupFilter:
    """The work of a replay buffer's filter since the last metrics.

    Args:
        buffer: verl's ``ReplayBuffer``. Its ``refill_fn`` is replaced by one that counts.
    """

    def __init__(self, buffer: Any) -> None:
        self._buffer = buffer
        self._refill = buffer.refill_fn
        buffer.refill_fn = self._counted_refill
        self._new: set[str] = set()
        self._lost: set[str] = set()
        self._unplayed: list[Records] = []
        self._in_a_row = 0
        self._clear()

    def _clear(self) -> None:
        self._dropped = self._refilled = self._dropped_lost = self._scored = 0
        self._scores = 0.0

    @property
    def unplayed(self) -> Records:
        """The records of more than `MOST_FAILED` groups in a row without a played episode, or none."""
        if len(self._unplayed) <= MOST_FAILED:
            return []
        return [record for records in self._unplayed for record in records]

    def played_rows(self, partition: str) -> list[str]:
        """Return verl's key of a row of each played episode, for groups that finished since the last call.

        Groups with fewer than two played episodes are noted as groups without signal, with the score NaN.

        Args:
            partition: verl's name for the part of its buffer.
        """
        buffer = self._buffer
        known = buffer._dapo_classification_cache[partition]  # noqa: SLF001 - verl looks only here
        finished = buffer.finished_keys[partition]
        self._new = finished - known.keys()
        self._lost &= finished
        keys = [key for key in buffer.partitions[partition] if _group_of(key) in self._new]
        extras = extras_of_rows([keys[row] for row in last_rows(keys)], partition)
        groups: dict[str, dict[str, dict[str, Any]]] = defaultdict(dict)
        for key, extra in extras.items():
            groups[_group_of(key)][key] = record_in(extra)
        rows: list[str] = []
        for group, records in groups.items():
            played = [key for key, record in records.items() if not record.get("fault")]
            rows += played
            if len(played) < min(len(records), 2):
                known[group] = math.nan
                self._lost.add(group)
            self._unplayed = [] if played else [*self._unplayed, list(records.values())]
        return rows

    def compare(self, partition: str, rows: Sequence[str], call: Callable[[], Any]) -> Any:
        """Return the result of verl's filter, which gets only these rows.

        Args:
            partition: verl's name for the part of its buffer.
            rows: The result of `played_rows`.
            call: Calls verl's filter.
        """
        partitions = self._buffer.partitions
        whole = partitions[partition]
        partitions[partition] = {key: whole[key] for key in rows}
        try:
            without_signal, scores = call()
        finally:
            partitions[partition] = whole
        self._warn(self._new, without_signal)
        return without_signal, scores

    def _warn(self, new: Collection[str], without_signal: Collection[str]) -> None:
        """Log a warning if verl replaces one group after the other, as it would do indefinitely."""
        before = self._in_a_row
        self._in_a_row = before + len(new) if {*new} <= {*without_signal} else 0
        if self._in_a_row // MOST_FAILED > before // MOST_FAILED:
            log.warning(
                "%d groups in a row have no signal: all played episodes of each have the same score. verl "
                "replaces such groups until a batch is full: the tasks may be too hard, or too easy",
                self._in_a_row,
            )

    def drop(self, groups: Collection[str], scores: Mapping[float, int]) -> None:
        """Count the groups that verl drops now.

        Args:
            groups: Their ids.
            scores: How many of them have which score, as verl's filter returns them.
        """
        known = {score: count for score, count in scores.items() if not math.isnan(score)}
        self._dropped += len(groups)
        self._dropped_lost += len(self._lost.intersection(groups))
        self._scores += math.fsum(score * count for score, count in known.items())
        self._scored += sum(known.values())

    def take(self) -> tuple[dict[str, float], int]:
        """Return the metrics since the last call, and how many dropped groups faults had left too small."""
        metrics = {DROPPED: float(self._dropped), REFILLED: float(self._refilled)}
        if self._scored:
            metrics[DROPPED_SCORE] = self._scores / self._scored
        lost = self._dropped_lost
        self._clear()
        return metrics, lost

    def _counted_refill(self, number: int) -> Any:
        self._refilled += number
        return self._refill(number)


def _group_of(key: str) -> str:
    """Return the group of verl's key of a row: ``{group}_{session}_{number of the output}``."""
    return key.split("_", 1)[0]
