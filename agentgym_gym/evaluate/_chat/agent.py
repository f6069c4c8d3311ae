"""An agent that uses a model through the OpenAI chat completions API."""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np

from agentgym_gym._text import scrub
from agentgym_gym.errors import ArgumentName, BadOption
from agentgym_gym.evaluate._agents import AgentReply
from agentgym_gym.evaluate._chat.budget import Budget, RequestLimits
from agentgym_gym.evaluate._chat.client import ChatClient, CompletionResult
from agentgym_gym.evaluate._chat.prompt import ChatPrompt
from agentgym_gym.evaluate._chat.rate_limit import Gate
from agentgym_gym.evaluate._chat.reply import text_of, without_thinking
from agentgym_gym.evaluate._chat.request_form import filled
from agentgym_gym.evaluate._chat.server import ModelServer
from agentgym_gym.rollout._env_facts import env_id_of, system_prompt_of, tools_of
from agentgym_gym.rollout._history import (
    NOT_CARRIED_OUT,
    Conversation,
    History,
    Message,
    estimate,
    merge_system,
    played_call,
)
from agentgym_gym.rollout._records import StepRecord

if TYPE_CHECKING:
    from agentgym_gym._http import HttpClient
    from agentgym_gym.evaluate._chat.reply import ChatToolCall, Completion
    from agentgym_gym.evaluate._figures.prices import Price

__all__ = ["ChatAgent", "request_seed"]

OnCutReply = Literal["end", "play"]
Tools = Literal["none", "native"]
SystemRole = Literal["system", "user"]

_RESERVED = frozenset({"model", "messages", "tools", "seed", "stream", "stream_options", "n"})
_NOT_IN_BODY = frozenset({"extra_headers", "extra_query", "timeout"})
_NOT_IN_A_NAME = re.compile(r"[^a-zA-Z0-9_-]")
_PARALLEL = "parallel_tool_calls"


