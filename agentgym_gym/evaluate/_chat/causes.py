"""The causes of a model server's errors, in one table: settings, server, conversation or model."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from agentgym_gym.evaluate._chat.reply import error_codes, error_texts, is_overflow, parse_json

if TYPE_CHECKING:
    from agentgym_gym.calls import Reply

__all__ = ["CAUSES", "RULES", "Cause", "ErrorReply", "RejectionStreak", "Rule", "failed_output", "rule_of"]

Cause: TypeAlias = Literal["settings", "server", "conversation", "model"]

CAUSES: Mapping[Cause, str] = {
    "settings": "The run ends with an error that names what to change.",
    "server": "The request is retried for `retry_seconds`. Then the episode ends as `agent_fault`, unscored.",
    "conversation": "The episode ends as `agent_fault` with the kind `ConversationRejected`, unscored. "
    "The third such conversation in a row ends the run.",
    "model": "The reply is the model's: a turn with a parse error, or an ending. The episode is scored.",
}
"""The effect of each cause."""


class ErrorReply:
    """An HTTP reply that is an error.

    Args:
        reply: The reply.
        accepted: Whether the server has sent a completion in this run before.

    Attributes:
        status: The HTTP status, or the status in the body of an error with HTTP status 200.
        body: The body.
        accepted: As the argument.
    """

    def __init__(self, reply: Reply, *, accepted: bool) -> None:
        self.body = reply.content
        self.accepted = accepted
        self.headers = reply.headers
        self.status = reply.status
        if _is_success(reply.status):
            codes = [int(code) for code in error_codes(self.value) if code.isascii() and code.isdigit()]
            self.status = next((code for code in codes if 400 <= code < 600), 500)  # noqa: PLR2004

    @classmethod
    def of(cls, reply: Reply, *, accepted: bool) -> ErrorReply | None:
        """Return the error in a reply; None if it has none. Some servers send errors with HTTP status 200."""
        if _is_success(reply.status):
            value = parse_json(reply.content)
            if not isinstance(value, Mapping) or not (value.get("error") or value.get("object") == "error"):
                return None
        return cls(reply, accepted=accepted)

    @cached_property
    def value(self) -> Any:
        """The JSON value of the body; None if it is not JSON."""
        return parse_json(self.body)

    @cached_property
    def text(self) -> str:
        """The messages of the error, or the beginning of a body without any."""
        return "\n".join(error_texts(self.value)) or self.body[:2000].decode("utf-8", "replace")


@dataclass(frozen=True)
class Rule:
    """A kind of error, and who causes it.

    Attributes:
        name: The name of the rule.
        cause: Who causes the error.
        replies: The replies, for the documentation.
        effect: The effect on the run or the episode, for the documentation.
        matches: Whether an error is of this kind. The first rule that matches applies.
    """

    name: str
    cause: Cause
    replies: str
    effect: str
    matches: Callable[[ErrorReply], bool]


# Phrases about the model's own output, which the server could not parse or validate.
_OUTPUT_CODES = frozenset(
    {
        "tool_use_failed",
        "output_parse_failed",
        "json_validate_failed",
        "malformed_function_call",
        "tool_error",
    }
)
_OUTPUT_PHRASES = (
    r"failed to parse input at pos \d+:?\s*(?P<rest>.*)",  # llama.cpp, with the text from there on
    r"produced output that does not match the expected",  # llama.cpp
    r"error parsing tool call(?:: raw='(?P<raw>.*?)(?:', err=|$))?",  # Ollama
    r"failed to (?:parse|generate|validate|decode)(?: the| an?)? (?:(?:tool|function)[ _]calls?|fc related)",
    r"failed to (?:parse|decode)(?: the)? (?:generated|model|assistant)",  # TGI
    r"failed to call a function",  # Groq
    r"(?:tool|function)[ _]calls? (?:validation|parsing|generation|argument)\w* (?:\w+ )?(?:fail|error|inv)",
    r"attempted to call (?:a )?(?:tool|function)",  # Groq, of a tool that is not offered
    r"(?:output|generation|completion|reply)s? that (?:could not|cannot|can't) be parsed",
    r"(?:could not|cannot|unable to) parse (?:the )?(?:model|generated|output|tool call|function call)",
    r"model (?:has )?(?:generated|produced|returned|emitted|output) (?:an? )?(?:invalid|malformed|unpars)",
    r"malformed[ _](?:function|tool)[ _]call",  # Gemini
    r"HarmonyError",  # gpt-oss in vLLM and sglang
    r"unexpected tokens remaining in message header",
    r"unexpected token \d+ while expecting start token",
    r"channel marker present but no channel",
    r"tool error:",  # TGI
    r"validation errors? for \S{0,40}FunctionDefinition",  # vLLM with a required call
)
_OUTPUT = [re.compile(phrase, re.IGNORECASE | re.DOTALL) for phrase in _OUTPUT_PHRASES]
_OF_REQUEST = re.compile(r"messages?[\[.]\s?\d|messages?, \d", re.IGNORECASE)  # the path of a sent message


def failed_output(error: ErrorReply) -> str | None:
    """Return the model's text in an error about it, "" if the error lacks the text; None for other errors."""
    details = error.value.get("error") if isinstance(error.value, Mapping) else None
    text = details.get("failed_generation") if isinstance(details, Mapping) else None
    if isinstance(text, str):
        return text
    if _OF_REQUEST.search(error.text):
        return None
    match = next(filter(None, (phrase.search(error.text) for phrase in _OUTPUT)), None)
    if match is not None:
        return next((text.strip() for text in match.groups() if text), "")
    return "" if error_codes(error.value) & _OUTPUT_CODES else None


