"""What ``step`` may be given: text, typed actions, and function calls in the shapes that chat APIs have."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias, TypeGuard

from agentgym_gym._json import unique_keys
from agentgym_gym._text import no_constant, scrub, shown
from agentgym_gym.actions import MAX_ACTION_CHARS, Action, Grammar, ToolCall, Verbatim
from agentgym_gym.errors import BadArguments, BadOption, ManyActions, NoAction

__all__ = ["Given", "called_action", "given", "shown_reply", "takes"]

Given: TypeAlias = str | Action | Verbatim | tuple[ToolCall, ...]
"""What an agent gives in a turn. Function calls are a tuple, since a model may make none or several."""

_BESIDE = {"id", "type", "index"}  # keys of a call that do not matter


def given(action: object, grammar: Grammar) -> Given:
    """Return what ``step`` was given as text, as an action or as function calls.

    Args:
        action: Any of the things named in `StepAction`. A message with calls stands for them; one without
            stands for its text.
        grammar: The actions of the environment.

    Raises:
        BadOption: It is none of these, or an action of another environment.
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


def takes(action: object, grammar: Grammar) -> bool:
    """Return whether :func:`given` takes it."""
    try:
        given(action, grammar)
    except BadOption:
        return False
    return True


def called_action(calls: Sequence[ToolCall], grammar: Grammar) -> Action:
    """Return the action that the one function call stands for.

    Raises:
        NoAction: There is no call.
        ManyActions: There is more than one.
        UnknownAction: There is no function of that name.
        BadArguments: The arguments do not fit, or they are not JSON.
    """
    if not calls:
        raise NoAction("there is no function call in the reply")
    if len(calls) > 1:
        raise ManyActions("there is more than one function call in the reply")
    name = calls[0].name.strip().removeprefix("functions.")  # the namespace of tools in some templates
    return grammar.from_call(name, _arguments(calls[0]))


def shown_reply(reply: Given) -> str:
    """Return what an agent gave as a transcript shows it: of function calls one in a line."""
    return scrub("\n".join(map(str, reply))) if isinstance(reply, tuple) else str(reply)


def _of_message(message: Mapping[str, Any]) -> Given:
    if message.get("role", "assistant") != "assistant":
        raise BadOption(f"step takes a message of the role 'assistant', not {shown(message['role'])}")
    calls, content = message.get("tool_calls"), message.get("content")
    if not calls and message.get("function_call"):  # the one call of OpenAI's older API
        return (_call(message["function_call"]),)
    if calls:
        if not _is_list(calls):
            raise BadOption(f"the tool_calls of a message should be a list, not {shown(calls)}")
        return tuple(map(_call, calls))
    if _is_list(content):  # of parts, of which an image or the like says nothing
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


def _arguments(call: ToolCall) -> Any:
    """Return the arguments as JSON values, from text or as they came, by the same rules for both."""
    known = call.arguments
    text = known if isinstance(known, str) else json.dumps(_plain(known), ensure_ascii=False)
    if len(text) > MAX_ACTION_CHARS:
        raise BadArguments(
            f"the arguments are {len(text)} characters long; at most {MAX_ACTION_CHARS} are read"
        )
    try:
        value = _JSON.decode(text.strip() or "{}")
        # An escape can stand for half a character, which no server and no file takes.
        return _JSON.decode(scrub(json.dumps(value, ensure_ascii=False)))
    except (ValueError, RecursionError) as error:
        raise BadArguments(f"the JSON of the arguments cannot be read: {str(error)[:200]}") from None


_JSON = json.JSONDecoder(object_pairs_hook=unique_keys, parse_constant=no_constant, strict=False)


def _plain(arguments: object) -> object:
    return dict(arguments) if isinstance(arguments, Mapping) else arguments


def _is_list(value: object) -> TypeGuard[Sequence[Any]]:
    return isinstance(value, Sequence) and not isinstance(value, (str, bytes, bytearray))


def _dumped(value: object) -> object:
    """Return an object of pydantic, as API clients have them, as a mapping; anything else as it is."""
    dump = getattr(value, "model_dump", None)
    return dump() if callable(dump) and not isinstance(value, type) else value
