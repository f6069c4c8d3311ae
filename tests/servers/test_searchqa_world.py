"""The world of the SearchQA server: the same everywhere, and each question takes two searches."""

from __future__ import annotations

import hashlib
from collections import Counter

import pytest

from agentgym_gym.envs.searchqa import SEARCHQA, Answer, Search
from agentgym_servers.searchqa._game import information, normalize
from agentgym_servers.searchqa._search import Index
from agentgym_servers.searchqa._world import TASKS, World, world_of
from clock import cpu_seconds

SAMPLE = range(0, TASKS, 401)
OTHER = 10_000  # the seed of a world that nothing else makes


@pytest.fixture(scope="module")
def made() -> World:
    return world_of(0)


@pytest.fixture(scope="module")
def index(made) -> Index:
    return Index(made.documents)


def found(made, index, query):
    return [made.documents[number] for number in index.nearest(query, 3)]


def stands_in(answer, documents):
    return any(f" {normalize(answer)} " in f" {normalize(document)} " for document in documents)


def digest(texts):
    return hashlib.sha256("\0".join(texts).encode()).hexdigest()


def test_it_is_the_same_everywhere(made):
    assert digest(made.documents) == "228fc43200fe3c334a5aeaea6060fb90bb05d2988f3af39515ecbd2f84006947"
    tasks = [(made.question(task).text, made.solution(task)) for task in SAMPLE]
    assert digest(f"{text}|{'|'.join(how.searches)}|{how.answer}" for text, how in tasks) == (
        "c4840448626e9e1c3154b4aefd4d94f8e676e1ebe266845b1ae6d0efed773b50"
    )


def test_another_seed_is_another_world(made):
    other = World(OTHER)
    assert not set(other.documents) & set(made.documents)
    assert not {other.question(task).text for task in SAMPLE} & {made.question(t).text for t in SAMPLE}


def test_there_is_a_task_for_each_id(made):
    assert sum(map(len, SEARCHQA.splits.values())) == TASKS
    assert all(
        made.question(task).text for tasks in SEARCHQA.splits.values() for task in (tasks[0], tasks[-1])
    )
    for none in (-1, TASKS, 10**30):
        with pytest.raises(LookupError, match="there is no task"):
            made.question(none)
        with pytest.raises(LookupError, match="there is no task"):
            made.solution(none)


def test_each_document_is_of_something_else(made):
    titles = [document.partition("\n")[0] for document in made.documents]
    assert len(set(titles)) == len(titles) == 5_284
    assert all(title.startswith('"') and title.endswith('"') for title in titles)
    assert max(map(len, made.documents)) < 400


def test_each_title_has_a_word_that_no_other_has(made):
    titles = [document.partition("\n")[0].strip('"').split() for document in made.documents]
    counts = Counter(word for title in titles for word in title)
    assert all(min(counts[word] for word in title) == 1 for title in titles)


def test_a_search_for_a_title_finds_its_document_first(made, index):
    for number, document in list(enumerate(made.documents))[::20]:
        assert index.nearest(document.partition("\n")[0], 1) == [number]


def test_what_is_searched_for_is_known_by_then(made, index):
    """Of the first search from the question, of the second from what the first has found."""
    for task in SAMPLE:
        assert_can_be_played(made, index, task)


def assert_can_be_played(made, index, task):
    how, text = made.solution(task), made.question(task).text
    first, second = how.searches
    assert all(word in text for word in first.split()), (task, how)
    told = information(found(made, index, first))
    kinds = {"film", "book", "painting", "building", "company", "instrument", "dish"}
    assert all(word in told for word in second.split() if word not in kinds), (task, how)
    assert stands_in(how.answer, found(made, index, second)), (task, how)


def test_one_search_is_not_enough(made, index):
    """Neither with the words of the question nor for what it names, but for a year or town by chance."""
    alone = [
        stands_in(made.solution(task).answer, found(made, index, query))
        for task in SAMPLE
        for query in (made.question(task).text, made.solution(task).searches[0])
    ]
    assert sum(alone) / len(alone) < 0.01


def test_no_answer_can_be_guessed(made):
    tasks = range(0, TASKS, 29)
    answers = Counter(made.solution(task).answer for task in tasks)
    assert answers.most_common(1)[0][1] / len(tasks) < 0.005
    # Nor is it one of those that the question names, of which there may be two.
    assert not any(made.solution(task).answer in made.question(task).text for task in tasks)


def test_all_forms_are_in_any_row_of_tasks(made):
    for first in (0, 51_713, 200_000):
        texts = [made.question(task).text for task in range(first, first + 100)]
        compared = sum(" and the " in text for text in texts)
        others = sum(" other " in text for text in texts)
        decades = sum("0s" in text for text in texts)
        assert 60 < compared < 90
        assert others > 0
        assert decades > 1
        assert len(texts) - compared - others - decades > 5


def test_solutions_are_actions_of_the_grammar(made):
    for task in SAMPLE:
        how = made.solution(task)
        for action in (*map(Search, how.searches), Answer(how.answer)):
            assert SEARCHQA.grammar.parse(str(action)) == action


def test_it_is_made_fast(made, report_at_end):
    seconds = cpu_seconds(lambda: Index(World(OTHER).documents), enough=5)
    report_at_end(f"SearchQA's world of a seed and its index take {seconds:.2f} s")
    assert seconds <= 5
    assert cpu_seconds(lambda: [made.question(task) for task in SAMPLE], enough=5) <= 5


def test_a_search_takes_less_than_a_handler_should(made, index, report_at_end):
    common = Counter(word for document in made.documents for word in set(document.lower().split()))
    query = " ".join(word for word, _ in common.most_common(100))
    seconds = cpu_seconds(lambda: index.nearest(query, 3), enough=0.002)
    report_at_end(f"SearchQA's slowest search takes {seconds * 1000:.2f} ms of CPU time")
    assert seconds < 0.005


@pytest.mark.slow
def test_no_two_tasks_have_the_same_question(made):
    texts = {made.question(task).text for task in range(TASKS)}
    assert len(texts) == TASKS


@pytest.mark.slow
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_a_large_sample_can_be_played(seed):
    of_seed = world_of(seed)
    index = Index(of_seed.documents)
    for task in range(seed, TASKS, 37):
        assert_can_be_played(of_seed, index, task)
