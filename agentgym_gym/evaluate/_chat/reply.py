"""Parses replies of a model server: completions, context overflows, filtered content and errors."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from agentgym_gym._text import scrub, shown
from agentgym_gym.actions import ToolCall
from agentgym_gym.errors import BadCompletion, ModelBusy, ModelError
from agentgym_gym.rollout._records import StepRecord

__all__ = [
    "ChatToolCall",
    "Completion",
    "context_window",
    "error_codes",
    "error_message",
    "error_params",
    "error_texts",
    "is_overflow",
    "parse_json",
    "read_completion",
    "text_of",
    "without_thinking",
]

MAX_MESSAGE_CHARS = 500
_MAX_SEARCHED_CHARS = 4_000

_OVERFLOW_CODES = frozenset(
    {
        "context_length_exceeded",  # OpenAI, and gateways
        "exceed_context_size_error",  # llama.cpp
        "model_context_window_exceeded",
        "model_max_prompt_tokens_exceeded",
    }
)
_OVERFLOW = re.compile(
    # OpenAI, DeepSeek, OpenRouter, vLLM; sglang ("exceeds the model's maximum context length of …").
    r"maximum context length (?:is|of) \(?\d"
    r"|exceeds? (?:the )?model'?s? maximum context length"
    r"|longer than the model's context length"  # sglang
    r"|exceeds the maximum allowed (?:input )?length"  # sglang
    r"|longer than the maximum model length of \d"  # vLLM
    r"|too long to fit into the model"  # vLLM
    r"|max_(?:completion_)?tokens must be at least 1, got -\d"  # vLLM, with no room left
    r"|exceeds? the available context size"  # llama.cpp
    r"|exceeds? context window of \d"  # llama-cpp-python
    r"|exceeds the context window of this model"  # OpenAI
    r"|reduce the length of (?:the|your) (?:input )?(?:messages|prompt)"  # OpenAI, Groq
    r"|prompt is too long: \d+ tokens"  # Anthropic
    r"|input token count \(?\d+\)? exceeds the maximum number of tokens"  # Gemini
    r"|too large for model with \d+ maximum context length"  # Mistral
    r"|maximum prompt length is \d+ but the request contains"  # xAI
    r"|`inputs` (?:tokens \+ `max_new_tokens` must be|must have less than \d+ tokens)",  # TGI
    re.IGNORECASE,
)
_WINDOW = re.compile(r"context length (?:is|of) \(?(\d{1,12})", re.IGNORECASE)
_EMPTY_REASONS = frozenset({"length", "content_filter"})  # no room for a reply, or a filtered one
_FAILED = frozenset({"abort", "error"})  # finish reasons of sglang, vLLM and OpenRouter
_THINKING_PARTS = frozenset({"thinking", "reasoning", "reasoning_text"})


@dataclass(frozen=True)
class ChatToolCall:
    """A tool call, as parsed by the server.

    Attributes:
        name: The function's name.
        arguments: The arguments as text, which should be JSON.
        id: The id of the call, or "" if the server sent none.
    """

    name: str
    arguments: str
    id: str = ""

    def __str__(self) -> str:
        """Return the call as JSON, for transcripts."""
        return str(ToolCall(self.name, self.arguments))


@dataclass(frozen=True)
class Completion:
    """A chat completion.

    Attributes:
        content: The text of the reply.
        reasoning: The reasoning, if the server sends it separately.
        reasoning_field: The message field that contained the reasoning.
        calls: The tool calls.
        finish_reason: The server's ``finish_reason``, or "" if it is missing.
        usage: Token counts from the server, under the names of `StepRecord`.
        served: The server's ``model`` and ``system_fingerprint``, if the reply has them.
        error: The server's message if it could not parse the model's output; ``content`` is the part of the
            output that it sent.
    """

    content: str
    reasoning: str = ""
    reasoning_field: str = ""
    calls: tuple[ChatToolCall, ...] = ()
    finish_reason: str = ""
    usage: StepRecord = field(default_factory=StepRecord)
    served: Mapping[str, str] = field(default_factory=dict)
    error: str = ""

    @property
    def empty(self) -> bool:
        """Whether the completion has no content, reasoning or calls."""
        return not (self.content or self.reasoning or self.calls)


def read_completion(body: bytes) -> Completion:
    """Parse the body of a reply with the status 200.

    Raises:
        BadCompletion: The body is not a completion, or an empty one without a token.
        ModelBusy, ModelError: The generation failed.
    """
    value = parse_json(body)
    if value is None:
        raise BadCompletion(f"the reply is not JSON: {shown(body[:200].decode('utf-8', 'replace'))}")
    if not isinstance(value, Mapping):
        raise BadCompletion(f"the reply is not a completion: {shown(value)}")
    choice, message = _choice(value)
    reason = choice.get("finish_reason")
    if isinstance(reason, str) and reason in _FAILED:
        raise ModelError(f"the generation failed: its finish_reason is {reason!r}")
    content, thought = _content(message.get("content"))
    if not content and isinstance(message.get("refusal"), str):
        content = message["refusal"]  # the text of a refusal; content is null
    where = "" if thought else _reasoning_field(message)
    thought = message[where] if where else thought
    malformed = _malformed_call(choice)
    if malformed and not content and isinstance(choice.get("finish_message"), str):
        content = choice["finish_message"]  # Gemini's, with the call
    completion = Completion(
        content=scrub(content),
        reasoning=scrub(thought),
        reasoning_field=where,
        calls=tuple(_calls(message)),
        finish_reason=scrub(reason[:80]) if isinstance(reason, str) else "",
        usage=_usage(value.get("usage")),
        served={
            name: scrub(value[name][:200])
            for name in ("model", "system_fingerprint")
            if isinstance(value.get(name), str)
        },
        error=malformed,
    )
    no_token = completion.usage.get("completion_tokens") == 0  # not even the end of the reply
    if completion.empty and no_token and not malformed and reason not in _EMPTY_REASONS:
        raise BadCompletion(
            "the reply is empty: it has no content, and the server counts 0 completion tokens"
        )
    return completion


def _choice(value: Mapping[str, Any]) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
    """Return the first choice of a completion, and its message.

    Raises:
        BadCompletion: There is none.
        ModelBusy, ModelError: The choice is an error.
    """
    choices = value.get("choices")
    if not isinstance(choices, list) or not choices or not isinstance(choices[0], Mapping):
        raise BadCompletion(f"the completion has no choice: {shown(value)}")
    choice = choices[0]
    _raise_error(choice)
    message = choice.get("message")
    if not isinstance(message, Mapping):
        raise BadCompletion(f"the completion has no message: {shown(choice)}")
    return choice, message


def _reasoning_field(message: Mapping[str, Any]) -> str:
    names = ("reasoning_content", "reasoning")
    return next((name for name in names if isinstance(message.get(name), str) and message[name]), "")


def _malformed_call(choice: Mapping[str, Any]) -> str:
    """Return the finish reason of a call that the server could not parse, or ""."""
    reasons = (
        choice.get(name) for name in ("finish_reason", "native_finish_reason")
    )  # the second: OpenRouter's
    named = (reason for reason in reasons if isinstance(reason, str) and "malformed" in reason.lower())
    return next((f"the finish_reason is {scrub(reason[:80])}" for reason in named), "")


def parse_json(body: bytes) -> Any:
    """Return the JSON value of a body, or None if it is not JSON."""
    try:
        return json.loads(body)
    except (ValueError, RecursionError):
        return None


def error_message(value: Any) -> str:
    """Return the shortened message of a server's error, or "" if it has none."""
    text = " ".join(dict.fromkeys(error_texts(value)))
    text = " ".join(scrub(text).split())
    return text if len(text) <= MAX_MESSAGE_CHARS else f"{text[:MAX_MESSAGE_CHARS]}…"


