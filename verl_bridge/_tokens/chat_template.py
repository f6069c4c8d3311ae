"""A tokenizer's chat template: it renders messages; and the model's reply as text."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from agentgym_gym.rollout import merge_system
from verl_bridge._tokens import reasoning

__all__ = [
    "REPLY",
    "SYSTEM",
    "USER",
    "ChatTemplate",
    "Message",
    "UnstableTemplate",
    "assistant",
    "followed_by",
    "shared",
    "user",
]

Message = Mapping[str, Any]
Chat = TypeVar("Chat", bound="ChatTemplate")
T = TypeVar("T")

REPLY, USER, SYSTEM = "Reply-7f3a", "User-51c8", "System-9be2"
"""Placeholders for texts in made-up conversations; no template contains them."""

_log = logging.getLogger(__name__)


class UnstableTemplate(ValueError):
    """The chat template does not support starting or continuing a conversation."""


class ChatTemplate:
    """Renders messages with the chat template of a tokenizer.

    Args:
        tokenizer: A tokenizer of transformers with a chat template.
        template_options: Further template arguments, such as ``enable_thinking``.
        tools: The functions that the model may call, as JSON schemas of OpenAI's API.

    Attributes:
        merges_system: Whether the system message is merged into the first user message.
        reason: Why it is merged; empty if it is not.
        opens_reasoning: Whether the template begins each reply with the opening delimiter of reasoning.
    """

    merges_system = False
    reason = ""
    opens_reasoning = False

    def __init__(
        self,
        tokenizer: Any,
        template_options: Mapping[str, Any] | None = None,
        *,
        tools: Sequence[Mapping[str, Any]] = (),
    ) -> None:
        self._tokenizer = tokenizer
        self._options = dict(template_options or {})
        if tools:
            self._options["tools"] = list(tools)
        added = dict(tokenizer.added_tokens_decoder)
        special = {*tokenizer.all_special_ids, *(id_ for id_, token in added.items() if token.special)}
        self._removed = special - {id_ for id_, token in added.items() if token.content in reasoning.TOKENS}

    def _opening(self, check: Callable[[Sequence[Message]], T], *, system: bool) -> tuple[list[Message], T]:
        """Return messages that open a conversation, of placeholders, and the result of a check of them.

        If the check fails with a system message, the system message is merged.

        Args:
            check: Checks the template with the messages.
            system: Whether the conversation begins with a system message.

        Raises:
            UnstableTemplate: The check fails.
        """
        opening: list[Message] = [{"role": "system", "content": SYSTEM}] if system else []
        opening.append(user(USER))
        try:
            return opening, check(opening)
        except UnstableTemplate as error:
            if not system:
                raise
            self.merges_system, self.reason = True, str(error)
            return opening, check(opening)

    def prepared(self, messages: Sequence[Message]) -> list[Message]:
        """Return the messages with the system message merged, if the template does not support one."""
        return merge_system(messages) if self.merges_system else list(messages)

    def render(self, messages: Sequence[Message]) -> str:
        """Return a conversation as text, ready for the model's next reply.

        Raises:
            UnstableTemplate: The template rejects the messages.
        """
        shown = self.prepared(messages)
        try:
            rendered = self._tokenizer.apply_chat_template(
                list(shown), add_generation_prompt=True, tokenize=False, **self._options
            )
        except Exception as error:  # a template may raise any error, mostly jinja's
            roles = ", ".join(str(message.get("role")) for message in shown)
            raise UnstableTemplate(
                f"the chat template rejects messages of {roles}: {type(error).__name__}: {error}"
            ) from error
        return str(rendered)

    def text(self, reply: Sequence[int]) -> str:
        """Return the model's text with the delimiters of its reasoning, but no other control tokens."""
        decoded = self._tokenizer.decode(
            [token for token in reply if token not in self._removed],
            skip_special_tokens=False,
            clean_up_tokenization_spaces=False,
        )
        return str(decoded)

    def answer(self, reply: Sequence[int]) -> str:
        """Return the model's text after its reasoning."""
        text = self.text(reply)
        start, end = reasoning.span(text, opened=self.opens_reasoning)
        return text[start:end].strip() if (start, end) != (0, len(text)) else text


_chats: dict[tuple[Any, ...], Any] = {}


def shared(
    kind: Callable[..., Chat],
    tokenizer: Any,
    options: Any,
    *,
    system: bool,
    tools: Sequence[Mapping[str, Any]] = (),
) -> Chat:
    """Return the chat template of a tokenizer, made once for all samples of a worker.

    Args:
        kind: Its class.
        tokenizer: A tokenizer of transformers with a chat template.
        options: Further template arguments, or None.
        system: Whether conversations begin with a system message.
        tools: The functions that the model may call.

    Raises:
        UnstableTemplate: The template does not support the conversations.
    """
    options = dict(options or {})
    template = str(tokenizer.chat_template)
    # The result references its tokenizer, so the id stays unique.
    key = (kind, id(tokenizer), template, json.dumps([options, tools], sort_keys=True, default=str), system)
    if key not in _chats:
        _chats[key] = made = kind(tokenizer, options, system=system, tools=tools)
        if made.merges_system:
            _log.warning(
                "the system message is put at the beginning of the first user message, because %s",
                made.reason,
            )
    chat: Chat = _chats[key]
    return chat


def user(content: str) -> Message:
    """Return a message of the user."""
    return {"role": "user", "content": content}


def assistant(content: str) -> Message:
    """Return a message of the model."""
    return {"role": "assistant", "content": content}


def followed_by(messages: Sequence[Message], observation: str) -> tuple[list[Message], bool]:
    """Append an observation; return the messages, and whether it was merged into a last user message."""
    last = messages[-1] if messages else {}
    if last.get("role") == "user" and isinstance(last.get("content"), str):
        return [*messages[:-1], {**last, "content": f"{last['content']}\n\n{observation}"}], True
    return [*messages, user(observation)], False
