"""Find what the agent loop returned with each episode in the batches of verl's trainers."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from typing import Any

from verl_bridge._metrics import records_of

__all__ = ["extras_of_queue", "record_in", "records_of_batch"]


def records_of_batch(batch: Any) -> list[dict[str, Any]]:
    """Return the records in the batch of verl's trainer up to 0.8, or none."""
    columns = batch.non_tensor_batch
    names = [name for name in batch.meta_info.get("reward_extra_keys", ()) if name in columns]
    return records_of({name: columns[name].tolist() for name in names})


def extras_of_queue(batch: Any) -> dict[str, Mapping[str, Any]]:
    """Return ``extra_fields`` of a batch of verl 0.9's trainer by the keys of its episodes, in order."""
    queue = importlib.import_module("transfer_queue")  # only verl 0.9 needs it
    keys = [key for key, tag in zip(batch.keys, batch.tags, strict=True) if not tag.get("is_padding", False)]
    if not keys:
        return {}
    batch_data = queue.kv_batch_get(
        keys=keys, partition_id=batch.partition_id, select_fields=["extra_fields"]
    )
    extras = [getattr(extra, "data", extra) for extra in batch_data["extra_fields"]]
    whole = [extra if isinstance(extra, Mapping) else {} for extra in extras]
    return dict(zip(keys, whole, strict=True))


def record_in(extra: Mapping[str, Any]) -> dict[str, Any]:
    """Return the record in the ``extra_fields`` of an episode, or an empty one."""
    return dict(extra.get("reward_extra_info") or {})
