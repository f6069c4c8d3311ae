"""Calls in JSON or in tags, in the shapes that models are trained to emit."""

from __future__ import annotations

import contextlib
import json
import re
import sys
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from agentgym_gym._json import NotJson, decode
from agentgym_gym._text import shown
from agentgym_gym.errors import ActionError, BadArguments, ManyActions
from agentgym_gym.formats._dialects import (
    MODULES,
    call_in_braces,
    head_before,
    is_native,
    patterns,
    tagged_call,
    value_of,
)

if TYPE_CHECKING:
    from agentgym_gym.actions import Action, Grammar

__all__ = ["WrittenCall", "arguments_of", "json_calls"]

_MOST = 64  # calls, other objects and braces that are examined
_DEEPEST = 4  # levels of objects around a call
_LONGEST_TAG = 400  # characters of a tag with the name of a function
_MOST_ENCODED = 3  # times that arguments may be encoded as JSON

# Known keys, in lower case and without underscores.
_NAMES = (
    *("functionname", "name", "function", "toolname", "tool", "action", "actionname", "command"),
    *("recipientname", "func", "method"),
)
_ARGUMENTS = (
    *("arguments", "parameters", "args", "input", "kwargs", "actioninput", "params", "toolinput", "inputs"),
    *("toolargs", "toolarguments", "toolparameters", "functionargs", "functionarguments", "argument"),
    *("parameter", "actionargs", "actionarguments", "actionparameters", "functionparameters"),
    "functioninput",
)
_AROUND = (
    *("toolcalls", "toolcall", "functioncall", "functioncalls", "function", "tooluse", "tooluses", "tool"),
    *("action", "actions", "nextaction", "command", "call", "calls", "content", "message", "parts"),
)
_SEVERAL = frozenset({"toolcalls", "toolcall", "functioncall", "functioncalls", "tooluses", "jsonrpc"})
"""Keys that identify an object as a message of a chat API that contains a call."""
_MCP = "tools/call"
_RESULTS = frozenset(
    {"result", "results", "output", "observation", "response", "content", "items", "status", "error"}
)


class WrittenCall(NamedTuple):
    """A call as written in a reply.

    Attributes:
        result: The action, or the error if the call is not an action.
        name: The name of the function; empty if the call cannot be parsed.
        arguments: Its arguments as written, or the text of a call that cannot be parsed.
        start: Start of the call in the reply.
        end: End of the call.
        native: Whether it is in a native notation, where a message may have several calls.
    """

    result: Action | ActionError
    name: str
    arguments: Any
    start: int
    end: int
    native: bool

    def __str__(self) -> str:
        """Return the action; if there is none, the call as JSON or, if it cannot be parsed, its text."""
        if not isinstance(self.result, ActionError):
            return str(self.result)
        if not self.name:
            return str(self.arguments)
        call = {"name": self.name, "arguments": self.arguments}
        return json.dumps(call, ensure_ascii=False, default=str)


def json_calls(text: str, grammar: Grammar, start: int = 0, last: int = sys.maxsize) -> Iterator[WrittenCall]:
    """Yield the calls in a reply in order; unclosed JSON is the last one.

    Args:
        text: The reply.
        grammar: The actions that the reply may contain.
        start: Earliest start of the first call.
        last: Latest start of the last call.
    """
    looked_at = 0
    at = start
    native = False
    limit = min(len(text), last + _LONGEST_TAG)
    search = patterns().opening.search
    while opening := search(text, at, limit):
        begin = opening.start()
        native = is_native(text, begin) or (native and _JOINT.fullmatch(text, at, begin) is not None)
        looked_at += 1
        if looked_at > _MOST:
            return
        try:
            calls, end = _calls_at(text, opening, grammar)
        except NotJson as error:
            if not error.meant:
                at = begin + 1
                continue
            end = len(text) if error.cut_off else _next_opening(text, begin)
            yield WrittenCall(
                BadArguments(f"the JSON cannot be read: {error}"), "", text[begin:end], begin, end, native
            )
            at = end
            continue
        except ActionError as error:
            end = _next_opening(text, begin)
            yield WrittenCall(error, "", text[begin:end], begin, end, native)
            at = end
            continue
        for call in calls:
            yield _written(call, end, grammar, native=native or call.native)
        at = end


_JOINT = re.compile(r"(?:[\s,;\]\[`]|(?<=`)\w+|</?[|｜]?[\w:｜▁|-]{1,60}>)*")
_NEXT = re.compile(r"\n\s*(?=[{<｛]|```)")


