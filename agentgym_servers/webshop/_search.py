"""The search of the shop: BM25 by ``bm25s``, the same ranking on every machine."""

from __future__ import annotations

import re
from array import array
from collections.abc import Iterable

import bm25s
import numpy as np

__all__ = ["MAX_CHARS", "MAX_RESULTS", "MAX_WORDS", "Index"]

MAX_RESULTS = 50
"""Most results of a search, as on AgentGym's server."""

MAX_CHARS = 2_000
"""How much of a search is read, in characters. The client sends no more than 1,000."""

MAX_WORDS = 64
"""How many different words of a search are looked for."""

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
_SHORT = 3  # letters of a word that keeps its final s
_STEPS = 1_024  # to one point of a score


class Index:
    """Texts that can be searched.

    Args:
        texts: The texts; they are known by their place, from 0.
    """

    def __init__(self, texts: Iterable[str]) -> None:
        self._vocabulary: dict[str, int] = {}
        known = self._vocabulary
        rows = [[known.setdefault(word, len(known)) for word in _words(text)] for text in texts]
        self._index = bm25s.BM25(k1=0.9, b=0.4) if known else None  # AgentGym's engine has these parameters
        if self._index is not None:
            self._index.index((rows, known), create_empty_token=False, show_progress=False)

    def search(self, keywords: str) -> array[int]:
        """Return the texts that share a word with the keywords, the best first, `MAX_RESULTS` at most.

        Of two that are as good, the one that comes first in the shop comes first.
        """
        asked = dict.fromkeys(_words(keywords[:MAX_CHARS]))
        known = [self._vocabulary[word] for word in asked if word in self._vocabulary][:MAX_WORDS]
        if self._index is None or not known:
            return array("l")
        scores = self._index.get_scores_from_ids(sorted(known))
        # The last digits may differ from machine to machine, and must not decide.
        steps = np.rint(scores * _STEPS).astype(np.int64)
        least = max(1, np.partition(steps, -MAX_RESULTS)[-MAX_RESULTS]) if len(steps) > MAX_RESULTS else 1
        found = np.flatnonzero(steps >= least)
        best = found[np.argsort(-steps[found], kind="stable")][:MAX_RESULTS]
        return array("l", best.tolist())


def _words(text: str) -> list[str]:
    return [_stem(word) for word in _WORD.findall(text.lower()) if word not in _COMMON]


def _stem(word: str) -> str:
    """Return a word without the s of a plural."""
    plural = len(word) > _SHORT and word.endswith("s") and not word.endswith(("ss", "us", "is"))
    return word[:-1] if plural else word