def is_overflow(value: Any) -> bool:
    """Return whether an error reports that the conversation exceeds the model's context window."""
    return bool(error_codes(value) & _OVERFLOW_CODES) or any(
        _OVERFLOW.search(text) for text in error_texts(value)
    )


def context_window(value: Any) -> int | None:
    """Return the size of the model's context window in tokens, or None if the error does not contain it."""
    match = next(filter(None, map(_WINDOW.search, error_texts(value))), None)
    return int(match[1]) if match else None


def _errors(value: Any) -> Iterator[Mapping[str, Any]]:
    """Yield the JSON objects that describe an error, the outer one last."""
    if isinstance(value, list):  # Gemini's
        value = value[0] if value else None
    if not isinstance(value, Mapping):
        return
    for inner in (value.get("error"), value.get("message")):  # the second is Mistral's
        if isinstance(inner, Mapping):
            deeper = inner.get("innererror")  # Azure's
            yield from (each for each in (inner, deeper) if isinstance(each, Mapping))
    yield value


def error_codes(value: Any) -> set[str]:
    """Return the codes and types in a server's error, numbers as text."""
    names = ("code", "type", "error_type", "status")
    codes = (error.get(name) for error in _errors(value) for name in names)
    return {str(code) for code in codes if isinstance(code, (str, int)) and not isinstance(code, bool)}


