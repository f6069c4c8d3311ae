"""The search engine: BM25 over words, with the same ranking on every machine."""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence

import bm25s

__all__ = ["DocumentIndex"]

MAX_QUERY_CHARS = 2_000
"""The length to which a query is truncated, in characters."""

MAX_QUERY_WORDS = 64
"""The maximum number of different words of a query that are searched for."""

_WORD = re.compile(r"\w+")


class DocumentIndex:
    """An index of documents.

    Okapi BM25 with k1 = 1.5 and b = 0.75, in the variant of Lucene (Kamphuis et al., 2020), by ``bm25s``
    (Lù, 2024, arXiv:2407.03618).

    Args:
        documents: The documents.
    """

    def __init__(self, documents: Sequence[str]) -> None:
        self._count = len(documents)
        self._numbers: dict[str, int] = {}
        numbered = [
            [self._numbers.setdefault(word, len(self._numbers)) for word in _words(document)]
            for document in documents
        ]
        self._bm25 = bm25s.BM25(k1=1.5, b=0.75, method="lucene")
        if self._numbers:
            # bm25s adds an empty word to the vocabulary of its argument, which must not be ours.
            self._bm25.index((numbered, dict(self._numbers)), show_progress=False)

    def nearest(self, query: str, count: int) -> list[int]:
        """Return the numbers of the best matching documents, the best first.

        Of two equal scores, the document with the lower number comes first. The method is thread-safe.

        Args:
            query: The query. Only its first 2,000 characters are read, and 64 different words of them.
            count: The maximum number of documents to return.
        """
        known = (word for word in _words(query[:MAX_QUERY_CHARS]) if word in self._numbers)
        words = list(itertools.islice(dict.fromkeys(known), MAX_QUERY_WORDS))
        if not words:
            return list(range(min(count, self._count)))
        scores = self._bm25.get_scores_from_ids([self._numbers[word] for word in words])
        nearest = []
        for _ in range(min(count, self._count)):
            best = int(scores.argmax())  # the first one with the highest score
            nearest.append(best)
            scores[best] = -1.0
        return nearest


def _words(text: str) -> list[str]:
    return _WORD.findall(text.lower())
