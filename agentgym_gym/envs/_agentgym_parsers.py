"""Shared helpers of the readers that reproduce the reply parsers of AgentGym's own clients.

A reader returns the text that AgentGym's client would send to the server. If that client answers the model
itself instead of sending a request, the reader raises an ``ActionError`` whose ``answer`` is the client's
exact text.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from typing import Any

from agentgym_gym._text import shown
from agentgym_gym.actions import MAX_ACTION_CHARS
from agentgym_gym.errors import (
    ActionError,
    BadArguments,
    ClientAnswer,
    ManyActions,
    NoAction,
    UnknownAction,
)
from agentgym_gym.literals import expression, plain_value

__all__ = [
    "INVALID_ACTION",
    "Reader",
    "answers",
    "code_action",
    "cut_end",
    "json_call",
    "known",
    "plain_line",
    "react_action",
]

Reader = Callable[[str], str]

INVALID_ACTION = ClientAnswer("Invalid Action.\n\n", repeats_page=True)
"""Answer of AgentGym's ALFWorld, SciWorld and WebShop clients to a call that they cannot parse."""

_ONLY_ONE = ClientAnswer("Error: Only one 'Action' is allowed per response. Please adjust your response.")


def answers(answer: ClientAnswer) -> Callable[[Reader], Reader]:
    """Return a decorator that attaches the client's answer to the errors of a reader."""

    def decorate(reader: Reader) -> Reader:
        @wraps(reader)
        def read(reply: str) -> str:
            try:
                return reader(reply)
            except ActionError as error:
                error.answer = answer
                raise
            except (ValueError, RecursionError):  # an argument that cannot be serialized
                unwritten = BadArguments("an argument cannot be written as text")
                unwritten.answer = answer
                raise unwritten from None

        return read

    return decorate


def cut_end(reply: str) -> str:
    """Return a reply without a trailing ``</s>`` and the character before it.

    AgentGym's ALFWorld, Maze, SciWorld, WebShop and Wordle clients cut five characters although the mark has
    four.
    """
    return reply[:-5] if reply.endswith("</s>") else reply


def react_action(reply: str) -> str:
    """Return the text after the last ``Action:``, including line breaks.

    Without an ``Action:``, return the whole reply if it contains a WebShop action (in any environment), or an
    empty string.
    """
    _, label, action = cut_end(reply).rpartition("Action:")
    return action.strip() if label or "search[" in action or "click[" in action else ""


@answers(_ONLY_ONE)
def plain_line(reply: str) -> str:
    """Return the text that AgentGym's TextCraft and BabyAI clients send.

    These clients take the rest of the line after ``Action:``, or the next line that is not blank. They reject
    two actions, and keep only ASCII letters, digits, commas and spaces. Without an ``Action:`` they send "".

    Raises:
        ManyActions: The reply has more than one ``Action:``.
    """
    found = re.findall(r"Action:\s*([^\n]*)", reply)
    if len(found) > 1:
        raise ManyActions("There is more than one `Action:` in the reply.")
    kept = re.sub(r"[^A-Za-z0-9, ]", "", found[0]) if found else ""
    return " ".join(kept.split())


def json_call(reply: str) -> tuple[str, Any]:
    """Return the function name and arguments from the JSON between the first and the last brace.

    Raises:
        NoAction: The reply has no JSON object with a thought, a function name and arguments.
    """
    inner = cut_end(reply).split("{", 1)[-1].rsplit("}", 1)[0]
    try:
        call = json.loads("{" + inner + "}", strict=False)
        name, arguments, _ = call["function_name"], call["arguments"], call["thought"]
    except (ValueError, RecursionError, KeyError):
        raise NoAction(
            "the reply is not a JSON object with a thought, a function_name and arguments"
        ) from None
    if not isinstance(name, str):
        raise NoAction("the function_name is not a text")
    return name, arguments


def code_action(
    reply: str, signatures: Mapping[str, Sequence[str]], action: Callable[[str, dict[str, Any]], str]
) -> str:
    """Return the text that AgentGym's client sends for a reply that is Python code.

    A string literal is sent unchanged; a call is converted by ``action``. AgentGym's clients execute the
    code. This function executes nothing: it accepts only a string literal, or one call of a known function
    with literal arguments.

    Args:
        reply: The reply, with or without a code fence.
        signatures: Argument names of each function.
        action: Builds the action from the function name and its arguments by name.

    Raises:
        NoAction: The code is not a single call.
        UnknownAction: It calls an unknown function.
        BadArguments: An argument is not a literal, or the function has no such argument.
        UnknownAction: It calls another function.
        BadArguments: An argument is not a plain value, or the function does not take it.
    """
    code = _code_in(reply).lstrip(" \t")  # as Python's `eval` does
    if len(code) > MAX_ACTION_CHARS:
        raise BadArguments(f"the code is longer than {MAX_ACTION_CHARS} characters")
    node = expression(code, strip=False)
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name):
        raise NoAction("the reply is not one call in Python")
    return action(*_call(node, node.func.id, signatures))


def _code_in(reply: str) -> str:
    """Return a reply without the first and last lines of its code fence."""
    code = cut_end(reply).strip()
    code = code.split("\n", 1)[-1] if code.startswith("```") else code
    return code.rsplit("\n", 1)[0] if code.endswith("```") else code


def _call(
    call: ast.Call, function: str, signatures: Mapping[str, Sequence[str]]
) -> tuple[str, dict[str, Any]]:
    """Return the name of the called function and its arguments by name."""
    name = known(function, signatures)
    names = signatures[name]
    given = [*zip(names, call.args, strict=False), *((each.arg, each.value) for each in call.keywords)]
    nodes = {each: node for each, node in given if each in names}
    if len(call.args) > len(names) or len(nodes) < len(given):
        raise BadArguments(f"the arguments of {name} are: {', '.join(names) or 'none'}")
    try:
        return name, {each: plain_value(node) for each, node in nodes.items() if each is not None}
    except ValueError:
        raise BadArguments("an argument is not a plain value") from None


def known(name: str, functions: Mapping[str, Any]) -> str:
    """Return the name if it is one of the functions.

    Raises:
        UnknownAction: No function has this name.
    """
    if name not in functions:
        raise UnknownAction(f"{shown(name)} is not one of the functions: {', '.join(functions)}")
    return name
