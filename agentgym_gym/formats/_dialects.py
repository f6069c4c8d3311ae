"""The native notations of function calls, by model family.

There are three kinds: a name before a JSON object of arguments; a name and arguments in tags; and Python
between tokens. A notation that is entirely JSON, such as Hermes's, is parsed as JSON, and its tokens only
mark it as native. If an inference engine drops special tokens, the rest is parsed as long as it is
unambiguous.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from typing import Any, NamedTuple

from agentgym_gym._json import NotJson, decode
from agentgym_gym.actions import MAX_ACTION_CHARS
from agentgym_gym.errors import BadArguments

__all__ = [
    "DIALECTS",
    "MODULES",
    "OPENING",
    "PYTHON",
    "PYTHON_END",
    "Dialect",
    "Head",
    "TaggedCall",
    "gemma_call",
    "head_before",
    "is_native",
    "tagged_call",
    "value_of",
]

MODULES = frozenset(
    [
        *("tools", "tool", "env", "environment", "functions", "function", "default_api", "api", "actions"),
        *("action", "game", "client", "page", "browser", "driver", "agent", "player", "self", "world", "sim"),
        "toolbox",
    ]
)
"""Module names that models write before the name of a function, with a dot."""

_HEAD_CHARS = 200  # characters before a JSON object that are searched for the name of its function
_NAME = r"(?P<name>[A-Za-z_][\w.-]{0,80})"
_TAG = r"(?:[\w｜|]{1,30}[:｜|])?"  # such as `minimax:`

_SEPARATOR = r"<[｜|]tool[▁_]sep[｜|]>"
_LABEL = r"(?:(?:function|tool)(?:[ _]name)?|✿FUNCTION✿)"
_INPUT_LABEL = r"(?:(?:function|tool)[ _]input|arguments|args|input|parameters|✿ARGS✿)"


class Dialect(NamedTuple):
    """The opening of a call in the notation of some models, as regular expressions.

    Gaps match in one way only, which keeps the time linear. Each row has one of the three kinds.

    Attributes:
        models: The models that write it.
        head: A name before a JSON object of arguments.
        tag: A tag with a name, before arguments in tags.
        python: Tokens or tags before Python.
    """

    models: str
    head: str = ""
    tag: str = ""
    python: str = ""


DIALECTS = (
    Dialect(
        "DeepSeek V3 and R1, with a fence; V3.1, without one",
        head=rf"<[｜|]tool[▁_]call[▁_]begin[｜|]>(?:function{_SEPARATOR})?{_NAME}(?:\s|```\w*|{_SEPARATOR})*",
    ),
    Dialect(
        "DeepSeek without special tokens",
        head=rf"(?:\A|\n)function ?(?:{_SEPARATOR})?{_NAME}\n```(?:json)?\s*",
    ),
    Dialect("Kimi K2", head=rf"functions?\.{_NAME}:\d{{1,6}}(?:\s|<\|tool_call_argument_begin\|>)*"),
    Dialect(
        "Kimi K2 without the namespace",
        head=rf"<\|tool_call_begin\|>\s*{_NAME}(?::\d{{1,6}})?(?:\s|<\|tool_call_argument_begin\|>)*",
    ),
    Dialect(
        "Mistral, since version 11 of its tokenizer",
        head=rf"\[TOOL_CALLS\]\s*{_NAME}(?:\s|\[CALL_ID\]\s*\w+|\[ARGS\])*",
    ),
    Dialect("Mistral without its first token", head=rf"\b{_NAME}(?:\[CALL_ID\]\w{{1,40}})?\[ARGS\]\s*"),
    Dialect(
        "gpt-oss",
        head=(
            r"\bto=(?:functions?\.)?(?P<name>[A-Za-z_][\w.-]{0,80}?)"
            r"(?:\s|commentary|json|code|<\|(?:channel|constrain|message)\|>)*"
        ),
    ),
    Dialect("Hunyuan", head=rf"<tool_call>\s*(?:function)?(?:<tool_sep>)?\s*{_NAME}\s*```(?:json)?\s*"),
    Dialect("Llama 3", head=rf"<function\s*=\s*[\"']?{_NAME}[\"']?\s*[>(]\s*"),
    Dialect(
        "models with a name in an attribute of a tag",
        head=rf"<{_TAG}(?:function|invoke|tool|tool_call)\s+name\s*=\s*[\"']{_NAME}[\"']\s*>\s*",
    ),
    Dialect(
        "models with a tag around the name, and optionally one around the arguments",
        head=(
            rf"<(?:tool|tool_name|name|function|function_name)>\s*{_NAME}\s*</\w{{1,20}}>"
            r"(?:\s|<(?:args|arguments|parameters|input|tool_input)>)*"
        ),
    ),
    Dialect(
        "agents of Qwen and LangChain, and others that write labels",
        head=(
            rf"(?:\A|\n)[ \t>*_`#-]*{_LABEL}[ \t*_`]*[:：][ \t*`]*{_NAME}"
            rf"(?:[\s*`()#]|with\b)*{_INPUT_LABEL}(?:[*_:：\s]|`+(?:json)?)*"
        ),
    ),
    Dialect(
        "Claude, DeepSeek V3.2, MiniCPM, MiniMax, Step 3",
        tag=(
            rf"<{_TAG}(?:invoke|function|tool|tool_call|function_call)\s+name\s*=\s*"
            r"[\"'](?P<name>[^\"'<>\n]{1,80})[\"'][^<>]{0,80}>"
        ),
    ),
    Dialect("Qwen3-Coder, Seed-OSS", tag=r"<function\s*=\s*[\"']?(?P<name>[^\"'<>\n]{1,80}?)[\"']?\s*>"),
    Dialect(
        "GLM-4.5",
        tag=(r"<tool_call>\s*(?P<name>[A-Za-z_][\w.-]{0,80})\s*(?:<tool_sep>\s*)?(?=<arg_key>|</tool_call>)"),
    ),
    Dialect("Claude 2", tag=r"<invoke>\s*<tool_name>\s*(?P<name>[\w. -]{1,80})</tool_name>\s*<parameters>"),
    Dialect("Llama 3 and 4", python=r"<\|python_(?:tag|start)\|>"),
    Dialect("LFM2", python=r"<\|tool_call_start\|>"),
    Dialect("OLMo 3", python="<function_calls>"),
    Dialect("models with Hermes's tag", python="<tool_call>"),
    Dialect("Gemini, Gemma", python=r"```tool_(?:code|call)\b"),
    Dialect("CodeAct and other agents", python="<(?:tool_code|execute|code|python)>"),
    Dialect("models with Mistral's brackets", python=r"\[PYTHON\]"),
    Dialect("gpt-oss", python=r"\bto=python\b[^<\n]{0,40}<\|message\|>"),
)
"""The native notations, except Llama's list of calls, FunctionGemma's calls and bare names."""


def _any_of(patterns: Iterable[str]) -> str:
    """Return a pattern of alternatives, with a number in place of each group ``name``."""
    return "|".join(pattern.replace("<name>", f"<n{i}>") for i, pattern in enumerate(filter(None, patterns)))


_HEAD_AT_END = re.compile(rf"(?:{_any_of(each.head for each in DIALECTS)})\Z", re.IGNORECASE)

# A name on a separate line, or just before the brace: GLM-4, Functionary, and output without special
# tokens.
_BARE_HEAD = re.compile(
    r"(?:\A|[\n>\]])[ \t]*(?:>>>|all)?(?:function[ \t:]*)?(?P<name>[A-Za-z_][\w.-]*)"
    r"(?::\d{1,6})?[ \t]*\n?[ \t]*\Z"
)

_TAGGED = re.compile(_any_of(each.tag for each in DIALECTS))

OPENING = re.compile(r"[{｛]|" + _TAGGED.pattern + r"|\bcall:[A-Za-z_][\w.-]{0,80}\{")
"""Possible starts of a call: a brace, a tag with a function name, or FunctionGemma's ``call:NAME{``."""

