"""Recorded conversations as tokens with a loss mask: as the agent loop would have built them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from agentgym_gym.rollout import drop_blank_system
from verl_bridge._tokens.chat_template import Message, shared_chat
from verl_bridge._tokens.rendered import RenderedChat
from verl_bridge.tokens import TokenizedChat

__all__ = ["RecordedTokens", "encode_recorded", "marked_messages"]

_ASSISTANT, _USER = "assistant", "user"


class RecordedTokens(NamedTuple):
    """A conversation as a row of training.

    Attributes:
        ids: The tokens.
        mask: For each token, 1 if the model learns to emit it, otherwise 0.
    """

    ids: list[int]
    mask: list[int]


def marked_messages(row: Mapping[str, Any], column: str) -> list[Message]:
    """Return the messages of a row, each with its ``loss``: false excludes a reply; null is no mark.

    Args:
        row: A row of ``agentgym data sft``, or another one without marks.
        column: The column with the messages.

    Raises:
        ValueError: The number of marks differs from the number of messages.
    """
    messages = row[column]
    marks = row.get("loss") or [None] * len(messages)
    return [{**message, "loss": mark} for message, mark in zip(messages, marks, strict=True)]


def encode_recorded(
    tokenizer: Any, options: Mapping[str, Any] | None, messages: Sequence[Message]
) -> RecordedTokens:
    """Encode a conversation up to its last reply.

    The chat template renders the messages before the first reply to be learned as a prompt. A later reply
    is appended to the tokens before it, as in the agent loop with ``rows: episode``. A conversation with one
    reply to be learned is a row of ``rows: turn``.

    Args:
        tokenizer: A tokenizer of transformers with a chat template.
        options: Further template arguments, such as ``enable_thinking``, or None.
        messages: Messages of the system, the user and the assistant, with texts as content. A reply with
            ``"loss": False`` is not learned.

    Raises:
        ValueError: There is no reply to be learned, or messages and replies do not alternate after the first.
        UnstableTemplate: The template does not support the conversation.
    """
    messages = drop_blank_system(messages)
    replies = [at for at, message in enumerate(messages) if message["role"] == _ASSISTANT]
    learned = [at for at in replies if messages[at].get("loss") is not False]
    if not learned:
        raise ValueError("the conversation has no reply to be learned")
    first, last = learned[0], replies[-1]
    system = any(message["role"] == "system" for message in messages)
    kind = RenderedChat if first == last else TokenizedChat
    chat = shared_chat(kind, tokenizer, options, system=system)
    plain = [{"role": message["role"], "content": str(message["content"])} for message in messages]
    ids = chat.prompt([chat.hidden(message) for message in plain[:first]])
    mask = [0] * len(ids)
    for at in range(first, last + 1, 2):
        roles = [message["role"] for message in plain[at : at + 2]]
        if roles[: last + 1 - at] != [_ASSISTANT, _USER][: last + 1 - at]:
            raise ValueError(
                f"messages {at + 1} and {at + 2} of the conversation should be of {_ASSISTANT} and {_USER}, "
                f"not {' and '.join(roles)}"
            )
        reply = chat.emitted(plain[at]["content"])
        ids += reply
        mask += [int(at in learned)] * len(reply)
        if at < last and isinstance(chat, TokenizedChat):
            between = chat.after(reply, plain[at + 1]["content"])
            ids += between
            mask += [0] * len(between)
    return RecordedTokens(ids, mask)
