"""What the functions of Academia return about its papers and authors."""

from __future__ import annotations

import ast
import itertools

import pytest

from agentgym_gym import find
from local_game import LocalGame


@pytest.fixture(scope="module")
def shared():
    with LocalGame("Academia") as game:
        yield game


@pytest.fixture
def game(shared):
    shared.reset(0)
    return shared


@pytest.fixture
def loaded(game):
    assert game.call("loadPaperNet") == "PaperNet is loaded."
    assert game.call("loadAuthorNet") == "AuthorNet is loaded."
    return game


def value(game, function, **arguments):
    return ast.literal_eval(game.call(function, **arguments))


def neighbours(game, graph, node):
    return value(game, "neighbourCheck", graph=graph, node=node)


@pytest.fixture
def paper(loaded):
    """A paper that cites another one."""
    pair = value(loaded, "authorEdgeCheck", node1="Sanna Castellan", node2="Yara Dorough")
    return next(each for each in pair["collaborative_papers"] if neighbours(loaded, "PaperNet", each))


def test_unknown_names_do_not_score(game):
    for task in find("Academia").task_ids[::4]:
        for answer in ("", 0, [], "done"):
            game.reset(task)
            assert game.call("finish", answer=answer) == str(answer)
            outcome = game.play(task, [f"Action: finish with Action Input: {{'answer': {answer!r}}}"])
            assert (outcome.reward, outcome.done) == (0, True), task


@pytest.mark.slow
def test_yes_and_no_are_both_right_somewhere():
    answers = {task: set() for task in (8, 10, 14, 16)}
    for seed in range(12):
        with LocalGame("Academia", seed=seed) as game:
            for task, found in answers.items():
                found.add(game.win(task)[0][-1].answer)
    assert list(answers.values()) == [{"Yes", "No"}] * 4


def test_functions_return_what_agentgym_is_recorded_to_return(loaded, paper):
    told = value(loaded, "paperNodeCheck", node=paper)
    assert list(told) == ["authors", "year", "venue", "n_citation", "keywords", "doc_type"]
    one, other = told["authors"][:2]
    author = value(loaded, "authorNodeCheck", node=one)
    assert (list(author), author["name"]) == (["name", "org"], one)
    edge = value(loaded, "authorEdgeCheck", node1=one, node2=other)
    assert list(edge) == ["weight", "collaborative_papers", "n_citation"]
    assert edge["weight"] == len(edge["collaborative_papers"]) == len(edge["n_citation"])
    assert paper in edge["collaborative_papers"]
    assert other in neighbours(loaded, "AuthorNet", one)
    cited = neighbours(loaded, "PaperNet", paper)[0]
    years = told["year"] - value(loaded, "paperNodeCheck", node=cited)["year"]
    assert value(loaded, "paperEdgeCheck", node1=paper, node2=cited) == {"years": years}


def test_coauthors_are_mutual_and_papers_cite_earlier_ones(loaded, paper):
    titles, authors = [paper], {}
    for title in titles:  # which grows
        told = value(loaded, "paperNodeCheck", node=title)
        assert len(set(told["authors"])) == len(told["authors"]) > 1
        cited = neighbours(loaded, "PaperNet", title)
        for each in cited:
            assert title not in neighbours(loaded, "PaperNet", each)
            assert value(loaded, "paperNodeCheck", node=each)["year"] <= told["year"]
        if len(titles) < 15:
            authors |= {name: neighbours(loaded, "AuthorNet", name) for name in told["authors"]}
            titles += [each for each in cited if each not in titles]
    assert len(titles) > 5
    for one, other in itertools.product(authors, authors):
        assert (one in authors[other]) == (other in authors[one])
        assert one != other or one not in authors[one]


@pytest.mark.parametrize(
    ("name", "arguments", "said"),
    [
        ("neighbourCheck", {"graph": "AuthorNet", "node": "x"}, "Please load the AuthorNet first."),
        ("paperNodeCheck", {"node": "x"}, "Please load the PaperNet first."),
        ("authorEdgeCheck", {"node1": "x", "node2": "x"}, "Please load the AuthorNet first."),
    ],
)
def test_a_network_must_be_loaded_first(game, name, arguments, said):
    assert game.call(name, **arguments) == said


@pytest.mark.parametrize("node", ["x", "", "\0", 5, ["a"], {"a": 1}, None, "x" * 5_000])
def test_a_node_that_there_is_not_is_answered_in_words(loaded, node):
    assert loaded.call("paperNodeCheck", node=node) == f"There is no node named {node} in the PaperNet."
    assert loaded.call("authorEdgeCheck", node1=node, node2=node).startswith("There is no node named")
    assert loaded.call("neighbourCheck", graph=node, node=node).startswith("ERROR | ValueError(")


def test_an_edge_that_there_is_not_is_answered_in_words(loaded, paper):
    one = "Sanna Castellan"
    near = neighbours(loaded, "AuthorNet", one)
    far = next(
        each for name in near for each in neighbours(loaded, "AuthorNet", name) if each not in {one, *near}
    )
    said = loaded.call("authorEdgeCheck", node1=one, node2=far)
    assert said == f"There is no edge between {one} and {far}."
    said = loaded.call("paperEdgeCheck", node1=paper, node2=paper)
    assert said == f"There is no edge between {paper} and {paper}."
