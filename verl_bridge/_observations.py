"""Long observations, cut in the middle; and how many episodes were cut off by the limits of length."""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable

__all__ = ["LEAST", "CutEpisodes", "cut_in_the_middle", "default_limit", "encode_within"]

LEAST = 100
"""Characters of a first observation that the prompt must have room for, if it has as many."""

_CHARACTERS = 32
"""Characters that a token is taken to have at most. More of a text than that is not even encoded."""

_log = logging.getLogger(__name__)


def default_limit(response_length: int) -> int:
    """Return how many tokens an observation may have if nothing is said: a quarter, and no less than 128."""
    return max(128, response_length // 4)


def cut_in_the_middle(text: str, keep: int) -> str:
    """Return a text with `keep` of its characters, half of them of its end, around a mark that says so."""
    if keep >= len(text):
        return text
    last = keep // 2
    mark = f"\n[… {len(text) - keep:,} characters left out …]\n"
    return text[: keep - last] + mark + text[len(text) - last :]


def encode_within(text: str, limit: int | None, encode: Callable[[str], list[int]]) -> tuple[list[int], int]:
    """Encode a text, which is cut in the middle if it would have too many tokens.

    Args:
        text: What is encoded.
        limit: Tokens that there may be; None for any number.
        encode: Returns the tokens of a text, with whatever stands around it.

    Returns:
        The tokens, and the characters of the text that are in them. There are more tokens than `limit` only
        if there are too many without any of the text.
    """
    if limit is None:
        return encode(text), len(text)
    keep = min(len(text), _CHARACTERS * limit)
    tokens = encode(cut_in_the_middle(text, keep))
    if len(tokens) <= limit or not text:
        return tokens, keep
    nothing = encode(cut_in_the_middle(text, 0))
    if keep == len(text) and len(tokens) <= len(nothing):  # shorter than the mark would be
        return tokens, keep
    while len(tokens) > limit and keep:
        # What is left is taken to be as dense as before. Where it is denser, the next turn takes more away.
        room, used = max(limit - len(nothing), 0), len(tokens) - len(nothing)
        keep = min(keep - 1, keep * room // used) if used > 0 else 0
        tokens = encode(cut_in_the_middle(text, keep)) if keep else nothing
    return tokens, keep


class CutEpisodes:
    """Counts the episodes of this process that a limit of length cut off, and warns of them now and then.

    Args:
        every: Episodes between two warnings.
    """

    def __init__(self, every: int = 256) -> None:
        self._last: deque[bool] = deque(maxlen=every)
        self._since = every  # so that the first is said at once

    def count(self, limit: str | None) -> None:
        """Count an episode.

        Args:
            limit: The setting that cut it off, with its value; None if none did.
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
