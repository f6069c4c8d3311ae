"""JSON as language models write it: strict JSON first, then common deviations with only one possible meaning.

Accepted are single, typographic and full-width quotes, unquoted keys, trailing commas, comments, Python's
``True``, ``False`` and ``None``, tuples, and full-width punctuation. Nothing is completed or guessed: text
that ends within a value is rejected. Parsing takes linear time, and nothing is evaluated.
"""

from __future__ import annotations

import json
import re
from decimal import Decimal
from typing import Any

from agentgym_gym._text import no_constant

__all__ = ["NotJson", "decode", "exact_number", "unique_keys"]

_MAX_DEPTH = 64
_GAP = re.compile(r"(?:\s|//[^\n]*|#[^\n]*|/\*[^*]{0,300}\*/)*")
_OPEN = {"{": "}｝", "｛": "}｝", "[": "]］", "［": "]］", "(": ")"}
_QUOTES = {'"': '"', "'": "'", "“": "”", "”": "”", "＂": "＂", "‘": "’", "「": "」"}
_STRINGS = {
    quote: re.compile(rf"[^{end}\\]*(?:\\.[^{end}\\]*)*{end}", re.DOTALL) for quote, end in _QUOTES.items()
}
_WORD = re.compile(r"[A-Za-z_]\w*")
_WORDS = {"true": True, "false": False, "null": None, "True": True, "False": False, "None": None}
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?(?![\w.])", re.ASCII)
_MAX_DIGITS = 300  # of a number; `int` rejects thousands, and no action needs as many
_ESCAPE = re.compile(
    r"\\(u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|.)", re.DOTALL
)
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f"} | {c: c for c in "\"'\\/“”‘’＂」"}
_COLONS, _COMMAS = ":：", ",，"


class NotJson(ValueError):
    """The text is not a JSON value, not even with the accepted deviations.

    Attributes:
        meant: Whether it starts like one, or is cut off.
        cut_off: Whether the text ends within the value.
    """

    def __init__(self, message: str, *, meant: bool = True, cut_off: bool = False) -> None:
        super().__init__(message)
        self.meant = meant
        self.cut_off = cut_off


def decode(text: str, start: int = 0) -> tuple[Any, int]:
    """Return the value at a position of a text, and the position of its end.

    Raises:
        NotJson: There is no value, a key is repeated, or a number cannot be represented exactly.
    """
    try:
        return _STRICT.raw_decode(text, start)
    except (ValueError, RecursionError) as error:
        strict = str(error)
    try:
        return _Scanner(text).value(start, 0)
    except NotJson as error:
        detail = str(error) if str(error) != "it is not JSON" else strict
        raise NotJson(detail[:200], meant=error.meant, cut_off=error.cut_off) from None


class _Scanner:
    """Parser of one value; it stops at the first unclear character."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.sure = False  # whether a quoted key with its colon was read

    def value(self, at: int, depth: int) -> tuple[Any, int]:
        first = self.text[at : at + 1]
        if depth > _MAX_DEPTH:
            raise NotJson("it is nested too deep")
        if first in _QUOTES:
            return self._string(at)
        if first in "{｛" and first:
            return self._object(at, depth)
        if first in _OPEN:
            return self._items(at, depth)
        if number := _NUMBER.match(self.text, at):
            return exact_number(number[0]), number.end()
        word = _WORD.match(self.text, at)
        if word and word[0] in _WORDS:
            return _WORDS[word[0]], word.end()
        raise self._refusal(at)

    def _object(self, at: int, depth: int) -> tuple[dict[str, Any], int]:
        found: dict[str, Any] = {}
        ends, at = _OPEN[self.text[at]], self._skip(at + 1)
        while not self._is(at, ends):
            quoted = self.text[at] in _QUOTES
            key, at = self._key(at)
            at = self._skip(at)
            if not self._is(at, _COLONS):
                raise self._refusal(at)
            self.sure |= quoted
            if key in found:
                raise NotJson("a key is given twice")
            found[key], at = self.value(self._skip(at + 1), depth + 1)
            at = self._next(at, ends)
        return found, at + 1

    def _items(self, at: int, depth: int) -> tuple[list[Any], int]:
        found: list[Any] = []
        ends, at = _OPEN[self.text[at]], self._skip(at + 1)
        while not self._is(at, ends):
            item, at = self.value(at, depth + 1)
            found.append(item)
            at = self._next(at, ends)
        return found, at + 1

    def _next(self, at: int, ends: str) -> int:
        """Return the position of the next item or of the end."""
        at = self._skip(at)
        if self._is(at, _COMMAS):
            return self._skip(at + 1)
        if not self._is(at, ends):
            raise self._refusal(at)
        return at

    def _key(self, at: int) -> tuple[str, int]:
        if self.text[at : at + 1] in _QUOTES:
            return self._string(at)
        word = _WORD.match(self.text, at)
        if word is None:
            raise self._refusal(at)
        return word[0], word.end()

    def _string(self, at: int) -> tuple[str, int]:
        found = _STRINGS[self.text[at]].match(self.text, at + 1)
        if found is None:
            raise NotJson("a string has no end", cut_off=True)
        return _ESCAPE.sub(_unescaped, found[0][:-1]), found.end()

    def _skip(self, at: int) -> int:
        return _GAP.match(self.text, at).end()  # type: ignore[union-attr]  # it matches nothing too

    def _is(self, at: int, letters: str) -> bool:
        if at >= len(self.text):
            raise NotJson("it is cut off", cut_off=True)
        return self.text[at] in letters

    def _refusal(self, at: int) -> NotJson:
        return NotJson(
            "it is not JSON", meant=self.sure or at >= len(self.text), cut_off=at >= len(self.text)
        )


def _unescaped(found: re.Match[str]) -> str:
    code = found[1]
    if code[0] == "u" and len(code) > 1:
        return json.loads(f'"{found[0]}"')  # type: ignore[no-any-return]
    if code not in _ESCAPES:
        raise NotJson(f"{found[0]!r} is no escape of JSON")
    return _ESCAPES[code]


def exact_number(written: str) -> int | float:
    """Return the number for a decimal literal.

    Raises:
        NotJson: It is not a decimal literal, or Python cannot represent it exactly.
    """
    found = _NUMBER.fullmatch(written)
    if found is None:
        raise NotJson("a number is not written in plain decimal digits")
    return _float(written) if found[1] or found[2] else _int(written)


def _int(written: str) -> int:
    if len(written) > _MAX_DIGITS:
        raise NotJson("a number has too many digits")
    return int(written)


def _float(written: str) -> float:
    """Return a number, unless rounding makes it infinite or a different whole number."""
    value = float(written)
    if len(written) > _MAX_DIGITS or value - value != 0:
        raise NotJson("a number cannot be held as it is written")
    if value.is_integer() and Decimal(written) not in (value, Decimal(repr(value))):
        raise NotJson("a number cannot be held as it is written")
    return value


def unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return a JSON object: the ``object_pairs_hook`` of `json` that rejects repeated keys.

    Raises:
        NotJson: A key is repeated.
    """
    if len(dict(pairs)) != len(pairs):
        raise NotJson("a key is given twice")
    return dict(pairs)


_STRICT = json.JSONDecoder(
    object_pairs_hook=unique_keys,
    parse_constant=no_constant,
    parse_float=_float,
    parse_int=_int,
    strict=False,
)
