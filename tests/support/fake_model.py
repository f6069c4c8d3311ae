"""Replies of a model's server, for `FakeServer`, which sends them over a real socket."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any

from fake_server import http

if TYPE_CHECKING:
    from agentgym_gym.evaluate import ChatAgent


TOOLS = [{"type": "function", "function": {"name": "get", "parameters": {"type": "object"}}}]
"""What an environment with one function offers."""


def completion(
    content: Any = "Action: look",
    *calls: dict[str, Any],
    finish_reason: str | None = None,
    usage: dict[str, Any] | None = None,
    **message: Any,
) -> dict[str, Any]:
    """Return a completion of OpenAI's chat protocol; `message` adds fields to its message."""
    said = {"role": "assistant", "content": content, **message}
    if calls:
        said["tool_calls"] = list(calls)
    reason = finish_reason or ("tool_calls" if calls else "stop")
    whole = {"id": "1", "object": "chat.completion", "model": "m", "created": 0}
    whole["choices"] = [{"index": 0, "message": said, "finish_reason": reason}]
    return whole if usage is None else {**whole, "usage": usage}


def call(name: str, arguments: Any, identifier: str | None = "c1") -> dict[str, Any]:
    """Return a call in a message; arguments that are no text are written as JSON."""
    text = arguments if isinstance(arguments, str) else json.dumps(arguments)
    made = {"type": "function", "function": {"name": name, "arguments": text}}
    return made if identifier is None else {"id": identifier, **made}


def refused(status: str, body: Any = None, *headers: str) -> bytes:
    """Return a response with an error, with headers."""
    return http(b"" if body is None else json.dumps(body).encode(), status, *headers)


class Lines:
    """An environment that returns one line after another.

    Attributes:
        system_prompt: The system prompt of the agent.
        tools: What it may call.
    """

    spec = None
    action_space = None

    def __init__(self, system_prompt: str | None = "Play.", tools: list[Any] | None = None) -> None:
        self.system_prompt = system_prompt
        self.tools = tools
        self.unwrapped = self


def replies(agent: ChatAgent, turns: int = 1, env: Any = None, **info: Any) -> list[Any]:
    """Return what an agent replies to "o0", "o1" and so on."""

    async def play() -> list[Any]:
        try:
            await agent.reset(env or Lines(), "o0", {"task_id": 0, **info})
            return [await agent.act(f"o{turn}", {}) for turn in range(turns)]
        finally:
            await agent.close()

    return asyncio.run(play())


def asked(server: Any) -> list[Any]:
    """Return the bodies of the requests for a completion."""
    return [request.json for request in server.requests if request.path.endswith("/chat/completions")]
