"""Find the function calls of a reply in JSON or a native notation."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from itertools import islice, takewhile
from typing import TYPE_CHECKING

from agentgym_gym.errors import ActionError, ManyActions
from agentgym_gym.formats._base import MAX_IGNORED_CHARS
from agentgym_gym.formats._code import CodeCall, action_of, calls_in_code, calls_known
from agentgym_gym.formats._dialects import PYTHON_END, patterns
from agentgym_gym.formats._json_calls import WrittenCall, json_calls

if TYPE_CHECKING:
    from agentgym_gym.actions import Grammar

__all__ = ["call_at", "calls_behind", "calls_in"]

_MOST = 64  # Python calls that are examined
_LONGEST_OPENING = 200  # characters before the arguments of a call: its tokens, tags and name
_OPENING = re.compile(
    r"(?:[\s\[`]|(?<=`)\w+|</?[|｜]?[\w:｜▁|-]{1,60}[|｜]?>|\[(?:TOOL_CALLS|ARGS|unused\d\d)\])*(?:[\w.:-]{0,90}\s*)?"
)


def calls_in(text: str, grammar: Grammar) -> list[WrittenCall]:
    """Return the calls in a reply in order, including unparsable ones."""
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
    """Return the call that starts at a position; None if there is none.

    Args:
        text: The reply.
        start: The position.
        end: End of the position's line; a call may extend beyond it.
        grammar: The actions that the reply may contain.
    """
    if text[start] not in "{[<｛" and "{" not in text[start:end]:
        return None
    last = start + _LONGEST_OPENING
    for calls in (json_calls(text, grammar, start, last), _python_calls(text, grammar, start, last)):
        call = next(calls, None)
        if call is not None and call.start <= last and _OPENING.fullmatch(text, start, call.start):
            return call if call.native else _only(call, json_calls(text, grammar, call.end, end), end)
    return None


def calls_behind(call: WrittenCall, text: str, grammar: Grammar, limit: int) -> tuple[str, ...]:
    """Return the texts of the native calls after a native call, up to a limit."""
    if not call.native:
        return ()
    found = takewhile(
        lambda other: other.native and other.start < limit, json_calls(text, grammar, call.end, limit)
    )
    return tuple(str(other)[:MAX_IGNORED_CHARS] for other in found)


def _only(call: WrittenCall, others: Iterator[WrittenCall], end: int) -> WrittenCall:
    """Return a call, with an error if a different call starts on its line."""
    for other in others:
        if other.start >= end:
            break
        if other.result != call.result and not isinstance(other.result, ActionError):
            return call._replace(result=ManyActions(f"the mark holds more than one call: {call} and {other}"))
    return call


def _python_calls(
    text: str, grammar: Grammar, start: int = 0, last: int = sys.maxsize
) -> Iterator[WrittenCall]:
    """Yield the Python calls between the tokens of a native notation.

    Args:
        text: The reply.
        grammar: The actions.
        start: Earliest start of the first call.
        last: Latest start of the last call.
    """
    for opening in islice(
        patterns().python.finditer(text, start, min(last + _LONGEST_OPENING, len(text))), _MOST
    ):
        begin = opening.end()
        listed = opening[0].isspace() or not opening[0]
        end = text.find("\n", begin) if listed else _end_of_python(text, begin)
        code = text[begin : end if end >= 0 else len(text)].strip()
        if listed and not code.endswith("]"):
            continue
        place = opening.start(), begin + len(code)
        calls: list[CodeCall] = []
        try:
            calls = calls_in_code(code, grammar, several=not listed)
        except ActionError as error:
            if calls_known(code, grammar):
                yield WrittenCall(error, "", code, *place, native=True)
        for call in calls:
            arguments = call.keywords or call.args
            yield WrittenCall(action_of(call, grammar), call.name, arguments, *place, native=True)


def _end_of_python(text: str, start: int) -> int:
    found = PYTHON_END.search(text, start)
    return found.start() if found else len(text)
