"""Metrics of the episodes of a training step or validation; independent of verl.

A *record* describes one episode: the numbers of :func:`verl_bridge.numbers.numbers_of` and the texts of
:func:`verl_bridge._run.labels.labels_of`. verl carries it as ``reward_extra_info``.
:mod:`verl_bridge.trainer` passes the metrics to verl.
"""

from __future__ import annotations

import contextlib
import importlib
import math
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from numbers import Real
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from verl_bridge._run.timing import timings_of

__all__ = [
    "COUNTS",
    "by_environment",
    "extras_of_queue",
    "extras_of_rows",
    "failure_message",
    "record_in",
    "records_of",
    "records_of_batch",
    "without_faulted",
]

COUNTS = ("retries", "replays")
"""Numbers of a record that are summed over all episodes.

All other numbers are averaged over the episodes without a fault, so that steps and runs of different size
compare.
"""

_NAMES = {"return": "score"}
"""Names of metrics that differ from the names of their numbers."""

_MOST_SHOWN = 8
"""Kinds of fault that an error message quotes for one environment."""


def by_environment(records: Sequence[Mapping[str, Any]], prefix: str = "env") -> dict[str, float]:
    """Return the metrics of each environment, as ``{prefix}/{env_id}/{name}``.

    Numbers of episodes, faults and `COUNTS` are counts, all others are means over the episodes without a
    fault. If all episodes of an environment are faulted, its means are left out. A mean is also left out if
    its number is unknown (NaN) in all episodes.

    Args:
        records: One for each episode. Records without an ``env_id`` are from other agent loops and are
            skipped.
        prefix: Prefix of the metric names.
    """
    groups: dict[str, list[Mapping[str, Any]]] = defaultdict(list)
    for record in records:
        if record.get("env_id"):
            groups[str(record["env_id"])].append(record)
    metrics: dict[str, float] = {}
    timings = timings_of(records)
    for env_id, own in sorted(groups.items()):
        at = f"{prefix}/{env_id}"
        played = [record for record in own if not record.get("fault")]
        metrics[f"{at}/episodes"] = float(len(own))
        metrics[f"{at}/faults"] = float(len(own) - len(played))
        for kind, count in sorted(Counter(_kind(record) for record in own if record.get("fault")).items()):
            metrics[f"{at}/fault/{kind}"] = float(count)
        for name, values in _numbers(played).items():
            if name not in {*COUNTS, "fault", "score"}:  # verl's own score is the return, too
                metrics[f"{at}/{_NAMES.get(name, name)}"] = math.fsum(values) / len(values)
        for name, values in _numbers(own).items():
            if name in COUNTS:
                metrics[f"{at}/{name}"] = math.fsum(values)
        metrics |= timings[env_id].metrics(at)
    return metrics


def records_of(columns: Mapping[str, Sequence[Any]]) -> list[dict[str, Any]]:
    """Convert verl's columns to records; None marks a key that the row does not have."""
    if "env_id" not in columns:
        return []
    size = len(columns["env_id"])
    whole = {name: column for name, column in columns.items() if len(column) == size}
    return [
        {name: column[row] for name, column in whole.items() if column[row] is not None}
        for row in range(size)
    ]


def records_of_batch(batch: Any) -> list[dict[str, Any]]:
    """Return the records in the batch of verl's trainer up to 0.8, or none."""
    columns = batch.non_tensor_batch
    names = [name for name in batch.meta_info.get("reward_extra_keys", ()) if name in columns]
    return records_of({name: columns[name].tolist() for name in names})


def extras_of_queue(batch: Any) -> dict[str, Mapping[str, Any]]:
    """Return ``extra_fields`` of a batch of verl 0.9's trainer by the keys of its episodes, in order."""
    keys = [key for key, tag in zip(batch.keys, batch.tags, strict=True) if not tag.get("is_padding", False)]
    return extras_of_rows(keys, batch.partition_id)


