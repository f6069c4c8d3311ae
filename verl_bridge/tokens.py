"""A conversation, token by token: the model's tokens are kept, and observations are inserted.

The tokens between two turns of the model are taken from the chat template by a made-up conversation, so that
nothing the model wrote is rendered or encoded again. A template may change earlier turns, for example remove
their thinking. Here they stay as the model emitted them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

__all__ = ["Conversation", "UnstableTemplate"]

Message = Mapping[str, Any]

_REPLY = "Reply-7f3a"
"""Stands for what a model wrote; nothing that a template writes by itself."""


class UnstableTemplate(ValueError):
    """A chat template changes earlier messages as a conversation goes on, so none can be continued."""


class Conversation:
    """The chat template of a tokenizer, as prompts and as what stands between two replies.

    Args:
        tokenizer: A tokenizer of transformers with a chat template.
        template_options: What the template is given besides messages, such as ``enable_thinking``.
        system: Whether the conversations begin with a system message.

    Raises:
        UnstableTemplate: Conversations by this template cannot be continued.
    """

    def __init__(
        self, tokenizer: Any, template_options: Mapping[str, Any] | None = None, *, system: bool = True
    ) -> None:
        self._tokenizer = tokenizer
        self._options = dict(template_options or {})
        self._opening: list[Message] = [{"role": "system", "content": "s"}] if system else []
        self._opening.append({"role": "user", "content": "u"})
        self._check()
        until_observation = _common(self._between("1"), self._between("z"))
        eos = tokenizer.eos_token_id
        # Up to its end token a turn is the model's, who may leave out what the template writes before it.
        closing = until_observation.index(eos) + 1 if eos in until_observation else 1
        self._closing = until_observation[:closing]

    @property
    def end_token(self) -> int | None:
        """The token that ends the model's turns by the template, or None if it has none."""
        return self._closing[-1] if self._closing else None

    def prompt(self, messages: Sequence[Message]) -> list[int]:
        """Return the tokens of a conversation that the model is to go on with."""
        return self._encode(self._render(messages, reply=True))

    def after(self, reply: Sequence[int], observation: str) -> list[int]:
        """Return the tokens that lead from a reply to the next one.

        The end of the model's turn, if it did not end it itself, whatever the template puts between turns,
        the observation as the user's message, and what the template lets a reply begin with.

        Args:
            reply: The tokens that the model emitted, as they are.
            observation: What the environment said.
        """
        between = self._between(observation)
        ended = bool(reply) and reply[-1] == self.end_token
        return between[len(self._closing) :] if ended else between

    def text(self, reply: Sequence[int]) -> str:
        """Return what the model wrote, without control tokens."""
        decoded = self._tokenizer.decode(
            list(reply), skip_special_tokens=True, clean_up_tokenization_spaces=False
        )
        return str(decoded)

    def _between(self, observation: str) -> list[int]:
        turns = [*self._opening, _assistant(_REPLY), {"role": "user", "content": observation}]
        whole = self._render(turns, reply=True)
        head = whole[: whole.index(_REPLY) + len(_REPLY)]
        whole_ids, head_ids = self._encode(whole), self._encode(head)
        if whole_ids[: len(head_ids)] != head_ids:
            raise UnstableTemplate(
                "the tokenizer joins the end of a reply with what the chat template puts after it: set a "
                "template that ends turns with a control token"
            )
        return whole_ids[len(head_ids) :]

    def _check(self) -> None:
        """See that messages stay as they were when more follow, at any place in the conversation."""
        first = self._render(self._opening, reply=False)
        observation = {"role": "user", "content": "o"}
        second = self._render([*self._opening, _assistant(_REPLY), observation], reply=True)
        third = self._render(
            [*self._opening, _assistant("r"), observation, _assistant(_REPLY), observation], reply=True
        )
        if not second.startswith(first) or not third.startswith(first):
            raise UnstableTemplate(
                "the chat template writes the first messages otherwise once others follow: set one that only "
                f"appends. It gives {first!r} alone, and later {second[: len(first)]!r}"
            )
        if second.count(_REPLY) != 1 or third.count(_REPLY) != 1:
            raise UnstableTemplate(
                f"the chat template does not write a reply as it was given once: it makes {second!r} of the "
                f"reply {_REPLY!r}"
            )
        if second.partition(_REPLY)[2] != third.partition(_REPLY)[2]:
            raise UnstableTemplate(
                "what the chat template puts after a reply depends on how many came before: set one that "
                f"does not. After the first it is {second.partition(_REPLY)[2]!r}, after the second "
                f"{third.partition(_REPLY)[2]!r}"
            )

    def _render(self, messages: Sequence[Message], *, reply: bool) -> str:
        rendered = self._tokenizer.apply_chat_template(
            list(messages), add_generation_prompt=reply, tokenize=False, **self._options
        )
        return str(rendered)

    def _encode(self, text: str) -> list[int]:
        # As the tokenizer does it itself for a template, which writes all control tokens out.
        return [int(token) for token in self._tokenizer.encode(text, add_special_tokens=False)]


def _assistant(content: str) -> Message:
    return {"role": "assistant", "content": content}


def _common(one: Iterable[int], other: Iterable[int]) -> list[int]:
    common = []
    for left, right in zip(one, other, strict=False):
        if left != right:
            break
        common.append(left)
    return common
