"""A conversation, token by token: the model's tokens are kept, and observations are inserted.

The tokens between two turns of the model are taken from the chat template by a made-up conversation, so that
nothing the model wrote is rendered or encoded again. A template may change earlier turns, for example remove
their reasoning. Here they stay as the model emitted them, unless :meth:`TokenizedChat.without_reasoning` is
asked. What an environment says is put into the rendered text afterwards, so that the template cannot take it
for anything but words, and the tokenizer neither (``verl_bridge._control_tokens``).
"""

from __future__ import annotations

import json
import logging
import secrets
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from verl_bridge import _reasoning as reasoning
from verl_bridge._control_tokens import ControlTokens
from verl_bridge._observations import encode_within

__all__ = ["TokenizedChat", "UnstableTemplate", "conversation_of"]

Message = Mapping[str, Any]

_REPLY, _USER, _SYSTEM, _SEEN = "Reply-7f3a", "User-51c8", "System-9be2", "Seen-40d6"
"""Stand for what is said in the made-up conversation; nothing that a template writes by itself."""

_BLANKS = "\n \t"
_TRIMS: tuple[Callable[[str], str], ...] = (
    lambda text: text,
    str.strip,
    str.rstrip,
    str.lstrip,
    lambda text: text.strip("\n"),
    lambda text: text.rstrip("\n"),
    lambda text: text.lstrip("\n"),
)
"""What templates do to a user's message."""

_log = logging.getLogger(__name__)


class UnstableTemplate(ValueError):
    """Conversations by a chat template cannot be begun, or not be continued."""