class ChatAgent:
    """Plays with a model through the OpenAI chat completions API.

    One agent plays one episode at a time. Use `clone` to get more agents with the same settings. An agent may
    be used in several event loops, one after another, if it is closed in each.

    Args:
        model: The model's name on its server.
        base_url: Base URL of the server, such as ``http://127.0.0.1:8000/v1``; by default the variable
            ``OPENAI_BASE_URL``, otherwise OpenAI's own server.
        api_key_variable: The environment variable with the API key. If it is not set, the agent sends a
            placeholder, which local servers accept; OpenAI's own server requires a key.
        tools: ``"none"``: the model writes its actions as text, as the environment's system prompt explains.
            ``"native"``: the request contains the environment's ``tools``, and the model's tool calls go to
            ``env.step`` as an assistant message; set the environment's ``action_format`` to ``"tool_calls"``.
        system_prompt: Replaces the environment's system prompt; None for the environment's own.
        prompt: A system prompt around that one, or few-shot examples after it.
        history: The part of the conversation to send, and the summary of the rest: a `History`, or its text
            such as ``"turns:4"``.
        sampling: Request parameters by name, such as ``temperature``, sent unchanged unless the server
            refuses them. An ``extra_body`` is merged into the request, as in OpenAI's client.
        seed: Base seed, from which `request_seed` derives the ``seed`` of each request; None to send none.
        max_tokens: Maximum number of tokens of a reply, from 1; None for the server's limit. OpenAI's own
            server receives it as ``max_completion_tokens``, because its newer models accept nothing else, and
            so does a server that refuses ``max_tokens``.
        stop: One or several stop sequences.
        system_role: The role of the system prompt. ``"user"`` puts it into the first user message, for models
            without a system role; a server that refuses the role receives that anyway.
        on_cut_reply: Handling of a reply that reached the token limit: ``"end"`` ends the episode with the
            ending ``reply_cut``; ``"play"`` plays the reply unless it contains tool calls.
        keep_reasoning: Whether to keep the reasoning of earlier replies in the history.
        timeout: Timeout of each attempt in seconds, up to the last byte of the reply.
        retry_seconds: Seconds after the first server fault of a turn during which the request is retried; 0
            for no retry.
        headers: Headers for every request, such as a gateway's token. Their values are never shown.
        http_client: Replaces this library's HTTP engine: an ``httpx.AsyncClient``, a callable that creates
            one, or the import path ``"module:function"`` of such a callable.
        requests_per_minute: Maximum number of requests per minute, of this agent and its clones together;
            None for no limit.
        max_tokens_total: Maximum number of tokens of all prompts and replies, of this agent and its clones
            together; None for no limit. `act` then raises a `SetupError` instead of sending a request.
        max_cost: Maximum cost of these tokens, also in total; requires ``price``.
        price: Price of the model's tokens.

    Attributes:
        name: The model's name.
        model: The model's name.

    Raises:
        BadOption: An argument has an invalid value.
    """

    def __init__(
        self,
        model: str,
        *,
        base_url: str | None = None,
        api_key_variable: str = "OPENAI_API_KEY",
        tools: Tools = "none",
        system_prompt: str | None = None,
        prompt: ChatPrompt | None = None,
        history: History | str = "all",
        sampling: Mapping[str, Any] | None = None,
        seed: int | None = None,
        max_tokens: int | None = None,
        stop: str | Sequence[str] | None = None,
        system_role: SystemRole = "system",
        on_cut_reply: OnCutReply = "end",
        keep_reasoning: bool = False,
        timeout: float = 600.0,
        retry_seconds: float = 300.0,
        headers: Mapping[str, str] | None = None,
        http_client: HttpClient | None = None,
        requests_per_minute: float | None = None,
        max_tokens_total: int | None = None,
        max_cost: float | None = None,
        price: Price | None = None,
    ) -> None:
        choices = (
            ("tools", tools, Tools),
            ("system_role", system_role, SystemRole),
            ("on_cut_reply", on_cut_reply, OnCutReply),
        )
        for option, value, allowed in choices:
            if value not in get_args(allowed):
                raise BadOption(option, value, f"one of {', '.join(get_args(allowed))}")
        if not isinstance(model, str) or not model:
            raise BadOption("model", model, "the name of a model")
        if seed is not None and (type(seed) is not int or seed < 0):
            raise BadOption("seed", seed, "a whole number from 0, or None")
        if max_tokens is not None and (type(max_tokens) is not int or max_tokens < 1):
            raise BadOption("max_tokens", max_tokens, "a whole number from 1, or None")
        stops = [stop] if isinstance(stop, str) else list(stop or ())
        if not all(isinstance(each, str) and each for each in stops):
            raise BadOption("stop", stop, "a text or several, none of them empty")
        self.name = self.model = model
        self._server = ModelServer(base_url, api_key_variable, headers=headers, http_client=http_client)
        self._client = ChatClient(self._server, timeout=timeout, retry_seconds=retry_seconds)
        budget = Budget(max_tokens_total, max_cost)
        self._client.limits = RequestLimits(Gate(requests_per_minute), budget, price)
        self._native = tools == "native"
        self._system_prompt = None if system_prompt is None else scrub(system_prompt)
        self._prompt = ChatPrompt() if prompt is None else prompt
        self._history = History.parse(history)
        self._history.summarizer()  # a function that cannot be imported is an error before the first episode
        self._sampling = _request_fields(sampling or {}, max_tokens=max_tokens, stop=stop)
        self._seed = seed
        self._max_tokens = max_tokens
        self._stop = stop if isinstance(stop, str) else stops or None
        self._system_role = system_role
        self._on_cut_reply = on_cut_reply
        self._keep_reasoning = keep_reasoning
        self._conversation: Conversation | None = None
        self._served: dict[str, set[str]] = {}  # shared by all clones
        self._tools: list[Any] = []
        self._task = (0, 0)
        self._turn = 0
        self._replied = False  # whether the last request of the conversation was not rejected
        self._calls: tuple[ChatToolCall, ...] = ()  # of the last turn; the next observation is their result

    def __repr__(self) -> str:
        """Return the model and its server."""
        return f"ChatAgent({self.model!r}, base_url={self._server.url!r})"

    @property
    def limits(self) -> RequestLimits:
        """The limits of the requests of this agent and its clones, and their usage."""
        return self._client.limits

    @limits.setter
    def limits(self, limits: RequestLimits) -> None:
        self._client.limits = limits

    async def check_server(self) -> None:
        """Connect to the model server and disconnect, to find a wrong address before the first episode.

        Raises:
            SetupError: No connection can be made.
        """
        await self._client.check_server()

    def clone(self) -> ChatAgent:
        """Return another agent with the same settings, for concurrent episodes."""
        return copy.copy(self)

    def __getstate__(self) -> dict[str, Any]:
        """Return the state without the current episode, and with a new connection."""
        return {**self.__dict__, "_client": self._client.clone(), "_conversation": None}

    def describe(self) -> dict[str, Any]:
        """Return the model, its server and every setting as JSON values, without the API key."""
        # Runs of earlier versions lack these. They are added only if set, so that such runs can resume.
        own = {} if self._system_prompt is None else {"system_prompt": self._system_prompt}
        if self._system_role != "system":
            own["system_role"] = self._system_role
        return {
            **own,
            "model": self.model,
            "base_url": self._server.url,
            "api_key_variable": self._server.api_key_variable,
            "tools": "native" if self._native else "none",
            "prompt": self._prompt.as_dict(),
            "history": self._history.as_dict(),
            "sampling": copy.deepcopy(self._sampling),
            "seed": self._seed,
            "max_tokens": self._max_tokens,
            "stop": self._stop,
            "on_cut_reply": self._on_cut_reply,
            "keep_reasoning": self._keep_reasoning,
            "timeout": self._client.timeout,
            "retry_seconds": self._client.retry_seconds,
        }

    def served(self) -> dict[str, list[str]]:
        """Return what the server of this agent and its clones reported and refused.

        ``model`` lists the model names in the replies, and ``system_fingerprint`` the fingerprints of the
        server's configuration. There are several values if they changed. ``refused`` lists the fields that
        the server refused, with what is sent instead.
        """
        served = {name: sorted(values) for name, values in sorted(self._served.items())}
        refused = self.limits.form.changes
        return {**served, "refused": refused} if refused else served

    async def reset(self, env: Any, observation: str, info: dict[str, Any]) -> None:
        """Begin an episode.

        Raises:
            BadOption: The environment has no tools for native tool calls.
        """
        self._tools = tools_of(env) if self._native else []
        if self._native and not self._tools:
            raise BadOption(
                "tools",
                "native",
                problem=(
                    f"needs tools, and {env_id_of(env)} has none; use ",
                    ArgumentName("tools"),
                    "='none'",
                ),
            )
        if self._replied:
            self.limits.streak.end()
        self._replied = False
        self._task = (int(info.get("task_id", 0)), int(info.get("sample", 0)))
        self._turn, self._calls = 0, ()
        own = system_prompt_of(env) if self._system_prompt is None else self._system_prompt
        head: list[Message] = list(self._prompt.messages(own))
        overhead = estimate([{"role": "system", "content": json.dumps(self._tools)}]) if self._tools else 0
        self._conversation = Conversation(self._history, head, overhead)

    async def act(self, observation: str, info: dict[str, Any]) -> AgentReply:
        """Request the model's next reply.

        Raises:
            SetupError: The server rejects the request: the key, the model or an option; or a budget is used
                up.
            AgentFault: The server's faults lasted longer than ``retry_seconds``, or it rejects this
                conversation.
        """
        conversation = self._conversation
        if conversation is None:
            raise BadOption("act() was called before reset(): call reset() first")
        self._observe(conversation, scrub(observation), info)
        self._replied = False
        result = await self._client.complete(self._request(conversation))
        self._replied = True
        self._turn += 1
        completion = result.completion
        if completion is None:
            return AgentReply(None, ending=result.ending, step=StepRecord(retries=result.retries))
        if completion.usage.get("prompt_tokens"):
            conversation.counted(completion.usage["prompt_tokens"])
        for name, value in completion.served.items():
            self._served.setdefault(name, set()).add(value)
        step = _step_of(completion, result)
        if conversation.omitted:
            step["omitted_turns"] = conversation.omitted
        reply = self._reply(completion, step)
        conversation.add_reply(self._history_message(completion))
        self._calls = completion.calls if self._native and not completion.error else ()
        return reply

    async def close(self) -> None:
        """Close the connection to the server. Further calls of this method and of ``reset`` are allowed."""
        await self._client.close()

    def _observe(self, conversation: Conversation, observation: str, info: Mapping[str, Any]) -> None:
        """Add an observation as a user message, or as the results of the last turn's tool calls."""
        user = {"role": "user", "content": observation}
        if not self._turn:
            conversation.head.append(user)
            return
        if not self._calls:
            conversation.add_answer([user], info)
            return
        answers = [NOT_CARRIED_OUT] * len(self._calls)
        answers[min(played_call(info), len(answers) - 1)] = observation
        results = (
            {"role": "tool", "tool_call_id": identifier, "content": answer}
            for identifier, answer in zip(_ids(self._calls, self._turn), answers, strict=True)
        )
        conversation.add_answer(results, info)

    def _request(self, conversation: Conversation) -> dict[str, Any]:
        limit = "max_completion_tokens" if self._server.official else "max_tokens"
        own = {
            "tools": self._tools or None,
            "stop": self._stop,
            limit: self._max_tokens,
            "seed": None if self._seed is None else request_seed(self._seed, *self._task, self._turn),
        }
        messages = filled(conversation.to_send())
        one_call = {_PARALLEL: False} if self._tools else {}
        return {
            "model": self.model,
            "messages": messages if self._system_role == "system" else merge_system(messages),
            **one_call,
            **self._sampling,
            **{name: value for name, value in own.items() if value is not None},
        }

    def _reply(self, completion: Completion, step: StepRecord) -> AgentReply:
        """Convert a completion to the agent's reply."""
        text = text_of(completion.content, completion.calls)
        if completion.error:  # not parsed again: the model's calls are those that its server can parse
            return AgentReply("", text=text, step=step)
        reason = completion.finish_reason
        if reason == "content_filter":
            return AgentReply(None, text=text, ending="content_filter", step=step)
        if reason == "length":
            if completion.empty and not completion.usage.get("completion_tokens"):  # no room for even one
                return AgentReply(None, ending="context_overflow", step=step)
            if self._on_cut_reply == "end" or completion.calls:
                return AgentReply(None, text=text, ending="reply_cut", step=step)
        if not (self._native and completion.calls):
            return AgentReply(text, step=step)
        calls = zip(_ids(completion.calls, self._turn), completion.calls, strict=True)
        message = {
            "role": "assistant",
            "content": completion.content,
            "tool_calls": [_tool_call(call_id, call.name, call.arguments) for call_id, call in calls],
        }
        return AgentReply(message, text=text, step=step)

    def _history_message(self, completion: Completion) -> Message:
        """Return the message that represents this reply in the history of later turns."""
        kept = self._keep_reasoning
        content = completion.content if kept else without_thinking(completion.content)
        message: dict[str, Any] = {"role": "assistant", "content": content}
        if completion.calls and self._native and not completion.error:
            calls = zip(_ids(completion.calls, self._turn), completion.calls, strict=True)
            message["tool_calls"] = [
                _tool_call(
                    call_id, _NOT_IN_A_NAME.sub("_", call.name)[:64] or "_", _json_object(call.arguments)
                )
                for call_id, call in calls
            ]
        elif completion.calls:
            message["content"] = text_of(content, completion.calls)
        if kept and completion.reasoning_field:
            message[completion.reasoning_field] = completion.reasoning
        return message


