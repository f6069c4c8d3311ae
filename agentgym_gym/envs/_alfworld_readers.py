"""ALFWorld: replies read as AgentGym's own client reads them."""

from __future__ import annotations

from typing import Any

from agentgym_gym.envs._agentgym_parsers import INVALID_ACTION, answers, code_action, json_call, known
from agentgym_gym.errors import BadArguments

__all__ = ["read_code_as_action", "read_function_calling"]

# AgentGym's functions: the start of the action, the word between its arguments, and the argument names.
_FUNCTIONS = {
    "goto": ("go to", "", ("recep",)),
    "take": ("take", "from", ("obj", "recep")),
    "put": ("put", "in/on", ("obj", "recep")),
    "toggle": ("toggle", "", ("obj",)),
    "open": ("open", "", ("recep",)),
    "close": ("close", "", ("recep",)),
    "heat": ("heat", "with", ("obj", "recep")),
    "cool": ("cool", "with", ("obj", "recep")),
    "clean": ("clean", "with", ("obj", "recep")),
    "examine": ("examine", "with", ("recep", "obj")),
    "inventory": ("inventory", "", ()),
    "look": ("look", "", ()),
    "use": ("use", "", ("obj",)),
}
_SIGNATURES = {name: arguments for name, (_, _, arguments) in _FUNCTIONS.items()} | {"toggle": ("recep",)}


def _sentence(name: str, values: list[Any]) -> str:
    """Return the action text that AgentGym's client builds for a function and its arguments."""
    verb, between, _ = _FUNCTIONS[name]
    return f"{verb} {f' {between} '.join(map(str, values))}" if values else verb


@answers(INVALID_ACTION)
def read_function_calling(reply: str) -> str:
    """Return the text that AgentGym's ``AlfWorldEnvClient`` would send for a JSON reply.

    The client writes as many arguments as the reply has; without arguments it sends only the verb.
    """
    name, given = json_call(reply)
    name = known(name.strip(), _FUNCTIONS)
    names = _FUNCTIONS[name][2]
    if given not in ("", []) and not (isinstance(given, dict) and set(given) <= set(names)):
        raise BadArguments(f"the arguments of {name} are: {', '.join(names) or 'none'}")
    names = names[: len(given)]
    if not all(each in given for each in names):
        raise BadArguments(f"the first argument of {name} is missing")
    return _sentence(name, [given[each] for each in names])


@answers(INVALID_ACTION)
def read_code_as_action(reply: str) -> str:
    """Return the text that AgentGym's ``AlfWorldEnvClient`` would send for a Python reply."""
    return code_action(reply, _SIGNATURES, _action_of_call)


def _action_of_call(name: str, given: dict[str, Any]) -> str:
    names = _SIGNATURES[name]
    if name == "examine" and not given.get("obj", ""):
        given.pop("obj", None)
        names = names[:1]
    if len(given) < len(names):
        raise BadArguments(f"the arguments of {name} are: {', '.join(names)}")
    return _sentence(name, [given[each] for each in names])
