"""The shop's search engine: BM25 by ``bm25s``, with the same ranking on every machine."""

from __future__ import annotations

import re
from array import array
from collections.abc import Iterable

import bm25s
import numpy as np

__all__ = ["MAX_CHARS", "MAX_RESULTS", "MAX_WORDS", "ProductIndex"]

MAX_RESULTS = 50
"""The maximum number of results, as on AgentGym's server."""

MAX_CHARS = 2_000
"""The length to which a query is truncated, in characters. The client sends at most 1,000."""

MAX_WORDS = 64
"""The maximum number of different words of a query that are searched for."""

_WORD = re.compile(r"\w+")
_COMMON = frozenset(
    (
        "a",
        "an",
        "and",
        "are",
        "as",
        "at",
        "be",
        "by",
        "for",
        "i",
        "in",
        "is",
        "it",
        "me",
        "of",
        "on",
        "or",
        "s",
        "that",
        "the",
        "to",
        "with",
    )
)
_SHORT = 3  # the length up to which a word keeps its final s
_STEPS = 1_024  # per point of a score


class ProductIndex:
    """A search index over texts.

    Args:
        texts: The texts, which are identified by their index.
    """

    def __init__(self, texts: Iterable[str]) -> None:
        self._vocabulary: dict[str, int] = {}
        known = self._vocabulary
        rows = [[known.setdefault(word, len(known)) for word in _words(text)] for text in texts]
        self._index = bm25s.BM25(k1=0.9, b=0.4) if known else None  # parameters as on AgentGym's server
        if self._index is not None:
            self._index.index((rows, known), create_empty_token=False, show_progress=False)

    def search(self, keywords: str) -> array[int]:
        """Return the texts that share a word with the keywords, the best first, at most `MAX_RESULTS`.

        Of two equal scores, the text that comes first in the shop comes first.
        """
        query = dict.fromkeys(_words(keywords[:MAX_CHARS]))
        known = [self._vocabulary[word] for word in query if word in self._vocabulary][:MAX_WORDS]
        if self._index is None or not known:
            return array("l")
        scores = self._index.get_scores_from_ids(sorted(known))
        # The last digits may differ between machines and must not affect the order.
        steps = np.rint(scores * _STEPS).astype(np.int64)
        least = max(1, np.partition(steps, -MAX_RESULTS)[-MAX_RESULTS]) if len(steps) > MAX_RESULTS else 1
        matches = np.flatnonzero(steps >= least)
        best = matches[np.argsort(-steps[matches], kind="stable")][:MAX_RESULTS]
        return array("l", best.tolist())


def _words(text: str) -> list[str]:
    return [_stem(word) for word in _WORD.findall(text.lower()) if word not in _COMMON]


def _stem(word: str) -> str:
    """Return a word without a plural s."""
    plural = len(word) > _SHORT and word.endswith("s") and not word.endswith(("ss", "us", "is"))
    return word[:-1] if plural else word
