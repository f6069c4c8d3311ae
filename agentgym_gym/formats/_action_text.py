"""Where an action begins and ends behind a mark, and how it is read without the markup around it."""

# ruff: noqa: RUF001 - models write these characters, too

from __future__ import annotations

import contextlib
import re
from html import unescape
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple

from agentgym_gym._json import NotJson, decode
from agentgym_gym._text import shown
from agentgym_gym.actions import Action, Grammar
from agentgym_gym.errors import ActionError, BadArguments, ManyActions
from agentgym_gym.formats._code import single_call
from agentgym_gym.formats._json_calls import arguments_of
from agentgym_gym.formats._labels import INPUT, next_label
from agentgym_gym.formats._native import call_at
from agentgym_gym.formats._reasoning import UNSEEN

if TYPE_CHECKING:
    from agentgym_gym.formats._reply import Reply

__all__ = ["Found", "read_all", "read_from"]

_LAYERS = 8  # of markup around an action: '- **`"get 1 stick"`**.' has five
_MOST_LINES = 64  # between two tags that are read
_MOST_CUTS = 12  # places where the action of a line may end that are tried
_LONGEST_LABEL = 80  # characters of a line in which a label is looked for

_FENCE = re.compile(r"(?:`{3,}|~{3,})(?:\s*(?=[`~]{3}))?")
_LANGUAGE_LINE = re.compile(r"[ \t]*[\w+#.-]*[ \t]*\n", re.ASCII)
_LANGUAGE_WORD = re.compile(
    r"(?:python3?|py|json|text|plaintext|bash|sh|tool_code|sql(?:ite3?)?)[ \t]+", re.IGNORECASE
)
_EMPHASIS = " \t*_"
_NOTHING = ("", "none", "None", "null", None)
_CUT = re.compile(r"\.(?=\s|[^\x00-\x7f])|[ \t]\(|[ \t]#|[ \t]//|;|[ \t]-{1,2}[ \t]|[ \t]*[–—]")

_BRACKETS = {
    "[": "]",
    "(": ")",
    "<": ">",
    "{": "}",
    "「": "」",
    "『": "』",
    "【": "】",
    "«": "»",
    "《": "》",
    "“": "”",
}
_BRACKETS |= {"‘": "’"}
_QUOTES = frozenset("\"'`*_~$")
_ENDS = ".!。！…．"
_LIST_SIGN = re.compile(
    r"(?:[-*+]+(?=\s)|[>•·‣▪●○◦→➤➜►▶✅👉🎯🤖#]+|=>|\d{1,3}[.)]|\(\d{1,3}\)|[^\w\s\x00-\x7f“‘「『【«《]+)\s*"
)
_LOOKS = re.compile(  # HTML tags that only set how a text looks, and comments
    r"</?(?:b|i|u|p|a|em|strong|mark|code|span|div|li|ul|ol|br|pre|tt|kbd|font|center|h[1-6])(?: [^<>]{0,80})?/?>"
    r"|<!--[^<>]{0,300}-->",
    re.IGNORECASE,
)
_TAGS = re.compile(r"<([a-z][\w:]{0,19})(?: [^<>]{0,80})?>(.*)</\1>", re.IGNORECASE | re.DOTALL)
_CLOSING_TAG = re.compile(r"</[a-z][\w:]{0,19}>\Z", re.IGNORECASE)
_SAYS = re.compile(r"\w")
_LATEX = re.compile(r"\\(?:boxed|text|texttt|mathrm|mathbf|textbf)\{(.*)\}\Z", re.DOTALL)
_ENTITY = re.compile(r"&(?:lt|gt|amp|quot|apos|nbsp|#\d{1,5});")
_BLANKS = re.compile(r"[\xa0\u1680\u2000-\u200a\u202f\u205f\u3000]")
_INVISIBLE = re.compile(f"[{UNSEEN}]")
_PYTHON_CALL = re.compile(r"[A-Za-z_][\w.]{0,80}[ \t]?\(.*\)", re.DOTALL)


