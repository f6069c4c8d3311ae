"""Calls in the notations of their own that families of models are trained to write.

Two kinds are told apart. In the first the arguments are a JSON object and the function's name stands before
it; in the second name and arguments stand in tags. Calls that are JSON throughout, such as Hermes's and
Llama's, need no more than JSON is read as.

Engines leave special tokens out of a reply when they are told to. What is left is read where it cannot be
mistaken.
"""

from __future__ import annotations

import re
from typing import Any, NamedTuple

from agentgym_gym._json import NotJson, decode
from agentgym_gym.errors import BadArguments

__all__ = ["MODULES", "OPENING", "Head", "TaggedCall", "head_before", "tagged_call", "value_of"]

MODULES = frozenset(
    [
        *("tools", "tool", "env", "environment", "functions", "function", "default_api", "api", "actions"),
        *("action", "game", "client", "page", "browser", "driver", "agent", "player", "self", "world", "sim"),
        "toolbox",
    ]
)
"""What models write before the name of a function, with a dot, as if it were of a module."""

_HEAD_CHARS = 200  # before a JSON object, in which the name of its function is looked for
_NAME = r"(?P<name>[A-Za-z_][\w.-]{0,80})"
_TAG = r"(?:[\w｜|]{1,30}[:｜|])?"  # such as `minimax:`

# What stands before the JSON object of the arguments, by the models that write it. Gaps are written so that
# nothing can be read in two ways, or the time it takes would not be linear.
_SEPARATOR = r"<[｜|]tool[▁_]sep[｜|]>"
_LABEL = r"(?:action|(?:function|tool)(?:[ _]name)?|✿FUNCTION✿)"
_INPUT_LABEL = r"(?:(?:action|function|tool)[ _]input|arguments|args|input|parameters|✿ARGS✿)"
_HEADS = (
    # DeepSeek V3 and R1, with a fence; V3.1, without one
    rf"<[｜|]tool[▁_]call[▁_]begin[｜|]>(?:function{_SEPARATOR})?{_NAME}(?:\s|```\w*|{_SEPARATOR})*",
    rf"(?:\A|\n)function ?(?:{_SEPARATOR})?{_NAME}\n```(?:json)?\s*",
    # Kimi K2
    rf"functions?\.{_NAME}:\d{{1,6}}(?:\s|<\|tool_call_argument_begin\|>)*",
    rf"<\|tool_call_begin\|>\s*{_NAME}(?::\d{{1,6}})?(?:\s|<\|tool_call_argument_begin\|>)*",
    # Mistral, since version 11 of its tokenizer
    rf"\[TOOL_CALLS\]\s*{_NAME}(?:\s|\[CALL_ID\]\s*\w+|\[ARGS\])*",
    rf"\b{_NAME}(?:\[CALL_ID\]\w{{1,40}})?\[ARGS\]\s*",
    # gpt-oss
    (
        r"\bto=(?:functions?\.)?(?P<name>[A-Za-z_][\w.-]{0,80}?)"
        r"(?:\s|commentary|json|code|<\|(?:channel|constrain|message)\|>)*"
    ),
    # Llama 3, in tags
    rf"<function\s*=\s*[\"']?{_NAME}[\"']?\s*>\s*",
    rf"<{_TAG}(?:function|invoke|tool|tool_call)\s+name\s*=\s*[\"']{_NAME}[\"']\s*>\s*",
    # a tag around the name, and perhaps one around the arguments
    (
        rf"<(?:tool|tool_name|name|function|function_name)>\s*{_NAME}\s*</\w{{1,20}}>"
        r"(?:\s|<(?:args|arguments|parameters|input|tool_input)>)*"
    ),
    # Qwen's and LangChain's agents, and others that write labels
    (
        rf"(?:\A|\n)[ \t>*_`#-]*{_LABEL}[ \t*_`]*[:：][ \t*`]*{_NAME}"
        rf"(?:[\s*`()#]|with\b)*{_INPUT_LABEL}(?:[*_:：\s]|`+(?:json)?)*"
    ),
    # FunctionGemma
    rf"\bcall:{_NAME}",
)
_HEAD_AT_END = re.compile(
    "(?:" + "|".join(h.replace("<name>", f"<n{i}>") for i, h in enumerate(_HEADS)) + r")\Z", re.IGNORECASE
)

# A name on a line of its own, or right before the brace: GLM-4, Functionary, and what engines leave.
_BARE_HEAD = re.compile(
    r"(?:\A|[\n>\]])[ \t]*(?:>>>|all)?(?:function[ \t:]*)?(?P<name>[A-Za-z_][\w.-]*)"
    r"(?::\d{1,6})?[ \t]*\n?[ \t]*\Z"
)