# Tokens and tags around native calls, whether their content is JSON, Python or a name.
_NATIVE = re.compile(
    r"(?:<[|｜]?[/\w:｜▁|-]{0,40}(?:tool|TOOL|function|FUNCTION|action_start|ACTION|plugin|python_)[\w:｜▁|-]{0,40}>"
    r"|\[TOOL_CALLS\]|\[ARGS\]|✿ARGS✿:)\s*(?:```\w*)?[\s\[]*\Z"
)
_NATIVE_CHARS = 120

PYTHON = re.compile(
    rf"(?:{_any_of(each.python for each in DIALECTS)})\s*(?=[A-Za-z_\[])"
    r"|^[ \t]*(?=\[[A-Za-z_][\w.]{0,80}\()",
    re.MULTILINE,
)
"""Start of Python between tokens or tags, or of Llama's list of calls."""

PYTHON_END = re.compile(r"<|```|\[/PYTHON\]|\Z")
"""End of Python between tokens or tags; a list of calls ends with its line."""


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
    """The name of a function before its arguments.

    Attributes:
        name: The name.
        start: Start of the notation.
        sure: Whether a token or a label of the notation proves that it is a function name.
    """

    name: str
    start: int
    sure: bool


class TaggedCall(NamedTuple):
    """A call with its name and its arguments in tags.

    Attributes:
        name: The name of the function.
        arguments: The text of each argument.
        end: End of the call.
    """

    name: str
    arguments: dict[str, str]
    end: int