class Found(NamedTuple):
    """What a mark marks: an action, or why its text is none, and where the text is."""

    read: Action | ActionError
    start: int
    end: int


def read_from(reply: Reply, start: int, limit: int) -> Found | None:
    """Read the action that begins behind a mark; None where the mark is empty.

    It is the rest of the line, or the next line that is not empty. Where a fence or a call begins there, it is
    the text up to the end of that.

    Args:
        reply: The reply.
        start: Where the mark ends.
        limit: Where the next mark begins, or the end.
    """
    text = reply.text
    end = text.find("\n", start)
    end = len(text) if end < 0 else end
    if not text[start:end].strip(_EMPHASIS):
        begin = end
        while begin < limit and text[begin].isspace():
            begin += 1
        if begin >= limit:
            return None
        end = text.find("\n", begin)
        end = len(text) if end < 0 else end
        below = True
    else:
        begin, below = start, False
    while text[begin] in " \t":
        begin += 1
    if text.startswith(("```", "~~~"), begin):
        return _fenced(reply, begin, len(text))
    if reply.shape.find("nput", end) >= 0 and (found := _with_input(reply, begin, end)):
        return found
    style = reply.grammar.style
    if not style.lines:
        end = style.end(text, begin, next_label(reply.shape, begin, limit))
    elif end > limit:
        end = limit
    elif "&" not in text[begin:end]:  # as in nearly all replies, the line is the action
        with contextlib.suppress(ActionError):
            return Found(reply.grammar.parse(text[begin:end].strip()), begin, end)
    found = _of_text(reply, begin, end)
    if below and found is not None and not isinstance(found.read, Action) and _is_label(reply, begin):
        return None  # the mark is empty
    return found


def read_all(reply: Reply, start: int, end: int, *, marked: bool = True) -> Found | None:
    """Read the action that is all of the text between two places; None where they hold nothing.

    Args:
        reply: The reply.
        start: Where the text begins.
        end: Where it ends.
        marked: Whether the text is marked as an action, and not just the whole reply.
    """
    text = reply.text
    inside = text[start:end]
    start += len(inside) - len(inside.lstrip())
    end = start + len(inside.strip())
    if start >= end:
        return None
    if text.startswith(("```", "~~~"), start):
        fenced = _fenced(reply, start, end, marked=marked)
        if fenced is not None and not text[fenced.end : end].strip("`~ \t\n"):
            return fenced
    if not marked or "\n" not in text[start:end]:
        several = not marked and reply.grammar.style.lines and "\n" in text[start:end]
        return None if several else _of_text(reply, start, end, marked=marked)
    return _of_lines(reply, start, end)


def _is_label(reply: Reply, start: int) -> bool:
    """Return whether the line in which a place lies has a label of any kind."""
    line = reply.text.rfind("\n", 0, start)
    return line >= 0 and next_label(reply.shape, line, start + _LONGEST_LABEL) == line


def _of_lines(reply: Reply, start: int, end: int) -> Found | None:
    """Read the one action in marked text of several lines; lines that the grammar does not read are ignored."""
    text, style = reply.text, reply.grammar.style
    whole, _ = _peeled(reply.piece(start, end), reply.grammar)
    if isinstance(whole, Action) and not style.lines:
        return Found(whole, start, end)
    if (call := _as_call(reply, start, end)) is not None:
        return call
    found: list[Found] = []
    place = start
    while place < end and len(found) < _MOST_LINES:
        stop = style.end(text, place, end) if not style.lines else text.find("\n", place, end)
        stop = end if stop < 0 else stop
        if text[place:stop].strip() and (line := _of_text(reply, place, stop)):
            found.append(line)
        place = stop + 1
    read = [line for line in found if isinstance(line.read, Action)]
    if not read:
        return Found(whole, start, end) if found else None
    for line in read:
        if line.read != read[0].read:
            first, other = shown(str(read[0].read)), shown(str(line.read))
            return Found(ManyActions(f"the mark holds more than one action: {first} and {other}"), start, end)
    return read[0]


