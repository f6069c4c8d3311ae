"""Keys and values of the attention over texts that a model has read already. Independent of verl and Ray."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import torch

from verl_bridge.cpu._cache import new_cache

__all__ = ["Attended", "Prefixes", "joined", "of_row"]

Attended: TypeAlias = "list[tuple[torch.Tensor, torch.Tensor]]"
"""The keys and values of one text in each layer: heads by tokens by width."""

MAX_BYTES = 3 * 2**30
"""Memory for the texts that are kept, in bytes; the oldest are dropped first."""


class Prefixes:
    """KV cache of prefixes: a prompt that extends a cached text is not prefilled again.

    A turn of an episode continues the prompt and the reply of the turn before, so each text is needed once.

    Args:
        max_bytes: memory for the texts that are kept.
    """

    def __init__(self, max_bytes: int = MAX_BYTES) -> None:
        self._max_bytes = max_bytes
        self._bytes = 0
        self._kept: dict[tuple[int, ...], Attended] = {}

    def put(self, text: tuple[int, ...], attended: Attended) -> None:
        """Keep the keys and values of a text."""
        self._bytes -= _size(self._kept.pop(text, []))
        self._kept[text] = attended
        self._bytes += _size(attended)
        while self._bytes > self._max_bytes:
            self._bytes -= _size(self._kept.pop(next(iter(self._kept))))

    def take(self, prompt: tuple[int, ...]) -> Attended | None:
        """Return the longest text that a prompt continues, and forget it; None if there is none."""
        lengths = sorted({len(text) for text in self._kept if len(text) < len(prompt)}, reverse=True)
        text = next((prompt[:length] for length in lengths if prompt[:length] in self._kept), None)
        if text is None:
            return None
        attended = self._kept.pop(text)
        self._bytes -= _size(attended)
        return attended

    def clear(self) -> None:
        """Forget all texts, as after a change of the weights."""
        self._kept.clear()
        self._bytes = 0


def joined(rows: Sequence[Attended]) -> tuple[Any, torch.Tensor]:
    """Return one cache of transformers for several texts, left-padded to one length, and its attention mask.

    Args:
        rows: The texts of the rows; an empty list for a row without any.
    """
    lengths = [row[0][0].shape[-2] if row else 0 for row in rows]
    longest, cache = max(lengths), new_cache()
    mask = torch.zeros(len(rows), longest, dtype=torch.long)
    for index, length in enumerate(lengths):
        mask[index, longest - length :] = 1
    whole = next((row for row in rows if row), [])
    for layer, pair in enumerate(whole):
        padded = [tensor.new_zeros(len(rows), tensor.shape[0], longest, tensor.shape[2]) for tensor in pair]
        for index, (row, length) in enumerate(zip(rows, lengths, strict=True)):
            for tensor, part in zip(padded, row[layer] if row else (), strict=bool(row)):
                tensor[index, :, longest - length :] = part
        cache.update(*padded, layer)
    return cache, mask


def of_row(cache: Any, row: int, mask: torch.Tensor) -> Attended:
    """Return the keys and values of one row.

    Args:
        cache: A cache of transformers.
        row: The row.
        mask: The attention mask of the row, over the tokens in the cache.
    """
    chosen = mask.bool()
    return [(layer.keys[row][:, chosen], layer.values[row][:, chosen]) for layer in cache.layers]


def _size(attended: Attended) -> int:
    return sum(tensor.nbytes for pair in attended for tensor in pair)
