"""The formats in which an action is a function call: JSON, and Python that is read and never run."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from agentgym_gym._literals import expression, plain_value
from agentgym_gym._text import no_constant, shown
from agentgym_gym.actions import MAX_ACTION_CHARS, Action, Grammar
from agentgym_gym.errors import ActionError, BadArguments, ManyActions, NoAction
from agentgym_gym.formats.base import Format, ParsedReply, answer_of

__all__ = ["CodeAsAction", "FunctionCalling"]

_LOOK_AHEAD = 8  # objects looked at after the call, so that a reply of a million braces is read quickly


class FunctionCalling(Format):
    """One JSON object: AgentGym's, or the ``<tool_call>`` form that models are trained to emit."""

    name = "function_calling"
    _rule = (
        "Reply with one JSON object and nothing else. It has three keys: `thought`, what you think; "
        "`function_name`, the function to call; `arguments`, an object with its arguments."
    )
    _opened = "<tool_call>"

    def _actions(self, grammar: Grammar) -> str:
        tools = "\n".join(json.dumps(tool["function"], ensure_ascii=False) for tool in grammar.tools())
        return f"The functions, as JSON:\n{tools}"

    def _wrap(self, action: Action, thought: str) -> str:
        call = {"thought": thought, "function_name": action.name(), "arguments": action.to_json()}
        return json.dumps(call, ensure_ascii=False)

    def parse(self, reply: str, grammar: Grammar) -> ParsedReply:
        """Read the one call, in any of the shapes that models are trained to emit."""
        reply = answer_of(reply)
        before = reply.partition("{")[0]  # tags inside of JSON are part of what it says
        if self._opened in before and reply.count(self._opened) > 1:
            raise ManyActions("there is more than one `<tool_call>` in the reply")
        start = max(before.find(self._opened), 0)
        calls = (_tagged_calls(reply, start) if "<function=" in before else []) or _json_calls(reply, start)
        if len(calls) > 1:
            raise ManyActions("there is more than one function call in the reply")
        name, arguments = calls[0]
        return grammar.from_call(name.strip().removeprefix("functions."), arguments)


def _json_calls(text: str, start: int) -> list[tuple[str, Any]]:
    """Return the calls in the first few JSON objects; there is at least one.

    Raises:
        ActionError: There is none.
    """
    calls: list[tuple[str, Any]] = []
    problem: ActionError = NoAction("there is no JSON object in the reply")
    for _ in range(_LOOK_AHEAD):
        start = text.find("{", start)
        if start < 0:
            break
        try:
            found, start = _decode(text, start)
        except BadArguments as error:
            if text[start + 1 : start + 200].lstrip().startswith('"'):
                raise  # it was meant as JSON, and what is inside belongs to it
            problem = error if isinstance(problem, NoAction) else problem
            start += 1
        else:
            calls += _calls_in(found)
    if not calls:
        raise problem if isinstance(problem, BadArguments) else NoAction("no JSON object names a function")
    return calls


def _tagged_calls(text: str, start: int) -> list[tuple[str, Any]]:
    """Return the calls written ``<function=get>…</function>``, around JSON or ``<parameter=…>`` tags."""
    calls = []
    for part in text[start:].split("<function=")[1 : _LOOK_AHEAD + 1]:
        name, _, body = part.partition(">")
        body = body.partition("</function>")[0]
        arguments: Any = {}
        if "<parameter=" in body:
            for parameter in body.split("<parameter=")[1:]:
                key, _, value = parameter.partition(">")
                if key.strip() in arguments:
                    raise BadArguments(f"the parameter {shown(key.strip())} is given twice")
                arguments[key.strip()] = value.partition("</parameter>")[0].strip()
        elif "{" in body:
            arguments, _ = _decode(body, body.index("{"))
        calls.append((name, arguments))
    return calls


def _decode(text: str, start: int) -> tuple[Any, int]:
    try:
        return _JSON.raw_decode(text, start)
    except (ValueError, RecursionError) as error:
        raise BadArguments(f"the JSON cannot be read: {str(error)[:200]}") from None