def _of_text(reply: Reply, start: int, end: int, *, marked: bool = True) -> Found | None:
    """Read the action that is the text between two places.

    Args:
        reply: The reply.
        start: Where the text begins.
        end: Where it ends.
        marked: Whether the longest beginning of a line counts that ends at a sign, and a mark within it.
    """
    grammar, style = reply.grammar, reply.grammar.style
    read, plain = _peeled(reply.piece(start, end), grammar, tags=marked)
    if isinstance(read, Action):
        return Found(read, start, end)
    if not marked:
        return None
    if not _SAYS.search(plain):
        return None
    if (call := _as_call(reply, start, end)) is not None:
        return call
    if style.mark is not None and (found := _of_own_mark(reply, start, end)):
        return found
    if style.lines:
        for cut in reversed(
            [found.start() for found in islice(_CUT.finditer(reply.shape, start + 1, end), _MOST_CUTS)]
        ):
            shorter, _ = _peeled(reply.piece(start, cut), grammar)
            if isinstance(shorter, Action):
                return Found(shorter, start, cut)
    return Found(read, start, end)


def _of_own_mark(reply: Reply, start: int, end: int) -> Found | None:
    """Return the action in the only mark of the environment's own in a marked text; None without one."""
    assert reply.grammar.style.mark is not None  # noqa: S101 - the caller saw it
    spans = [found.span() for found in islice(reply.grammar.style.mark.finditer(reply.text, start, end), 2)]
    if len(spans) != 1 or spans[0] == (start, end):
        return None
    found = read_all(reply, *spans[0])
    return found if found and isinstance(found.read, Action) else None


def _fenced(reply: Reply, start: int, limit: int, *, marked: bool = True) -> Found | None:
    """Read the content of a fence; one that is never closed ends at the limit."""
    text = reply.text
    opening = _FENCE.match(text, start)
    while opening and (another := _FENCE.match(text, opening.end())):
        opening = another
    assert opening is not None  # noqa: S101 - the caller saw it
    begin, sign = opening.end(), opening[0][:3]
    end = text.find(sign, begin, limit)
    closed, end = (end + len(sign), end) if end >= 0 else (limit, limit)
    language = _LANGUAGE_LINE.match(text, begin, end)
    if language and (text[language.end() : end].strip() or not text[begin : language.end()].strip()):
        begin = language.end()
    elif (word := _LANGUAGE_WORD.match(text, begin, end)) and text[word.end() : end].strip():
        begin = word.end()
    inside = read_all(reply, begin, end, marked=marked)
    return inside and inside._replace(end=closed if isinstance(inside.read, ActionError) else inside.end)


def _with_input(reply: Reply, start: int, end: int) -> Found | None:
    """Return the call that a name and the label of its arguments on the next line make; None without one."""
    text = reply.text
    begin = end
    while begin < len(text) and text[begin].isspace():
        begin += 1
    label = INPUT.match(reply.shape, begin)
    if label is None:
        return None
    name = _peeled(reply.piece(start, end), reply.grammar)[1].removesuffix("()").strip()
    if not reply.grammar.has_function(name):
        return None
    place = label.end()
    while place < len(text) and (text[place].isspace() or text[place] == "`"):
        place += 1
    place += 4 if text.startswith("json", place) else 0
    while place < len(text) and text[place].isspace():
        place += 1
    line = text.find("\n", label.end())
    line = len(text) if line < 0 else line
    try:
        arguments, end = decode(text, place)
        if not isinstance(arguments, dict) and text[end:line].strip(" \t`"):
            raise NotJson("a word is not JSON", meant=False)
    except NotJson as error:
        if error.meant and text[place : place + 1] in {"{", "｛", "["}:
            return Found(BadArguments(f"the JSON of `Action Input:` cannot be read: {error}"), start, line)
        arguments, end = reply.piece(label.end(), line), line
    try:
        arguments = {} if arguments in _NOTHING else arguments_of(arguments, name, reply.grammar)
        return Found(reply.grammar.from_call(name, arguments), start, end)
    except ActionError as error:
        return Found(error, start, end)


