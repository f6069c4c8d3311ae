"""Converts episodes to samples of an inspect_ai log, with the events that its viewer shows.

This module imports inspect_ai at the top. `_inspect_export` therefore imports this module only for an export.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from inspect_ai.dataset import Sample
from inspect_ai.event import ErrorEvent, InfoEvent, ModelEvent, SampleInitEvent, ScoreEvent
from inspect_ai.log import EvalError, EvalSample, EvalSampleLimit
from inspect_ai.model import (
    ChatCompletionChoice,
    ChatMessageAssistant,
    ChatMessageSystem,
    ChatMessageTool,
    ChatMessageUser,
    ContentReasoning,
    ContentText,
    GenerateConfig,
    ModelOutput,
    ModelUsage,
)
from inspect_ai.scorer import Score
from inspect_ai.tool import ToolCall

from agentgym_gym._text import no_constant, scrub

if TYPE_CHECKING:
    from agentgym_gym.rollout._records import EpisodeRecord, StepRecord

__all__ = ["plain_json", "sample_of", "usage_of"]

_STOPPED = {
    "stop": "stop",
    "length": "max_tokens",
    "tool_calls": "tool_calls",
    "function_call": "tool_calls",
    "content_filter": "content_filter",
}
"""inspect_ai's stop reason, by OpenAI's ``finish_reason``."""

_LONGEST = 1e9  # seconds, above any duration: later times overflow a datetime
_DEEPEST = 50  # levels of JSON; pydantic's own limit is a few times deeper


def sample_of(record: EpisodeRecord, began: datetime, system_prompt: str | None, name: str) -> EvalSample:
    """Convert an episode to a sample.

    Args:
        record: The episode.
        began: Start time of the episode in the log. Records contain durations, but no clock times.
        system_prompt: The agent's system prompt, if known.
        name: Unique name of the log, used as a prefix of the ids of the sample and its events.
    """
    return _Conversation(record, began, system_prompt, f"{name}-{record.task_id}-{record.sample}").sample()


def usage_of(steps: tuple[StepRecord, ...]) -> ModelUsage | None:
    """Return the token usage of steps, or None if no server reported any."""
    counted = [step for step in steps if "prompt_tokens" in step or "completion_tokens" in step]
    if not counted:
        return None
    prompt = sum(step.get("prompt_tokens", 0) for step in counted)
    reply = sum(step.get("completion_tokens", 0) for step in counted)
    cached = sum(step.get("cached_tokens", 0) for step in counted)
    return ModelUsage(
        input_tokens=max(0, prompt - cached),  # inspect_ai counts cached tokens separately
        output_tokens=reply,
        total_tokens=prompt + reply,
        input_tokens_cache_read=cached if any("cached_tokens" in step for step in counted) else None,
        reasoning_tokens=sum(step.get("reasoning_tokens", 0) for step in counted)
        if any("reasoning_tokens" in step for step in counted)
        else None,
    )


def plain_json(value: Any, depth: int = 0) -> Any:
    """Return a JSON value that every JSON writer accepts: no lone surrogates, and limited nesting."""
    if isinstance(value, str):
        return scrub(value)
    if isinstance(value, Mapping):
        if depth >= _DEEPEST:
            return "…"
        return {scrub(str(key)): plain_json(each, depth + 1) for key, each in value.items()}
    if isinstance(value, (list, tuple)):
        return "…" if depth >= _DEEPEST else [plain_json(each, depth + 1) for each in value]
    return value


class _Conversation:
    """Builder of a sample: the messages and events of one episode."""

    def __init__(self, record: EpisodeRecord, began: datetime, system_prompt: str | None, name: str) -> None:
        self._record = record
        self._began = began
        self._name = name
        self._agent = scrub(record.agent)
        self._seconds = max(
            0.0, record.env_seconds - sum(step.get("env_seconds", 0.0) for step in record.steps)
        )  # duration of the reset
        self._messages: list[Any] = []
        self._events: list[Any] = []
        self._output = ModelOutput(model=self._agent)
        if system_prompt:
            self._messages.append(ChatMessageSystem(content=scrub(system_prompt), id=f"{name}-system"))

    def sample(self) -> EvalSample:
        record = self._record
        observations = [scrub(each["content"]) for each in record.messages if each["role"] == "user"]
        task = (
            scrub(record.goal)
            if record.goal
            else observations[0]
            if observations
            else f"task {record.task_id}"
        )
        metadata = plain_json(self._metadata())
        init = Sample(input=task, target="", id=record.task_id, metadata=metadata)
        self._add(SampleInitEvent, 0.0, sample=init)
        self._add_messages()
        error, scores = self._error(), dict(self._scores())
        if error is not None:
            self._add(ErrorEvent, record.seconds, error=error)
        for scorer, score in scores.items():
            self._add(ScoreEvent, record.seconds, score=score, scorer=scorer, target="")
        usage = usage_of(record.steps)
        return EvalSample(
            id=record.task_id,
            epoch=record.sample + 1,
            input=task,
            target="",
            messages=self._messages,
            output=self._output,
            scores=scores,
            metadata=metadata,
            events=self._events,
            model_usage={} if usage is None else {self._agent: usage},
            total_time=record.seconds,
            working_time=record.agent_seconds + record.env_seconds or record.seconds,
            uuid=self._name,
            error=error,
            limit=EvalSampleLimit(type="turn", limit=float(record.turns))
            if record.ending == "truncated"
            else None,
            turn_count=record.turns,
        )

    def _add_messages(self) -> None:
        """Add the messages, and an event for each reply."""
        record = self._record
        reply = 0  # index of the next reply
        call: ToolCall | None = None  # the call that the next observation is the result of
        step: StepRecord = {}
        for number, message in enumerate(record.messages):
            text, name = scrub(message["content"]), f"{self._name}-{number}"
            if message["role"] == "assistant":
                step = record.steps[reply] if reply < len(record.steps) else {}
                message_of_reply = self._reply(text, step, name)
                self._model_event(message_of_reply, step, last=number == len(record.messages) - 1)
                self._messages.append(message_of_reply)
                call = _played(step, message_of_reply)
                self._seconds += step.get("env_seconds", 0.0)
                self._add_result(reply, step)
                reply += 1
            elif call is not None:
                self._messages.append(
                    ChatMessageTool(content=text, tool_call_id=call.id, function=call.function, id=name)
                )
                call = None
            else:
                self._messages.append(ChatMessageUser(content=text, id=name))
        if reply and record.messages[-1]["role"] == "user":  # no model received it
            last = scrub(record.messages[-1]["content"])
            self._add(InfoEvent, self._seconds, source="environment", data={"last_observation": last})

    def _reply(self, text: str, step: StepRecord, name: str) -> ChatMessageAssistant:
        calls = [
            _tool_call(made, f"{name}-call-{number}")
            for number, made in enumerate(step.get("tool_calls", ()))
        ]
        thought = step.get("reasoning")
        return ChatMessageAssistant(
            content=[ContentReasoning(reasoning=scrub(thought)), ContentText(text=text)] if thought else text,
            tool_calls=calls or None,
            model=self._agent,
            source="generate",
            id=name,
        )

    def _model_event(self, reply: ChatMessageAssistant, step: StepRecord, *, last: bool) -> None:
        seconds = step.get("agent_seconds", 0.0)
        stop = _STOPPED.get(step.get("finish_reason", ""), "unknown")
        if last and self._record.ending == "context_overflow":
            stop = "model_length"
        self._output = ModelOutput(
            model=self._agent,
            choices=[ChatCompletionChoice(message=reply, stop_reason=stop)],
            usage=usage_of((step,)),
            time=seconds,
        )
        self._add(
            ModelEvent,
            self._seconds,
            model=self._agent,
            input=list(self._messages),
            tools=[],
            tool_choice="auto",
            config=GenerateConfig(),
            output=self._output,
            retries=step.get("retries"),
            completed=self._at(self._seconds + seconds),
            working_time=seconds,
        )
        self._seconds += seconds

    def _add_result(self, reply: int, step: StepRecord) -> None:
        """Add an event with the reward and errors of a reply, which the messages do not contain."""
        result: dict[str, Any] = {}
        if reply < len(self._record.rewards) and self._record.rewards[reply]:
            result["reward"] = self._record.rewards[reply]
        if "parse_error" in step:
            result["parse_error"] = step["parse_error"]
        if step.get("ignored_actions"):
            result["ignored_actions"] = step["ignored_actions"]
        if result:
            result["turn"] = reply + 1
            self._add(InfoEvent, self._seconds, source="environment", data=plain_json(result))

    def _add(self, kind: Any, seconds: float, **fields: Any) -> None:
        self._events.append(
            kind(
                timestamp=self._at(seconds),
                working_start=seconds,
                uuid=f"{self._name}-event-{len(self._events)}",
                **fields,
            )
        )

    def _at(self, seconds: float) -> datetime:
        return self._began + timedelta(seconds=min(max(0.0, seconds), _LONGEST))

    def _error(self) -> EvalError | None:
        fault = self._record.fault or self._record.agent_fault
        if fault is None:
            return None
        return EvalError(message=_fault_text(fault), traceback="", traceback_ansi="")

    def _scores(self) -> Iterator[tuple[str, Score]]:
        record = self._record
        fault = record.fault or record.agent_fault
        for name, value in (("success", record.success), ("score", record.score)):
            if fault is not None:
                reason = "fault" if record.fault is not None else "agent_fault"
                yield name, Score.unscored(reason=reason, explanation=_fault_text(fault))
            elif value is None:
                yield (
                    name,
                    Score.unscored(reason="not_reported", explanation="The environment does not report it."),
                )
            else:
                yield name, Score(value=float(value), explanation=f"ended by: {scrub(record.ending)}")

    def _metadata(self) -> dict[str, Any]:
        record = self._record
        known: dict[str, Any] = {
            "task_id": record.task_id,
            "sample": record.sample,
            "goal": record.goal,
            "ending": record.ending,
            "turns": record.turns,
            "return": record.return_,
            "parse_errors": dict(record.parse_errors),
            "agent_seconds": record.agent_seconds,
            "env_seconds": record.env_seconds,
            "fault": record.fault,
            "agent_fault": record.agent_fault,
            "counters": record.counters,
        }
        return {name: value for name, value in known.items() if value is not None}


def _played(step: StepRecord, reply: ChatMessageAssistant) -> ToolCall | None:
    if not reply.tool_calls:
        return None
    return reply.tool_calls[min(step.get("played_call", 0), len(reply.tool_calls) - 1)]


def _fault_text(fault: Mapping[str, str]) -> str:
    return scrub(f"{fault.get('kind', '?')}: {fault.get('message', '')}")


def _tool_call(call: Mapping[str, str], usual_id: str) -> ToolCall:
    text = scrub(call["arguments"])
    try:
        value = json.loads(text, parse_constant=no_constant)
        error = None if isinstance(value, dict) else "the arguments are not a JSON object"
    except (ValueError, RecursionError) as failed:
        value, error = None, f"the arguments are not JSON: {failed}"
    return ToolCall(
        id=scrub(call.get("id") or usual_id),
        function=scrub(call["name"]),
        arguments=plain_json(value) if error is None else {"text": text},
        parse_error=error,
    )
