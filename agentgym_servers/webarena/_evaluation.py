"""Scores an episode by WebArena's rules: the answer, the address, and the content of pages."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

from playwright.async_api import Error

from agentgym_servers._browser.tabs import ActionFailed
from agentgym_servers.webarena._answers import matches_answer, matches_content, matches_url
from agentgym_servers.webarena._judge import JUDGE_SECONDS
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
    from agentgym_servers.webarena._judge import Judge
    from agentgym_servers.webarena._sites.addresses import Addresses
    from agentgym_servers.webarena._task import WebArenaTask

__all__ = [
    "CheckFailed",
    "Scoring",
    "answer_is_right",
    "needs_pages",
    "pages_are_right",
    "problem_of",
    "wait_seconds",
]

PAGES_SECONDS = 50.0
"""The maximum time for all checks of an episode's pages, in seconds, not counting fixed waits."""

_ANSWER = "string_match"
_SCRIPTS = ("document.", "[...document.")
_URL_NOTE = "GOLD in PRED"  # the only rule that WebArena has for addresses


class CheckFailed(Exception):
    """A check of a task cannot be evaluated for any agent."""


@dataclass(frozen=True)
class Scoring:
    """How a server scores episodes.

    Attributes:
        addresses: Where the sites are.
        wait_seconds: How long to wait after a page of a check has loaded, for content that scripts add.
        judge: Decides each ``fuzzy_match``; None to compare words.
    """

    addresses: Addresses
    wait_seconds: float = 0.0
    judge: Judge | None = None


async def answer_is_right(task: WebArenaTask, answer: str, judge: Judge | None = None) -> bool:
    """Return whether an answer is right, or the task requires none; needs no browser.

    Args:
        task: The task.
        answer: The answer of the agent.
        judge: Decides a ``fuzzy_match``; None to compare words.

    Raises:
        CheckFailed: The check is not valid, or the judge fails.
    """
    if _ANSWER not in task.check["eval_types"]:
        return True
    if problem := _problem_of_part(_ANSWER, task.check):
        raise CheckFailed(f"its check {_ANSWER} fails: {problem}")
    references = task.check["reference_answers"]
    if judge is None or "fuzzy_match" not in references:
        return matches_answer(references, answer)
    others = {approach: value for approach, value in references.items() if approach != "fuzzy_match"}
    if not matches_answer(others, answer):
        return False
    try:
        return await asyncio.wait_for(judge.accepts(task, answer), JUDGE_SECONDS)
    except asyncio.TimeoutError as error:
        raise CheckFailed(f"its judge {judge.model} takes more than {JUDGE_SECONDS:g} s") from error
    except ValueError as error:
        raise CheckFailed(f"its judge {judge.model} fails: {error}") from error


def needs_pages(task: WebArenaTask) -> bool:
    """Return whether the score depends on an address or on pages."""
    return set(task.check["eval_types"]) != {_ANSWER}


def wait_seconds(task: WebArenaTask, scoring: Scoring) -> float:
    """Return the sum of the fixed waits for the pages of a task's checks, in seconds."""
    targets = task.check["program_html"] if "program_html" in task.check["eval_types"] else ()
    return scoring.wait_seconds * len([each for each in targets if each["url"] != "last"])


async def pages_are_right(task: WebArenaTask, tabs: Tabs, scoring: Scoring) -> bool:
    """Return whether the address and the pages are as the task requires.

    Args:
        task: The task.
        tabs: The tabs at the end of the episode; pages may be opened in them.
        scoring: How the server scores.

    Raises:
        CheckFailed: A part cannot be evaluated.
        Error: The browser has ended.
    """
    limit = PAGES_SECONDS + wait_seconds(task, scoring)
    try:
        return await asyncio.wait_for(_all_met(task.check, tabs, scoring), limit)
    except asyncio.TimeoutError as error:
        if await tabs.ended():
            raise
        raise CheckFailed(f"its checks take more than {limit:g} s") from error


async def _all_met(check: Mapping[str, Any], tabs: Tabs, scoring: Scoring) -> bool:
    for kind in check["eval_types"]:
        if kind == _ANSWER:
            continue
        try:
            met = await _is_met(kind, check, tabs, scoring)
        except Exception as error:
            if await tabs.ended():
                raise
            raise CheckFailed(f"its check {kind} fails: {_reason(error)}") from error
        if not met:
            return False
    return True


async def _is_met(kind: str, check: Mapping[str, Any], tabs: Tabs, scoring: Scoring) -> bool:
    problem = _problem_of_part(kind, check)
    if problem:
        raise ValueError(problem)
    if kind == "url_match":
        return matches_url(check["reference_url"], tabs.shown.url)
    for target in check["program_html"]:
        if not matches_content(target["required_contents"], await _selected(target, tabs, scoring)):
            return False
    return True


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
        if not isinstance(url, str) or not url:
            return "reference_url must be an address"
        note = check.get("url_note", _URL_NOTE)
        return "" if note == _URL_NOTE else f"there is no url_note {note!r:.80}"
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


async def _selected(target: Mapping[str, Any], tabs: Tabs, scoring: Scoring) -> str:
    """Return the content that a target selects on its page; empty if there is none.

    Raises:
        ValueError: The target calls a function that is not defined, or the site answers with an error.
        ActionFailed: The page does not load.
        Error: The locator is not valid, or the page cannot be read.
    """
    if not await _opened(target["url"], tabs, scoring):
        return ""
    locator: str = target["locator"].strip()
    if not locator:
        return await tabs.shown.content()
    if call := called_function(locator):
        return await call_function(call, tabs, scoring.addresses)
    try:
        for action in target.get("prep_actions") or ():
            await tabs.shown.evaluate(f"() => {action}")
    except Error as error:
        if not raised_by_page(error):
            raise
    return await evaluate_on_page(tabs, f"() => {locator}")


async def _opened(address: str, tabs: Tabs, scoring: Scoring) -> bool:
    """Open the page of a target; return whether there is one, which may depend on the agent."""
    url = await target_url(address, tabs, scoring.addresses)
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
    await asyncio.sleep(scoring.wait_seconds)
    return True
