"""Replies of other APIs: how they are recognised, and what to do about a server that sends them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from agentgym_gym.evaluate._chat.reply import parse_json

__all__ = ["OtherApi", "other_api"]


class OtherApi(NamedTuple):
    """The API of a reply that is not a chat completion.

    Attributes:
        name: The name of the reply.
        advice: The advice to the user.
    """

    name: str
    advice: str


_CHAT = "use its API for OpenAI's chat completions, whose base URL mostly ends in /v1"
STREAM = OtherApi("a stream", 'it should accept requests with "stream": false; use another server or gateway')
PAGE = OtherApi(
    "a web page",
    "the base URL should be that of the API, and mostly ends in /v1; if the page is a login, the gateway "
    "requires other credentials",
)
TEXT = OtherApi(
    "a text completion",
    "it has no chat completions: serve a model with a chat template, and use the base URL of the chat API",
)
OLLAMA = OtherApi("Ollama's native reply", "use the base URL http://HOST:11434/v1")
ANTHROPIC = OtherApi("a reply of Anthropic's Messages API", _CHAT)
GEMINI = OtherApi(
    "a reply of Gemini's native API",
    "use the base URL https://generativelanguage.googleapis.com/v1beta/openai",
)
RESPONSES = OtherApi("a reply of OpenAI's Responses API", _CHAT)
OTHER = OtherApi("JSON of another API", _CHAT)


def other_api(body: bytes) -> OtherApi | None:
    """Return the API of a body with HTTP status 200 that is not a chat completion; None if it is unknown.

    A body that may be the beginning of a completion, an empty one, and a completion without a choice are
    unknown: a retry may help.
    """
    start = body[:200].lstrip().lower()
    if start.startswith((b"data:", b"event:", b": ")):
        return STREAM
    if start.startswith((b"<!doctype", b"<html", b"<head", b"<body", b"<?xml")):
        return PAGE
    value = parse_json(body)
    if value is None:
        first = next((line for line in body.splitlines() if line.strip()), b"")
        several = len(body.strip().splitlines()) > 1 and isinstance(parse_json(first), Mapping)
        return STREAM if several else None
    if isinstance(value, list):
        return TEXT if value and _has(value[0], "generated_text") else None
    return _of_object(value) if isinstance(value, Mapping) else None


def _of_object(value: Mapping[str, Any]) -> OtherApi | None:
    if "choices" in value:
        choices = value["choices"]
        first = choices[0] if isinstance(choices, list) and choices else None
        if isinstance(first, Mapping) and "message" not in first:
            return STREAM if "delta" in first else TEXT if "text" in first else None
        return None
    return next((api for api, is_sent in _OBJECTS if is_sent(value)), None)


_OBJECTS: Sequence[tuple[OtherApi, Callable[[Mapping[str, Any]], bool]]] = (
    (OLLAMA, lambda value: "done" in value and ("message" in value or "response" in value)),
    (ANTHROPIC, lambda value: value.get("type") == "message" and "content" in value),
    (GEMINI, lambda value: "candidates" in value),
    (RESPONSES, lambda value: value.get("object") == "response" or isinstance(value.get("output"), list)),
    (TEXT, lambda value: bool(value.keys() & {"generated_text", "tokens_predicted", "completion"})),
    (OTHER, bool),
)


def _has(value: Any, key: str) -> bool:
    return isinstance(value, Mapping) and key in value