def _next_opening(text: str, start: int) -> int:
    """Return the start of the next line that may begin with another call, or the end."""
    found = _NEXT.search(text, start)
    return found.end() if found else len(text)


class _Named(NamedTuple):
    """A function name and arguments."""

    name: str
    arguments: Any
    start: int
    native: bool


def _calls_at(text: str, opening: re.Match[str], grammar: Grammar) -> tuple[list[_Named], int]:
    """Return the calls that start at an opening, and the end of their text.

    Raises:
        NotJson: The JSON cannot be parsed.
        BadArguments: A call cannot be parsed.
    """
    start = opening.start()
    if text[start] not in "{｛":
        if braced := call_in_braces(text, start, lambda name: _signature(grammar, name)):
            arguments = arguments_of(braced.arguments, braced.name, grammar)
            arguments = _typed(braced.name, arguments, grammar) if braced.plain else arguments
            return [_Named(braced.name, arguments, start, native=True)], braced.end
        tagged = tagged_call(text, start)
        if tagged is None:
            return [], opening.end()
        arguments = _typed(tagged.name, tagged.arguments, grammar)
        return [_Named(tagged.name, arguments, start, native=True)], tagged.end
    value, end = decode(text, start)
    calls = list(_calls_of(value, text, start, grammar))
    if not any(_is_known(grammar, call.name) for call in calls) and (action := _action_text(value, grammar)):
        calls = [_Named(action.name(), action.to_json(), start, native=False)]
    return calls, end


def _calls_of(value: Any, text: str, start: int, grammar: Grammar) -> Iterator[_Named]:
    head = head_before(text, start)
    if head is not None and head.sure:
        name = _plain_name(head.name)
        yield _Named(name, arguments_of(value, name, grammar), head.start, native=True)
        return
    calls = _calls_in(value, grammar, 0)
    if (
        head is not None
        and _is_known(grammar, head.name)
        and not any(_is_known(grammar, name) for name, _ in calls)
    ):
        name = _plain_name(head.name)
        yield _Named(name, arguments_of(value, name, grammar), head.start, native=True)
        return
    native = isinstance(value, Mapping) and any(_folded(str(key)) in _SEVERAL for key in value)
    for name, arguments in calls:
        yield _Named(name, arguments, start, native=native)


_ACTION_KEYS = ("action", "nextaction", "command", "move")


def _action_text(value: Any, grammar: Grammar) -> Action | None:
    """Return the action written as a value of an object, as in ``{"action": "move up"}``.

    Raises:
        ManyActions: Two values are different actions.
    """
    if not value or not isinstance(value, Mapping):
        return None
    folded = {_folded(str(key)): each for key, each in value.items()}
    if _RESULTS & folded.keys():
        return None
    found: list[Action] = []
    for key in _ACTION_KEYS:
        if isinstance(folded.get(key), str):
            with contextlib.suppress(ActionError):
                found.append(grammar.parse(folded[key]))
    if any(action != found[0] for action in found):
        first, other = shown(str(found[0])), shown(str(next(each for each in found if each != found[0])))
        raise ManyActions(f"the JSON object holds more than one action: {first} and {other}")
    return found[0] if found else None


def _written(call: _Named, end: int, grammar: Grammar, *, native: bool) -> WrittenCall:
    result: Action | ActionError
    try:
        result = grammar.from_call(call.name, call.arguments)
    except ActionError as error:
        result = error
    return WrittenCall(result, call.name, call.arguments, call.start, end, native)


def _calls_in(found: Any, grammar: Grammar, depth: int) -> list[tuple[str, Any]]:
    """Return the names and arguments of the calls in an object, at any level."""
    if not found or not isinstance(found, Mapping) or depth > _DEEPEST or _describes(found):
        return []
    folded = {_folded(key): value for key, value in found.items()}
    if folded.get("method") == _MCP:
        return _calls_in(folded.get("params"), grammar, depth + 1)
    for inside in (folded[key] for key in _AROUND if key in folded):
        if not isinstance(inside, (Mapping, list)):
            continue
        parts = inside if isinstance(inside, list) else [inside]
        if calls := [call for part in parts[:_MOST] for call in _calls_in(part, grammar, depth + 1)]:
            return calls
    name = _name_in(folded, grammar)
    if name is not None:
        return _calls_by_name(name, found, folded, grammar)
    return [
        (_plain_name(key), arguments_of(value, key, grammar))
        for key, value in found.items()
        if isinstance(value, (Mapping, type(None))) and _is_known(grammar, key)
    ]


