"""verl's dataset for fine-tuning with a loss mark for each reply: ``GameDataset``.

A recipe names it in ``data.custom_cls``. It is verl's own ``MultiTurnSFTDataset``, with these differences:

- A reply that the column ``loss`` marks with false is excluded from the loss. verl's own dataset has no
  marks.
- The chat template of a thinking model may write an empty thought before only the last reply of a
  conversation, as Qwen3's does. verl encodes each message separately, so this thought is missing there, and
  its own dataset raises an error. Without the thought, each reply is encoded in the same way, as it is at
  inference. Any other difference between messages encoded separately and together still stops the training.
- A template that omits a message, or whose generation prompt differs from the beginning of its replies, stops
  the training. verl's own dataset silently loses the message, or excludes the reply's beginning from the
  loss.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from verl.utils.dataset.multiturn_sft_dataset import MultiTurnSFTDataset

__all__ = ["GameDataset"]

_EMPTY_THOUGHT = re.compile(r"<think>\s*</think>\s*")

_MARK = "loss"


class GameDataset(MultiTurnSFTDataset):
    """Games as rows of ``agentgym data sft``: conversations with some replies excluded from the loss."""

    def _build_messages(self, example: Mapping[str, Any]) -> list[dict[str, Any]]:
        messages = [dict(message) for message in super()._build_messages(example)]
        marks = example.get(_MARK)
        if marks is None:
            return messages
        for message, mark in zip(messages, marks, strict=True):
            message[_MARK] = mark is None or bool(mark)
        return messages

    def _process_single_message(self, index: int, message: dict[str, Any], *args: Any, **kwargs: Any) -> Any:
        learned = message.pop(_MARK, True)  # the template must not see it
        ids, loss_mask, *others = super()._process_single_message(index, message, *args, **kwargs)
        opening = list(self.generation_prompt)
        if message["role"] == "assistant" and ids[: len(opening)].tolist() != opening:
            raise ValueError(
                f"the chat template's generation prompt {self.tokenizer.decode(opening)!r} "
                f"does not begin the reply {self.tokenizer.decode(ids)!r:.200}: set another template as "
                "model.custom_chat_template"
            )
        return (ids, loss_mask if learned else loss_mask * 0, *others)

    def sanity_check(self, input_ids: Any, messages: Any, tools: Any, enable_thinking: Any) -> None:
        """Compare the messages encoded one by one with all encoded together.

        Raises:
            AssertionError: They differ by more than empty thoughts.
            ValueError: The template leaves a message out.
        """
        options = {**self.apply_chat_template_kwargs}
        if enable_thinking is not None:
            options["enable_thinking"] = enable_thinking
        whole = self.tokenizer.apply_chat_template(messages, tools=tools, tokenize=False, **options)
        for message in messages:
            content = message["content"]
            if isinstance(content, str) and content.strip() not in whole:
                raise ValueError(
                    f"the chat template omits a part of the {message['role']}'s message "
                    f"{content!r:.80}: set another template as model.custom_chat_template"
                )
        try:
            super().sanity_check(input_ids, messages, tools, enable_thinking)
        except AssertionError:
            alike = self.tokenizer(_EMPTY_THOUGHT.sub("", whole), add_special_tokens=False)["input_ids"]
            if list(alike) != input_ids.tolist():
                raise
