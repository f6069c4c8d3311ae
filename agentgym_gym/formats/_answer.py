"""The answer part of a reply, without its reasoning, as the text to search for marks."""

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


# Tags around a whole answer, as of ERNIE, Granite, Hunyuan and GLM.
_FRAME = re.compile(
    r"\s*(?P<tag><(?P<name>answer|response|output|reply|result|solution|final)>)", re.IGNORECASE
)


def _unframed(text: str, frame: re.Match[str]) -> str:
    """Return an answer with line breaks in place of the tags around it."""
    end = len(text.rstrip())
    closing = f"</{frame['name']}>"
    start = end - len(closing)
    closed = text[max(0, start) : end].lower() == closing.lower()
    return masked(text, [frame.span(), *([(start, end)] if closed else [])])


class AnswerText:
    """The answer part of a model's reply.

    Args:
        reply: The whole reply.
        grammar: The actions that the reply may contain.

    Attributes:
        text: The answer, with the same positions as in the reply.
        unclosed: The opening mark of reasoning that never closes; empty if there is none.
        grammar: The actions.
        style: The syntax of the actions.
        shape: The text in lower case with ASCII in place of typographic characters, for finding marks.
    """

    def __init__(self, reply: str, grammar: Grammar) -> None:
        self.text, self.unclosed = answer_in(reply)
        self.grammar = grammar
        self.style = grammar.style
        if (frame := _FRAME.match(self.text)) and not self._is_own(frame.start("tag")):
            self.text = _unframed(self.text, frame)
        self.shape = folded(self.text)
        self._windows = "\r" in reply

    def _is_own(self, start: int) -> bool:
        """Return whether the environment's own mark begins at a position."""
        return self.style.mark is not None and self.style.mark.match(self.text, start) is not None

    @property
    def unquoted(self) -> str:
        """The text with spaces in place of each line's ``>`` if all lines are quoted; otherwise the text."""
        text = self.text
        if text.lstrip()[:1] != ">" or _NOT_QUOTED.search(text):
            return text
        return _QUOTED.sub(lambda sign: " " * len(sign[0]), text)

    def piece(self, start: int, end: int) -> str:
        """Return the text between two positions, without leading and trailing white space."""
        piece = self.text[start:end].strip()
        return piece.replace(" \n", "\n") if self._windows else piece

    def hide(self, spans: Sequence[tuple[int, int]]) -> None:
        """Replace spans, given in order, with line breaks, so that no mark is found there."""
        self.text, self.shape = masked(self.text, spans), masked(self.shape, spans)
