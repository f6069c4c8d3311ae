"""Scores an episode by WebArena's rules: the answer, the address, and the content of pages.

No language model judges. A ``fuzzy_match`` compares normalized texts: see `_fuzzy_match`.
"""

from __future__ import annotations

import asyncio
import html
import re
from collections.abc import Iterable, Mapping, Sequence
from http import HTTPStatus
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, urlsplit

from playwright.async_api import Error

from agentgym_servers._browser.tabs import ActionFailed
from agentgym_servers.webarena._page_functions import (
    call_function,
    called_function,
    evaluate_on_page,
    is_agents_page,
    raised_by_page,
    target_url,
)

if TYPE_CHECKING:
    from agentgym_servers._browser.tabs import Tabs
    from agentgym_servers.webarena._sites.addresses import Addresses

__all__ = ["CheckFailed", "evaluate", "matches_answer", "matches_url", "problem_of"]

JUDGE_SECONDS = 50.0
"""The maximum time for all checks of an episode, in seconds."""

_SCRIPTS = ("document.", "[...document.")
_TOKENS = re.compile(r"\d+(?:[.,:]\d+)*|\w+|[^\w\s]")


class CheckFailed(Exception):
    """A check of a task cannot be evaluated for any agent."""


async def evaluate(check: Mapping[str, Any], answer: str, tabs: Tabs, addresses: Addresses) -> float:
    """Return 1 if all parts of a check are met, otherwise 0.

    Args:
        check: ``eval`` of the task, with addresses in place of placeholders.
        answer: The answer of the agent.
        tabs: The tabs at the end of the episode; pages may be opened in them.
        addresses: Where the sites are.

    Raises:
        CheckFailed: A part cannot be evaluated.
        Error: The browser has ended.
    """
    try:
        met = await asyncio.wait_for(_all_met(check, answer, tabs, addresses), JUDGE_SECONDS)
    except asyncio.TimeoutError as error:
        if await tabs.ended():
            raise
        raise CheckFailed(f"its checks take more than {JUDGE_SECONDS:g} s") from error
    return float(met)


async def _all_met(check: Mapping[str, Any], answer: str, tabs: Tabs, addresses: Addresses) -> bool:
    for kind in check["eval_types"]:
        try:
            met = await _is_met(kind, check, answer, tabs, addresses)
        except Exception as error:
            if await tabs.ended():
                raise
            raise CheckFailed(f"its check {kind} fails: {_reason(error)}") from error
        if not met:
            return False
    return True


async def _is_met(kind: str, check: Mapping[str, Any], answer: str, tabs: Tabs, addresses: Addresses) -> bool:
    problem = _problem_of_part(kind, check)
    if problem:
        raise ValueError(problem)
    if kind == "string_match":
        return matches_answer(check["reference_answers"], answer)
    if kind == "url_match":
        return matches_url(check["reference_url"], tabs.shown.url)
    return await _matches_content(check["program_html"], tabs, addresses)


def _reason(error: Exception) -> str:
    if isinstance(error, Error | ActionFailed | ValueError):
        return str(error).partition("\n")[0]
    return f"{type(error).__name__}: {error}"


def problem_of(check: Mapping[str, Any]) -> str:
    """Return why the form of a check makes it impossible to evaluate; empty if it is valid."""
    problems = ((kind, _problem_of_part(kind, check)) for kind in check["eval_types"])
    return next((f"its check {kind} is not valid: {problem}" for kind, problem in problems if problem), "")


def _problem_of_part(kind: str, check: Mapping[str, Any]) -> str:
    if kind == "string_match":
        return _problem_of_answers(check.get("reference_answers"))
    if kind == "url_match":
        url = check.get("reference_url")
        return "" if isinstance(url, str) and url else "reference_url must be an address"
    if kind == "program_html":
        targets = check.get("program_html")
        if not isinstance(targets, list) or not targets:
            return "program_html must be a list of pages"
        return next(filter(None, map(_problem_of_target, targets)), "")
    return f"there is no evaluation of kind {kind!r}"


def _problem_of_answers(references: Any) -> str:
    if not isinstance(references, dict) or not references:
        return "reference_answers must have the answer"
    for approach, value in references.items():
        if approach not in {"exact_match", "must_include", "fuzzy_match"}:
            return f"there is no match of kind {approach!r}"
        if not (isinstance(value, str) if approach == "exact_match" else _are_texts(value)) and not (
            approach == "fuzzy_match" and isinstance(value, str)
        ):
            return f"{approach} must be {'text' if approach == 'exact_match' else 'a list of texts'}"
    return ""


def _problem_of_target(target: Any) -> str:
    if not isinstance(target, dict):
        return "a page must be an object"
    url, locator, required = (target.get(name) for name in ("url", "locator", "required_contents"))
    if not isinstance(url, str) or not isinstance(locator, str):
        return "a page must have the texts url and locator"
    if locator.strip() and not (called_function(locator.strip()) or locator.strip().startswith(_SCRIPTS)):
        return f"there is no locator of the form {locator!r:.80}"
    if not isinstance(required, dict) or not (
        isinstance(required.get("exact_match"), str) or _are_texts(required.get("must_include"))
    ):
        return "required_contents must have the text exact_match or the list must_include"
    return ""


def _are_texts(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(each, str) for each in value)


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
    """
    answer = _cleaned(answer)
    for approach, value in references.items():
        if approach == "exact_match":
            met = _cleaned(value) == _cleaned(answer)
        elif approach == "must_include":
            met = all(_includes(answer, each, whole=len(value) == 1) for each in value)
        else:
            met = _fuzzy_match(value, answer)
        if not met:
            return False
    return True


def _includes(text: str, required: str, *, whole: bool = False) -> bool:
    """Return whether a text contains another; one character has to be a separate word in an answer."""
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


async def _matches_content(targets: Iterable[Mapping[str, Any]], tabs: Tabs, addresses: Addresses) -> bool:
    for target in targets:
        selected = html.unescape(await _selected(target, tabs, addresses))
        required = target["required_contents"]
        if "exact_match" in required:
            met = _cleaned(required["exact_match"]) == _cleaned(selected)
        else:
            met = all(
                any(_includes(selected, each) for each in text.split(" |OR| "))
                for text in required["must_include"]
            )
        if not met:
            return False
    return True


async def _selected(target: Mapping[str, Any], tabs: Tabs, addresses: Addresses) -> str:
    """Return the content that a target selects on its page; empty if there is none.

    Raises:
        ValueError: The target calls a function that is not defined, or the site answers with an error.
        ActionFailed: The page does not load.
        Error: The locator is not valid, or the page cannot be read.
    """
    if not await _opened(target["url"], tabs, addresses):
        return ""
    locator: str = target["locator"].strip()
    if not locator:
        return await tabs.shown.content()
    if call := called_function(locator):
        return await call_function(call, tabs, addresses)
    try:
        for action in target.get("prep_actions") or ():
            await tabs.shown.evaluate(f"() => {action}")
    except Error as error:
        if not raised_by_page(error):
            raise
    return await evaluate_on_page(tabs, f"() => {locator}")


async def _opened(address: str, tabs: Tabs, addresses: Addresses) -> bool:
    """Open the page of a target; return whether there is one, which may depend on the agent."""
    url = await target_url(address, tabs, addresses)
    if not url or url == "last":
        return bool(url)
    try:
        status = await tabs.visit(url)
    except ActionFailed:
        if is_agents_page(address) and not await tabs.ended():
            return False
        raise
    if status >= HTTPStatus.INTERNAL_SERVER_ERROR:
        raise ValueError(f"{url:.200} answered HTTP {status}")
    return True
