"""The papers, authors and questions of Academia, without a server."""

from __future__ import annotations

import ast
import hashlib
import json

import pytest

from agentgym_gym.envs.academia import ACADEMIA
from agentgym_servers._frame.tools import Trial
from agentgym_servers.academia._server import AcademiaTools
from agentgym_servers.academia._world import TASKS, world_of
from clock import cpu_seconds

DIGEST = "663df083db34a69a5ef67587042dca9572c9fb73485f943045a08773852caa8f"
NETWORK = world_of(0).setting
PAPER = list(NETWORK.papers.values())[-1]


def digest(seed: int) -> str:
    network = world_of(seed).setting
    told = [
        [(t.goal, t.answer, t.solution) for t in world_of(seed).tasks],
        [(p.title, p.cited, p.attributes) for p in network.papers.values()],
        dict(network.organizations),
    ]
    return hashlib.sha256(json.dumps(told).encode()).hexdigest()


def trial(task_id: int = 0, seed: int = 0) -> Trial:
    return Trial(task_id, lambda each: AcademiaTools(world_of(seed).tasks[each], world_of(seed).setting))


def observed(trial: Trial, name: str, **arguments: object) -> str:
    said = trial.step(f"Action: {name} with Action Input: {arguments!r}")["observation"]
    return said.removeprefix("Observation: ").removesuffix("\nGive me one action.")


def loaded() -> Trial:
    made = trial()
    assert observed(made, "loadPaperNet") == "PaperNet is loaded."
    assert observed(made, "loadAuthorNet") == "AuthorNet is loaded."
    return made


def test_the_world_of_a_seed_is_the_same_everywhere():
    assert digest(0) == DIGEST
    assert digest(1) != DIGEST


def test_there_is_another_task_for_each_id():
    assert range(TASKS) == ACADEMIA.splits["all"]
    assert len({task.goal for task in world_of(0).tasks}) == TASKS


@pytest.mark.parametrize("seed", range(6))
def test_each_solution_reaches_1_within_the_turn_limit(seed):
    for task_id, task in enumerate(world_of(seed).tasks):
        playing = trial(task_id, seed)
        for name, arguments in task.solution:
            outcome = playing.step(f"Action: {name} with Action Input: {arguments!r}")
            assert "There is no" not in outcome["observation"]
            assert "Please load" not in outcome["observation"]
        assert (outcome["reward"], outcome["done"]) == (1, True), task.goal
        assert len(task.solution) <= ACADEMIA.max_turns


def test_what_is_not_known_does_not_score():
    for task_id, task in enumerate(world_of(0).tasks):
        for answer in ("", 0, [], "done"):
            assert trial(task_id).step(f"Action: finish with Action Input: {{'answer': {answer!r}}}") == {
                "observation": f"Observation: {answer}\nGive me one action.",
                "reward": 0.0,
                "done": True,
            }, task.goal


def test_yes_and_no_are_both_right_somewhere():
    for task_id in (8, 10, 14, 16):
        assert {world_of(seed).tasks[task_id].answer for seed in range(12)} == {"Yes", "No"}


def test_functions_return_what_agentgym_is_recorded_to_return():
    playing = loaded()
    one, other = PAPER.authors[:2]
    paper = ast.literal_eval(observed(playing, "paperNodeCheck", node=PAPER.title))
    assert list(paper) == ["authors", "year", "venue", "n_citation", "keywords", "doc_type"]
    assert paper["authors"] == list(PAPER.authors)
    assert ast.literal_eval(observed(playing, "authorNodeCheck", node=one)) == {
        "name": one,
        "org": NETWORK.organizations[one],
    }
    edge = ast.literal_eval(observed(playing, "authorEdgeCheck", node1=one, node2=other))
    assert list(edge) == ["weight", "collaborative_papers", "n_citation"]
    assert edge["weight"] == len(edge["collaborative_papers"]) == len(edge["n_citation"])
    assert PAPER.title in edge["collaborative_papers"]
    cited = ast.literal_eval(observed(playing, "neighbourCheck", graph="PaperNet", node=PAPER.title))
    assert cited == list(PAPER.cited)
    assert other in ast.literal_eval(observed(playing, "neighbourCheck", graph="AuthorNet", node=one))
    years = PAPER.year - NETWORK.papers[cited[0]].year
    assert observed(playing, "paperEdgeCheck", node1=PAPER.title, node2=cited[0]) == str({"years": years})


def test_coauthors_are_mutual_and_papers_cite_earlier_ones():
    for name, others in NETWORK.coauthors.items():
        assert name not in others
        assert all(name in NETWORK.coauthors[other] for other in others)
    seen: set[str] = set()
    for paper in NETWORK.papers.values():
        assert set(paper.cited) <= seen
        assert len(set(paper.authors)) == len(paper.authors) > 1
        seen.add(paper.title)


@pytest.mark.parametrize(
    ("name", "arguments", "said"),
    [
        ("neighbourCheck", {"graph": "AuthorNet", "node": "x"}, "Please load the AuthorNet first."),
        ("paperNodeCheck", {"node": "x"}, "Please load the PaperNet first."),
        ("authorEdgeCheck", {"node1": "x", "node2": "x"}, "Please load the AuthorNet first."),
    ],
)
def test_a_network_must_be_loaded_first(name, arguments, said):
    assert observed(trial(), name, **arguments) == said


@pytest.mark.parametrize("node", ["x", "", "\0", 5, ["a"], {"a": 1}, None, "\ud800", "x" * 5_000])
def test_a_node_that_there_is_not_is_answered_in_words(node):
    playing = loaded()
    assert observed(playing, "paperNodeCheck", node=node) == f"There is no node named {node} in the PaperNet."
    assert observed(playing, "authorEdgeCheck", node1=node, node2=node).startswith("There is no node named")
    assert observed(playing, "neighbourCheck", graph=node, node=node).startswith("ERROR | ValueError(")


def test_an_edge_that_there_is_not_is_answered_in_words():
    one = PAPER.authors[0]
    far = next(each for each in NETWORK.organizations if each not in {one, *NETWORK.coauthors[one]})
    said = observed(loaded(), "authorEdgeCheck", node1=one, node2=far)
    assert said == f"There is no edge between {one} and {far}."
    said = observed(loaded(), "paperEdgeCheck", node1=PAPER.title, node2=PAPER.title)
    assert said == f"There is no edge between {PAPER.title} and {PAPER.title}."


def test_a_world_is_made_in_a_second():
    assert cpu_seconds(lambda: world_of.__wrapped__(5), 5.0) <= 5.0
