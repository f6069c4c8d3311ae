"""SearchQA's rules without a server: which text is acted on, what is right, and what is found."""

from __future__ import annotations

import re

import pytest

from agentgym_servers.searchqa._game import SearchEpisode, SearchQuestion, information, parse_action
from agentgym_servers.searchqa._search import Index
from clock import cpu_seconds

QUESTION = SearchQuestion(" Which town is it? ", ("The Old Bridge", "Bridgetown, U.K."))

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


@pytest.mark.parametrize("text", TEXTS)
def test_the_first_pair_of_tags_is_what_is_asked_for(text):
    """By the pattern of AgentGym's server, which takes a time that grows with the square of some texts."""
    pair = re.search(r"<(search|answer)>(.*?)</\1>", text, re.DOTALL)
    assert parse_action(text) == (None if pair is None else (pair[1], pair[2].strip()))


@pytest.mark.parametrize("text", TEXTS)
def test_the_last_answer_is_scored(text):
    answers = re.findall(r"<answer>(.*?)</answer>", text, re.DOTALL)
    for right in "abc":
        scored = SearchEpisode(SearchQuestion("?", (right,))).answer(text).reward
        assert scored == float(bool(answers) and right in answers[-1:])


@pytest.mark.parametrize(
    ("answer", "right"),
    [
        ("the old bridge", True),
        ("Old   Bridge!", True),
        (" an OLD\nbridge", True),
        ("bridgetown UK", True),
        ("bridge", False),
        ("the old bridges", False),
        ("old bridge, bridgetown uk", False),
        ("", False),
        ("   ", False),
        ("old bridge" + "." * 9_990, True),
        ("old bridge" + "." * 9_991, False),
        ("\0old bridge", False),
        ("\ud800", False),
    ],
)
def test_what_is_right(answer, right):
    outcome = SearchEpisode(QUESTION).answer(f"<answer>{answer}</answer>")
    assert (outcome.reward, outcome.done) == (float(right), right)


def test_an_answer_of_nothing_but_an_article_is_right_where_it_is_expected():
    blood = SearchQuestion("Which blood group?", ("A",))
    assert SearchEpisode(blood).answer("<answer>A</answer>").reward == 1.0
    assert SearchEpisode(blood).answer("<answer></answer>").reward == 0.0


def test_a_wrong_answer_ends_nothing_and_a_right_one_is_paid_for_once():
    episode = SearchEpisode(QUESTION)
    wrong, right = "<answer>no</answer>", "<answer>old bridge</answer>"
    outcomes = [episode.answer(action) for action in (wrong, right, right, wrong)]
    assert [(each.reward, each.done) for each in outcomes] == [(0, False), (1, True), (0, True), (0, True)]
    assert len({each.observation for each in outcomes}) == 2
    assert episode.result("found").done


def test_the_question_is_at_the_end_of_what_is_told_first():
    assert SearchEpisode(QUESTION).prompt.endswith("\n\n Question: Which town is it?")
    assert SearchEpisode(SearchQuestion("{x} {0}", ("y",))).prompt.endswith("Question: {x} {0}")


def test_what_was_found_is_told_as_by_agentgyms_server():
    told = information(['"Paris"\nThe capital.\nOf France.', "bare", '"Gold"\nAu '])
    assert told == (
        '<information>Doc 1(Title: "Paris") The capital.\nOf France.\nDoc 2(Title: bare) \n'
        'Doc 3(Title: "Gold") Au</information>'
    )


def test_of_equals_the_first_comes_first():
    index = Index(["red fox", "red dog", "red fox", "red cat", "blue bird"])
    assert index.nearest("fox", 3) == [0, 2, 1]
    assert index.nearest("RED", 3) == [0, 1, 2]
    assert index.nearest("bird red", 5) == [4, 0, 1, 2, 3]


@pytest.mark.parametrize("query", ["", "  ", "zebra", "\0", "\ud800", "?!", "<search>", "fox\0dog" * 2])
def test_any_query_finds_something(query):
    assert sorted(Index(["red fox", "red dog"]).nearest(query, 3)) == [0, 1]


def test_documents_may_be_without_words():
    assert Index(["...", "?"]).nearest("fox", 3) == [0, 1]


def test_so_much_of_a_query_is_read():
    index = Index([f"w{number}" for number in range(80)])
    assert index.nearest(" ".join(f"w{number}" for number in range(20, 80)), 1) == [20]
    assert index.nearest("z" * 1_990 + " w70", 1) == [70]
    assert index.nearest("z" * 2_000 + " w70", 1) == [0]
    words = [f"w{number}" for number in range(79, -1, -1)]
    assert index.nearest(" ".join(words), 64)[0] == 79 - 63  # the last of 64 words, and the first document


@pytest.mark.parametrize(
    "unit",
    ["<search>", "<answer>", "</answer>", "<answer></answer>", "<answer>a</answer> </answer>", "a the "],
)
def test_a_text_of_a_megabyte_takes_milliseconds(unit):
    text = unit * (1_000_000 // len(unit))
    for action in (text, f"<answer>{text}</answer>", f"<search>{text}</search>"):
        assert cpu_seconds(lambda action=action: parse_action(action), enough=0.2) <= 0.2
        assert cpu_seconds(lambda action=action: SearchEpisode(QUESTION).answer(action), enough=0.2) <= 0.2