class TokenizedChat:
    """The chat template of a tokenizer, as prompts and as what stands between two replies.

    A template that takes no system message, loses it, or moves it as the conversation goes on, is given its
    text at the beginning of the first user's message.

    Args:
        tokenizer: A tokenizer of transformers with a chat template.
        template_options: What the template is given besides messages, such as ``enable_thinking``.
        system: Whether the conversations begin with a system message.

    Attributes:
        merges_system: Whether the system message becomes part of the first user's message.
        reason: Why it does; empty if it does not.
        opened: Tokens that the template lets a reply begin with, and takes out of earlier turns.

    Raises:
        UnstableTemplate: Conversations by this template cannot be continued.
    """

    def __init__(
        self, tokenizer: Any, template_options: Mapping[str, Any] | None = None, *, system: bool = True
    ) -> None:
        self._tokenizer = tokenizer
        self._options = dict(template_options or {})
        added = dict(tokenizer.added_tokens_decoder)
        special = {*tokenizer.all_special_ids, *(id_ for id_, token in added.items() if token.special)}
        self._unsaid = special - {id_ for id_, token in added.items() if token.content in reasoning.TOKENS}
        self.merges_system, self.reason = False, ""
        opening: list[Message] = [{"role": "system", "content": _SYSTEM}] if system else []
        opening.append(_user(_USER))
        try:
            first, second = self._checked(opening)
        except UnstableTemplate as error:
            if not system:
                raise
            self.merges_system, self.reason = True, str(error)
            first, second = self._checked(opening)
        until_reply, _, after_reply = second.partition(_REPLY)
        closing, _, ending = after_reply.partition(_SEEN)
        self._trim = self._trimmed_by(opening, second)
        self._control = ControlTokens(tokenizer, second)
        self._before = self._control.mark(_REPLY + closing)
        self._behind = self._control.mark(ending)
        self._anchor = len(self._control.encode(_REPLY))
        self._check_joints()
        until_observation = _common(self._between("1"), self._between("z"))
        eos = tokenizer.eos_token_id
        # Up to its end token a turn is the model's, who may leave out what the template writes before it.
        until_end = until_observation.index(eos) + 1 if eos in until_observation else 1
        self._closing = until_observation[:until_end]
        self._frame = len(self._between(""))
        asked, earlier = first.partition(_USER)[2], until_reply.partition(_USER)[2]
        self._opens = reasoning.opens(asked)
        self.opened = self._marked(asked)[len(self._marked(earlier)) :] if asked.startswith(earlier) else []

    @property
    def end_token(self) -> int | None:
        """The token that ends the model's turns by the template, or None if it has none."""
        return self._closing[-1] if self._closing else None

    def prepared(self, messages: Sequence[Message]) -> list[Message]:
        """Return the messages as the template takes them: without one of the system, if it takes none."""
        return _merged(messages) if self.merges_system else list(messages)

    def prompt(self, messages: Sequence[Message]) -> list[int]:
        """Return the tokens of a conversation that the model is to go on with."""
        return self._marked(self._render(messages))

    def begin(
        self, messages: Sequence[Message], observation: str, limit: int | None = None
    ) -> tuple[list[int], int]:
        """Return the tokens of the messages of a row and the first observation.

        Args:
            messages: The messages, in which control tokens are meant as such.
            observation: What the environment said: the user's message, or the end of it if the last of the
                messages is the user's too.
            limit: Tokens that there may be in all. A longer observation is cut in the middle.

        Returns:
            The tokens, and the characters of the observation that are in them. There are more tokens than
            `limit` only if there are too many without the observation.

        Raises:
            UnstableTemplate: The template refuses the messages, or does not write the last.
        """
        stand_in = f"Seen-{secrets.token_hex(8)}"
        shown, joined = _followed_by(self.prepared(messages), stand_in)
        rendered = self._render(shown)
        before, found, behind = rendered.partition(stand_in)
        if not found or stand_in in behind:
            raise UnstableTemplate(
                f"the chat template does not write the first observation once: it makes {rendered!r:.400}"
            )
        before, behind = self._control.mark(before), self._control.mark(behind)

        def encode(text: str) -> list[int]:
            trimmed = self._trim(f"x{text}")[1:] if joined else self._trim(text)
            return self._control.encode(before + self._control.plain(trimmed) + behind)

        return encode_within(observation, limit, encode)

    def after(self, reply: Sequence[int], observation: str, limit: int | None = None) -> list[int]:
        """Return the tokens that lead from a reply to the next one.

        The end of the model's turn, if it did not end it itself, whatever the template puts between turns,
        the observation as the user's message, and what the template lets a reply begin with.

        Args:
            reply: The tokens that the model emitted, as they are.
            observation: What the environment said.
            limit: Tokens that the observation may have; a longer one is cut in the middle.
        """
        most = None if limit is None else self._frame + limit
        between, _ = encode_within(observation, most, self._between)
        ended = bool(reply) and reply[-1] == self.end_token
        return between[len(self._closing) :] if ended else between

    def text(self, reply: Sequence[int]) -> str:
        """Return what the model wrote, without control tokens but those by which it marks its reasoning."""
        decoded = self._tokenizer.decode(
            [token for token in reply if token not in self._unsaid],
            skip_special_tokens=False,
            clean_up_tokenization_spaces=False,
        )
        return str(decoded)

    def answer(self, reply: Sequence[int]) -> str:
        """Return what the model wrote behind its reasoning."""
        text = self.text(reply)
        start, end = reasoning.span(text, opened=self._opens)
        return text[start:end].strip() if (start, end) != (0, len(text)) else text

    def without_reasoning(self, reply: Sequence[int]) -> list[int]:
        """Return the tokens of a reply that stand behind its reasoning, as the model emitted them."""
        start, end = reasoning.span(text := self.text(reply), opened=self._opens)
        if (start, end) == (0, len(text)):
            return list(reply)
        places = range(len(reply) + 1)
        first = bisect_left(places, start, key=lambda place: len(self.text(reply[:place])))
        last = bisect_right(places, end, key=lambda place: len(self.text(reply[:place]))) - 1
        while first < last and self.text(reply[first : first + 1]).isspace():
            first += 1
        kept = list(reply[first:last])
        ended = reply[-1:] if reply and reply[-1] == self.end_token else []
        return kept if kept[-1:] == list(ended) else [*kept, *ended]

    def _between(self, observation: str) -> list[int]:
        said = self._control.plain(self._trim(observation))
        return self._control.encode(self._before + said + self._behind)[self._anchor :]

    def _marked(self, text: str) -> list[int]:
        return self._control.encode(self._control.mark(text))

    def _checked(self, opening: Sequence[Message]) -> tuple[str, str]:
        """See that messages stay as they were when more follow, at any place in the conversation.

        Returns:
            The opening as the template writes it, and the opening followed by a reply and an observation.
        """
        seen = _user(_SEEN)
        first = self._render(opening)
        second = self._render([*opening, _assistant(_REPLY), seen])
        third = self._render([*opening, _assistant("r"), _user("o"), _assistant(_REPLY), seen])
        if second.count(_REPLY) != 1 or third.count(_REPLY) != 1:
            raise UnstableTemplate(
                f"the chat template does not write a reply as it was given once: it makes {second!r} of the "
                f"reply {_REPLY!r}"
            )
        for message in opening:
            said = str(message["content"])
            if first.count(said) != 1:
                raise UnstableTemplate(
                    f"the chat template does not write the {message['role']}'s message as it was given once: "
                    f"it makes {first!r} of {said!r}"
                )
        until = first.index(_USER) + len(_USER)
        if not first[:until] == second[:until] == third[:until] or _SYSTEM in first[until:]:
            raise UnstableTemplate(
                "the chat template writes the first messages otherwise once others follow: set one that only "
                f"appends. It gives {first[:until]!r} alone, and later {second[:until]!r}"
            )
        after, later = second.partition(_REPLY)[2], third.partition(_REPLY)[2]
        if after != later:
            raise UnstableTemplate(
                "what the chat template puts after a reply depends on how many came before: set one that "
                f"does not. After the first it is {after!r}, after the second {later!r}"
            )
        if after.count(_SEEN) != 1:
            raise UnstableTemplate(
                "the chat template does not write the user's message as it was given once: it makes "
                f"{after!r} of {_SEEN!r}"
            )
        return first, second

    def _trimmed_by(self, opening: Sequence[Message], second: str) -> Callable[[str], str]:
        """Return what the template does to a user's message, which may be to trim it and nothing else."""
        probe = f'{_BLANKS}<b> & "{_SEEN}" {{{{ 1 }}}} \\n{_BLANKS[::-1]}'
        before, _, behind = second.partition(_SEEN)
        rendered = self._render([*opening, _assistant(_REPLY), _user(probe)])
        for trim in _TRIMS:
            if rendered == before + trim(probe) + behind:
                return trim
        raise UnstableTemplate(
            f"the chat template changes what a user says: it makes {rendered[len(before) :]!r} of {probe!r}"
        )

    def _check_joints(self) -> None:
        reply = self._control.encode(_REPLY)
        for observation in ("1", "z", " ", ""):
            said = self._control.plain(self._trim(observation))
            if self._control.encode(self._before + said + self._behind)[: self._anchor] != reply:
                raise UnstableTemplate(
                    "the tokenizer joins the end of a reply with what the chat template puts after it: set a "
                    "template that ends turns with a control token"
                )

    def _render(self, messages: Sequence[Message]) -> str:
        shown = self.prepared(messages)
        try:
            rendered = self._tokenizer.apply_chat_template(
                list(shown), add_generation_prompt=True, tokenize=False, **self._options
            )
        except Exception as error:  # a template may raise anything, jinja's errors above all
            roles = ", ".join(str(message.get("role")) for message in shown)
            raise UnstableTemplate(
                f"the chat template refuses messages of {roles}: {type(error).__name__}: {error}"
            ) from error
        return str(rendered)


