"""Remove the layers of markup, except fences, that models write around an action."""

# ruff: noqa: RUF001 - models write these characters, too

from __future__ import annotations

import re
from html import unescape

from agentgym_gym._text import CONTROLS, UNSEEN
from agentgym_gym.actions import Action, Grammar
from agentgym_gym.errors import ActionError, UnknownAction
from agentgym_gym.formats._dialects import LONGEST_TOKEN, TOKEN_AT_END

__all__ = ["is_empty", "is_ending", "read_peeled", "unframed"]

_LAYERS = 8  # '- **`"get 1 stick"`**.' has five

_BRACKETS = dict(zip("[(<{「『【«《“‘", "])>}」』】»》”’", strict=True))
_QUOTES = frozenset("\"'`*_~$")
_ENDS = ".!。！…．"
_LIST_SIGN = re.compile(
    r"(?:[-*+]+(?=\s)|[>•·‣▪●○◦→➤➜►▶✅👉🎯🤖#]+|=>|\d{1,3}[.)]|\(\d{1,3}\)|[^\w\s\x00-\x7f“‘「『【«《]+)\s*"
)
_LOOKS = re.compile(  # HTML tags for formatting, and comments
    r"</?(?:b|i|u|p|a|em|strong|mark|code|span|div|li|ul|ol|br|pre|tt|kbd|font|center|h[1-6])"
    r"(?: [^<>]{0,80})?/?>|<!--[^<>]{0,300}-->",
    re.IGNORECASE,
)
_TAGS = re.compile(r"<([a-z][\w:]{0,19})(?: [^<>]{0,80})?>(.*)</\1>", re.IGNORECASE | re.DOTALL)
# Tags and boxes around a whole answer.
_ANSWER_TAG = (
    r"(?:final[_-])?(?:answer|response|reply|result|solution|output|command|choice|decision|final|box)"
)
_FRAME = re.compile(
    rf"<(?P<name>{_ANSWER_TAG})>(?P<tagged>.*)</(?P=name)>|\$\$(?P<display>.*)\$\$"
    r"|\\\[(?P<square>.*)\\\]|\\\((?P<round>.*)\\\)"
    r"|\\(?:boxed|fbox|text|texttt|mathrm|mathbf|textbf)[ \t]?\{(?P<box>.*)\}",
    re.IGNORECASE | re.DOTALL,
)
_CLOSING_TAG = re.compile(r"</[a-z][\w:]{0,19}>\Z", re.IGNORECASE)
_WORD = re.compile(r"\w")
_ENTITY = re.compile(r"&(?:lt|gt|amp|quot|apos|nbsp|#\d{1,5});")
_BLANKS = re.compile(r"[\xa0\u1680\u2000-\u200a\u202f\u205f\u3000]")
_INVISIBLE = re.compile(f"[{UNSEEN}{CONTROLS}]")
_LONE_SIGNS = "`\"'*”’_"  # may close a pair that opened before the label
_PAIR = 2


def is_empty(text: str) -> bool:
    """Return whether a text has neither a letter nor a digit."""
    return _WORD.search(text) is None


def is_ending(text: str) -> bool:
    """Return whether a text has only signs that may follow an action, without a question mark."""
    return "?" not in text and is_empty(text)


def read_peeled(piece: str, grammar: Grammar, *, tags: bool = True) -> tuple[Action | ActionError, str]:
    """Strip layers of markup until the grammar parses the text; return the result and the remaining text.

    Args:
        piece: The text.
        grammar: The actions.
        tags: Whether any pair of tags counts as markup, and not only HTML tags and those of an answer.
    """
    style = grammar.style
    escaped = style.lines and "&" in piece and _ENTITY.search(piece) is not None
    result = _parsed(piece, grammar)
    if isinstance(result, Action) and not escaped:
        return result, piece
    plain = (
        piece
        if piece.isascii() and piece.isprintable()
        else _BLANKS.sub(" ", _INVISIBLE.sub("", piece)).strip()
    )
    plain = unescape(plain) if escaped else plain
    for _ in range(_LAYERS):
        if plain is not piece and plain:
            inner_result = _parsed(plain, grammar)
            if isinstance(inner_result, Action):
                return inner_result, plain
            if not isinstance(inner_result, UnknownAction) or isinstance(result, UnknownAction):
                result = inner_result  # otherwise it starts like an action, and its markup belongs to it
        inner = _without_layer(plain, tags=tags, sentence=style.lines) if plain else plain
        if inner == plain or not inner:
            break
        plain = inner
    return result, plain


def _parsed(text: str, grammar: Grammar) -> Action | ActionError:
    try:
        return grammar.parse(text)
    except ActionError as error:
        return error


def _without_layer(text: str, *, tags: bool, sentence: bool) -> str:
    """Return a text without its outermost layer of markup."""
    if text[:2] == text[-2:] == "**" and len(text) > 2 * _PAIR:  # bold text with any content
        return text[2:-2].strip()
    if (text[0] == "<" or text[-1] == ">" or text.endswith("|]")) and (
        inner := _without_tag(text, tags=tags)
    ) != text:
        return inner
    if _is_pair(text) and (text[0] != "<" or text.count("<") == 1):
        return text[1:-1].strip()
    if text[0] in "\\$<" and (inner := unframed(text)) != text:
        return inner
    if text[-1] in _ENDS and (sentence or text[-2:-1] in _QUOTES):
        return text.rstrip(_ENDS).strip()
    return _without_sign(text)


def unframed(text: str) -> str:
    """Return a text without the tags of an answer or the box of LaTeX around it."""
    frame = _FRAME.fullmatch(text)
    return text if frame is None else str(frame[str(frame.lastgroup)]).strip()


def _without_sign(text: str) -> str:
    """Return a text without an unpaired sign at one of its ends."""
    if sign := _LIST_SIGN.match(text):
        return text[sign.end() :].strip()
    if text[-1] in _LONE_SIGNS and text[-1] not in (rest := text.rstrip(text[-1])):
        return rest.strip()
    if text[0] in "`*_" and text[0] not in (rest := text.lstrip(text[0])):
        return rest.strip()
    if text[-1] > "\x7f" and not text[-1].isalnum() and text[-1] not in _BRACKETS.values():
        return text[:-1].strip()
    return text


def _without_tag(text: str, *, tags: bool) -> str:
    """Return a text without the HTML tag, or the pair of tags, at its ends."""
    if text[0] == "<" and (tag := _LOOKS.match(text)):
        return text[tag.end() :].strip()
    last = _LOOKS.match(text, text.rfind("<")) if text[-1] == ">" else None
    if last is None or last.end() != len(text):
        last = TOKEN_AT_END.search(text, max(0, len(text) - LONGEST_TOKEN))
    if last is not None:
        return text[: last.start()].strip()
    if text.endswith("-->"):
        return text[:-3].strip()
    if tags and text[0] == "<" and (pair := _TAGS.fullmatch(text)):
        return pair[2].strip()
    if tags and text[-1] == ">" and (tag := _CLOSING_TAG.search(text, text.rfind("<"))):
        return text[: tag.start()].strip()
    return text


def _is_pair(text: str) -> bool:
    """Return whether the first and last characters of a text are a pair of quotes or brackets."""
    first, last = text[0], text[-1]
    if len(text) < _PAIR:
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