def error_params(value: Any) -> set[str]:
    """Return the request parameters that a server's error names as its ``param``."""
    return {error["param"] for error in _errors(value) if isinstance(error.get("param"), str)}


def error_texts(value: Any) -> Iterator[str]:
    """Yield the messages of a server's error."""
    if isinstance(value, str):
        yield value[:_MAX_SEARCHED_CHARS]
    for error in _errors(value):
        for name in ("message", "error", "detail"):
            text = error.get(name)
            if isinstance(text, str):
                yield text[:_MAX_SEARCHED_CHARS]
            elif name == "detail" and isinstance(text, list):  # FastAPI's, which repeats the whole request
                for each in filter(lambda each: isinstance(each, Mapping), text[:5]):
                    yield f"{each.get('loc')}: {each.get('msg')}"[:_MAX_SEARCHED_CHARS]
        metadata = error.get("metadata")
        if isinstance(metadata, Mapping) and isinstance(metadata.get("raw"), str):  # OpenRouter's
            yield metadata["raw"][:_MAX_SEARCHED_CHARS]


def _raise_error(choice: Mapping[str, Any]) -> None:
    """Raise the error that the server sent instead of a choice, if any.

    Raises:
        ModelBusy: The error's code is 429 or 503.
        ModelError: The error has any other code.
    """
    if not choice.get("error"):
        return
    kind = ModelBusy if error_codes(choice) & {"429", "503"} else ModelError
    raise kind(f"the server sent an error instead of a completion: {error_message(choice) or shown(choice)}")


