"""The answer in a reply, as the text that marks are found in."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from agentgym_gym.formats._labels import folded
from agentgym_gym.formats._reasoning import answer_in, masked

if TYPE_CHECKING:
    from collections.abc import Sequence

    from agentgym_gym.actions import Grammar

__all__ = ["AnswerText"]

_QUOTED = re.compile(r"^[ \t]*>", re.MULTILINE)
_NOT_QUOTED = re.compile(r"^(?![ \t]*(?:>|$))", re.MULTILINE)


class AnswerText:
    """The answer in a reply of a model.

    Args:
        reply: The whole reply.
        grammar: The actions it may name.

    Attributes:
        text: The answer; places in it are places in the reply.
        unclosed: The mark of reasoning that is never closed; empty for none.
        grammar: The actions.
        style: How they are written.
        shape: The same in lower case with plain characters in place of typographic ones, to find marks in.
    """

    def __init__(self, reply: str, grammar: Grammar) -> None:
        self.text, self.unclosed = answer_in(reply)
        self.shape = folded(self.text)
        self.grammar = grammar
        self.style = grammar.style
        self._windows = "\r" in reply

    @property
    def unquoted(self) -> str:
        """The text with blanks in place of the ``>`` of its lines, where all of them are quoted."""
        text = self.text
        if text.lstrip()[:1] != ">" or _NOT_QUOTED.search(text):
            return text
        return _QUOTED.sub(lambda sign: " " * len(sign[0]), text)

    def piece(self, start: int, end: int) -> str:
        """Return the text between two places without white space at its ends."""
        piece = self.text[start:end].strip()
        return piece.replace(" \n", "\n") if self._windows else piece

    def hide(self, spans: Sequence[tuple[int, int]]) -> None:
        """Put line ends in place of the text of some spans, which are in order: no mark is found there."""
        self.text, self.shape = masked(self.text, spans), masked(self.shape, spans)