def request_seed(seed: int, task_id: int, sample: int, turn: int) -> int:
    """Return the seed of one request, with 31 bits, which servers accept.

    It is the first word of ``numpy.random.SeedSequence([seed, task_id, sample, turn])`` without its highest
    bit. Negative numbers are taken modulo 2⁶⁴.

    Args:
        seed: The agent's seed.
        task_id: The task id.
        sample: Index of the episode among the task's samples.
        turn: Index of the turn, from 0.
    """
    numbers = [number % 2**64 for number in (seed, task_id, sample, turn)]
    return int(np.random.SeedSequence(numbers).generate_state(1)[0]) & 0x7FFFFFFF


def _request_fields(sampling: Mapping[str, Any], **also: Any) -> dict[str, Any]:
    """Return the sampling parameters as request fields.

    Raises:
        BadOption: They are not JSON, or the agent sets one of them itself.
    """
    fields = {name: value for name, value in sampling.items() if name != "extra_body"}
    fields |= sampling.get("extra_body") or {}
    for name in fields:
        if name in _RESERVED or name in _NOT_IN_BODY:
            raise BadOption(
                "sampling", problem=f"cannot set {name!r:.80}: it is an argument of the agent, or fixed"
            )
        if also.get(name) is not None:
            raise BadOption(
                "sampling", problem=f"sets {name!r:.80}, which is also an argument of the agent; remove one"
            )
    try:
        copied: dict[str, Any] = json.loads(json.dumps(fields, allow_nan=False))
    except (TypeError, ValueError, RecursionError) as error:
        raise BadOption("sampling", fields, f"JSON: {error}") from None
    return copied