def extras_of_rows(keys: Sequence[str], partition: str) -> dict[str, Mapping[str, Any]]:
    """Return ``extra_fields`` of rows in verl 0.9's queue by their keys, in order."""
    if not keys:
        return {}
    queue = importlib.import_module("transfer_queue")  # only verl 0.9 needs it
    data = queue.kv_batch_get(keys=list(keys), partition_id=partition, select_fields=["extra_fields"])
    extras = [getattr(extra, "data", extra) for extra in data["extra_fields"]]
    whole = [extra if isinstance(extra, Mapping) else {} for extra in extras]
    return dict(zip(keys, whole, strict=True))


def record_in(extra: Mapping[str, Any]) -> dict[str, Any]:
    """Return the record in the ``extra_fields`` of an episode, or an empty one."""
    return dict(extra.get("reward_extra_info") or {})


def failure_message(records: Sequence[Mapping[str, Any]]) -> str:
    """Return the error message for a step in which all episodes faulted; empty for any other step.

    It lists environments, servers, the kinds of fault with their counts and one message each, and the remedy.
    """
    if not records or not all(record.get("fault") for record in records):
        return ""
    groups: dict[str, list[Mapping[str, Any]]] = defaultdict(list)
    for record in records:
        groups[str(record.get("env_id") or "an environment")].append(record)
    lines = [f"None of the {len(records)} episodes of this step could be played: the run stops."]
    for env_id, own in sorted(groups.items()):
        servers = sorted({server for record in own for server in _servers(record)})
        where = f" at {', '.join(servers)}" if servers else ""
        lines.append(f"  {env_id}{where}: {len(own)} episodes failed")
        kinds = Counter(_kind(record) for record in own)
        for kind, count in kinds.most_common(_MOST_SHOWN):
            example = next(record for record in own if _kind(record) == kind)
            message = " ".join(str(example.get("fault_message", "")).split())
            lines.append(f"    {kind}, {count} times, such as: {message or 'no message'}")
    lines.append(f"  {_retries_line(records)}")
    lines.append(
        "Fix the cause (do the servers respond?), then start the run again: trainer.resume_mode=auto resumes "
        "from the last checkpoint."
    )
    return "\n".join(lines)


def without_faulted(
    process: Callable[..., Mapping[str, Any]],
    data_sources: Sequence[str],
    sample_uids: Sequence[str],
    infos_dict: Mapping[str, Sequence[Any]],
    **others: Any,
) -> dict[str, Any]:
    """Compute the metrics of a validation with verl, without the faulted episodes.

    ``mean@n`` and ``std@n`` are over the unfaulted episodes among the n of a prompt; ``best@n``, ``worst@n``
    and ``maj@n`` are over the prompts that have at least n unfaulted episodes. ``fault`` itself is over all
    episodes. An unknown number (NaN), such as a success that the environment does not report, is left out in
    the same way: a data source whose numbers are all unknown does not have the metric.

    Args:
        process: verl's ``process_validation_metrics``.
        data_sources: The data source of each episode's row.
        sample_uids: The prompt of each episode.
        infos_dict: A column for each number, among them ``fault``.
        **others: Further arguments that verl passes to the function.

    Returns:
        The result of `process`: data source, name of the number, name of the metric, value.
    """
    faulted = {index for index, fault in enumerate(infos_dict.get("fault") or ()) if fault}
    unknown = {name: _unknown_indices(column) - faulted for name, column in infos_dict.items()}
    if not faulted and not any(unknown.values()):
        return dict(process(data_sources, sample_uids, infos_dict, **others))
    with_faults = {data_sources[index] for index in faulted}
    incomplete = with_faults | {data_sources[index] for indices in unknown.values() for index in indices}
    counts = others.pop("expected_acc_counts", None)
    if counts:  # verl would count a faulted episode as accuracy 0
        others["expected_acc_counts"] = {
            key: count for key, count in counts.items() if key[0] not in with_faults
        }
    rows = _Rows(process, data_sources, sample_uids, infos_dict, others)
    whole = [index for index, source in enumerate(data_sources) if source not in incomplete]
    result = dict(rows.process(whole, infos_dict)) if whole else {}
    for source in sorted(incomplete, key=str):
        result[source] = rows.of_source(source, faulted, unknown)
    return result


