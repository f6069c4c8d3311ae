"""The common parts of the readers that copy AgentGym's own clients.

A reader returns the text that the client sends. Where the client sends nothing and answers by itself, the
reader raises an ``ActionError`` whose ``answer`` is that of the client, word for word.
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
    "as_it_is",
    "code_action",
    "cut_end",
    "json_call",
    "known",
    "plain_line",
    "react_action",
]

Reader = Callable[[str], str]

INVALID_ACTION = ClientAnswer("Invalid Action.\n\n", repeats_page=True)
"""The answer of the clients of ALFWorld, SciWorld and WebShop to a call that they cannot read."""

_ONLY_ONE = ClientAnswer("Error: Only one 'Action' is allowed per response. Please adjust your response.")


def answers(answer: ClientAnswer) -> Callable[[Reader], Reader]:
    """Return a decorator that gives the errors of a reader the client's answer."""

    def decorate(reader: Reader) -> Reader:
        @wraps(reader)
        def read(reply: str) -> str:
            try:
                return reader(reply)
            except ActionError as error:
                error.answer = answer
                raise
            except (ValueError, RecursionError):  # of a value that cannot be written as text
                unwritten = BadArguments("an argument cannot be written as text")
                unwritten.answer = answer
                raise unwritten from None

        return read

    return decorate


def cut_end(reply: str) -> str:
    """Return a reply without ``</s>`` at its end and the letter before that.

    The clients of ALFWorld, Maze, SciWorld, WebShop and Wordle cut five characters where the mark has four.
    """
    return reply[:-5] if reply.endswith("</s>") else reply


def react_action(reply: str) -> str:
    """Return the text after the last ``Action:``, over all its lines.

    Without an ``Action:`` it is the whole reply if that looks like an action of WebShop, in any environment,
    and else nothing.
    """
    _, label, action = cut_end(reply).rpartition("Action:")
    return action.strip() if label or "search[" in action or "click[" in action else ""


@answers(_ONLY_ONE)
def plain_line(reply: str) -> str:
    """Return what the clients of TextCraft and BabyAI send.

    They take each ``Action:`` with the rest of its line, or of the next line that is not blank; refuse two;
    and keep nothing but ASCII letters, digits, commas and blanks. Without an ``Action:`` they send "".

    Raises:
        ManyActions: There are two.
    """
    found = re.findall(r"Action:\s*([^\n]*)", reply)
    if len(found) > 1:
        raise ManyActions("There is more than one `Action:` in the reply.")
    kept = re.sub(r"[^A-Za-z0-9, ]", "", found[0]) if found else ""
    return " ".join(kept.split())


def as_it_is(reply: str) -> str:
    """Return the reply, which is what the clients of SearchQA and of the tool servers send."""
    return reply


def json_call(reply: str) -> tuple[str, Any]:
    """Return the function's name and its arguments from the JSON between the first brace and the last.

    Raises:
        NoAction: There is no JSON object with a thought, a name and arguments.
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
    """Return what a client sends of a reply that is Python: a plain text as it is, or the action of a call.

    AgentGym's clients run the code. Here nothing is run: only a text, or one call of one of the functions
    with plain values, is accepted.

    Args:
        reply: The reply, with a fence around it or without.
        signatures: The names of each function's arguments.
        action: Takes the name of a function and its arguments by name, and returns the action.

    Raises:
        NoAction: The code is not one plain call.
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
    """Return a reply without the first line of a fence and the last."""
    code = cut_end(reply).strip()
    code = code.split("\n", 1)[-1] if code.startswith("```") else code
    return code.rsplit("\n", 1)[0] if code.endswith("```") else code


def _call(
    call: ast.Call, function: str, signatures: Mapping[str, Sequence[str]]
) -> tuple[str, dict[str, Any]]:
    """Return the function that a call names and the arguments given, by name."""
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
    """Return the name of a function.

    Raises:
        UnknownAction: There is none of that name.
    """
    if name not in functions:
        raise UnknownAction(f"{shown(name)} is not one of the functions: {', '.join(functions)}")
    return name
