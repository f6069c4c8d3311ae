"""Calls in the notations of their own that families of models are trained to write.

Two kinds are told apart. In the first the arguments are a JSON object and the function's name stands before
it; in the second name and arguments stand in tags. Calls that are JSON throughout, such as Hermes's and
Llama's, need no more than JSON is read as.

Engines leave special tokens out of a reply when they are told to. What is left is read where it cannot be
mistaken.
"""

from __future__ import annotations

import json
import re
from typing import Any, NamedTuple

from agentgym_gym._json import NotJson, decode
from agentgym_gym.errors import BadArguments

__all__ = ["OPENING", "Head", "TaggedCall", "head_before", "tagged_call"]

_HEAD_CHARS = 200  # before a JSON object, in which the name of its function is looked for
_FENCE = r"(?:```\w*\s*)?"
_N = r"(?P<name>[A-Za-z_][\w.-]*)"

# What stands before the JSON object of the arguments, by the models that write it.
_HEADS = (
    # DeepSeek V3 and R1, with a fence; V3.1, without one
    rf"<[｜|]tool[▁_]call[▁_]begin[｜|]>(?:function<[｜|]tool[▁_]sep[｜|]>)?{_N}(?:<[｜|]tool[▁_]sep[｜|]>)?\s*{_FENCE}",
    rf"(?:\A|\n)function<?[｜|]?(?:tool[▁_]sep)?[｜|]?>?{_N}\n```(?:json)?\s*",
    # Kimi K2
    rf"functions?\.{_N}:\d+\s*(?:<\|tool_call_argument_begin\|>)?\s*",
    # Mistral since version 11 of its tokenizer
    rf"\[TOOL_CALLS\]\s*{_N}\s*(?:\[CALL_ID\]\s*\w+\s*)?(?:\[ARGS\])?\s*",
    rf"{_N}(?:\[CALL_ID\]\s*\w+\s*)?\[ARGS\]\s*",
    # gpt-oss
    rf"\bto=(?:functions?\.)?{_N}\s*(?:<\|channel\|>\s*\w+)?\s*(?:commentary)?\s*(?:<\|constrain\|>)?\s*(?:json|code)?"
    r"\s*(?:<\|message\|>)?\s*",
    # Llama 3, in tags
    rf"<function\s*=\s*[\"']?{_N}[\"']?\s*>\s*",
    rf"<(?:\w+:)?(?:function|invoke|tool|tool_call)\s+name\s*=\s*[\"']{_N}[\"']\s*>\s*",
    # Qwen's and LangChain's agents, and others that write labels
    r"(?:\A|\n)[ \t>*_`#-]*(?:action|function|function[ _]name|tool|tool[ _]name|✿FUNCTION✿)[*_`]*\s*[:：][*_` \t]*"
    rf"{_N}[*_`()]*(?:\s+with)?\s*\n?[*_`# \t]*(?:action[ _]input|function[ _]input|tool[ _]input|arguments|args|input"
    rf"|parameters|✿ARGS✿)[*_`]*\s*[:：]?[*_]*\s*{_FENCE}",
    # FunctionGemma
    rf"\bcall:{_N}",
)
_HEAD = re.compile("|".join(f"(?:{head})" for head in (h.replace("name>", f"n{i}>") for i, h in enumerate(_HEADS))), re.IGNORECASE)
_HEAD_AT_END = re.compile(rf"(?:{_HEAD.pattern})\Z", re.IGNORECASE)

# A name on a line of its own, or right before the brace: GLM-4, Functionary, and what engines leave of others.
_BARE_HEAD = re.compile(
    r"(?:\A|[\n>\]])[ \t]*(?:>>>|all)?(?:function[ \t:]*)?(?P<name>[A-Za-z_][\w.-]*)[ \t]*\n?[ \t]*\Z"
)

_NAMED = r"<(?P<kind>(?:[\w｜|]+[:｜|])?(?:invoke|function|tool|tool_call|function_call))\s+name\s*=\s*[\"'](?P<n1>[^\"'<>\n]{1,80})[\"'][^<>]{0,80}>"
_EQUALS = r"<function\s*=\s*[\"']?(?P<n2>[^\"'<>\n]{1,80}?)[\"']?\s*>"
_KEYED = r"<tool_call>\s*(?P<n3>[A-Za-z_][\w.-]{0,80})\s*(?=<arg_key>|</tool_call>)"
_TAGGED = re.compile(rf"{_NAMED}|{_EQUALS}|{_KEYED}")

OPENING = re.compile(rf"[{{｛]|{_NAMED}|{_EQUALS}|{_KEYED}".replace("?P<kind>", "?:").replace("?P<n1>", "?:").replace("?P<n2>", "?:").replace("?P<n3>", "?:"))
"""Where a call can begin: a brace, or a tag with the name of a function."""

_PARAMETER = re.compile(
    r"\s*(?:<(?P<tag>(?:[\w｜|]+[:｜|])?(?:parameter|param|arg|argument))"
    r"(?:\s*=\s*[\"']?(?P<key>[^\"'<>\n]{1,80}?)[\"']?|\s+name\s*=\s*[\"'](?P<named>[^\"'<>\n]{1,80})[\"']"
    r"(?P<more>[^<>]{0,80}))\s*>"
    r"|<arg_key>\s*(?P<arg>[^<>\n]{1,80}?)\s*</arg_key>\s*<arg_value>)"
)
_CLOSED = re.compile(r"\s*</(?:[\w｜|]+[:｜|])?(?:invoke|function|tool|tool_call|function_call)\s*>")


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
    name, at = (opened["n1"] or opened["n2"] or opened["n3"]).strip(), opened.end()
    arguments: dict[str, str] = {}
    while found := _PARAMETER.match(text, at):
        key = (found["key"] or found["named"] or found["arg"]).strip()
        closing = "</arg_value>" if found["arg"] else f"</{found['tag']}>"
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
    if text[at:].strip() and not opened["n3"]:
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
