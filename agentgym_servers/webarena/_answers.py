"""Compares texts and addresses with a task's references, by WebArena's rules."""

from __future__ import annotations

import html
import re
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import parse_qs, urlparse

from nltk.tokenize import NLTKWordTokenizer
from nltk.tokenize.punkt import PunktParameters, PunktSentenceTokenizer

__all__ = ["LONGEST_ANSWER", "cleaned", "matches_answer", "matches_content", "matches_exactly", "matches_url"]

LONGEST_ANSWER = 10_000
"""The number of characters after which an answer is cut before it is split into words or judged."""

_OR = " |OR| "
_TOKENS = re.compile(r"\d+(?:[.,:]\d+)*|\w+|[^\w\s]")


def _sentences() -> PunktSentenceTokenizer:
    """Return a splitter that equals nltk's English model where one character is concerned.

    The model is a download. An answer in lower case needs only its abbreviations of one letter: in nltk's
    rules a number or a letter with a period ends no sentence before a word in lower case.
    """
    parameters = PunktParameters()
    parameters.abbrev_types.update("cdefghklmnprstvw")
    return PunktSentenceTokenizer(parameters)


_SENTENCES = _sentences()
_WORDS = NLTKWordTokenizer()


def matches_answer(references: Mapping[str, Any], answer: str) -> bool:
    """Return whether an answer has all that is required.

    A ``fuzzy_match`` requires the words of each reference, in any order; ``N/A`` has to be the whole answer.

    Args:
        references: ``reference_answers`` of the task.
        answer: The answer.
    """
    answer = cleaned(answer)
    for approach, value in references.items():
        if approach == "exact_match":
            met = matches_exactly(value, answer)
        elif approach == "must_include":
            met = all(_includes(answer, each, whole=len(value) == 1) for each in value)
        else:
            met = _has_words(value, answer)
        if not met:
            return False
    return True


def matches_exactly(reference: str, text: str) -> bool:
    """Return whether two texts differ only in case, and in white space and quotes around them."""
    return cleaned(reference) == cleaned(text)


def matches_content(required: Mapping[str, Any], selected: str) -> bool:
    """Return whether the content of a page has all that is required.

    Args:
        required: ``required_contents`` of a page of the task.
        selected: The text or HTML that was selected on the page.
    """
    selected = html.unescape(selected)
    if "exact_match" in required:
        return matches_exactly(required["exact_match"], selected)
    return all(
        any(_includes(selected, each) for each in text.split(_OR)) for text in required["must_include"]
    )


def cleaned(text: str) -> str:
    """Return a text in lower case, without white space and one pair of quotes around it."""
    text = text.strip()
    for quote in ("'", '"'):
        if text.startswith(quote) and text.endswith(quote):
            return text[1:-1].lower()
    return text.lower()


def _includes(text: str, required: str, *, whole: bool = False) -> bool:
    """Return whether a text contains another.

    Args:
        text: The text.
        required: The other text.
        whole: Whether a single character has to be a word of the text: 12 and 3/5 contain no word 5.
    """
    text, required = cleaned(text), cleaned(required)
    if whole and len(required) == 1 and not required.isspace():
        return any(required in _WORDS.tokenize(each) for each in _SENTENCES.tokenize(text[:LONGEST_ANSWER]))
    return required in text


def _has_words(references: str | Sequence[str], answer: str) -> bool:
    if isinstance(references, str):
        return matches_exactly(references, answer)
    words = set(_TOKENS.findall(answer.lower()))
    return all(
        {each for each in _TOKENS.findall(reference.lower()) if each[0].isalnum()} <= words
        for reference in references
    )


def matches_url(references: str, url: str) -> bool:
    """Return whether an address contains one of the references, with one of their values for each field.

    Args:
        references: ``reference_url`` of the task: addresses with `` |OR| `` between them.
        url: The address of the page.
    """
    base, query = _split(url)
    bases, queries = [], dict[str, set[str]]()
    for each in references.split(_OR):
        its_base, its_query = _split(each)
        bases.append(its_base)
        for name, values in its_query.items():
            queries.setdefault(name, set()).update(values)
    return any(each in base for each in bases) and all(
        values & set(query.get(name, ())) for name, values in queries.items()
    )


def _split(url: str) -> tuple[str, dict[str, list[str]]]:
    parts = urlparse(url.rstrip("/"))  # which leaves parameters (;a=b) out of the path, as in WebArena
    return parts.netloc + parts.path, parse_qs(parts.query)