_conversations: dict[tuple[Any, ...], TokenizedChat] = {}


def conversation_of(tokenizer: Any, options: Any, *, system: bool) -> TokenizedChat:
    """Return the conversation for a tokenizer, the same for all samples of a worker.

    Args:
        tokenizer: A tokenizer of transformers with a chat template.
        options: What the template is given besides messages, or None.
        system: Whether the conversation begins with a system message.

    Raises:
        UnstableTemplate: Conversations by this template cannot be continued.
    """
    options = dict(options or {})
    template = str(tokenizer.chat_template)
    # It keeps its tokenizer, so an id stays its own.
    key = (id(tokenizer), template, json.dumps(options, sort_keys=True, default=str), system)
    if key not in _conversations:
        _conversations[key] = made = TokenizedChat(tokenizer, options, system=system)
        if made.merges_system:
            _log.warning(
                "the system message is put at the beginning of the first user's message, because %s",
                made.reason,
            )
    return _conversations[key]


def _user(content: str) -> Message:
    return {"role": "user", "content": content}


def _assistant(content: str) -> Message:
    return {"role": "assistant", "content": content}


def _merged(messages: Sequence[Message]) -> list[Message]:
    """Return the messages with the first of the system at the beginning of the user's message after it."""
    if not messages or messages[0].get("role") != "system":
        return list(messages)
    first, *others = messages
    if others and others[0].get("role") == "user" and isinstance(others[0].get("content"), str):
        said = others.pop(0)["content"]
        return [_user(f"{first['content']}\n\n{said}"), *others]
    return [_user(str(first["content"])), *others]


def _followed_by(messages: Sequence[Message], observation: str) -> tuple[list[Message], bool]:
    """Return the messages and the observation, in one message if the last is the user's too; and if it is."""
    last = messages[-1] if messages else {}
    if last.get("role") == "user" and isinstance(last.get("content"), str):
        return [*messages[:-1], {**last, "content": f"{last['content']}\n\n{observation}"}], True
    return [*messages, _user(observation)], False


def _common(one: Iterable[int], other: Iterable[int]) -> list[int]:
    common = []
    for left, right in zip(one, other, strict=False):
        if left != right:
            break
        common.append(left)
    return common