# Tags with the name of a function, around its arguments in tags.
_TAGS = (
    (
        rf"<{_TAG}(?:invoke|function|tool|tool_call|function_call)\s+name\s*=\s*"
        r"[\"'](?P<name>[^\"'<>\n]{1,80})[\"'][^<>]{0,80}>"
    ),
    r"<function\s*=\s*[\"']?(?P<name>[^\"'<>\n]{1,80}?)[\"']?\s*>",
    r"<tool_call>\s*(?P<name>[A-Za-z_][\w.-]{0,80})\s*(?=<arg_key>|</tool_call>)",
    r"<invoke>\s*<tool_name>\s*(?P<name>[\w. -]{1,80})</tool_name>\s*<parameters>",
)
_TAGGED = re.compile("|".join(tag.replace("<name>", f"<n{i}>") for i, tag in enumerate(_TAGS)))

OPENING = re.compile(r"[{｛]|" + _TAGGED.pattern)
"""Where a call can begin: a brace, or a tag with the name of a function."""

# An argument: `<parameter=item>`, `<parameter name="item">`, `<arg_key>item</arg_key><arg_value>`, `<item>`.
_PARAMETER = re.compile(
    rf"\s*(?:<(?P<tag>{_TAG}(?:parameter|param|arg|argument))"
    r"(?:\s*=\s*[\"']?(?P<key>[^\"'<>\n]{1,80}?)[\"']?|\s+name\s*=\s*[\"'](?P<named>[^\"'<>\n]{1,80})[\"']"
    r"[^<>]{0,80}?)\s*>"
    r"|<arg_key>\s*(?P<arg>[^<>\n]{1,80}?)\s*</arg_key>\s*<arg_value>"
    r"|<(?P<element>[A-Za-z_]\w{0,80})>)"
)
_CLOSED = re.compile(rf"\s*(?:</parameters>\s*)?</{_TAG}(?:invoke|function|tool|tool_call|function_call)\s*>")


class Head(NamedTuple):
    """The name of a function that stands before its arguments.

    Attributes:
        name: The name.
        start: Where it begins, with the marks before it.
        sure: Whether such marks say that it is one.
    """

    name: str
    start: int
    sure: bool


class TaggedCall(NamedTuple):
    """A call whose name and arguments stand in tags.

    Attributes:
        name: The name of the function.
        arguments: The text of each argument.
        end: Where the call ends.
    """

    name: str
    arguments: dict[str, str]
    end: int


def head_before(text: str, brace: int) -> Head | None:
    """Return the name of a function that stands right before a JSON object, if one does."""
    begin = max(0, brace - _HEAD_CHARS)
    window = text[begin:brace]
    if found := _HEAD_AT_END.search(window):
        name = next(value for value in found.groups() if value)
        return Head(name, begin + found.start(), sure=True)
    if found := _BARE_HEAD.search(window):
        return Head(found["name"], begin + found.start("name"), sure=False)
    return None


def tagged_call(text: str, start: int) -> TaggedCall | None:
    """Return the call that begins with a tag; None for a tag around JSON, or one that is only named.

    Raises:
        BadArguments: It is cut off, or an argument is given twice.
    """
    opened = _TAGGED.match(text, start)
    if opened is None:
        return None
    name, at = next(found for found in opened.groups() if found).strip(), opened.end()
    arguments: dict[str, str] = {}
    while found := _PARAMETER.match(text, at):
        key = (found["key"] or found["named"] or found["arg"] or found["element"]).strip()
        closing = f"</{found['tag'] or found['element'] or 'arg_value'}>"
        end = text.find(closing, found.end())
        if end < 0:
            raise BadArguments(f"the call of {name!r} is cut off")
        if key in arguments:
            raise BadArguments(f"the parameter {key!r} is given twice")
        arguments[key] = text[found.end() : end].strip()
        at = end + len(closing)
    if closed := _CLOSED.match(text, at):
        return TaggedCall(name, arguments, closed.end())
    if not arguments:
        return None  # around JSON, or a tag that is only spoken of
    if text[at:].strip():
        raise BadArguments(f"the call of {name!r} has no end")
    return TaggedCall(name, arguments, at)


def value_of(written: str, schema: dict[str, Any]) -> Any:
    """Return the value of an argument from its text in a tag, by the type that its function wants."""
    if schema.get("type") == "string":
        return written
    if written[:1] in {"[", "{"}:
        try:
            value, end = decode(written)
        except NotJson as error:
            raise BadArguments(f"an argument cannot be read: {error}") from None
        return value if end == len(written) else written
    try:
        value, end = decode(written)
    except NotJson:
        return written
    return value if end == len(written) and not isinstance(value, str) else written
