"""Reads JSON files from the user, the large one item by item."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TextIO

from agentgym_gym.errors import BadOption
from agentgym_servers._frame.data_files import read_user_json

__all__ = ["array_items", "json_object"]

_CHUNK = 1 << 20  # the number of characters to read at a time
_MAX_ITEM = 1 << 24  # maximum characters of an item, so that a file that is not JSON is not read whole
_BLANKS = " \t\r\n"


def array_items(file: Path) -> Iterator[Any]:
    """Yield the items of a JSON array, with at most one of them and a part of the file in memory.

    Args:
        file: The file, in UTF-8.

    Raises:
        BadOption: The file is unreadable or not a JSON array; the message names the item, from 0.
    """
    number = 0
    try:
        with file.open(encoding="utf-8") as text:
            reader = _Reader(text)
            if reader.mark() != "[":
                raise BadOption(f"{file} should be a JSON array")
            while reader.mark() != "]" or not number:
                if reader.next_mark() == "]" and not number:
                    return
                yield reader.item()
                number += 1
                if reader.mark() not in {",", "]"}:
                    raise BadOption(
                        f"{file}: item {number - 1} is followed by neither a comma nor the end of the array"
                    )
    except BadOption:
        raise
    except (OSError, ValueError, RecursionError) as error:
        raise BadOption(f"{file}: item {number} cannot be read: {error!s:.200}") from None


class _Reader:
    """A text whose beginning is dropped as it is read."""

    def __init__(self, text: TextIO) -> None:
        self._text = text
        self._decode = json.JSONDecoder().raw_decode
        self._held = ""
        self._place = 0

    def mark(self) -> str:
        """Return the next character that is not white space, without consuming it; empty at the end."""
        while True:
            while self._place < len(self._held) and self._held[self._place] in _BLANKS:
                self._place += 1
            if self._place < len(self._held) or not self._more():
                return self._held[self._place : self._place + 1]

    def next_mark(self) -> str:
        """Consume the character of `mark` and return the next one."""
        self._place += 1
        return self.mark()

    def item(self) -> Any:
        """Parse and consume the next value.

        Raises:
            ValueError: There is no value, or it is too long.
        """
        while True:
            try:
                item, end = self._decode(self._held, self._place)
            except RecursionError:
                raise ValueError("it is nested too deep") from None
            except json.JSONDecodeError as error:
                if len(self._held) - self._place > _MAX_ITEM or not self._more():
                    raise ValueError(f"it is not JSON, or too long: {error.msg}") from None
            else:
                # A number at the end of the buffer may have more digits.
                if end < len(self._held) or not self._more():
                    self._place = end
                    return item

    def _more(self) -> bool:
        """Read more of the file; return whether there was more."""
        more = self._text.read(max(_CHUNK, len(self._held) - self._place))
        if more:
            self._held, self._place = self._held[self._place :] + more, 0
        return bool(more)


def json_object(file: Path) -> dict[str, Any]:
    """Return the JSON object in a file.

    Raises:
        BadOption: The file is unreadable or not a JSON object.
    """
    content = read_user_json(file)
    if not isinstance(content, dict):
        raise BadOption(f"{file} should be a JSON object, not {type(content).__name__}")
    return content