def _content(content: Any) -> tuple[str, str]:
    """Return the text and the reasoning of a message, which may be parts of one list.

    Raises:
        BadCompletion: The content is neither text nor a list of parts.
    """
    if content is None or isinstance(content, str):
        return content or "", ""
    if not isinstance(content, list) or not all(isinstance(part, Mapping) for part in content):
        raise BadCompletion(f"the content of the message is not text: {shown(content)}")
    parts: dict[bool, list[str]] = {False: [], True: []}
    for part in content:
        kind = part.get("type")
        text = part.get("text", part.get(kind) if isinstance(kind, str) else None)
        if isinstance(text, list):  # Mistral's thinking is itself a list of parts
            text = "".join(
                each["text"] for each in text if isinstance(each, Mapping) and _is_text(each.get("text"))
            )
        if isinstance(text, str):
            parts[kind in _THINKING_PARTS].append(text)
    return "".join(parts[False]), "".join(parts[True])


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _calls(message: Mapping[str, Any]) -> Iterator[ChatToolCall]:
    """Yield the tool calls of a message.

    Raises:
        BadCompletion: The tool calls violate the protocol.
    """
    calls = message.get("tool_calls")
    if not calls and message.get("function_call"):  # OpenAI's older protocol
        calls = [{"function": message["function_call"]}]
    if not calls:
        return
    if not isinstance(calls, list):
        raise BadCompletion(f"the tool_calls of the message are not a list: {shown(calls)}")
    for each in calls:
        function = each.get("function") if isinstance(each, Mapping) else None
        if not isinstance(function, Mapping) or not isinstance(function.get("name"), str):
            raise BadCompletion(f"a tool call of the message has no function with a name: {shown(each)}")
        arguments = function.get("arguments")
        if not isinstance(arguments, str):  # some servers send an object instead of its JSON text
            arguments = "{}" if arguments is None else json.dumps(arguments, ensure_ascii=False)
        call_id = each.get("id")
        yield ChatToolCall(
            scrub(function["name"]), scrub(arguments), scrub(call_id) if isinstance(call_id, str) else ""
        )


def _usage(usage: Any) -> StepRecord:
    """Return the server's token counts, without invalid values."""

    def count(of: Any, *names: str) -> int | None:
        values = (of.get(name) for name in names) if isinstance(of, Mapping) else ()
        return next((each for each in values if type(each) is int and 0 <= each < 2**53), None)

    if not isinstance(usage, Mapping):
        return StepRecord()
    of_reply, of_prompt = usage.get("completion_tokens_details"), usage.get("prompt_tokens_details")
    reasoning = count(of_reply, "reasoning_tokens")
    cached = count(of_prompt, "cached_tokens")
    counts = {
        "prompt_tokens": count(usage, "prompt_tokens"),
        "completion_tokens": count(usage, "completion_tokens"),
        "reasoning_tokens": count(usage, "reasoning_tokens") if reasoning is None else reasoning,  # sglang
        "cached_tokens": count(usage, "prompt_cache_hit_tokens") if cached is None else cached,  # DeepSeek
    }
    known = StepRecord()
    known.update({name: value for name, value in counts.items() if value is not None})  # type: ignore[typeddict-item]
    return known


_NAMES = r"(?:seed:)?think(?:ing)?|thought|reasoning"
_MARK = re.compile(
    rf"<(?P<xml>/?)(?:{_NAMES})>"  # Qwen, DeepSeek, GLM and most others
    r"|\[(?P<square>/?)THINK\]"  # Magistral
    r"|<\|(?P<command>START|END)_THINKING\|>"  # Command A
    r"|◁(?P<kimi>/?)think▷"
    r"|(?P<gemma><\|channel>thought|<channel\|>)"
    r"|<\|channel\|>(?P<channel>analysis|final)<\|message\|>"  # gpt-oss
)
_CLOSING = frozenset({"/", "END", "<channel|>", "final"})


def text_of(content: str, calls: Sequence[ChatToolCall]) -> str:
    """Return a reply as text: its content, and its calls as JSON."""
    return "\n".join(filter(None, (content, *map(str, calls))))


def without_thinking(reply: str) -> str:
    """Return a reply without its reasoning.

    Reasoning is the text between the opening and closing tag of a model family. Text before an unmatched
    closing tag is reasoning too, because chat templates often write the opening tag. Reasoning without a
    closing tag extends to the end of the reply.
    """
    kept: list[str] = []
    position = depth = 0
    for mark in _MARK.finditer(reply):
        closes = next(filter(None, mark.groups()), "") in _CLOSING
        if not closes:
            if not depth:
                kept.append(reply[position : mark.start()])
            depth += 1
        else:
            if not depth:
                kept.clear()
            depth = 0
        position = mark.end()
    if not position:
        return reply
    if not depth:
        kept.append(reply[position:])
    return "".join(kept).strip()
