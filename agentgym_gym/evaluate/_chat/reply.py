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
    "error_message",
    "is_filtered",
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
_FILTER_CODES = frozenset({"content_filter", "content_policy_violation", "ResponsibleAIPolicyViolation"})
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
    """

    content: str
    reasoning: str = ""
    reasoning_field: str = ""
    calls: tuple[ChatToolCall, ...] = ()
    finish_reason: str = ""
    usage: StepRecord = field(default_factory=StepRecord)
    served: Mapping[str, str] = field(default_factory=dict)

    @property
    def empty(self) -> bool:
        """Whether the completion has no content, reasoning or calls."""
        return not (self.content or self.reasoning or self.calls)


def read_completion(body: bytes) -> Completion:
    """Parse the body of a reply with the status 200.

    Raises:
        BadCompletion: The body is not a completion.
        ModelBusy, ModelError: The body is an error, which some servers send with this status.
    """
    value = parse_json(body)
    if value is None:
        raise BadCompletion(f"the reply is not JSON: {shown(body[:200].decode('utf-8', 'replace'))}")
    if not isinstance(value, Mapping):
        raise BadCompletion(f"the reply is not a completion: {shown(value)}")
    _raise_error(value)
    choices = value.get("choices")
    if not isinstance(choices, list) or not choices or not isinstance(choices[0], Mapping):
        raise BadCompletion(f"the completion has no choice: {shown(value)}")
    choice = choices[0]
    _raise_error(choice)
    message = choice.get("message")
    if not isinstance(message, Mapping):
        raise BadCompletion(f"the completion has no message: {shown(choice)}")
    reason = choice.get("finish_reason")
    if isinstance(reason, str) and reason in _FAILED:
        raise ModelError(f"the generation failed: its finish_reason is {reason!r}")
    content, thought = _content(message.get("content"))
    if not content and isinstance(message.get("refusal"), str):
        content = message["refusal"]  # the text of a refusal; content is null
    where = ""
    for name in ("reasoning_content", "reasoning"):
        if not thought and isinstance(message.get(name), str) and message[name]:
            thought, where = message[name], name
    return Completion(
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
    )


def parse_json(body: bytes) -> Any:
    """Return the JSON value of a body, or None if it is not JSON."""
    try:
        return json.loads(body)
    except (ValueError, RecursionError):
        return None


def error_message(value: Any) -> str:
    """Return the shortened message of a server's error, or "" if it has none."""
    text = " ".join(dict.fromkeys(_error_texts(value)))
    text = " ".join(scrub(text).split())
    return text if len(text) <= MAX_MESSAGE_CHARS else f"{text[:MAX_MESSAGE_CHARS]}…"


def is_overflow(value: Any) -> bool:
    """Return whether an error reports that the conversation exceeds the model's context window."""
    return bool(_codes(value) & _OVERFLOW_CODES) or any(
        _OVERFLOW.search(text) for text in _error_texts(value)
    )


def is_filtered(value: Any) -> bool:
    """Return whether an error reports that a content filter rejected the conversation."""
    return bool(_codes(value) & _FILTER_CODES)


def context_window(value: Any) -> int | None:
    """Return the size of the model's context window in tokens, or None if the error does not contain it."""
    match = next(filter(None, map(_WINDOW.search, _error_texts(value))), None)
    return int(match[1]) if match else None


def _errors(value: Any) -> Iterator[Mapping[str, Any]]:
    """Yield the JSON objects that describe an error, the outer one last."""
    if isinstance(value, list):  # Gemini's
        value = value[0] if value else None
    if not isinstance(value, Mapping):
        return
    inner = value.get("error")
    if isinstance(inner, Mapping):
        deeper = inner.get("innererror")  # Azure's
        yield from (each for each in (inner, deeper) if isinstance(each, Mapping))
    yield value


def _codes(value: Any) -> set[str]:
    return {
        error[name]
        for error in _errors(value)
        for name in ("code", "type")
        if isinstance(error.get(name), str)
    }


def _error_texts(value: Any) -> Iterator[str]:
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


def _raise_error(value: Mapping[str, Any]) -> None:
    """Raise the error that the server sent instead of a completion, if any.

    Raises:
        ModelBusy: The error's code is 429 or 503.
        ModelError: The error has any other code.
    """
    if not value.get("error") and value.get("object") != "error":
        return
    codes = {error.get("code") for error in _errors(value) if isinstance(error.get("code"), (int, str))}
    kind = ModelBusy if codes & {429, 503, "429", "503"} else ModelError
    raise kind(f"the server sent an error instead of a completion: {error_message(value) or shown(value)}")


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
