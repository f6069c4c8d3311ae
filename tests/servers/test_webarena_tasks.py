"""The tasks of WebArena: each has a solution that its check accepts, and doing nothing is never one."""

from __future__ import annotations

import hashlib
import json
from collections import defaultdict

import pytest

import needs
from agentgym_gym.envs.webarena import WEBARENA

pytest.importorskip("playwright", reason=needs.reason("playwright"))
pytest.importorskip("nltk", reason=needs.reason("nltk"))

from text_browser import TEMPLATE_NAMES, begun, met, task_of

TASKS = WEBARENA.task_ids
STATES = 10
"""The number of states of the sites; the tasks of the test split have the last of them."""

TEST_STATES = 2


@pytest.fixture(scope="module")
def by_state():
    """The tasks by the state of their sites."""
    states = defaultdict(list)
    for number in TASKS:
        states[task_of(number).state].append(number)
    return states


def is_won(number):
    task = task_of(number)
    browser = begun(task)
    for step in task.steps:
        browser.play(step)
        assert browser.status == 200, (step, browser.url)
    return met(task, browser, task.steps[-1].text)


def is_won_by_doing_nothing(number):
    task = task_of(number)
    return met(task, begun(task), "")


@pytest.mark.parametrize("tasks", [TASKS[::20], pytest.param(TASKS, marks=pytest.mark.slow)], ids=len)
def test_each_task_is_won_by_its_solution_and_not_by_doing_nothing(tasks):
    assert [number for number in tasks if not is_won(number)] == []
    assert [number for number in tasks if is_won_by_doing_nothing(number)] == []


def test_the_splits_share_no_state_and_no_template_is_left_out(by_state):
    train, test = ({task_of(n).state for n in WEBARENA.split(split)} for split in ("train", "test"))
    assert train.isdisjoint(test)
    assert (len(train), len(test)) == (STATES - TEST_STATES, TEST_STATES)
    assert by_state.keys() == set(range(STATES))
    templates = {name for n in TASKS for name in task_of(n).template.split(" + ")}
    assert templates == TEMPLATE_NAMES
    assert len(templates) >= 60


def test_no_two_tasks_are_the_same():
    keys = {(task_of(n).state, task_of(n).intent) for n in TASKS}
    assert len(keys) == len(TASKS) == 812


def test_solutions_are_as_long_as_an_episode_allows():
    """WebArena's tasks are longer still, and its own limit is 30 turns."""
    lengths = [len(task_of(n).steps) for n in TASKS]
    assert max(lengths) == WEBARENA.max_turns - 1
    assert sum(lengths) / len(lengths) >= 6


def test_a_share_of_the_tasks_cannot_be_done():
    """As in WebArena, where it is 4 %."""
    answers = [task_of(n).check["reference_answers"] or {} for n in TASKS]
    impossible = sum(each.get("exact_match") == "N/A" for each in answers)
    assert 0.03 < impossible / len(TASKS) < 0.05


def test_a_count_is_the_whole_answer():
    references = [task_of(n).check["reference_answers"] or {} for n in TASKS]
    assert not any(text.isdigit() for each in references for text in each.get("must_include", ()))


def test_the_world_is_the_same_everywhere():
    text = json.dumps([[task_of(n).intent, task_of(n).check] for n in TASKS])
    assert hashlib.sha256(text.encode()).hexdigest()[:16] == "7057adc24299a7ca"


@pytest.mark.parametrize(
    ("url", "status"),
    [
        ("http://luma.test/", 502),
        ("http://shopping.test", 200),
        ("http://shopping.test/orders/", 200),
        ("http://shopping-admin.test/admin", 200),
        ("http://shopping-admin.test/admin/", 200),
        ("http://shopping-admin.test/", 404),
        ("http://shopping.test/product/3", 200),
        ("http://shopping.test/product/3/cart", 404),  # of a form
        ("http://shopping.test/product/999", 404),
        ("http://wikipedia.test/wiki/a/b", 404),
    ],
)
def test_an_address_has_a_page_or_is_not_found(url, status):
    browser = begun(task_of(0))
    browser.open(url)
    assert (browser.status, browser.url) == (status, url)
