"""Keys and values of a batch, with room for more tokens.

The cache of transformers copies all keys and values for each new token. This one copies them when its room is
full. A token of SmolLM2-135M for 64 texts of 1,500 tokens takes 0.29 s on two cores, and took 0.7 s.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from transformers.cache_utils import Cache, DynamicLayer

if TYPE_CHECKING:
    import torch

__all__ = ["new_cache"]

ROOM = 64
"""The number of tokens for which a layer makes room at once."""


class GrowingLayer(DynamicLayer):
    """The keys and values of one layer: texts by heads by tokens by width."""

    def __init__(self, *_: Any, **__: Any) -> None:
        super().__init__()
        self.is_initialized = False
        self._rooms: tuple[torch.Tensor, ...] = ()
        self._last_keys: torch.Tensor | None = None

    def update(
        self, key_states: torch.Tensor, value_states: torch.Tensor, *_: Any, **__: Any
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Add tokens, and return all keys and values. transformers calls this."""
        if not self.is_initialized:
            self.keys, self.values = key_states[:, :, :0], value_states[:, :, :0]
            self.is_initialized = True
        before = self.keys.shape[-2]
        after = before + key_states.shape[-2]
        # Where transformers has replaced them, as when it selects texts, the rooms are of other texts.
        replaced = self.keys is not self._last_keys
        if replaced or self._rooms[0].shape[-2] < after:
            self._rooms = tuple(_with_room(states, after + ROOM) for states in (self.keys, self.values))
        for room, states in zip(self._rooms, (key_states, value_states), strict=True):
            room[:, :, before:after] = states
        self.keys, self.values = (room[:, :, :after] for room in self._rooms)
        self._last_keys = self.keys
        return self.keys, self.values


def new_cache() -> Cache:
    """Return an empty cache."""
    return Cache(layer_class_to_replicate=GrowingLayer)


def _with_room(states: torch.Tensor, tokens: int) -> torch.Tensor:
    texts, heads, before, width = states.shape
    room = states.new_empty(texts, heads, tokens, width)
    room[:, :, :before] = states
    return room