def _as_call(reply: Reply, start: int, end: int) -> Found | None:
    """Return the call in JSON, in a native notation or in Python that begins at a place; None without one."""
    if (call := call_at(reply.text, start, end, reply.grammar)) is not None:
        return Found(call.read, call.start, call.end)
    piece = _without_emphasis(reply.piece(start, end))
    if piece.endswith(")") and _PYTHON_CALL.fullmatch(piece):
        called = single_call(piece, reply.grammar)
        return None if called is None else Found(called, start, end)
    return None


def _without_emphasis(piece: str) -> str:
    return piece.strip("*_` \t.;")


def _peeled(piece: str, grammar: Grammar, *, tags: bool = True) -> tuple[Action | ActionError, str]:
    """Return what the grammar reads when one layer of markup after the other is taken off, and what is left."""
    style = grammar.style
    escaped = style.lines and "&" in piece and _ENTITY.search(piece) is not None
    read = _parsed(piece, grammar)
    if isinstance(read, Action) and not escaped:
        return read, piece
    plain = piece if piece.isascii() else _BLANKS.sub(" ", _INVISIBLE.sub("", piece)).strip()
    plain = unescape(plain) if escaped else plain
    for _ in range(_LAYERS):
        if plain is not piece and plain:
            read = _parsed(plain, grammar)
            if isinstance(read, Action):
                break
        inner = _without_layer(plain, tags=tags, sentence=style.lines) if plain else plain
        if inner == plain or not inner:
            break
        plain = inner
    return read, plain


def _parsed(text: str, grammar: Grammar) -> Action | ActionError:
    try:
        return grammar.parse(text)
    except ActionError as error:
        return error


def _without_layer(text: str, *, tags: bool, sentence: bool) -> str:
    """Return a text without its outermost layer of markup."""
    if text[:2] == text[-2:] == "**" and len(text) > 4:  # noqa: PLR2004 - bold, whatever is inside
        return text[2:-2].strip()
    if _is_pair(text) and (text[0] != "<" or text.count("<") == 1):
        return text[1:-1].strip()
    if text[0] == "\\" and (latex := _LATEX.match(text)):
        return latex[1].strip()
    if text[0] == "<" or text[-1] == ">":
        return _without_tag(text, tags=tags)
    if text[-1] in _ENDS and (sentence or text[-2:-1] in _QUOTES):
        return text.rstrip(_ENDS).strip()
    if sign := _LIST_SIGN.match(text):
        return text[sign.end() :].strip()
    if text[-1] in "`\"'*”’_" and text[-1] not in (rest := text.rstrip(text[-1])):
        return rest.strip()  # its other half is before the label
    if text[0] in "`*_" and text[0] not in (rest := text.lstrip(text[0])):
        return rest.strip()
    if text[-1] > "\x7f" and not text[-1].isalnum() and text[-1] not in "”’」』】»》）":
        return text[:-1].strip()
    return text


def _without_tag(text: str, *, tags: bool) -> str:
    """Return a text without the HTML tag, or the pair of tags, at its ends."""
    if text[0] == "<" and (tag := _LOOKS.match(text)):
        return text[tag.end() :].strip()
    if text[-1] == ">" and (tag := _LOOKS.match(text, text.rfind("<"))) and tag.end() == len(text):
        return text[: tag.start()].strip()
    if tags and text[0] == "<" and (pair := _TAGS.fullmatch(text)):
        return pair[2].strip()
    if tags and text[-1] == ">" and (tag := _CLOSING_TAG.search(text, text.rfind("<"))):
        return text[: tag.start()].strip()
    return text


def _is_pair(text: str) -> bool:
    """Return whether the first and the last character of a text are a pair of quotes or brackets."""
    first, last = text[0], text[-1]
    if len(text) < 2:  # noqa: PLR2004 - a pair
        return False
    if first in _QUOTES:
        return first == last and first not in text.strip(first)
    if _BRACKETS.get(first) != last:
        return False
    depth = 0
    for place, letter in enumerate(text):
        depth += (letter == first) - (letter == last)
        if not depth:
            return place == len(text) - 1
    return False
