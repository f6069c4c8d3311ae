"""Read the native notations of function calls by the table of dialects.

There are four kinds of calls: a name before a JSON object of arguments; a name and arguments in marks; a name
before pairs in braces; and Python between tokens. A notation that is entirely JSON, such as Hermes's, is
parsed as JSON, and its tokens only mark it as native. If an inference engine drops special tokens, the rest
is parsed as long as it is unambiguous.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.metadata import entry_points
from typing import Any, NamedTuple

from agentgym_gym._json import NotJson, decode
from agentgym_gym.actions import MAX_ACTION_CHARS
from agentgym_gym.errors import BadArguments, BadOption
from agentgym_gym.formats._dialect_table import DIALECTS, TAG, Dialect

__all__ = [
    "LONGEST_MARK",
    "LONGEST_TOKEN",
    "MODULES",
    "PYTHON_END",
    "TOKEN_AT_END",
    "BracedCall",
    "Head",
    "Patterns",
    "TaggedCall",
    "call_in_braces",
    "head_before",
    "is_native",
    "patterns",
    "register_dialect",
    "tagged_call",
    "value_of",
]

ENTRY_POINTS = "agentgym.dialects"

MODULES = frozenset(
    [
        *("tools", "tool", "env", "environment", "functions", "function", "default_api", "api", "actions"),
        *("action", "game", "client", "page", "browser", "driver", "agent", "player", "self", "world", "sim"),
        "toolbox",
    ]
)
"""Module names that models write before the name of a function, with a dot."""

PYTHON_END = re.compile(r"<|```|\[/PYTHON\]|\Z")
"""End of Python between tokens or tags; a list of calls ends with its line."""

_HEAD_CHARS = 200  # characters before a JSON object that are searched for the name of its function
_NATIVE_CHARS = 120

# A name on a separate line, or just before the brace: GLM-4, Functionary, and output without special
# tokens.
_BARE_HEAD = re.compile(
    r"(?:\A|[\n>\]])[ \t]*(?:>>>|all)?(?:function[ \t:]*)?(?P<name>[A-Za-z_][\w.-]*)"
    r"(?::\d{1,6})?[ \t]*\n?[ \t]*\Z"
)

# An argument as in XML: `<parameter=item>`, `<parameter name="item">`, `<arg_key>item</arg_key><arg_value>`,
# `<item>`.
_ARGUMENT = re.compile(
    rf"(?:<(?P<tag>{TAG}(?:parameter|param|arg|argument))"
    r"(?:\s*=\s*[\"']?(?P<key>[^\"'<>\n]{1,80}?)[\"']?"
    r"|\s+name\s*=\s*[\"']?(?P<named>[^\"'<>\s]{1,80})[\"']?[^<>]{0,80}?)\s*>"
    rf"|<{TAG}(?:[a-z]{{1,20}}_)?arg_key(?::\w{{1,16}})?>\s*(?P<arg>[^<>\n]{{1,80}}?)\s*"
    rf"</{TAG}(?:[a-z]{{1,20}}_)?arg_key(?::\w{{1,16}})?>\s*"
    rf"(?:<{TAG}arg_type>[^<>]{{0,40}}</{TAG}arg_type>\s*)?"
    rf"<(?P<value>{TAG}(?:[a-z]{{1,20}}_)?arg_value(?::\w{{1,16}})?)>"
    r"|<(?P<element>[A-Za-z_]\w{0,80})>)"
)
_END = re.compile(
    rf"(?:</parameters>\s*)?"
    rf"</{TAG}(?:[a-z]{{1,20}}_)?(?:invoke|function|tool|tool_call|function_call)(?::\w{{1,16}})?\s*>"
)
_GROUP = re.compile(r"\(\?P<\w+>")
_GAP = re.compile(r"\s*")
_CDATA = re.compile(r"<!\[CDATA\[(.*)\]\]>", re.DOTALL)


@dataclass(frozen=True)
class Patterns:
    """The table of dialects as compiled patterns.

    Attributes:
        head: A name at the end of a text.
        native: A token or tag of a call at the end of a text.
        opening: Possible start of a call: a brace, a tag with a function name, or a name before pairs.
        tag: Start of a call with arguments in marks; its last group is the number of its row.
        braces: A name before pairs in braces.
        quoted: Text between the marks of ``quote``.
        python: Start of Python between tokens or tags, or of Llama's list of calls.
        mark: Any mark around reasoning, answers and turns.
        turn_end: A mark that ends the turn, or starts another.
        header: Marks at the start of a reply.
        frame: A mark around an answer.
        reasoning: A mark before or after reasoning.
        closing: The mark after reasoning, by the mark before it, in lower case.
        ends: The marks that end a turn, in lower case.
        square: A square bracket that may start a mark.
        rows: The rows of the table.
        arguments: The patterns of an argument and its end and of the end of the call, by row.
    """

    head: re.Pattern[str]
    native: re.Pattern[str]
    opening: re.Pattern[str]
    tag: re.Pattern[str]
    braces: re.Pattern[str]
    quoted: re.Pattern[str]
    python: re.Pattern[str]
    mark: re.Pattern[str]
    turn_end: re.Pattern[str]
    header: re.Pattern[str]
    frame: re.Pattern[str]
    reasoning: re.Pattern[str]
    closing: Mapping[str, str]
    ends: frozenset[str]
    square: re.Pattern[str]
    rows: tuple[Dialect, ...]
    arguments: Mapping[int, tuple[re.Pattern[str], re.Pattern[str], re.Pattern[str]]]


_registered: list[Dialect] = []


def register_dialect(dialect: Dialect) -> None:
    """Add a row to the table of native notations, before all others.

    It holds for this process. A package adds rows for every process by entry points of the group
    ``agentgym.dialects``, each a `Dialect`.

    Args:
        dialect: The row.

    Raises:
        BadOption: A pattern is not a regular expression or lacks its group, or a mark is too long or plain.
    """
    _check(dialect)
    _registered.insert(0, dialect)
    patterns.cache_clear()


LONGEST_MARK = 40
TOKEN_AT_END = re.compile(
    r"(?:<[|｜][^|｜<>\n]{0,40}\w[^|｜<>\n]{0,40}[|｜]>|\[\|[^|\[\]\n]{1,40}\|\]|<\|[\w:-]{1,40}>|<[\w:-]{1,40}\|>)\Z"
)
"""A mark at the end of a text, of a shape that models use for tokens."""
LONGEST_TOKEN = 90
_SIGN = re.compile(r"[<\[\]]|[^\x00-\x7f]|to=")
_GROUPS = {"head": "name", "braces": "name", "tag": "name", "argument": "key"}


def _check(dialect: object) -> Dialect:
    """Return a dialect whose patterns are valid."""
    if not isinstance(dialect, Dialect):
        raise BadOption("dialect", dialect, "a Dialect")
    for field in ("head", "json", "python", "braces", "tag", "argument", "argument_end", "end"):
        written = getattr(dialect, field)
        try:
            groups = {*re.compile(written).groupindex}
        except re.error as error:
            raise BadOption(field, written, problem=f"is not a regular expression: {error}") from None
        expected = {_GROUPS[field]} if written and field in _GROUPS else set()
        if groups != expected:
            raise BadOption(field, written, f"a pattern with the groups {sorted(expected)}")
    for mark in _marks_of(dialect):
        if len(mark) > LONGEST_MARK or not _SIGN.match(mark):
            raise BadOption(
                "dialect", mark, f"a mark of at most {LONGEST_MARK} characters that begins with <"
            )
    if bool(dialect.argument) != bool(dialect.argument_end and dialect.end):
        raise BadOption("argument", dialect.argument, "given together with argument_end and end")
    return dialect


@cache
def patterns() -> Patterns:
    """Return the table of dialects as patterns; it is compiled at the first use."""
    loaded = [_check(point.load()) for point in entry_points(group=ENTRY_POINTS)]
    rows = (*_registered, *loaded, *DIALECTS)
    tags = _any_of(row.tag for row in rows)
    braces = _any_of(row.braces for row in rows)
    reasoning = [row.reasoning for row in rows if row.reasoning]
    starts = _marks(mark for row in rows for mark in row.starts)
    ends = _marks(mark for row in rows for mark in row.ends)
    headers = _marks(mark for row in rows for mark in (*row.headers, *row.starts))
    others = [*(mark for row in rows for mark in _marks_of(row)), "<|start|>"]
    return Patterns(
        head=re.compile(rf"(?:{_any_of(row.head for row in rows)})\Z", re.IGNORECASE),
        native=re.compile(rf"(?:{_any_of(row.json for row in rows)})\s*(?:```\w*)?[\s\[]*\Z"),
        opening=re.compile(_GROUP.sub("(?:", rf"[{{｛]|{tags}|(?:{braces})(?=\{{)")),
        tag=re.compile(tags),
        braces=re.compile(rf"(?:{braces})(?=\{{)"),
        quoted=re.compile(
            rf"(?P<quote>{_marks(row.quote for row in rows if row.quote)})(?P<text>.*?)(?P=quote)", re.DOTALL
        ),
        python=re.compile(
            rf"(?:{_any_of(row.python for row in rows)})\s*(?=[A-Za-z_\[])"
            r"|^[ \t]*(?=\[[A-Za-z_][\w.]{0,80}\()",
            re.MULTILINE,
        ),
        mark=re.compile(rf"(?=[<\[\]]|[^\x00-\x7f]|to=)(?:{_marks(others)})", re.IGNORECASE),
        turn_end=re.compile(rf"{ends}|{starts}|<\|start\|>(?!assistant)", re.IGNORECASE),
        header=re.compile(headers, re.IGNORECASE),
        frame=re.compile(_marks(mark for row in rows for mark in row.frames), re.IGNORECASE),
        reasoning=re.compile(_marks(mark for pair in reasoning for mark in pair), re.IGNORECASE),
        closing={before.lower(): after.lower() for before, after in reasoning},
        ends=frozenset(mark.lower() for row in rows for mark in row.ends),
        square=re.compile(
            rf"\[[ \t]?/?[ \t]?(?:\||th[io]|re)|{_marks(mark for mark in others if mark[0] in '[]')}",
            re.IGNORECASE,
        ),
        rows=rows,
        arguments={
            number: (re.compile(row.argument), re.compile(row.argument_end), re.compile(row.end))
            for number, row in enumerate(rows)
            if row.argument
        },
    )


def _marks_of(row: Dialect) -> tuple[str, ...]:
    """Return the marks of a row around reasoning, answers and turns."""
    return (*(row.reasoning or ()), *row.frames, *row.headers, *row.starts, *row.ends)


def _any_of(written: Iterable[str]) -> str:
    """Return a pattern of alternatives, with the number of the row in place of each group ``name``."""
    return "|".join(each.replace("<name>", f"<n{row}>") for row, each in enumerate(written) if each)


def _marks(written: Iterable[str]) -> str:
    """Return a pattern of literal marks, the longest first, by their first two characters to save time."""
    groups: dict[str, list[str]] = {}
    for mark in sorted(dict.fromkeys(written), key=len, reverse=True):
        groups.setdefault(mark[:2].lower(), []).append(re.escape(mark[2:]))
    return "|".join(f"{re.escape(start)}(?:{'|'.join(rest)})" for start, rest in groups.items())


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


class BracedCall(NamedTuple):
    """A call with its arguments as pairs in braces.

    Attributes:
        name: The name of the function.
        arguments: The arguments.
        end: End of the call.
        plain: Whether all arguments are text, since the notation's marks around text are missing.
    """

    name: str
    arguments: Any
    end: int
    plain: bool


def head_before(text: str, brace: int) -> Head | None:
    """Return the name of a function just before a JSON object; None if there is none."""
    begin = max(0, brace - _HEAD_CHARS)
    window = text[begin:brace]
    if found := patterns().head.search(window):
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
    table = patterns()
    opened = table.tag.match(text, start)
    if opened is None or opened.lastgroup is None:
        return None
    name, at = opened[opened.lastgroup].strip(), _after_gap(text, opened.end())
    argument, argument_end, end = table.arguments.get(int(opened.lastgroup[1:]), (_ARGUMENT, None, _END))
    arguments: dict[str, str] = {}
    while found := argument.match(text, at):
        given = found.groupdict()
        key = next(given[group] for group in ("key", "named", "arg", "element") if given.get(group)).strip()
        if argument_end is None:
            closing = f"</{given['tag'] or given['value'] or given['element']}>"
            stop = text.find(closing, found.end())
            at = stop + len(closing)
        else:
            closed = argument_end.search(text, found.end())
            stop, at = closed.span() if closed else (-1, -1)
        if stop < 0:
            raise BadArguments(f"the call of {name!r} is cut off")
        if key in arguments:
            raise BadArguments(f"the parameter {key!r} is given twice")
        value = text[found.end() : stop].strip()
        arguments[key] = literal[1] if (literal := _CDATA.fullmatch(value)) else value
        at = _after_gap(text, at)
    if closed := end.match(text, at):
        return TaggedCall(name, arguments, closed.end())
    if not arguments:
        return None
    if text[at:].strip():
        raise BadArguments(f"the call of {name!r} has no end")
    return TaggedCall(name, arguments, at)


def _after_gap(text: str, start: int) -> int:
    """Return the position of the next character that is not white space."""
    return _GAP.match(text, start).end()  # type: ignore[union-attr]  # it matches nothing too


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
    return patterns().native.search(text[max(0, start - _NATIVE_CHARS) : start]) is not None


def call_in_braces(text: str, start: int, names: Callable[[str], Sequence[str]]) -> BracedCall | None:
    """Return the call ``call:NAME{key:<escape>text<escape>}``, as of Gemma; None if none starts here.

    Args:
        text: The reply.
        start: The position.
        names: Returns the arguments of a function, which are read without marks around text, too.

    Raises:
        NotJson: The arguments cannot be parsed.
    """
    table = patterns()
    head = table.braces.match(text, start)
    if head is None or head.lastgroup is None:
        return None
    limit = min(len(text), head.end() + MAX_ACTION_CHARS)
    kept, removed, position, size = [], [], head.end(), 0
    for quoted in table.quoted.finditer(text, head.end(), limit):
        written = json.dumps(quoted["text"])
        kept += [text[position : quoted.start()], written]
        size += quoted.start() - position + len(written)
        removed.append((size, len(quoted[0]) - len(written)))
        position = quoted.end()
    name = head[head.lastgroup]
    try:
        value, stop = decode("".join([*kept, text[position:limit]]))
    except NotJson:
        plain = None if removed else _plain_pairs(text, head.end(), limit, names(name))
        if plain is None:
            raise
        return BracedCall(name, *plain, plain=True)
    end = head.end() + stop + sum(less for place, less in removed if place <= stop)
    return BracedCall(name, value, end, plain=False)


def _plain_pairs(
    text: str, start: int, limit: int, names: Sequence[str]
) -> tuple[dict[str, str], int] | None:
    """Return the pairs in braces whose text has no marks, and their end; None for other text.

    A value ends before a comma and the name of another argument, or at the last brace of the line.
    """
    line = text.find("\n", start, limit)
    end = text.rfind("}", start, limit if line < 0 else line)
    if end < 0 or not names:
        return None
    key = re.compile(rf"(?:^|,)\s*({'|'.join(map(re.escape, names))})\s*:")
    inside = text[start + 1 : end]
    found = list(key.finditer(inside))
    if not found or found[0].start():
        return None
    ends = [*(each.start() for each in found[1:]), len(inside)]
    pairs = {each[1]: inside[each.end() : stop].strip() for each, stop in zip(found, ends, strict=True)}
    return (pairs, end + 1) if len(pairs) == len(found) else None
