"""Templates of tasks: each makes a task from a state of the sites.

A template is a function with the decorator `template`. It returns the question, its check and its solution,
or None if the data do not allow it, for example if two products are the cheapest.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from agentgym_servers._frame.draw import Draw
from agentgym_servers.webarena._sites.state import SiteState
from agentgym_servers.webarena._templates.steps import Step, stop

__all__ = ["TEMPLATES", "Made", "TaskTemplate", "answer", "change", "content", "exactly", "reach", "template"]

Maker = Callable[[SiteState, Draw], "Made | None"]


@dataclass(frozen=True)
class Made:
    """A task made by a template.

    Attributes:
        intent: The task of the agent, in words.
        check: ``eval`` of WebArena's task files.
        steps: The solution.
    """

    intent: str
    check: dict[str, Any]
    steps: tuple[Step, ...]


@dataclass(frozen=True)
class TaskTemplate:
    """A template.

    Attributes:
        name: The names of its module and its function, such as ``shop.price``.
        sites: The sites that its tasks need; they start on the first.
        make: The function.
    """

    name: str
    sites: tuple[str, ...]
    make: Maker


TEMPLATES: list[TaskTemplate] = []
"""All templates, in the order of their definition."""


def template(*sites: str) -> Callable[[Maker], Maker]:
    """Return a decorator that adds a function to `TEMPLATES`.

    Args:
        sites: The sites that its tasks need; they start on the first.
    """

    def add(make: Maker) -> Maker:
        name = f"{make.__module__.rpartition('.')[2]}.{make.__name__.lstrip('_')}"
        TEMPLATES.append(TaskTemplate(name, sites, make))
        return make

    return add


def _check(**parts: Any) -> dict[str, Any]:
    empty: dict[str, Any] = {"reference_answers": None, "reference_url": "", "program_html": []}
    return {"eval_types": [], **empty, **parts}


def answer(intent: str, value: str, *steps: Step) -> Made:
    """Make a task whose answer contains a value; a count has to be the whole answer.

    Otherwise, an answer with all small numbers would be right.
    """
    if value.isdigit():
        return exactly(intent, value, *steps)
    check = _check(eval_types=["string_match"], reference_answers={"must_include": [value]})
    return Made(intent, check, (*steps, stop(value)))


def exactly(intent: str, value: str, *steps: Step) -> Made:
    """Make a task whose answer is a value."""
    check = _check(eval_types=["string_match"], reference_answers={"exact_match": value})
    return Made(intent, check, (*steps, stop(value)))


def reach(intent: str, url: str, *steps: Step) -> Made:
    """Make a task that ends on a page."""
    check = _check(eval_types=["url_match"], reference_url=url, url_note="GOLD in PRED")
    return Made(intent, check, (*steps, stop()))


def content(url: str, css: str, *texts: str) -> dict[str, Any]:
    """Return the check that an element of a page contains texts.

    Args:
        url: The page; ``last`` for the one that is shown at the end.
        css: The selector of the element, or an expression on it after a bar, such as ``#message|value``.
        texts: The texts.
    """
    selector, _, attribute = css.partition("|")
    locator = f"document.querySelector('{selector}').{attribute or 'outerText'}"
    return {"url": url, "locator": locator, "required_contents": {"must_include": list(texts)}}


def change(intent: str, check: dict[str, Any], *steps: Step) -> Made:
    """Make a task that changes a site, with the content that one of its pages has afterwards."""
    return Made(intent, _check(eval_types=["program_html"], program_html=[check]), (*steps, stop()))
