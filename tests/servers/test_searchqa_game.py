"""SearchQA's rules, on folders of a few documents: which text is acted on, what is right, what is found."""

from __future__ import annotations

import json
import re

import pytest

from clock import cpu_seconds
from local_game import LocalGame

WORDS = ["a", "b", "c", "two lines", "in"]
TOWN = {"question": " Which town is it? ", "golden_answers": ["The Old Bridge", "Bridgetown, U.K."]}
TOWN_TASK, PLACES_TASK, BLOOD_TASK = 3, 4, 5

TEXTS = [
    "",
    "hello",
    "<search>a</search>",
    "<answer>a</answer><search>b</search>",
    "<search>a</search><answer>b</answer>",
    "<search> two\nlines </search>",
    "<search>never closed <answer>a</answer>",
    "<answer><search>in</search></answer>",
    "<search>a<search>b</search>c</search>",
    "</answer><answer>a",
    "<answer>a</answer></answer><answer>",
    "<answer>a<answer>b</answer>",
    "<answer>a</answer><answer>b<answer>c</answer></answer></answer>",
    "<SEARCH>a</SEARCH>",
    "<answer></answer>",
]


def serve(folder, *documents, questions=(TOWN,)):
    """Return the game of a folder with these documents and questions."""
    rows = [{"id": str(number), "contents": text} for number, text in enumerate(documents)]
    (folder / "corpus.jsonl").write_text("\n".join(map(json.dumps, rows)))
    (folder / "test.jsonl").write_text("\n".join(map(json.dumps, questions)))
    return LocalGame("SearchQA", data=folder)


@pytest.fixture(scope="module")
def game(tmp_path_factory):
    """Questions whose right answers are a, b and c, and three more; a document of each of some words."""
    questions = [{"question": "?", "golden_answers": [right]} for right in "abc"]
    questions += [TOWN, {"question": "{x} {0}", "golden_answers": ["y"]}]
    questions += [{"question": "Which blood group?", "golden_answers": ["A"]}]
    with serve(tmp_path_factory.mktemp("words"), *WORDS, questions=questions) as game:
        yield game


@pytest.mark.parametrize("text", TEXTS)
def test_the_first_pair_of_tags_is_played(game, text):
    """By the pattern of AgentGym's server, which takes a time that grows with the square of some texts."""
    game.reset(TOWN_TASK)
    pair = re.search(r"<(search|answer)>(.*?)</\1>", text, re.DOTALL)
    observation = game.step(text).observation
    if pair is None:
        assert "between <search> and </search>" in observation
    elif pair[1] == "search":
        assert observation.startswith("<information>Doc 1")
        assert observation == game.step(f"<search>{pair[2].strip()}</search>").observation
    else:
        assert observation == game.step("<answer>no</answer>").observation


@pytest.mark.parametrize("text", TEXTS)
def test_the_last_answer_is_scored_where_the_first_pair_is_an_answer(game, text):
    first = re.search(r"<(search|answer)>(.*?)</\1>", text, re.DOTALL)
    answers = re.findall(r"<answer>(.*?)</answer>", text, re.DOTALL)
    for task, right in enumerate("abc"):
        game.reset(task)
        is_answer = first is not None and first[1] == "answer"
        assert game.step(text).reward == float(is_answer and answers[-1] == right)


def test_an_answer_of_nothing_but_an_article_is_right_where_it_is_expected(game):
    assert game.play(BLOOD_TASK, ["<answer>A</answer>"]).reward == 1.0
    assert game.play(BLOOD_TASK, ["<answer></answer>"]).reward == 0.0


def test_the_question_is_at_the_end_of_the_first_observation(game):
    assert game.reset(TOWN_TASK).observation.endswith("\n\n Question: Which town is it?")
    assert game.reset(PLACES_TASK).observation.endswith("Question: {x} {0}")


def found(game, query):
    """Return the titles that a search finds."""
    return re.findall(r"Doc \d\(Title: (.*?)\)", game.step(f"<search>{query}</search>").observation)


def test_documents_are_shown_as_by_agentgyms_server(tmp_path):
    documents = ['"Paris"\nThe capital.\nOf France.', "bare", '"Gold"\nAu ']
    with serve(tmp_path, *documents) as game:
        assert game.play(0, ["<search>zebra</search>"]).observation == (
            '<information>Doc 1(Title: "Paris") The capital.\nOf France.\nDoc 2(Title: bare) \n'
            'Doc 3(Title: "Gold") Au</information>'
        )


def test_of_equals_the_first_comes_first(tmp_path):
    foxes = ["red fox one", "red dog two", "red fox three", "red cat four", "blue bird five"]
    with serve(tmp_path, *foxes) as game:
        game.reset(0)
        assert found(game, "fox") == [foxes[0], foxes[2], foxes[1]]
        assert found(game, "RED") == foxes[:3]
        assert found(game, "bird red") == [foxes[4], foxes[0], foxes[1]]


def test_any_query_finds_something_even_where_documents_are_without_words(tmp_path):
    with serve(tmp_path, "...", "red fox") as game:
        game.reset(0)
        for query in ("", "  ", "zebra", "\0", "\ud800", "?!", "<search>", "fox\0dog" * 2):
            assert sorted(found(game, query)) == ["...", "red fox"], query


def test_so_much_of_a_query_is_read(tmp_path):
    words = [f"w{number}" for number in range(80)]
    with serve(tmp_path, *words) as game:
        game.reset(0)
        assert found(game, " ".join(words[20:]))[0] == "w20"
        assert found(game, "z" * 1_990 + " w70")[0] == "w70"
        assert found(game, "z" * 2_000 + " w70")[0] == "w0"
        assert found(game, " ".join(words[::-1]))[0] == "w16"  # the last of 64 words, and the first document


@pytest.mark.parametrize(
    "unit",
    ["<search>", "<answer>", "</answer>", "<answer></answer>", "<answer>a</answer> </answer>", "a the "],
)
def test_a_text_of_a_megabyte_takes_milliseconds(game, unit):
    game.reset(TOWN_TASK)
    text = unit * (1_000_000 // len(unit))
    for action in (text, f"<answer>{text}</answer>", f"<search>{text}</search>"):
        assert cpu_seconds(lambda action=action: game.step(action), enough=0.3) <= 0.3