_FILTER_CODES = frozenset(
    {
        *("content_filter", "content_policy_violation", "ResponsibleAIPolicyViolation", "moderation_blocked"),
        *("data_inspection_failed", "DataInspectionFailed", "PROHIBITED_CONTENT"),
    }
)
_FILTER = re.compile(
    r"content exists risk|inappropriate content|content management policy|prohibited.content"
    r"|flagged (?:by|for|as) |(?:was|were|been) flagged|requires moderation"
    r"|violat\w+ .{0,40}\b(?:usage|content|safety)\b.{0,20}\b(?:guideline|polic)",
    re.IGNORECASE,
)


def _is_filtered(error: ErrorReply) -> bool:
    return error.status in {400, 403, 422, 451} and bool(
        error_codes(error.value) & _FILTER_CODES or _FILTER.search(error.text)
    )


_TEMPLATE = re.compile(
    r"jinja|chat[ _]template|raise_exception|roles must alternate|system role|not supported? tools"
    r"|does(?:n't| not) support (?:tools|chat|system)",
    re.IGNORECASE,
)
_NOT_IMPLEMENTED = 501


def _is_rejection(error: ErrorReply) -> bool:
    """Return whether a server error is a deterministic rejection, which no retry can change."""
    return (
        400 <= error.status < 500  # noqa: PLR2004 - as the RFC has it
        or error.status == _NOT_IMPLEMENTED
        or (error.status >= 500 and bool(_TEMPLATE.search(error.text)))  # noqa: PLR2004
    )


_NO_QUOTA = b'"insufficient_quota"'  # the code of OpenAI's error

RULES: tuple[Rule, ...] = (
    Rule(
        "output",
        "model",
        "an error about the model's own call or output, which the server cannot parse or validate, such as "
        "Groq's `tool_use_failed`, `Failed to parse input` of llama.cpp, `error parsing tool call` of "
        "Ollama, and `HarmonyError` of vLLM and sglang",
        "a turn with the parse error `NoAction`, with the text in the error; no retry",
        lambda error: failed_output(error) is not None,
    ),
    Rule(
        "overflow",
        "model",
        "an error about the length of the conversation, with its code or in the words of many servers",
        "the ending `context_overflow`; the settings are the cause if `max_tokens` fills the context window",
        lambda error: (
            (error.status in {400, 413, 422} or error.status >= 500)  # noqa: PLR2004
            and is_overflow(error.value)
        ),
    ),
    Rule(
        "filter",
        "model",
        "an error of a content filter, with its code or in the words of many servers",
        "the ending `content_filter`",
        _is_filtered,
    ),
    Rule(
        "quota",
        "settings",
        "HTTP 402, or the code `insufficient_quota`",
        "`AccessDenied`: raise the quota, then resume the run",
        lambda error: error.status == 402 or _NO_QUOTA in error.body,  # noqa: PLR2004
    ),
    Rule(
        "access",
        "settings",
        "HTTP 401 and 407; HTTP 403 before the first completion of the run",
        "`AccessDenied`: correct the key",
        lambda error: error.status in {401, 407} or (error.status == 403 and not error.accepted),  # noqa: PLR2004
    ),
    Rule(
        "fault",
        "server",
        "HTTP 408, 409, 425, 429 and 5xx, except errors of a chat template and HTTP 501; "
        "no connection, no complete reply in time",
        "`ModelUnreachable`, `ModelTimeout`, `ModelBusy`, `ModelError`",
        lambda error: error.status in {408, 409, 425, 429} or not _is_rejection(error),
    ),
    Rule(
        "absent",
        "settings",
        "HTTP 404 before the first completion of the run",
        "`BadOption`: lists the models of the server, or names the path",
        lambda error: error.status == 404 and not error.accepted,  # noqa: PLR2004
    ),
    Rule(
        "rejected settings",
        "settings",
        "any other HTTP 4xx, HTTP 501, an error of a chat template: before the first completion of the run",
        "`BadOption` with the message of the server",
        lambda error: not error.accepted,
    ),
    Rule(
        "rejected conversation",
        "conversation",
        "the same, and HTTP 403 and 404, after a completion in the same run",
        "`ConversationRejected`; after three conversations in a row `BadOption`",
        lambda _: True,
    ),
)
"""All rules for error replies."""


def rule_of(error: ErrorReply) -> Rule:
    """Return the rule that applies to an error."""
    return next(rule for rule in RULES if rule.matches(error))


class RejectionStreak:
    """Counts rejected conversations in a row, for the clones of one agent.

    The row is broken by a conversation that ends without a rejection, and by a completion in one of at least
    the same length: then the settings do not cause the rejections.

    Attributes:
        accepted: Whether there was a completion.
    """

    MOST = 3

    def __init__(self) -> None:
        self.accepted = False
        self._lengths: list[int] = []

    def accept(self, length: int) -> None:
        """Note a completion in a conversation of this number of messages."""
        self.accepted = True
        self._lengths = [each for each in self._lengths if each > length]

    def reject(self, length: int) -> bool:
        """Note a rejected conversation; return whether it completes a row."""
        self._lengths.append(length)
        return len(self._lengths) >= self.MOST

    def end(self) -> None:
        """Note the end of a conversation that was not rejected."""
        self._lengths.clear()


def _is_success(status: int) -> bool:
    return 200 <= status < 300  # noqa: PLR2004 - as the RFC has it
