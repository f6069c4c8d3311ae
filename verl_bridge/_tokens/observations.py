"""Shorten long observations in the middle, and count the episodes that a length limit ended."""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable

__all__ = ["LEAST", "CutEpisodes", "cut_in_the_middle", "default_limit", "encode_within"]

LEAST = 100
"""Minimum room, in characters, that a prompt must leave for a first observation of that length."""

_CHARACTERS = 32
"""Assumed maximum of characters per token; longer text is shortened before it is encoded."""

_log = logging.getLogger(__name__)


def default_limit(response_length: int) -> int:
    """Return the default token limit of an observation: a quarter of the response, and at least 128."""
    return max(128, response_length // 4)


def cut_in_the_middle(text: str, keep: int) -> str:
    """Keep `keep` characters of a text, half of them from its end, around a mark of the omission."""
    if keep >= len(text):
        return text
    last = keep // 2
    mark = f"\n[… {len(text) - keep:,} characters left out …]\n"
    return text[: keep - last] + mark + text[len(text) - last :]


def encode_within(text: str, limit: int | None, encode: Callable[[str], list[int]]) -> tuple[list[int], int]:
    """Encode a text, shortened in the middle if it has too many tokens.

    Args:
        text: The text.
        limit: Maximum number of tokens; None for no limit.
        encode: Returns the tokens of a text together with the text around it.

    Returns:
        The tokens, and how many characters of the text they contain. There are more tokens than `limit` only
        if the surrounding text already has too many.
    """
    if limit is None:
        return encode(text), len(text)
    keep = min(len(text), _CHARACTERS * limit)
    tokens = encode(cut_in_the_middle(text, keep))
    if len(tokens) <= limit or not text:
        return tokens, keep
    nothing = encode(cut_in_the_middle(text, 0))
    if keep == len(text) and len(tokens) <= len(nothing):  # the whole text is shorter than the mark
        return tokens, keep
    while len(tokens) > limit and keep:
        # Assume that the rest is as dense as before. If it is denser, the next pass removes more.
        room, used = max(limit - len(nothing), 0), len(tokens) - len(nothing)
        keep = min(keep - 1, keep * room // used) if used > 0 else 0
        tokens = encode(cut_in_the_middle(text, keep)) if keep else nothing
    return tokens, keep


class CutEpisodes:
    """Count the episodes of this process that a length limit ended, and warn about them at intervals.

    Args:
        every: Number of episodes between two warnings.
    """

    def __init__(self, every: int = 256) -> None:
        self._last: deque[bool] = deque(maxlen=every)
        self._since = every  # so that the first warning is immediate

    def count(self, limit: str | None) -> None:
        """Count an episode.

        Args:
            limit: The setting that ended it, with its value; None if none did.
        """
        self._last.append(limit is not None)
        self._since += 1
        if limit is not None and self._since >= (self._last.maxlen or 0):
            self._since = 0
            _log.warning(
                "%d of the last %d episodes of this worker were cut off before their environment had ended "
                "them, because %s was used up: raise it, or lower max_turns, max_tokens_per_turn or "
                "max_observation_tokens",
                sum(self._last),
                len(self._last),
                limit,
            )