def _calls_in(found: Any) -> list[tuple[str, Any]]:
    """Return names and arguments from any of the shapes in use: AgentGym's, OpenAI's, the open models'."""
    if not isinstance(found, Mapping):
        return []
    several = found.get("tool_calls")
    if isinstance(several, list):
        return [call for each in several[:_LOOK_AHEAD] for call in _calls_in(each)]
    if isinstance(found.get("function"), Mapping):
        found = found["function"]
    name = next((found[key] for key in ("function_name", "name", "function") if key in found), None)
    if not isinstance(name, str):
        return []
    arguments = found.get("arguments", found.get("parameters")) or {}
    if isinstance(arguments, str):
        arguments, _ = _decode(arguments.strip(), 0)
    return [(name, arguments)]


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    if len(dict(pairs)) != len(pairs):
        raise ValueError("a key is given twice")
    return dict(pairs)


_JSON = json.JSONDecoder(object_pairs_hook=_unique, parse_constant=no_constant, strict=False)


class _Call(NamedTuple):
    """A call of a plain name, with unchecked arguments."""

    name: str
    args: list[ast.expr]
    keywords: list[ast.keyword]


class CodeAsAction(Format):
    """One Python call, read with :mod:`ast` and never run."""

    name = "code_as_action"
    _rule = (
        "Reply with one Python code block that calls exactly one of the functions once, with plain values as "
        "arguments. Write what you think as a comment above the call."
    )

    def _actions(self, grammar: Grammar) -> str:
        lines = []
        for example in grammar.examples:
            arguments = ", ".join(grammar.signature(example.name()))
            lines.append(f"- {example.name()}({arguments}) - {example.doc()} Example: {_call(example)}")
        return "The functions:\n" + "\n".join(lines)

    def _wrap(self, action: Action, thought: str) -> str:
        comment = "".join(f"# {line}\n" for line in thought.splitlines())
        return f"```python\n{comment}{_call(action)}\n```"

    def parse(self, reply: str, grammar: Grammar) -> ParsedReply:
        """Read the one call in the code."""
        code = _code_of(answer_of(reply))
        if len(code) > MAX_ACTION_CHARS:
            raise BadArguments(f"the code is longer than {MAX_ACTION_CHARS} characters")
        call = _one_call(code)
        return grammar.from_call(call.name, _literal_arguments(call, grammar.signature(call.name)))


def _code_of(answer: str) -> str:
    """Return what stands in the one code block, or the whole answer where there is none, without comments."""
    _, fence, rest = answer.partition("```")
    if fence:
        # Where generation stops at the closing fence, an engine leaves that out of the reply.
        answer, _, after = rest.partition("```")
        if "```" in after:
            raise ManyActions("there is more than one code block in the reply")
        language, newline, code = answer.partition("\n")
        answer = code if (newline and language.strip().isidentifier()) or not language.strip() else answer
    return "\n".join(line for line in answer.splitlines() if _says(line))


def _one_call(code: str) -> _Call:
    """Return the one call in the code.

    The code is parsed as an expression: for an error in a program, Python would look for a file of the code's
    name. If it is not one expression, it is parsed line by line, to tell two calls from none.
    """
    whole = expression(code)
    lines = [whole] if whole else [expression(line) for line in re.split(r"[\n;]", code) if line.strip()]
    found = [e for e in lines if not (isinstance(e, ast.Constant) and isinstance(e.value, str))]
    if not found or None in found:
        raise NoAction("the reply is not one call in Python")
    if len(found) > 1:
        raise ManyActions("there is more than one statement in the reply")
    call = found[0]
    if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Name):
        raise NoAction("the reply is not a plain call of one of the functions")
    return _Call(call.func.id, call.args, call.keywords)


def _says(line: str) -> bool:
    return bool(line.strip()) and not line.lstrip().startswith("#")


def _literal_arguments(call: _Call, names: tuple[str, ...]) -> dict[str, Any]:
    """Return the arguments of a call by name; only literals are values."""
    if len(call.args) > len(names):
        raise BadArguments(f"{len(call.args)} arguments were given, the function has {len(names)}")
    given = dict(zip(names, call.args, strict=False))
    for keyword in call.keywords:
        if keyword.arg is None or keyword.arg in given:
            raise BadArguments("an argument is given twice, or unpacked")
        given[keyword.arg] = keyword.value
    try:
        return {name: plain_value(node) for name, node in given.items()}
    except ValueError:
        raise BadArguments("an argument is not a plain value") from None


def _call(action: Action) -> str:
    return f"{action.name()}({', '.join(f'{k}={v!r}' for k, v in action.to_json().items())})"
