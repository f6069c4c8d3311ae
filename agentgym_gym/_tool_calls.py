"""Conversion of ``step`` arguments: text, typed actions, and function calls in the formats of chat APIs."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias, TypeGuard

from agentgym_gym._json import unique_keys
from agentgym_gym._text import no_constant, scrub, shown
from agentgym_gym.actions import MAX_ACTION_CHARS, Action, Grammar, ToolCall, Verbatim
from agentgym_gym.errors import ActionError, BadArguments, BadOption, NoAction
from agentgym_gym.formats._base import MAX_IGNORED_CHARS, ParseResult

__all__ = [
    "NormalizedAction",
    "accepts",
    "called_action",
    "normalize_action",
    "reply_text",
]

NormalizedAction: TypeAlias = str | Action | Verbatim | tuple[ToolCall, ...]
"""An agent's reply in one turn. Function calls are a tuple, because a model may make none or several."""

_BESIDE = {"id", "type", "index"}  # keys of a call that are ignored
_ENCODINGS = 3  # nested JSON encodings of arguments: one, and up to two more by careless templates


def normalize_action(action: object, grammar: Grammar) -> NormalizedAction:
    """Convert an argument of ``step`` to text, an action or function calls.

    Args:
        action: Any object that `StepAction` allows. A message with calls is converted to the calls; one
            without is converted to its text.
        grammar: The actions of the environment.

    Raises:
        BadOption: The argument has another type, or is an action of another environment.
    """
    if isinstance(action, str):
        return scrub(action)
    if isinstance(action, Verbatim):
        return Verbatim(scrub(action.text))
    if isinstance(action, grammar.actions):
        return action
    action = _dumped(action)
    if isinstance(action, Mapping) and ("role" in action or "tool_calls" in action):
        return _of_message(action)
    if _is_list(action):
        return tuple(map(_call, action))
    return (_call(action),)


def accepts(action: object, grammar: Grammar) -> bool:
    """Return whether :func:`normalize_action` accepts an argument."""
    try:
        normalize_action(action, grammar)
    except BadOption:
        return False
    return True


def called_action(calls: Sequence[ToolCall], grammar: Grammar) -> ParseResult:
    """Parse function calls: the first valid one is the action, all others are ignored.

    Returns:
        The parse result, with the position of the call in `reply_text`. The text of an ignored call is its
        action, or its JSON if the call is invalid.

    Raises:
        NoAction: There is no call.
        UnknownAction: No call is valid, and the first one has an unknown function name.
        BadArguments: No call is valid, and the arguments of the first one are invalid, or not JSON.
    """
    if not calls:
        raise NoAction("there is no function call in the reply")
    actions = [_action(call, grammar) for call in calls]
    played = next((number for number, action in enumerate(actions) if isinstance(action, Action)), 0)
    action = actions[played]
    if isinstance(action, ActionError):
        raise action
    texts = [str(call) for call in calls]
    ignored = [
        text if isinstance(read, ActionError) else str(read)
        for read, text in zip(actions, texts, strict=True)
    ]
    del ignored[played]
    start = sum(len(text) + 1 for text in texts[:played])
    end = start + len(texts[played])
    return ParseResult(action, "call", start, end, tuple(map(_ignored, ignored)), played)


def reply_text(reply: NormalizedAction) -> str:
    """Return the text of an agent's reply for a transcript, with one line per function call."""
    return scrub("\n".join(map(str, reply))) if isinstance(reply, tuple) else str(reply)


def _of_message(message: Mapping[str, Any]) -> NormalizedAction:
    if message.get("role", "assistant") != "assistant":
        raise BadOption(f"step takes a message of the role 'assistant', not {shown(message['role'])}")
    calls, content = message.get("tool_calls"), message.get("content")
    if not calls and message.get("function_call"):  # the only call of OpenAI's older API
        return (_call(message["function_call"]),)
    if calls:
        if not _is_list(calls):
            raise BadOption(f"the tool_calls of a message should be a list, not {shown(calls)}")
        return tuple(map(_call, calls))
    if _is_list(content):  # content parts; images and the like have no text
        parts = [part.get("text") for part in map(_dumped, content) if isinstance(part, Mapping)]
        content = "".join(text for text in parts if isinstance(text, str))
    if content is not None and not isinstance(content, str):
        raise BadOption(f"the content of a message should be text, not {shown(content)}")
    return scrub(content or "")


def _call(made: object) -> ToolCall:
    made = _dumped(made)
    if isinstance(made, Mapping):
        inner = _dumped(made.get("function"))
        call = inner if isinstance(inner, Mapping) else made
        if "name" not in call or ("arguments" not in call and set(call) - _BESIDE != {"name"}):
            raise BadOption(f"a function call has a name and arguments, unlike {shown(made)}")
        arguments = call.get("arguments")
        made = ToolCall(call["name"], {} if arguments is None else arguments)
    if not isinstance(made, ToolCall):
        raise BadOption(
            "step takes text, an action of this environment, a ToolCall, a mapping of name and arguments, an "
            f"assistant's message, or a list of calls, not {shown(made)}"
        )
    if not isinstance(made.name, str):
        raise BadOption(f"the name of a function call should be text, not {shown(made.name)}")
    if not isinstance(made.arguments, str):
        try:
            json.dumps(_plain(made.arguments))
        except (TypeError, ValueError, RecursionError) as error:
            raise BadOption(f"the arguments of a function call should be JSON: {error}") from None
    return made


def _ignored(text: str) -> str:
    return scrub(text[:MAX_IGNORED_CHARS])


def _action(call: ToolCall, grammar: Grammar) -> Action | ActionError:
    name = call.name.strip().removeprefix("functions.")  # the namespace of tools in some templates
    try:
        return grammar.from_call(name, _arguments(call))
    except ActionError as error:
        return error


def _arguments(call: ToolCall) -> Any:
    """Return the arguments as JSON values, with the same validation for JSON text and for objects."""
    known = call.arguments
    text = known if isinstance(known, str) else json.dumps(_plain(known), ensure_ascii=False)
    if len(text) > MAX_ACTION_CHARS:
        raise BadArguments(
            f"the arguments are {len(text)} characters long; at most {MAX_ACTION_CHARS} are read"
        )
    try:
        value = _JSON.decode(text.strip() or "{}")
        for _ in range(_ENCODINGS - 1):
            if not isinstance(value, str) or not value.lstrip().startswith(("{", '"')):
                break
            value = _JSON.decode(value.strip())
        # An escape can encode half of a surrogate pair, which neither servers nor files accept.
        return _JSON.decode(scrub(json.dumps(value, ensure_ascii=False)))
    except (ValueError, RecursionError) as error:
        raise BadArguments(f"the JSON of the arguments cannot be read: {str(error)[:200]}") from None


_JSON = json.JSONDecoder(object_pairs_hook=unique_keys, parse_constant=no_constant, strict=False)


def _plain(arguments: object) -> object:
    return dict(arguments) if isinstance(arguments, Mapping) else arguments


def _is_list(value: object) -> TypeGuard[Sequence[Any]]:
    return isinstance(value, Sequence) and not isinstance(value, (str, bytes, bytearray))


def _dumped(value: object) -> object:
    """Return a pydantic object, as used by API clients, as a mapping; return other objects unchanged."""
    dump = getattr(value, "model_dump", None)
    return dump() if callable(dump) and not isinstance(value, type) else value
