"""Scores an episode by WebArena's rules: the answer, the address, and the content of pages.

No language model judges. A ``fuzzy_match`` compares normalized texts: see `_fuzzy_match`.
"""

from __future__ import annotations

import html
import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, urlsplit

from playwright.async_api import Error

from agentgym_servers.webarena._page_functions import call_function, target_url

if TYPE_CHECKING:
    from agentgym_servers._browser.tabs import Tabs
    from agentgym_servers.webarena._sites.addresses import Addresses

__all__ = ["evaluate", "matches_answer", "matches_url"]

_TOKENS = re.compile(r"\d+(?:[.,:]\d+)*|\w+|[^\w\s]")


async def evaluate(check: Mapping[str, Any], answer: str, tabs: Tabs, addresses: Addresses) -> float:
    """Return 1 if all parts of a check are met, otherwise 0.

    Args:
        check: ``eval`` of the task, with addresses in place of placeholders.
        answer: The answer of the agent.
        tabs: The tabs at the end of the episode; pages may be opened in them.
        addresses: Where the sites are.

    Raises:
        ValueError: The check has a kind that WebArena does not define.
    """
    for kind in check["eval_types"]:
        if kind == "string_match":
            met = matches_answer(check["reference_answers"], answer)
        elif kind == "url_match":
            met = matches_url(check["reference_url"], tabs.shown.url)
        elif kind == "program_html":
            met = await _matches_content(check["program_html"], tabs, addresses)
        else:
            raise ValueError(f"there is no evaluation of kind {kind!r}")
        if not met:
            return 0.0
    return 1.0


def _cleaned(text: str) -> str:
    text = text.strip()
    for quote in ("'", '"'):
        if text.startswith(quote) and text.endswith(quote):
            return text[1:-1].lower()
    return text.lower()


def matches_answer(references: Mapping[str, Any], answer: str) -> bool:
    """Return whether an answer has all that is required.

    Args:
        references: ``reference_answers`` of the task.
        answer: The answer.

    Raises:
        ValueError: There is no such way of matching.
    """
    answer = _cleaned(answer)
    for approach, value in references.items():
        if approach == "exact_match":
            met = _cleaned(value) == _cleaned(answer)
        elif approach == "must_include":
            met = all(_includes(answer, each, whole=len(value) == 1) for each in value)
        elif approach == "fuzzy_match":
            met = _fuzzy_match(value, answer)
        else:
            raise ValueError(f"there is no match of kind {approach!r}")
        if not met:
            return False
    return True


def _includes(text: str, required: str, *, whole: bool = False) -> bool:
    """Return whether a text contains another; one character has to be a word of its own in an answer."""
    text, required = _cleaned(text), _cleaned(required)
    if whole and len(required) == 1:
        return required in _TOKENS.findall(text)
    return required in text


def _fuzzy_match(references: str | Sequence[str], answer: str) -> bool:
    """Return whether the words of each reference are in the answer, in any order.

    ``N/A`` has to be the whole answer.
    """
    if isinstance(references, str):
        return _cleaned(references) == _cleaned(answer)
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
    gold = [each.rstrip("/") for each in references.split(" |OR| ")]
    base, query = _split(url.rstrip("/"))
    bases, queries = [], dict[str, set[str]]()
    for each in gold:
        its_base, its_query = _split(each)
        bases.append(its_base)
        for name, values in its_query.items():
            queries.setdefault(name, set()).update(values)
    return any(each in base for each in bases) and all(
        values & set(query.get(name, ())) for name, values in queries.items()
    )


def _split(url: str) -> tuple[str, dict[str, list[str]]]:
    parts = urlsplit(url)
    return parts.netloc + parts.path, parse_qs(parts.query)


async def _matches_content(targets: Sequence[Mapping[str, Any]], tabs: Tabs, addresses: Addresses) -> bool:
    for target in targets:
        url = await target_url(target["url"], tabs, addresses)
        if url != "last":
            await tabs.visit(url)
        selected = html.unescape(await _selected(target, tabs))
        required = target["required_contents"]
        if "exact_match" in required:
            met = _cleaned(required["exact_match"]) == _cleaned(selected)
        elif "must_include" in required:
            met = all(
                any(_includes(selected, each) for each in text.split(" |OR| "))
                for text in required["must_include"]
            )
        else:
            raise ValueError(f"there is no required content of kind {list(required)}")
        if not met:
            return False
    return True


async def _selected(target: Mapping[str, Any], tabs: Tabs) -> str:
    """Return the content that a target selects of the page that is shown; empty if there is none."""
    locator: str = target["locator"].strip()
    if not locator:
        return await tabs.shown.content()
    if locator.startswith("func:"):
        return await call_function(locator.removeprefix("func:"), tabs)
    if not locator.startswith(("document.", "[...document.")):
        raise ValueError(f"there is no locator of the form {locator!r:.80}")
    try:
        for action in target.get("prep_actions", ()):
            await tabs.shown.evaluate(f"() => {action}")
    except Error:
        pass
    try:
        value = await tabs.shown.evaluate(f"() => {locator}")
    except Error:  # another page, which has no such element
        return ""
    return "" if value is None else str(value)
