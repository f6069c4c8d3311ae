"""Calls written as JSON, or in tags, in any of the shapes that models are trained to emit."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from agentgym_gym._json import NotJson, decode
from agentgym_gym._text import shown
from agentgym_gym.errors import BadArguments
from agentgym_gym.formats._dialects import MODULES, OPENING, head_before, tagged_call, value_of

if TYPE_CHECKING:
    from agentgym_gym.actions import Grammar

__all__ = ["RESULTS", "WrittenCall", "json_calls"]

_MOST = 64  # calls and other objects that are looked at, and as many braces that begin none
_DEEPEST = 4  # objects around a call

# The keys in use, in small letters and without underscores.
_NAMES = (
    "functionname",
    "name",
    "function",
    "toolname",
    "tool",
    "action",
    "actionname",
    "command",
    "recipientname",
    "func",
    "method",
)
_ARGUMENTS = (
    *("arguments", "parameters", "args", "input", "kwargs", "actioninput", "params", "toolinput", "inputs"),
    *(
        "toolargs",
        "toolarguments",
        "toolparameters",
        "functionargs",
        "functionarguments",
        "argument",
        "parameter",
    ),
    *("actionargs", "actionarguments", "actionparameters", "functionparameters", "functioninput"),
)
_AROUND = (
    *("toolcalls", "toolcall", "functioncall", "functioncalls", "function", "tooluse", "tooluses", "tool"),
    *("action", "actions", "nextaction", "call", "calls", "content", "message", "parts"),
)
RESULTS = frozenset(
    {"result", "results", "output", "observation", "response", "content", "items", "status", "error"}
)


class WrittenCall(NamedTuple):
    """A call as it is written.

    Attributes:
        name: The name of the function.
        arguments: What is written as its arguments.
        start: Where it begins in the reply.
        end: Where it ends.
    """

    name: str
    arguments: Any
    start: int
    end: int


def json_calls(text: str, grammar: Grammar) -> list[WrittenCall]:
    """Return all the calls in a reply, in order.

    Raises:
        BadArguments: What was meant as a call cannot be read, or there is too much to look at.
    """
    found: list[WrittenCall] = []
    at = looked_at = 0
    while opening := OPENING.search(text, at):
        start = opening.start()
        looked_at += 1
        if looked_at > _MOST:
            if not found:
                break
            raise BadArguments(f"the reply holds more than {_MOST} objects")
        if text[start] == "<":
            tagged = tagged_call(text, start)
            if tagged is None:
                at = opening.end()
                continue
            at = tagged.end
            arguments = _typed(tagged.name, tagged.arguments, grammar)
            found.append(WrittenCall(tagged.name, arguments, start, at))
            continue
        try:
            value, at = decode(text, start)
        except NotJson as error:
            if error.meant:
                raise BadArguments(f"the JSON cannot be read: {error}") from None
            at = start + 1
            continue
        found += _calls_of(value, text, start, at, grammar)
    return found


def _calls_of(value: Any, text: str, start: int, end: int, grammar: Grammar) -> Iterator[WrittenCall]:
    head = head_before(text, start)
    if head is not None and (head.sure or _knows(grammar, head.name)):
        name = _plain_name(head.name)
        yield WrittenCall(name, _arguments(value, name, grammar), head.start, end)
        return
    for name, arguments in _calls_in(value, grammar, 0):
        yield WrittenCall(name, arguments, start, end)


def _calls_in(found: Any, grammar: Grammar, depth: int) -> list[tuple[str, Any]]:
    """Return the names and arguments in an object, or in what lies in it."""
    if not isinstance(found, Mapping) or depth > _DEEPEST or _describes(found):
        return []
    folded = {_folded(key): value for key, value in found.items()}
    for inside in (folded[key] for key in _AROUND if isinstance(folded.get(key), (Mapping, list))):
        parts = inside if isinstance(inside, list) else [inside]
        if calls := [call for part in parts[:_MOST] for call in _calls_in(part, grammar, depth + 1)]:
            return calls
    name = _name_in(folded, grammar)
    if name is not None:
        return _calls_by_name(name, found, folded, grammar)
    return [
        (_plain_name(key), _arguments(value, key, grammar))
        for key, value in found.items()
        if isinstance(value, (Mapping, type(None))) and _knows(grammar, key)
    ]


def _calls_by_name(
    name: str, found: Mapping[str, Any], folded: Mapping[str, Any], grammar: Grammar
) -> list[tuple[str, Any]]:
    """Return the call of an object that gives a name; none where it is a thing that has one, or a result."""
    given = [folded[key] for key in _ARGUMENTS if key in folded and folded[key] != name]
    if given:
        if any(other and other != given[0] for other in given[1:]):
            raise BadArguments("the arguments are given twice")
        return [(_plain_name(name), _arguments(given[0], name, grammar))]
    flat = {key: found[key] for key in _signature(grammar, name) if key in found and found[key] != name}
    told = {key: value for key, value in folded.items() if value != name and key not in flat}
    alone = len(folded) == 1 or (_knows(grammar, name) and _are_thoughts(told))
    return [(_plain_name(name), flat)] if flat or alone or "functionname" in folded else []


def _are_thoughts(told: Mapping[str, Any]) -> bool:
    return all(isinstance(value, str) for value in told.values()) and not RESULTS & told.keys()


def _name_in(folded: Mapping[str, Any], grammar: Grammar) -> str | None:
    """Return the name of a function that an object gives, known or not.

    Raises:
        BadArguments: It gives two.
    """
    given = [folded[key] for key in _NAMES if isinstance(folded.get(key), str)]
    known = {_folded(_plain_name(name)): name for name in given if _knows(grammar, name)}
    if len(known) > 1:
        raise BadArguments(f"the JSON object names two functions: {shown(', '.join(known.values()))}")
    return next(iter(known.values()), given[0] if given else None)


def _describes(found: Mapping[str, Any]) -> bool:
    """Return whether an object describes a function, as the prompt does, or is not the model's."""
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


