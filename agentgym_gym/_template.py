"""One template, such as ``get {count} {item}``: formats values as text, and parses text."""

from __future__ import annotations

import re
from collections import deque
from itertools import chain
from string import Formatter
from typing import TYPE_CHECKING, Any

from agentgym_gym.errors import BadArguments

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from agentgym_gym.arguments import Argument

__all__ = ["Template"]


class Template:
    """A template such as ``get {count} {item}``, parsed once per class.

    Args:
        template: The template.
        arguments: The kinds of the fields, by name.
        defaults: The values of the fields that the template omits.

    Matching uses no backtracking and takes linear time: a field ends at the first occurrence of the text
    after it in the template, a greedy field at the last one.
    """

    def __init__(
        self,
        template: str,
        arguments: Mapping[str, Argument[Any]],
        defaults: Mapping[str, Any] | None = None,
    ) -> None:
        self.defaults = defaults or {}
        pieces = list(Formatter().parse(template))
        self.names = [name for _, name, _, _ in pieces if name is not None]
        self._arguments = {name: arguments[name] for name in self.names}
        # From this fixed part on, the search runs from the end.
        greedy = (i for i, argument in enumerate(self._arguments.values()) if argument.greedy)
        self._turn = next(greedy, len(self.names))
        literals = [literal for literal, name, _, _ in pieces if name is not None]
        self.head = literals[0] if literals else template
        self.stem = self.head.rstrip(" [(:").lower()
        self._literals = literals
        self.tail = pieces[-1][0] if pieces[-1][1] is None and literals else ""
        self._head_size, self._tail_size = len(self.head), len(self.tail)
        self._folded_head, self._folded_tail = self.head.lower(), self.tail.lower()
        self.gaps = [re.compile(re.escape(gap), re.IGNORECASE | re.ASCII) for gap in literals[1:]]

    def join(self, written: Sequence[str]) -> str:
        """Return the text with all fields filled in."""
        if not self.names:
            return self.head
        return "".join([*chain.from_iterable(zip(self._literals, written, strict=True)), self.tail])

    def split(self, text: str) -> list[str] | None:
        """Return the text of each field in order, or None if the template does not match."""
        head, tail = self._head_size, self._tail_size
        if len(text) < head + tail or text[:head].lower() != self._folded_head:
            return None
        if tail and text[-tail:].lower() != self._folded_tail:
            return None
        if not self.names:
            return [] if len(text) == head else None
        end = len(text) - tail
        before, start = [], head
        for gap in self.gaps[: self._turn]:
            match = gap.search(text, start, end)
            if match is None:
                return None
            before.append(text[start : match.start()])
            start = match.end()
        after: list[str] = []
        for gap in reversed(self.gaps[self._turn :]):
            match = (
                deque(gap.finditer(text, start, end), maxlen=1).pop()
                if gap.search(text, start, end)
                else None
            )
            if match is None:
                return None
            after.append(text[match.end() : end])
            end = match.start()
        return [*before, text[start:end], *reversed(after)]

    def read(self, text: str) -> dict[str, Any] | None:
        """Return the values of the fields by name, or None if the template does not match.

        Raises:
            BadArguments: It matches, but the text of a field is not a valid value.
        """
        found = self.split(text)
        if found is None:
            return None
        values, name = {}, ""
        try:
            for name, written in zip(self.names, found, strict=False):
                values[name] = self._arguments[name].read(written)
        except BadArguments as error:
            raise BadArguments(f"{name.removesuffix('_')}: {error}") from None
        return values

    def begins(self, text: str) -> bool:
        """Return whether a text starts with the words before the first field."""
        size = len(self.stem)
        if not size or text[:size].lower() != self.stem:
            return False
        return not (_is_word(self.stem[-1]) and _is_word(text[size : size + 1]))


def _is_word(letter: str) -> bool:
    return letter.isalnum() or letter == "_"
