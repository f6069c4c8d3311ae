"""verl's dataset for fine-tuning, with the tokens of the agent loop: ``GameDataset``.

A recipe names it in ``data.custom_cls``. verl's own ``MultiTurnSFTDataset`` encodes each message separately,
with the chat template around it. Some templates reject a single message, others write it differently within a
conversation. Here a row has the tokens and the loss mask that :mod:`verl_bridge.agent_loop` would have built
if the model had emitted the replies of the row:

- The model learns each reply up to the token that ends its turn, and nothing else.
- A reply that the column ``loss`` marks with false is in the row, and excluded from the loss.
- A system message that the template does not support begins the first user message.
- Control tokens in the text of an environment are plain text.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from pyarrow import parquet
from verl.utils.dataset.multiturn_sft_dataset import MultiTurnSFTDataset

from verl_bridge._run.recorded import encode_recorded, marked_messages

if TYPE_CHECKING:
    from verl_bridge._tokens.chat_template import Message

__all__ = ["GameDataset"]

_ROLES = ("system", "user", "assistant")


class GameDataset(MultiTurnSFTDataset):
    """Games as rows of ``agentgym data sft``: conversations with some replies excluded from the loss.

    The settings are verl's. Rows contain text only, without images, videos and tools.
    """

    def _read_files_and_process(self) -> None:
        names = (self.messages_key, "loss", self.tools_key, self.enable_thinking_key)
        rows: list[dict[str, Any]] = []
        for file in self.parquet_files:
            present = parquet.read_schema(file).names
            rows += parquet.read_table(file, columns=[name for name in names if name in present]).to_pylist()
        most = self.max_samples
        if 0 < most < len(rows):
            chosen = np.arange(most)
            if self.shuffle:
                chosen = np.random.default_rng(self.seed).choice(len(rows), size=(most,), replace=False)
            rows = [rows[at] for at in chosen]
        self._rows = rows

    def __len__(self) -> int:
        return len(self._rows)

    def __getitem__(self, item: int) -> dict[str, torch.Tensor]:
        """Return the tokens of a row.

        Raises:
            ValueError: The row is longer than ``max_length``, and ``truncation`` is ``error``; or it is not a
                conversation of texts with a reply to be learned.
            UnstableTemplate: The chat template does not support the conversation.
        """
        row = self._rows[item]
        ids, mask = encode_recorded(self.tokenizer, self._template_options(row), self._messages(row))
        length, most = len(ids), self.max_length
        padded = self.pad_mode == "right"
        if length > most and self.truncation == "error":
            raise ValueError(f"the row has {length} tokens, and data.max_length is {most}")
        kept = slice(length - most, None) if padded and self.truncation == "left" else slice(most)
        if length > most:
            ids, mask = ids[kept], mask[kept]
        missing = max(0, most - length) if padded else 0
        tensors = {
            "input_ids": _padded(ids, missing, self.tokenizer.pad_token_id or 0),
            "position_ids": self._positions(len(ids), missing),
            "loss_mask": _padded(mask, missing),
        }
        return {**tensors, "attention_mask": _padded([1] * len(ids), missing)} if padded else tensors

    def _messages(self, row: Mapping[str, Any]) -> list[Message]:
        for message in row[self.messages_key]:
            role, content = message["role"], message["content"]
            if role not in _ROLES or not isinstance(content, str) or row.get(self.tools_key):
                raise ValueError(
                    f"expected messages of {', '.join(_ROLES)} with a text, and no tools, got "
                    f"{message!r:.80}: delete data.custom_cls to read such rows by verl's own dataset"
                )
        return marked_messages(row, self.messages_key)

    def _template_options(self, row: Mapping[str, Any]) -> dict[str, Any]:
        options = dict(self.apply_chat_template_kwargs)
        thinking = row.get(self.enable_thinking_key, self.enable_thinking_default)
        # The yaml of verl's trainer has the text none as default.
        return options if thinking in {None, "none"} else {**options, "enable_thinking": bool(thinking)}

    def _positions(self, length: int, missing: int) -> torch.Tensor:
        """Return the position of each token; four rows for models with images in the manner of Qwen 2 VL."""
        positions = _padded(range(length), missing)
        images = getattr(self.processor, "image_processor", None)
        by_axis = "Qwen2VLImageProcessor" in type(images).__name__
        return positions.expand(4, -1).contiguous() if by_axis else positions


def _padded(values: Any, missing: int, value: int = 0) -> torch.Tensor:
    return torch.tensor([*values, *[value] * missing], dtype=torch.long)