def _calls_by_name(
    name: str, found: Mapping[str, Any], folded: Mapping[str, Any], grammar: Grammar
) -> list[tuple[str, Any]]:
    """Return the call in an object with a name; none if the object describes a function or is a result."""
    given = [folded[key] for key in _ARGUMENTS if key in folded and folded[key] != name]
    if given:
        if any(other and other != given[0] for other in given[1:]):
            raise BadArguments("the arguments are given twice")
        return [(_plain_name(name), arguments_of(given[0], name, grammar))]
    flat = {key: found[key] for key in _signature(grammar, name) if key in found and found[key] != name}
    rest = {key: value for key, value in folded.items() if value != name and key not in flat}
    alone = _is_known(grammar, name) and _are_thoughts(rest)
    return [(_plain_name(name), flat)] if flat or alone or "functionname" in folded else []


def _are_thoughts(rest: Mapping[str, Any]) -> bool:
    return all(isinstance(value, str) for value in rest.values()) and not _RESULTS & rest.keys()


def _name_in(folded: Mapping[str, Any], grammar: Grammar) -> str | None:
    """Return the function name in an object, known or not.

    Raises:
        BadArguments: The object has two.
    """
    given = [folded[key] for key in _NAMES if isinstance(folded.get(key), str)]
    known = {_folded(_plain_name(name)): name for name in given if _is_known(grammar, name)}
    if len(known) > 1:
        raise BadArguments(f"the JSON object names two functions: {shown(', '.join(known.values()))}")
    return next(iter(known.values()), given[0] if given else None)


def _describes(found: Mapping[str, Any]) -> bool:
    """Return whether an object is the description of a function, or not a call by the model."""
    if any(found.get(key) is False for key in ("execute", "run", "call", "send", "confirmed")):
        return True
    if found.get("role") in {"tool", "function", "user", "system"}:
        return True
    schemas = [found[k] for k in ("parameters", "input_schema", "inputSchema", "arguments") if k in found]
    listed = any(
        isinstance(each, Mapping) and isinstance(each.get("properties"), Mapping) for each in schemas
    )
    return listed or (
        "description" in found and "name" in found and not any(isinstance(s, str) for s in schemas)
    )


def _folded(key: str) -> str:
    return key.replace("_", "").replace(" ", "").lower()


def arguments_of(given: Any, name: str, grammar: Grammar) -> Any:
    """Return the arguments of a call, as an object if possible.

    Raises:
        BadArguments: The arguments are invalid JSON.
    """
    if not given and given != 0:
        return {}
    if isinstance(given, list) and len(given) == 1 and isinstance(given[0], Mapping):
        return given[0]
    if isinstance(given, str):
        text = given.strip()
        for _ in range(_MOST_ENCODED):  # JSON encoded as a JSON string
            if text[:1] != '"' or not isinstance(inner := _string(text), str):
                break
            text = inner.strip()
        if text[:1] in {"{", "｛", "["}:
            return _decoded(text)
        names = _signature(grammar, name)
        return {names[0]: given} if len(names) == 1 else given
    return given


def _string(text: str) -> object:
    """Return the value of a text that is one JSON string; None for any other text."""
    try:
        value, end = decode(text)
    except NotJson:
        return None
    return value if end == len(text) else None


def _decoded(text: str) -> Any:
    try:
        value, end = decode(text)
    except NotJson as error:
        raise BadArguments(f"the JSON of the arguments cannot be read: {error}") from None
    if text[end:].strip():
        raise BadArguments(f"text follows the JSON of the arguments: {shown(text[end:])}")
    if isinstance(value, list) and len(value) == 1:
        value = value[0]
    return value


def _typed(name: str, arguments: Mapping[str, str], grammar: Grammar) -> dict[str, Any]:
    if not _is_known(grammar, name):
        return dict(arguments)
    schema = grammar.parameters(_plain_name(name))["properties"]
    return {key: value_of(written, schema.get(key, {})) for key, written in arguments.items()}


def _plain_name(name: str) -> str:
    """Return the name of a function without prefixes and parentheses that models add."""
    name = name.strip().removesuffix("()")
    module, dot, rest = name.partition(".")
    while dot and module.strip().lower() in MODULES:
        name = rest
        module, dot, rest = name.partition(".")
    return name.strip().replace(" ", "_").replace("-", "_")


def _is_known(grammar: Grammar, name: str) -> bool:
    return grammar.has_function(_plain_name(name))


def _signature(grammar: Grammar, name: str) -> tuple[str, ...]:
    return grammar.signature(_plain_name(name)) if _is_known(grammar, name) else ()