def _step_of(completion: Completion, result: CompletionResult) -> StepRecord:
    step = StepRecord(retries=result.retries, **completion.usage)
    if completion.finish_reason:
        step["finish_reason"] = completion.finish_reason
    if completion.error:
        step["server_error"] = completion.error
    if completion.reasoning:
        step["reasoning"] = completion.reasoning
    if completion.calls and not completion.error:
        step["tool_calls"] = [
            {"name": call.name, "arguments": call.arguments, "id": call.id} for call in completion.calls
        ]
    return step


def _ids(calls: Sequence[ChatToolCall], turn: int) -> list[str]:
    """Return the ids of the tool calls of a turn: the server's ids if all are present and distinct."""
    ids = [call.id for call in calls]
    if all(ids) and len(set(ids)) == len(ids):
        return ids
    return [f"call_{turn}_{number}" for number in range(len(calls))]


def _tool_call(identifier: str, name: str, arguments: str) -> dict[str, Any]:
    return {"id": identifier, "type": "function", "function": {"name": name, "arguments": arguments}}


def _json_object(arguments: str) -> str:
    """Return the arguments as a JSON object, because servers parse them again and reject anything else."""
    try:
        if isinstance(json.loads(arguments), dict):
            return arguments
    except (ValueError, RecursionError):
        pass
    return json.dumps({"arguments": arguments}, ensure_ascii=False)