def _arguments(given: Any, name: str, grammar: Grammar) -> Any:
    """Return the arguments that are meant, as an object where they can be one."""
    if not given and given != 0:
        return {}
    if isinstance(given, list) and len(given) == 1 and isinstance(given[0], Mapping):
        return given[0]
    if isinstance(given, str):
        text = given.strip()
        if text[:1] in {"{", "｛", "["}:
            return _decoded(text)
        names = _signature(grammar, name)
        return {names[0]: given} if len(names) == 1 else given
    return given


def _decoded(text: str) -> Any:
    try:
        value, end = decode(text)
    except NotJson as error:
        raise BadArguments(f"the JSON of the arguments cannot be read: {error}") from None
    if text[end:].strip():
        raise BadArguments(f"more than the arguments is written in their place: {shown(text[end:])}")
    if isinstance(value, list) and len(value) == 1:
        value = value[0]
    return value


def _typed(name: str, arguments: Mapping[str, str], grammar: Grammar) -> dict[str, Any]:
    if not _knows(grammar, name):
        return dict(arguments)
    schema = grammar.parameters(_plain_name(name))["properties"]
    return {key: value_of(written, schema.get(key, {})) for key, written in arguments.items()}


def _plain_name(name: str) -> str:
    """Return the name of a function without what models put around it."""
    name = name.strip().removesuffix("()")
    module, dot, rest = name.partition(".")
    while dot and module.strip().lower() in MODULES:
        name = rest
        module, dot, rest = name.partition(".")
    return name.strip().replace(" ", "_").replace("-", "_")


def _knows(grammar: Grammar, name: str) -> bool:
    return grammar.has_function(_plain_name(name))


def _signature(grammar: Grammar, name: str) -> tuple[str, ...]:
    return grammar.signature(_plain_name(name)) if _knows(grammar, name) else ()
