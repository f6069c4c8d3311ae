"""Build a conversation token by token: keep the model's tokens, and insert observations between them.

The tokens between two turns of the model are derived from the chat template with a made-up conversation, so
that the model's text is never rendered or encoded again. A template may change earlier turns, for example
remove their reasoning. Here they stay as the model emitted them, unless
:meth:`TokenizedChat.without_reasoning` is called. Observations are inserted after the template is rendered,
so that neither the template nor the tokenizer can interpret them as markup (``verl_bridge._tokens.control``).
"""

from __future__ import annotations

import secrets
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from verl_bridge._tokens import reasoning
from verl_bridge._tokens.chat_template import (
    REPLY,
    SYSTEM,
    USER,
    ChatTemplate,
    Message,
    UnstableTemplate,
    assistant,
    followed_by,
    user,
)
from verl_bridge._tokens.control import ControlTokens
from verl_bridge._tokens.observations import encode_within
from verl_bridge._tokens.tool_turns import ToolTurns
from verl_bridge._tokens.turn_frame import PROBE, TRIMS, TurnFrame

__all__ = ["TokenizedChat", "UnstableTemplate"]

_OBSERVATION = "Seen-40d6"
"""Placeholder for an observation; no template contains it."""


class TokenizedChat(ChatTemplate):
    """The chat template of a tokenizer, as tokens for prompts and for the text between two replies.

    A template may not support a system message, lose it, or move it when more messages follow. Then the text
    of the system message is put at the beginning of the first user message.

    Args:
        tokenizer: A tokenizer of transformers with a chat template.
        template_options: Further template arguments, such as ``enable_thinking``.
        system: Whether the conversations begin with a system message.
        tools: The functions that the model may call, as JSON schemas of OpenAI's API. The template writes
            them into the prompt; the observation after a call is a message of the role ``tool``.

    Attributes:
        opened: Tokens that the template writes at the beginning of a reply, and removes from earlier turns.

    Raises:
        UnstableTemplate: The template does not support continuing a conversation.
    """

    def __init__(
        self,
        tokenizer: Any,
        template_options: Mapping[str, Any] | None = None,
        *,
        system: bool = True,
        tools: Sequence[Mapping[str, Any]] = (),
    ) -> None:
        super().__init__(tokenizer, template_options, tools=tools)
        opening, (first, second) = self._opening(self._checked, system=system)
        until_reply, _, after_reply = second.partition(REPLY)
        closing, _, ending = after_reply.partition(_OBSERVATION)
        self._trim = self._trimmed_by(opening, second)
        self._control = ControlTokens(tokenizer, second)
        self._frame = frame = TurnFrame(self._control, REPLY, closing, ending, self._trim)
        if frame.joins:
            raise UnstableTemplate(
                "the tokenizer joins the end of a reply with the chat template's text after it: set a "
                "template that ends turns with a control token"
            )
        until_observation = _common_prefix(frame.encode("1"), frame.encode("z"))
        eos = tokenizer.eos_token_id
        # The turn is the model's up to its end token, and the model may omit the template's text before that.
        until_end = until_observation.index(eos) + 1 if eos in until_observation else 1
        frame.closing = until_observation[:until_end]
        generation_prompt, earlier = first.partition(USER)[2], until_reply.partition(USER)[2]
        self.opens_reasoning = reasoning.opens(generation_prompt)
        self.opened = []
        if generation_prompt.startswith(earlier):
            self.opened = self._marked(generation_prompt)[len(self._marked(earlier)) :]
        self._tool_turns = self._tool_turns_of(opening, first, earlier) if tools else None
        if self._tool_turns is not None:
            self._removed -= self._tool_turns.control_ids

    @property
    def end_token(self) -> int | None:
        """The token that ends the model's turns in the template, or None if it has none."""
        return self._frame.closing[-1] if self._frame.closing else None

    def begin(
        self, messages: Sequence[Message], observation: str, limit: int | None = None
    ) -> tuple[list[int], int]:
        """Return the tokens of a row's messages and the first observation.

        Args:
            messages: The messages; control tokens in them are intended.
            observation: The first observation: a user message, or the end of the last message if that is the
                user's too.
            limit: Maximum number of tokens in total. A longer observation is shortened in the middle.

        Returns:
            The tokens, and how many characters of the observation they contain. There are more tokens than
            `limit` only if the messages by themselves have too many.

        Raises:
            UnstableTemplate: The template rejects the messages, or omits the last.
        """
        placeholder = f"Seen-{secrets.token_hex(8)}"
        shown, joined = followed_by(self.prepared(messages), placeholder)
        rendered = self.render(shown)
        before, found, rest = rendered.partition(placeholder)
        if not found or placeholder in rest:
            raise UnstableTemplate(
                f"the chat template does not write the first observation once: it makes {rendered!r:.400}"
            )
        before, rest = self._control.mark(before), self._control.mark(rest)

        def encode(text: str) -> list[int]:
            trimmed = self._trim(f"x{text}")[1:] if joined else self._trim(text)
            return self._control.encode(before + self._control.plain(trimmed) + rest)

        return encode_within(observation, limit, encode)

    def after(
        self,
        reply: Sequence[int],
        observation: str,
        limit: int | None = None,
        *,
        calls: int = 1,
        played: int = 0,
    ) -> list[int]:
        """Return the tokens between a reply and the next one.

        These are the end of the model's turn (unless the model wrote it itself), the template's text between
        turns, the observation as a user message, and the template's beginning of a reply. If there are tools
        and the reply has a call, the observation is the result of the call.

        Args:
            reply: The tokens as emitted by the model.
            observation: The observation.
            limit: Maximum tokens of the observation; a longer one is shortened in the middle.
            calls: Number of calls in a reply with calls. Each has a result.
            played: Position of the executed one, whose result is the observation.

        Raises:
            UnstableTemplate: The template's text between several calls and their results is not known.
        """
        frame, turns = self._frame, self._tool_turns
        if turns is not None and turns.is_call(self.answer(reply)):
            frame = turns.frame(calls, played)
        between = frame.encode_within(observation, limit)
        ended = bool(reply) and reply[-1] == self.end_token
        return between[len(frame.closing) :] if ended else between

    def without_reasoning(self, reply: Sequence[int]) -> list[int]:
        """Return the tokens of a reply after its reasoning, as emitted by the model."""
        start, end = reasoning.span(text := self.text(reply), opened=self.opens_reasoning)
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

    def _tool_turns_of(self, opening: Sequence[Message], first: str, header: str) -> ToolTurns:
        name = str(self._options["tools"][0].get("function", {}).get("name"))
        if name not in first:
            raise UnstableTemplate(
                f"the chat template does not write the tools, such as {name!r}: use a model with tools, or "
                "action_format='function_calling' without native tool calls"
            )
        if self.end_token not in self._control.ids:
            raise UnstableTemplate(
                "the chat template ends the model's turns without a control token: use "
                "action_format='function_calling' without native tool calls"
            )
        end = str(self._tokenizer.added_tokens_decoder[self.end_token].content)
        return ToolTurns(lambda turns: self.render([*opening, *turns]), header, self._control, end)

    def _marked(self, text: str) -> list[int]:
        return self._control.encode(self._control.mark(text))

    def _checked(self, opening: Sequence[Message]) -> tuple[str, str]:
        """Check that the template does not change earlier messages when more follow.

        Returns:
            The opening as rendered by the template, and the opening followed by a reply and an observation.
        """
        seen = user(_OBSERVATION)
        first = self.render(opening)
        second = self.render([*opening, assistant(REPLY), seen])
        third = self.render([*opening, assistant("r"), user("o"), assistant(REPLY), seen])
        if second.count(REPLY) != 1 or third.count(REPLY) != 1:
            raise UnstableTemplate(
                f"the chat template does not write a reply once and unchanged: it makes {second!r} of the "
                f"reply {REPLY!r}"
            )
        for message in opening:
            content = str(message["content"])
            if first.count(content) != 1:
                raise UnstableTemplate(
                    f"the chat template does not write the {message['role']}'s message once and unchanged: "
                    f"it makes {first!r} of {content!r}"
                )
        until = first.index(USER) + len(USER)
        if not first[:until] == second[:until] == third[:until] or SYSTEM in first[until:]:
            raise UnstableTemplate(
                "the chat template changes the first messages when others follow: set one that only appends. "
                f"It writes {first[:until]!r}, and with more messages {second[:until]!r}"
            )
        after, later = second.partition(REPLY)[2], third.partition(REPLY)[2]
        if after != later:
            raise UnstableTemplate(
                "the chat template's text after a reply depends on how many came before: set a template "
                f"without this. After the first it is {after!r}, after the second {later!r}"
            )
        if after.count(_OBSERVATION) != 1:
            raise UnstableTemplate(
                "the chat template does not write the user's message once and unchanged: it makes "
                f"{after!r} of {_OBSERVATION!r}"
            )
        return first, second

    def _trimmed_by(self, opening: Sequence[Message], second: str) -> Callable[[str], str]:
        """Return how the template changes a user message; it may only trim it."""
        before, _, rest = second.partition(_OBSERVATION)
        rendered = self.render([*opening, assistant(REPLY), user(PROBE)])
        for trim in TRIMS:
            if rendered == before + trim(PROBE) + rest:
                return trim
        raise UnstableTemplate(
            f"the chat template changes user messages: it makes {rendered[len(before) :]!r} of {PROBE!r}"
        )


def _common_prefix(one: Iterable[int], other: Iterable[int]) -> list[int]:
    common = []
    for left, right in zip(one, other, strict=False):
        if left != right:
            break
        common.append(left)
    return common
