"""Environments of other libraries, evaluated and trained in as their users would: ``nox -s libraries``.

Each is a module of ``envs``, without locks or other precautions. Several libraries keep state of the process:

- TextArena and GEM seed Python's global random generator, and draw from it.
- TextWorld has one parser for all games.
- TextWorldExpress starts a Java process for each environment.
- Reasoning Gym, MiniGrid and FrozenLake keep none.

Licences by their files: TextArena, TextWorld and gymnasium MIT; GEM, Reasoning Gym, TextWorldExpress and
MiniGrid Apache-2.0 (MiniGrid's metadata: MIT). TextArena requires chess, GPL-3.0 or later. TextWorld requires
jericho, GPL-2.0 or later, and contains the compilers of Inform 7 without a licence file. They are installed
for these tests only; no file of theirs is part of this project.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

import library_policies as policies
import needs
import programs
from fake_model import completion
from fake_server import FakeServer

pytest.importorskip("textarena", reason=needs.reason("textarena"))

HERE = Path(__file__).parent
ENVS = HERE / "envs"
TASKS, CONCURRENCY, TURNS = 8, 4, 60
COMPARED = ("messages", "rewards", "success", "ending", "fault", "agent_fault")


class Case(NamedTuple):
    """A game of a library.

    Attributes:
        requires: What must be installed: names of `needs.NEEDS`.
        env: The environment, with its module.
        policy: The function of `policies` that plays it.
        score: The mean score of that function at least.
        success: Whether the info of the last step has ``success``.
    """

    requires: str
    env: str
    policy: str
    score: float
    success: bool = True


def case_of(name, *facts, slow=False, **more):
    case = Case(*facts, **more)
    marks = [pytest.mark.needs(*case.requires.split()), *[pytest.mark.slow] * slow]
    return pytest.param(case, id=name, marks=marks)


CASES = [
    case_of("textarena", "textarena", "textarena_games:textarena/Blackjack-v0", "blackjack", 0.2),
    case_of("gem", "gem", "gem_games:gem/Game2048-v0", "game_2048", 0.5, success=False),
    case_of(
        "reasoning_gym", "reasoning_gym", "reasoning_gym_tasks:reasoning_gym/ChainSum-v0", "chain_sum", 1.0
    ),
    case_of("textworld", "textworld", "textworld_games:textworld/CoinCollector-v0", "find_coin", 1.0),
    case_of(
        "textworld_express",
        "textworld_express java",
        "textworld_express_games:textworld_express/Coin-v0",
        "find_coin",
        1.0,
    ),
    case_of(
        "minigrid", "minigrid", "minigrid_games:minigrid_text/DoorKey-v0", "door_key", 0.9, success=False
    ),
    case_of(
        "frozen_lake",
        "gymnasium",
        "frozen_lake_games:frozen_lake/FrozenLake-v0",
        "frozen_lake",
        0.2,
        success=False,
    ),
    case_of(
        "textarena-guess",
        "textarena",
        "textarena_games:textarena/GuessTheNumber-v0",
        "in_brackets",
        1.0,
        slow=True,
    ),
    case_of("gem-guess", "gem", "gem_games:gem/GuessTheNumber-v0", "in_a_box", 1.0, success=False, slow=True),
    case_of(
        "reasoning_gym-words",
        "reasoning_gym",
        "reasoning_gym_tasks:reasoning_gym/WordSorting-v0",
        "word_sorting",
        1.0,
        slow=True,
    ),
]


@pytest.fixture(scope="module", params=CASES)
def case(request):
    return request.param


@pytest.fixture(scope="module")
def model(case):
    """Options of ``agentgym eval`` for a model that replies by the policy of the case."""
    policy = getattr(policies, case.policy)
    with FakeServer(lambda request: completion(policy(request.json["messages"]))) as server:
        yield ["--model", "scripted", "--base-url", f"{server.url}/v1"]


@pytest.fixture(scope="module")
def one_by_one(case, model, tmp_path_factory):
    """The episodes of the model, played one after another in the process of ``agentgym eval``."""
    return evaluate(case, tmp_path_factory.mktemp("one") / "run", *model, "--concurrency", 1)


def run(*command, folders=()):
    """Run a program in the folder of the environments; return its output."""
    path = os.pathsep.join(map(str, folders))
    result = programs.run(
        [sys.executable, *map(str, command)],
        cwd=ENVS,
        env={**os.environ, "PYTHONPATH": path, "OPENAI_API_KEY": "none"},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert result.returncode == 0, result.stdout + result.stderr
    return result.stdout


def agentgym(*words):
    return run(Path(sys.executable).with_name("agentgym"), *words)


def evaluate(case, out, *words, tasks=TASKS):
    """Return the compared fields of the episodes of ``agentgym eval``, by seed."""
    options = ("--tasks", f"0:{tasks}", "--max-turns", TURNS, "--out", out)
    agentgym("eval", case.env, *words, *options)
    lines = (out / "episodes.jsonl").read_text("utf-8").splitlines()
    records = {record["task_id"]: record for record in map(json.loads, lines)}
    assert sorted(records) == list(range(tasks))
    return {seed: {name: record.get(name) for name in COMPARED} for seed, record in records.items()}


def faults(episodes):
    return [each["fault"] or each["agent_fault"] for each in episodes.values() if not each["ending"]]


def test_a_scripted_model_plays_reasonably(case, one_by_one):
    assert faults(one_by_one) == []
    scores = [sum(each["rewards"]) for each in one_by_one.values()]
    assert sum(scores) / TASKS >= case.score
    assert {each["success"] is not None for each in one_by_one.values()} == {case.success}


def test_concurrent_episodes_equal_sequential_ones(case, model, one_by_one, tmp_path):
    options = ("--concurrency", CONCURRENCY, "--isolate", "process")
    at_once = evaluate(case, tmp_path / "run", *model, *options)
    assert faults(at_once) == []
    assert at_once == one_by_one


def test_a_random_agent_meets_no_fault(case, tmp_path):
    options = ("--agent", "random", "--concurrency", 1)
    played = evaluate(case, tmp_path / "run", *options, tasks=CONCURRENCY)
    assert faults(played) == []


@pytest.fixture(scope="module")
def recipe(case, tmp_path_factory):
    """A folder of ``agentgym verl init``, whose rows for validation are the first seeds."""
    pytest.importorskip("pyarrow", reason=needs.reason("pyarrow"))
    folder = tmp_path_factory.mktemp("recipe")
    rows = ("--tasks", "0:48", "--val", CONCURRENCY, "--turns", TURNS, "--isolate", "process")
    agentgym("verl", "init", "--env", case.env, *rows, "--out", folder)
    return folder


def test_a_training_folder_passes_its_check(recipe):
    result = json.loads(agentgym("verl", "check", recipe, "--json"))
    assert [finding for finding in result["findings"] if finding["status"] == "problem"] == []
    began = [finding["text"] for finding in result["findings"] if finding["check"] == "environment"]
    assert began
    assert all("begins and answers" in text for text in began)


def test_training_and_evaluation_play_the_same_episodes(case, recipe, one_by_one):
    """Play by the agent loop over a stand-in of verl's base class: verl would take gigabytes."""
    pytest.importorskip("jinja2", reason=needs.reason("jinja2"))
    script = (HERE / "play_episodes.py", recipe, case.policy, "process")
    lines = run(*script, folders=(ENVS, Path(policies.__file__).parent)).splitlines()
    played = {episode["seed"]: episode for episode in map(json.loads, lines)}
    assert sorted(played) == list(range(CONCURRENCY))
    assert [episode["fault"] for episode in played.values()] == [None] * CONCURRENCY
    for seed, episode in played.items():
        assert episode["rewards"] == one_by_one[seed]["rewards"]
        # The tokens of an episode end with the last reply.
        assert episode["messages"] == one_by_one[seed]["messages"][:-1]
