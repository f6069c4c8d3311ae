"""Whole conversations as tokens: the chat template's own rendering, as an inference server makes it.

Each prompt is rendered from its messages, so a template may change earlier turns: Qwen 3 removes their
reasoning, gpt-oss their analysis. :mod:`verl_bridge.tokens` continues a conversation token by token instead.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from agentgym_gym.rollout import NOT_CARRIED_OUT
from verl_bridge._tokens import reasoning
from verl_bridge._tokens.chat_template import (
    REPLY,
    USER,
    ChatTemplate,
    Message,
    UnstableTemplate,
    assistant,
    followed_by,
    user,
)
from verl_bridge._tokens.control import ControlTokens
from verl_bridge._tokens.observations import cut_in_the_middle, encode_within

__all__ = ["CalledFunction", "RenderedChat"]

_NAME, _ARGUMENT = "Name-83c5", "Argument-2d1b"
"""Placeholders for texts in made-up conversations; no template contains them."""

_CALL_MARKS = re.compile(
    r"<tool_call>|\[TOOL_CALLS\]|<\|python_tag\|>|<function_call>|<｜tool▁calls?▁begin｜>|```|\[?\s*\{"
)
"""How a call begins; what a reply has before the first mark is its text."""

_DECODER = json.JSONDecoder()


class CalledFunction(NamedTuple):
    """A function call in a reply.

    Attributes:
        name: The function.
        arguments: Its arguments.
    """

    name: str
    arguments: Mapping[str, Any]


class RenderedChat(ChatTemplate):
    """Encodes whole conversations with a chat template.

    Control tokens are intended in the template and in the messages of a row. In an observation they are
    plain text, and in a reply those are that the model cannot have written.

    Args:
        tokenizer: A tokenizer of transformers with a chat template.
        template_options: Further template arguments, such as ``enable_thinking``.
        system: Whether the conversations begin with a system message.
        tools: The functions that the model may call, as JSON schemas of OpenAI's API.

    Raises:
        UnstableTemplate: The template cannot render a conversation, or omits a part of it.
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
        opening, first = self._opening(self._checked, system=system)
        turns = [*opening, assistant(REPLY), user(USER)]
        rendered = self._checked(turns, REPLY)
        self.opens_reasoning = reasoning.opens(first.rpartition(USER)[2])
        self._control = ControlTokens(tokenizer, rendered)
        self._native = bool(tools)
        if tools:
            self._learn_calls(opening, rendered)

    @property
    def end_token(self) -> int | None:
        """The token that ends a text of the tokenizer, or None."""
        end = self._tokenizer.eos_token_id
        return None if end is None else int(end)

    def encode(self, messages: Sequence[Message]) -> list[int]:
        """Return the tokens of a conversation, ready for the model's next reply.

        Args:
            messages: The messages of a row, followed by results of `reply_message` and `answers`. The
                arguments of calls are JSON text, as in a request; templates get them as objects.

        Raises:
            UnstableTemplate: The template rejects the messages.
        """
        return self.prompt(list(map(_with_objects, messages)))

    def opening(self, messages: Sequence[Message], observation: str) -> list[Message]:
        """Return the messages of a row and the first observation."""
        return followed_by(messages, self._control.hide(observation))[0]

    def hide(self, text: str) -> str:
        """Return a text of an environment for a message, without control tokens."""
        return self._control.hide(text)

    def restore(self, message: Message) -> Message:
        """Return a message for a prompt with its own texts, where control tokens are not hidden."""
        restored: Message = _with_texts(message, self._control.restore)
        return restored

    def shortened(self, observation: str, limit: int) -> str:
        """Return an observation of at most `limit` tokens, shortened in the middle if it has more."""
        encode, plain = self._control.encode, self._control.plain
        return cut_in_the_middle(
            observation, encode_within(observation, limit, lambda text: encode(plain(text)))[1]
        )

    def reply_message(self, reply: Sequence[int], turn: int) -> tuple[Message, list[str]]:
        """Return a reply as the message of later prompts, and the ids of its calls.

        The message has the text after the reasoning. With tools, calls in JSON notation are calls of the
        message, as the parsers of inference servers make them; a reply without one is text.

        Args:
            reply: The tokens of the reply.
            turn: The number of the turn, from 0.
        """
        answer = self.answer(reply)
        calls, text = self._calls_in(answer) if self._native else ([], answer)
        if not calls:
            return assistant(self._hidden(answer)), []
        # Nine digits, because Mistral's templates require nine letters and digits.
        ids = [f"{turn % 100_000:05d}{number % 10_000:04d}" for number in range(len(calls))]
        made = [
            {
                "id": id_,
                "type": "function",
                "function": {
                    "name": self._hidden(call.name),
                    "arguments": json.dumps(self._hidden(call.arguments), ensure_ascii=False),
                },
            }
            for id_, call in zip(ids, calls, strict=True)
        ]
        return {"role": "assistant", "content": self._hidden(text), "tool_calls": made}, ids

    def answers(self, observation: str, ids: Sequence[str], played: int) -> list[Message]:
        """Return the messages with an observation: the user's, or the results of the last reply's calls.

        Args:
            observation: The observation.
            ids: The ids of the calls.
            played: The position of the executed one.
        """
        if not ids:
            return [user(self._control.hide(observation))]
        results = [NOT_CARRIED_OUT] * len(ids)
        results[min(played, len(ids) - 1)] = self._control.hide(observation)
        return [
            {"role": "tool", "tool_call_id": id_, "content": result}
            for id_, result in zip(ids, results, strict=True)
        ]

    def _hidden(self, value: Any) -> Any:
        """Hide the control tokens that a model cannot have written in all texts of a JSON value."""
        return _with_texts(value, lambda text: self._control.hide(text, self._spoken))

    def _checked(self, messages: Sequence[Message], last: str = USER) -> str:
        """Return the rendered messages, and check that the template writes them.

        Raises:
            UnstableTemplate: The template rejects the messages, or omits one.
        """
        rendered = self.render(messages)
        for text in (str(messages[0]["content"]), last):
            if text not in rendered:
                raise UnstableTemplate(
                    f"the chat template omits a message: of {text!r} it makes {rendered!r:.400}"
                )
        return rendered

    def _learn_calls(self, opening: Sequence[Message], text_only: str) -> None:
        """Learn from the template how a call is written.

        Args:
            opening: The messages before it.
            text_only: A rendered conversation without calls.

        Raises:
            UnstableTemplate: The template does not write calls, or their results.
        """
        function = {"name": _NAME, "arguments": {_ARGUMENT: "1"}}
        call = {"id": "000000000", "type": "function", "function": function}
        result: Message = {"role": "tool", "tool_call_id": "000000000", "content": REPLY}
        for self._no_text in ("", None):  # some templates take a message for text if its content is text
            reply: Message = {"role": "assistant", "content": self._no_text, "tool_calls": [call]}
            rendered = self.render([*opening, reply, result])
            if _NAME in rendered and _ARGUMENT in rendered and REPLY in rendered:
                break
        else:
            raise UnstableTemplate(
                f"the chat template does not write a function call and its result: it makes {rendered!r:.400}"
                "; use action_format='function_calling' without native tool calls"
            )
        control = self._control
        ids = [frozenset(control.encode(control.mark(each))) for each in (rendered, text_only)]
        self._removed -= (ids[0] - ids[1]) & control.ids
        between = rendered.partition(_NAME)[2].partition(_ARGUMENT)[0].rpartition("{")[0]
        words = r"\s*".join(map(re.escape, between.split()))
        self._call = re.compile(rf"([\w.:/-]+)\s*{words}\s*(?=\{{)")

    def _calls_in(self, answer: str) -> tuple[list[CalledFunction], str | None]:
        """Return the calls of a reply, and the text before the first."""
        calls, starts = list[CalledFunction](), list[int]()
        for start, name, at in self._places(answer):
            try:
                value, _ = _DECODER.raw_decode(answer, at)
            except (ValueError, RecursionError):
                continue
            call = _call_of(value) if name is None else CalledFunction(name, value)
            if call is not None:
                calls.append(call)
                starts.append(start)
        if not calls:
            return [], answer
        mark = _CALL_MARKS.search(answer)
        text = answer[: min(starts[0], mark.start() if mark else starts[0])].rstrip()
        return calls, text or self._no_text

    def _places(self, answer: str) -> list[tuple[int, str | None, int]]:
        """Return possible calls: their starts, names if these are before the JSON, and its start."""
        places: list[tuple[int, str | None, int]] = [
            (match.start(), match[1], match.end()) for match in self._call.finditer(answer)
        ]
        return places or [(at.start(), None, at.start()) for at in re.finditer(r"\{(?=\s*\")", answer)]


def _with_objects(message: Message) -> Message:
    """Return a message with the arguments of its calls as objects, as inference servers pass them on."""
    if not message.get("tool_calls"):
        return message
    calls = [
        {**call, "function": {**call["function"], "arguments": json.loads(call["function"]["arguments"])}}
        for call in message["tool_calls"]
    ]
    return {**message, "tool_calls": calls}


def _call_of(value: Any) -> CalledFunction | None:
    """Return the call in a JSON value, or None if it is none."""
    if not isinstance(value, dict) or not isinstance(value.get("name"), str):
        return None
    arguments = value.get("arguments", value.get("parameters"))
    return CalledFunction(value["name"], arguments) if isinstance(arguments, dict) else None


def _with_texts(value: Any, convert: Callable[[str], str]) -> Any:
    """Return a JSON value with all texts in it converted, except names of mappings."""
    if isinstance(value, str):
        return convert(value)
    if isinstance(value, Mapping):
        return {name: _with_texts(each, convert) for name, each in value.items()}
    return [_with_texts(each, convert) for each in value] if isinstance(value, list) else value
