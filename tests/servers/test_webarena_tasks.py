"""The tasks of WebArena: each has a solution that its check accepts, and doing nothing is never one."""

from __future__ import annotations

import hashlib
import json

import pytest

import needs
from agentgym_gym import find
from agentgym_servers.webarena._sites.state import STATES, TEST_STATES
from agentgym_servers.webarena._tasks import TEMPLATES
from agentgym_servers.webarena._world import FIRST_TEST_TASK, TASKS, world_of
from text_browser import TextBrowser

pytest.importorskip("playwright", reason=needs.reason("playwright"))

WORLD = world_of(0)


def met(task, browser, answer):
    """Return whether the check of a task accepts what was done: as `_evaluation`, without Chromium."""
    from agentgym_servers.webarena._evaluation import matches_answer, matches_url

    check = task.check
    parts = {
        "string_match": lambda: matches_answer(check["reference_answers"], answer),
        "url_match": lambda: matches_url(check["reference_url"], browser.url),
        "program_html": lambda: all(has_content(each, browser) for each in check["program_html"]),
    }
    return all(parts[kind]() for kind in check["eval_types"])


def has_content(target, browser):
    if target["url"] != "last":
        browser.open(target["url"])
    selected = browser.select(target["locator"]).lower()
    return all(text.lower() in selected for text in target["required_contents"]["must_include"])


def begun(task):
    browser = TextBrowser(WORLD.fresh_state(task))
    browser.open(task.start_urls[0])
    return browser


def play(task):
    browser = begun(task)
    for step in task.steps:
        browser.play(step)
        assert browser.status == 200, (step, browser.url)
    return met(task, browser, task.steps[-1].text)


PLAIN = {0, STATES - 1}


@pytest.mark.parametrize(
    "state", [pytest.param(n, marks=() if n in PLAIN else pytest.mark.slow) for n in range(STATES)]
)
def test_each_task_is_won_by_its_solution_and_not_by_doing_nothing(state):
    tasks = [(n, WORLD.task(n)) for n in range(TASKS) if WORLD.task(n).state == state]
    assert [n for n, task in tasks if not play(task)] == []
    assert [n for n, task in tasks if met(task, begun(task), "")] == []


def test_the_splits_share_no_state_and_no_template_is_left_out():
    train, test = (
        {WORLD.task(n).state for n in part}
        for part in (range(FIRST_TEST_TASK), range(FIRST_TEST_TASK, TASKS))
    )
    assert train.isdisjoint(test)
    assert (len(train), len(test)) == (STATES - TEST_STATES, TEST_STATES)
    templates = {WORLD.task(n).template for n in range(TASKS)}
    assert templates == {each.name for each in TEMPLATES}
    assert len(templates) >= 60
    environment = find("WebArena")
    assert environment.splits["train"] == range(FIRST_TEST_TASK)
    assert environment.splits["test"] == range(FIRST_TEST_TASK, TASKS)


def test_no_two_tasks_are_the_same():
    keys = {(WORLD.task(n).state, WORLD.task(n).intent) for n in range(TASKS)}
    assert len(keys) == TASKS
    with pytest.raises(LookupError):
        WORLD.task(TASKS)


def test_no_solution_is_longer_than_an_episode():
    assert max(len(WORLD.task(n).steps) for n in range(TASKS)) <= find("WebArena").max_turns


def test_the_world_is_the_same_everywhere():
    text = json.dumps([[WORLD.task(n).intent, WORLD.task(n).check] for n in range(TASKS)])
    assert hashlib.sha256(text.encode()).hexdigest()[:16] == "ae996a15c8f5f935"