def head_before(text: str, brace: int) -> Head | None:
    """Return the name of a function just before a JSON object; None if there is none."""
    begin = max(0, brace - _HEAD_CHARS)
    window = text[begin:brace]
    if found := _HEAD_AT_END.search(window):
        name = next(value for value in found.groups() if value)
        start = begin + found.start() + len(found[0]) - len(found[0].lstrip())
        return Head(name, start, sure=True)
    if found := _BARE_HEAD.search(window):
        return Head(found["name"], begin + found.start("name"), sure=False)
    return None


def tagged_call(text: str, start: int) -> TaggedCall | None:
    """Return the call that starts with a tag; None for a tag around JSON or without a call.

    Raises:
        BadArguments: The call is truncated, or repeats an argument.
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
        return None
    if text[at:].strip():
        raise BadArguments(f"the call of {name!r} has no end")
    return TaggedCall(name, arguments, at)


def value_of(written: str, schema: dict[str, Any]) -> Any:
    """Convert the text of a tagged argument according to the type in its schema."""
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


def is_native(text: str, start: int) -> bool:
    """Return whether a token or tag of a native notation directly precedes a position."""
    return _NATIVE.search(text[max(0, start - _NATIVE_CHARS) : start]) is not None


_ESCAPED = re.compile(r"<escape>(.*?)<escape>", re.DOTALL)
_GEMMA = re.compile(r"call:(?P<name>[A-Za-z_][\w.-]{0,80})(?=\{)")


def gemma_call(text: str, start: int) -> tuple[str, Any, int] | None:
    """Return name, arguments and end of FunctionGemma's ``call:NAME{key:<escape>text<escape>}``.

    Raises:
        NotJson: The arguments cannot be parsed.
    """
    head = _GEMMA.match(text, start)
    if head is None:
        return None
    limit = min(len(text), head.end() + MAX_ACTION_CHARS)
    end = text.find("<end_function_call>", head.end(), limit)
    limit = limit if end < 0 else end
    kept, removed, position, size = [], [], head.end(), 0
    for quoted in _ESCAPED.finditer(text, head.end(), limit):
        written = json.dumps(quoted[1])
        kept += [text[position : quoted.start()], written]
        size += quoted.start() - position + len(written)
        removed.append((size, len(quoted[0]) - len(written)))
        position = quoted.end()
    value, stop = decode("".join([*kept, text[position:limit]]))
    return head["name"], value, head.end() + stop + sum(less for place, less in removed if place <= stop)
