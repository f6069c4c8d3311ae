"""The world of the SearchQA server: each question takes two searches, and no answer can be guessed."""

from __future__ import annotations

import re
import string
from collections import Counter

import pytest

from agentgym_gym.envs.searchqa import SEARCHQA
from clock import cpu_seconds
from local_game import LocalGame, solution

TASKS = SEARCHQA.task_ids
SAMPLE = TASKS[::20_011]

# Of an answer, as SQuAD's scoring has them: no case, no punctuation, no articles.
ARTICLES = re.compile(r"\b(a|an|the)\b")
NO_PUNCTUATION = str.maketrans("", "", string.punctuation)

KINDS = {"film", "book", "painting", "building", "company", "instrument", "dish"}
"""What a search may add to the words that were read."""


@pytest.fixture(scope="module")
def game():
    with LocalGame("SearchQA") as game:
        game.reset(0)
        yield game


def normalized(text):
    return " ".join(ARTICLES.sub(" ", text.lower().translate(NO_PUNCTUATION)).split())


def found(game, query):
    return game.step(f"<search>{query}</search>").observation


def is_in(answer, text):
    documents = re.split(r"^(?:<information>)?Doc \d", text, flags=re.MULTILINE)
    return any(f" {normalized(answer)} " in f" {normalized(document)} " for document in documents)


@pytest.mark.parametrize("tasks", [SAMPLE, pytest.param(TASKS[::403], marks=pytest.mark.slow)], ids=len)
def test_search_terms_are_known_before_the_search(game, tasks):
    """The question has the words of the first search, and the results the words of the second."""
    for task in tasks:
        question = game.reset(task).goal
        first, second, answer = solution("SearchQA", task)
        assert all(word in question for word in first.query.split()), task
        read = found(game, first.query)
        assert all(word in read for word in second.query.split() if word not in KINDS), task
        assert is_in(answer.answer, found(game, second.query)), task


@pytest.mark.parametrize("tasks", [SAMPLE, pytest.param(TASKS[::401], marks=pytest.mark.slow)], ids=len)
def test_one_search_is_not_enough(game, tasks):
    """Neither with the words of the question nor for what it names, but for a year or town by chance."""
    enough = []
    for task in tasks:
        question = game.reset(task).goal
        first, _, answer = solution("SearchQA", task)
        enough += [is_in(answer.answer, found(game, query)) for query in (question, first.query)]
    assert sum(enough) / len(enough) < 0.01


@pytest.mark.slow
def test_no_answer_can_be_guessed(game):
    tasks = TASKS[::58]
    answers = [solution("SearchQA", task)[-1].answer for task in tasks]
    assert Counter(answers).most_common(1)[0][1] / len(tasks) < 0.005
    # Nor does the question name it; it may name two.
    for task, answer in list(zip(tasks, answers, strict=True))[::7]:
        assert answer not in game.reset(task).goal


@pytest.mark.slow
def test_all_forms_are_in_any_row_of_tasks(game):
    for first in (0, 51_713, 200_000):
        texts = [game.reset(task).goal for task in range(first, first + 100)]
        compared = sum(" and the " in text for text in texts)
        others = sum(" other " in text for text in texts)
        decades = sum("0s" in text for text in texts)
        assert 60 < compared < 90
        assert others > 0
        assert decades > 1
        assert len(texts) - compared - others - decades > 5


@pytest.mark.slow
def test_a_search_takes_less_than_a_handler_should(game, report_at_end):
    observations = [found(game, solution("SearchQA", task)[0].query) for task in TASKS[::2_003]]
    common = Counter(word for text in observations for word in set(re.findall("[a-z]+", text.lower())))
    query = " ".join(word for word, _ in common.most_common(64))
    seconds = cpu_seconds(lambda: found(game, query), enough=0.005)
    report_at_end(f"SearchQA's slowest search takes {seconds * 1000:.2f} ms of CPU time")
    assert seconds < 0.02


@pytest.mark.slow
def test_no_two_tasks_have_the_same_question(game):
    tasks = TASKS[::111]
    assert len({game.reset(task).goal for task in tasks}) == len(tasks)
