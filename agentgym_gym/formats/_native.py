"""The function calls of a reply that are written as JSON or in a native notation."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from agentgym_gym.errors import ActionError, ManyActions
from agentgym_gym.formats._code import CodeCall, action_of, calls_in_code
from agentgym_gym.formats._dialects import PYTHON
from agentgym_gym.formats._json_calls import WrittenCall, json_calls

if TYPE_CHECKING:
    from agentgym_gym.actions import Grammar

__all__ = ["call_at", "calls_in"]

_LONGEST_OPENING = 200  # characters before the arguments of a call: its tokens, tags and name
_OPENING = re.compile(
    r"(?:[\s\[`]|```\w*|</?[|｜]?[\w:｜▁|-]{1,60}[|｜]?>|\[(?:TOOL_CALLS|ARGS)\])*(?:[\w.:-]{0,90}\s*)?"
)


def calls_in(text: str, grammar: Grammar) -> list[WrittenCall]:
    """Return the calls of a reply in order, those that cannot be read among them."""
    found: list[WrittenCall] = []
    if "{" in text or "<" in text or "｛" in text:
        found += json_calls(text, grammar)
    if "(" in text:
        found += [
            call
            for call in _python_calls(text, grammar)
            if not any(other.start < call.end and call.start < other.end for other in found)
        ]
        found.sort(key=lambda call: call.start)
    return found


def call_at(text: str, start: int, end: int, grammar: Grammar) -> WrittenCall | None:
    """Return the call that begins at a place; None without one.

    Args:
        text: The reply.
        start: The place.
        end: Where the line of the place ends; a call may go on behind it.
        grammar: The actions it may name.
    """
    if text[start] not in "{[<｛" and "{" not in text[start:end]:
        return None
    for calls in (json_calls(text, grammar, start), _python_calls(text, grammar, start)):
        call = next(calls, None)
        if (
            call is not None
            and call.start <= start + _LONGEST_OPENING
            and _OPENING.fullmatch(text, start, call.start)
        ):
            return call if call.native else _only(call, calls, end)
    return None


def _only(call: WrittenCall, others: Iterator[WrittenCall], end: int) -> WrittenCall:
    """Return a call, with an error where another one begins on its line."""
    for other in others:
        if other.start >= end:
            break
        if other.read != call.read and not isinstance(other.read, ActionError):
            return call._replace(read=ManyActions(f"the mark holds more than one call: {call} and {other}"))
    return call


def _python_calls(text: str, grammar: Grammar, start: int = 0) -> Iterator[WrittenCall]:
    """Yield the calls in Python between the tokens of a native notation."""
    for found in PYTHON.finditer(text, start):
        place = found.start(), found.end()
        calls: list[CodeCall] = []
        try:
            calls = calls_in_code(found["code"] or found["list"], grammar, several=True)
        except ActionError as error:
            yield WrittenCall(error, "", None, *place, native=True)
        for call in calls:
            arguments = call.keywords or call.args
            yield WrittenCall(action_of(call, grammar), call.name, arguments, *place, native=True)
