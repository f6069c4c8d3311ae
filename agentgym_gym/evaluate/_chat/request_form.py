"""The form in which a model server accepts requests: refused fields are left out, renamed or merged."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from agentgym_gym._logging import log
from agentgym_gym.evaluate._chat.reply import error_params
from agentgym_gym.rollout._history import merge_system

if TYPE_CHECKING:
    from agentgym_gym.evaluate._chat.causes import ErrorReply
    from agentgym_gym.rollout._history import Message

__all__ = ["EMPTY", "RequestForm", "filled"]

EMPTY = "(empty)"
"""The content of a message without text. Many servers reject an empty message, or one of blanks."""

SYSTEM_ROLE = "system role"
EMPTY_CONTENT, NULL_CONTENT = "empty content", "null content"  # of messages with tool calls

_REQUIRED = frozenset({"model", "messages", "tools"})
_OTHER_NAMES = {"max_tokens": "max_completion_tokens", "max_completion_tokens": "max_tokens"}
_MAYBE_REFUSED = frozenset({400, 422, 500, 501})
_MANY_STOPS = 4  # sequences that OpenAI's API accepts


def _between(least: float, most: float) -> Callable[[Any], bool]:
    return lambda value: isinstance(value, (int, float)) and least <= value <= most


_VALID: dict[str, Callable[[Any], bool]] = {
    "temperature": _between(0, 2),
    "top_p": _between(0, 1),
    "seed": lambda value: type(value) is int,
    "stop": lambda value: isinstance(value, str) or (isinstance(value, list) and len(value) <= _MANY_STOPS),
    "frequency_penalty": _between(-2, 2),
    "presence_penalty": _between(-2, 2),
    "parallel_tool_calls": lambda value: isinstance(value, bool),
}
"""Fields of OpenAI's API, with the values that it accepts. A server that rejects such a value does not
support the field; any other rejected value is a mistake in the settings."""

_UNSUPPORTED = (
    r"unsupported|unrecogni[sz]ed|unknown|unexpected|extra|deprecated|forbidden|incompatible|no such"
    r"|not a known|additional propert|cannot (?:both )?be (?:set|used|specified)|can't be|cannot find"
    r"|not (?:currently |yet |be )*(?:support|permit|allow|available|recogni|accept|implement|compatib)"
    r"|not a valid param"
    r"|n't (?:currently |yet )?(?:support|accept|allow|recogni|implement)|does not (?:support|accept|exist)"
)
_INVALID = rf"{_UNSUPPORTED}|must be|should be|has to be|invalid|only|out of range|greater|less than"
_INSTEAD = re.compile(r"did you mean.*|\buse\b.{0,30}\binstead\b.*", re.IGNORECASE)

_NO_SYSTEM = re.compile(
    r"\bsystem\b.{0,60}\b(?:not|n't|un)\s?(?:\w+ )?(?:support|allow|enabl|accept|permit)"
    r"|(?:\bnot|n't|\bun)\s?(?:support|allow|accept)\w*.{0,60}\bsystem\b"
    r"|roles must alternate|only user.{0,20}assistant|developer instruction is not enabled"
    r"|(?:unknown|unexpected|invalid|got|wrong) (?:\w+ )?(?:role:? )?.{0,5}\bsystem\b"
    r"|\brole\b.{0,30}\bsystem\b",
    re.IGNORECASE | re.DOTALL,
)
_CONTENT = re.compile(r"\bcontent\b", re.IGNORECASE)


class RequestForm:
    """The fields and forms that a model server refuses, learned from its errors.

    All clones of an agent share it, and so do the runs of `play` with the same model on the same server.

    Args:
        notify: Called once with a sentence for each refused field; by default, they are logged.

    Attributes:
        refused: Sentences on what is sent instead, by the refused field.
        accepted: The fields that the server has accepted.
    """

    def __init__(self, notify: Callable[[str], object] | None = None) -> None:
        self._notify = notify
        self.refused: dict[str, str] = {}
        self.accepted: set[str] = set()

    def __getstate__(self) -> dict[str, Any]:
        """Return the state without the callback, which belongs to this process."""
        return {**vars(self), "_notify": None}

    @property
    def changes(self) -> list[str]:
        """Sentences on all that differs from the settings of the run."""
        return sorted(filter(None, self.refused.values()))

    def apply(self, request: Mapping[str, Any], suspects: Collection[str] = ()) -> dict[str, Any]:
        """Return a request in the form that the server accepts.

        Args:
            request: The request.
            suspects: Fields that are treated as refused, in addition to the known ones.
        """
        refused = {*self.refused, *suspects}
        sent: dict[str, Any] = {}
        for name, value in request.items():
            other = _OTHER_NAMES.get(name, "")
            if name not in refused:
                sent[name] = value
            elif other and other not in refused and other not in request:
                sent[other] = value
        if SYSTEM_ROLE in refused:
            sent["messages"] = merge_system(sent["messages"])
        if EMPTY_CONTENT in refused:
            content = EMPTY if NULL_CONTENT in refused else None
            sent["messages"] = [
                message if message["content"] else {**message, "content": content}
                for message in sent["messages"]
            ]
        return sent

    def accept(self, sent: Mapping[str, Any]) -> None:
        """Note that the server accepted a request."""
        self.accepted.update(_parts(sent))

    def refuse(self, names: Collection[str], sent: Mapping[str, Any], error: ErrorReply, server: str) -> None:
        """Note that the server refuses fields of a request.

        Args:
            names: The fields.
            sent: The request.
            error: The error.
            server: The URL of the server, without secrets.
        """
        for name in sorted(set(names) - self.refused.keys()):
            self.refused[name] = ""
            change = self.refused[name] = self._change(name, sent)
            if self._notify is None:
                log(logging.WARNING, "request field refused", server=server, field=name, status=error.status)
            elif change:
                self._notify(f"{server} refuses the {_noun(name)} (HTTP {error.status}): {change}")

    def _change(self, name: str, sent: Mapping[str, Any]) -> str:
        if name == SYSTEM_ROLE:
            return "the system prompt is put into the first user message"
        if name in {EMPTY_CONTENT, NULL_CONTENT}:
            return ""  # the same message in another form
        other = _OTHER_NAMES.get(name, "")
        if other and other not in self.refused and other not in sent:
            return f"{name} is sent as {other}"
        shown = name if name == "seed" else f"{name}={sent[name]!r:.60}"
        return f"{shown} is not sent"

    def named(self, error: ErrorReply, sent: Mapping[str, Any]) -> list[str]:
        """Return the fields of a request that an error refuses by their names."""
        if error.status not in _MAYBE_REFUSED:
            return []
        text, params = _INSTEAD.sub("", error.text), error_params(error.value)
        names = [
            name for name in sent if name not in _REQUIRED and _is_refused(name, sent[name], text, error)
        ]
        exact = [name for name in names if name in params]
        if (
            not exact and "both" in text and len(names) > 1
        ):  # such as "temperature and top_p cannot both be set"
            return [max(names, key=text.find)]
        return exact or names

    def suspects(self, error: ErrorReply, sent: Mapping[str, Any]) -> Iterator[set[str]]:
        """Yield sets of fields without which to try a rejected request again, as its error names none.

        They are parts that the server has not accepted yet.
        """
        if error.status not in _MAYBE_REFUSED:
            return
        new = [name for name in _parts(sent) if name not in self.accepted and name not in self.refused]
        tried = set[str]()
        if SYSTEM_ROLE in new and _NO_SYSTEM.search(error.text):
            tried.add(SYSTEM_ROLE)
            yield {SYSTEM_ROLE}
        if EMPTY_CONTENT in new and (error.status == 400 or _CONTENT.search(error.text)):  # noqa: PLR2004
            tried.add(EMPTY_CONTENT)
            yield {EMPTY_CONTENT}
            yield {EMPTY_CONTENT, NULL_CONTENT}
        fields = sent.keys() - _REQUIRED - {"stop"}
        names_one = any(re.search(rf"\b{re.escape(name)}\b", error.text) for name in fields)
        if error.status == 400 and not names_one:  # noqa: PLR2004 - other errors name the field
            rest = [name for name in new if name not in tried]
            yield from ({name} for name in rest)
            if len(rest) > 1:
                yield set(rest)


def filled(messages: Sequence[Message]) -> list[Message]:
    """Return messages without empty content, except beside tool calls, where training has none either."""
    return [
        message
        if (message.get("content") or "").strip()
        else {**message, "content": "" if message.get("tool_calls") else EMPTY}
        for message in messages
    ]


def _parts(sent: Mapping[str, Any]) -> list[str]:
    """Return the optional parts of a request, the least likely to be accepted first."""
    messages = sent["messages"]
    parts = [
        name for name in sent if name not in _REQUIRED and name not in _VALID and name not in _OTHER_NAMES
    ]
    parts += [name for name in reversed(_VALID) if name in sent]
    parts += [name for name in sent if name in _OTHER_NAMES]
    if messages and messages[0].get("role") == "system":
        parts.append(SYSTEM_ROLE)
    if any(not message["content"] for message in messages):
        parts.append(EMPTY_CONTENT)
    return parts


def _is_refused(name: str, value: Any, text: str, error: ErrorReply) -> bool:
    """Return whether an error refuses a field, and does not only reject its value as a mistake."""
    valid = _VALID.get(name)
    if valid is not None and not valid(value):
        return False
    own = rf"(?<![\w-]){re.escape(name)}(?![\w-])"
    words = _UNSUPPORTED if valid is None else _INVALID
    near = re.search(
        rf"{own}.{{0,120}}?(?:{words})|(?:{words}).{{0,120}}?{own}", text, re.IGNORECASE | re.DOTALL
    )
    return bool(near) or (valid is not None and name in error_params(error.value))


def _noun(name: str) -> str:
    return name if name == SYSTEM_ROLE else f"field {name}"
