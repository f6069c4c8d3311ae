"""The template's text between two turns of the model, around an observation."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import TYPE_CHECKING

from verl_bridge._tokens.observations import encode_within

if TYPE_CHECKING:
    from verl_bridge._tokens.control import ControlTokens

__all__ = ["PROBE", "TRIMS", "TurnFrame"]

_BLANKS = "\n \t"
PROBE = f'{_BLANKS}<b> & "Seen" {{{{ 1 }}}} \\n{_BLANKS[::-1]}'
"""A text that shows how a template changes an observation."""

TRIMS: tuple[Callable[[str], str], ...] = (
    lambda text: text,
    str.strip,
    str.rstrip,
    str.lstrip,
    lambda text: text.strip("\n"),
    lambda text: text.rstrip("\n"),
    lambda text: text.lstrip("\n"),
    lambda text: json.dumps(text, ensure_ascii=False)[1:-1],  # as Llama 3 writes the result of a call
)
"""The changes that templates make to an observation."""


class TurnFrame:
    """Encodes observations in the template's text between the end of a reply and the next reply.

    Args:
        control: Encodes the texts.
        reply: The end of a reply as text; its tokens are not part of the results.
        before: The template's text between the reply and the observation.
        after: The template's text after the observation.
        trim: Changes an observation as the template does.

    Attributes:
        closing: Tokens at the beginning of the results that end the model's turn, which the model may have
            written itself. To be set by the owner.
    """

    def __init__(
        self, control: ControlTokens, reply: str, before: str, after: str, trim: Callable[[str], str]
    ) -> None:
        self._control = control
        self._before, self._after = control.mark(reply + before), control.mark(after)
        self._reply = control.encode(reply)
        self._trim = trim
        self.closing: list[int] = []
        self._length = len(self.encode(""))

    @property
    def joins(self) -> bool:
        """Whether the tokenizer joins the end of a reply with the text after it."""
        return any(
            self._whole(observation)[: len(self._reply)] != self._reply for observation in ("1", "z", " ", "")
        )

    def encode(self, observation: str) -> list[int]:
        """Return the tokens from the end of the model's turn to the beginning of the next."""
        return self._whole(observation)[len(self._reply) :]

    def encode_within(self, observation: str, limit: int | None) -> list[int]:
        """Return these tokens with an observation of at most `limit` tokens, shortened in the middle."""
        most = None if limit is None else self._length + limit
        return encode_within(observation, most, self.encode)[0]

    def _whole(self, observation: str) -> list[int]:
        text = self._control.plain(self._trim(observation))
        return self._control.encode(self._before + text + self._after)