class _Rows(NamedTuple):
    """The episodes of a validation, as verl passes them to `function`."""

    function: Callable[..., Mapping[str, Any]]
    sources: Sequence[str]
    uids: Sequence[str]
    columns: Mapping[str, Sequence[Any]]
    others: Mapping[str, Any]

    def process(self, indices: Sequence[int], names: Iterable[str]) -> Mapping[str, Any]:
        """Compute verl's metrics from a subset of episodes and columns."""
        columns = {name: [self.columns[name][index] for index in indices] for name in names}
        sources, uids = ([column[index] for index in indices] for column in (self.sources, self.uids))
        return self.function(sources, uids, columns, **self.others)

    def of_source(
        self, source: str, faulted: set[int], unknown: Mapping[str, set[int]]
    ) -> dict[str, Mapping[str, float]]:
        """Return the metrics of a data source without the faulted episodes and the unknown numbers."""
        own = [index for index, other in enumerate(self.sources) if other == source]
        gaps = {name: indices for name, indices in unknown.items() if indices.intersection(own)}
        known = [name for name in self.columns if name not in gaps]
        if faulted.intersection(own):
            known.remove("fault")
            metrics = self._averaged(source, own, known, faulted)
            metrics |= self.process(own, ["fault"]).get(source, {})
        else:
            metrics = dict(self.process(own, known).get(source, {}))
        for name, indices in gaps.items():
            metrics |= self._averaged(source, own, [name], faulted | indices)
        return metrics

    def _averaged(
        self, source: str, indices: Iterable[int], names: Sequence[str], excluded: set[int]
    ) -> dict[str, Mapping[str, float]]:
        """Return verl's metrics of the remaining episodes, averaged over prompts."""
        merged: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
        groups: dict[str, list[int]] = defaultdict(list)
        for index in indices:
            groups[self.uids[index]].append(index)
        for group in groups.values():
            counted = [index for index in group if index not in excluded]
            for name, metrics in (self.process(counted, names).get(source, {}) if counted else {}).items():
                for metric, value in metrics.items():
                    renamed = _metric_over(metric, len(group))
                    if renamed:
                        merged[name][renamed].append(value)
        return {
            name: {metric: math.fsum(values) / len(values) for metric, values in metrics.items()}
            for name, metrics in merged.items()
        }


def _unknown_indices(column: Sequence[Any]) -> set[int]:
    """Return the indices at which a number is NaN."""
    return {index for index, value in enumerate(column) if isinstance(value, Real) and math.isnan(value)}


def _metric_over(metric: str, size: int) -> str | None:
    """Return the name of a metric over `size` episodes, or None if verl does not compute it for that size."""
    kind, _, rest = metric.partition("@")
    number, slash, last = rest.partition("/")
    if kind in {"mean", "std"}:
        return f"{kind}@{size}"
    several = int(number)
    computed = several == size or (several < size and several & (several - 1) == 0)  # 2, 4, 8 … and all
    return f"{kind}@{number}{slash}{last}" if computed else None


def _numbers(records: Iterable[Mapping[str, Any]]) -> dict[str, list[float]]:
    numbers: dict[str, list[float]] = defaultdict(list)
    for record in records:
        for name, value in record.items():
            if isinstance(value, Real) and not math.isnan(value):
                numbers[name].append(float(value))
    return numbers


def _kind(record: Mapping[str, Any]) -> str:
    """Return the kind of fault as part of a metric's name; environments may use any characters in it."""
    return re.sub(r"[^\w.-]+", "_", str(record.get("fault_kind") or "Fault"))[:60]


def _servers(record: Mapping[str, Any]) -> list[str]:
    """Return the servers in an episode's labels and fault message, without passwords and paths."""
    text = str(record.get("env_server") or record.get("fault_message", ""))
    servers = []
    for url in re.findall(r"\b[a-z][a-z0-9+.-]*://[^\s,;'\"]+", text):
        with contextlib.suppress(ValueError):
            parts = urlsplit(url)
            servers.append(f"{parts.scheme}://{parts.netloc.rpartition('@')[2].rstrip('.:)>')}")
    return servers


def _retries_line(records: Sequence[Mapping[str, Any]]) -> str:
    most = max((int(record.get("replays", 0)) for record in records), default=0)
    return f"Each was retried, up to {most} times." if most else "None was retried."
