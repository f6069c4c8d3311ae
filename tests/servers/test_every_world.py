"""What holds of every world that a local server makes: it stays, and its tasks are many and can be won."""

from __future__ import annotations

import asyncio
import hashlib
import json
from functools import partial

import httpx
import pytest

from agentgym_gym import AsyncAgentGymEnv, environments
from agentgym_gym.evaluate import NullAgent, RandomAgent, evaluate_async
from agentgym_gym.local_servers import server_kind, servers
from clock import cpu_seconds
from local_game import LocalGame
from needs import OTHER_PROGRAMS

# Those of the servers that start another program, which takes long, are in the tests of these servers.
PLAYED = [e for e in environments() if e.name.lower() in servers().keys() - OTHER_PROGRAMS]
SEEDED = [e for e in PLAYED if "seed" in server_kind(e.name.lower()).takes]

DIGESTS = {
    "TextCraft": (
        "56d8ad57375b3c04204ea6dbbaba9f3e6b3a53f6296fd570f70e4f7c7a46134c",
        "f8e7da04eb3ec0586b821d1fbfb8871d4bf0f631daaa33c28d943898a3933c07",
    ),
    "Maze": (
        "012ff6f99fb2b99095c1db8c2c070dbf94f413e8554a100d91b3242c96fca22c",
        "770460e78eb9eebc734d14820c0904c08a5671a6dbd15c3b8c69e33a43e0595d",
    ),
    "Wordle": (
        "9114907f94955e28a4773d0b8511f73f57dde3abb0fd3139f961f65f99e5886e",
        "2432e675d0dea76800e030c7789b3a338afb21b57db1250708e09860c205ee78",
    ),
    "BabyAI": (
        "799322549cd9be45da30596753a27acaf9c72fd2794ee971b062d9195e82bda9",
        "792a05a68917addcd9f7e5e2cb9e747181df1c61e85aaf767dcf97ff4f1855ab",
    ),
    "ALFWorld": (
        "3dae4db40c523713076f09d11cc94d21225a843053668017be0a97482862877c",
        "0dcd08b0ebee17891c935aaa94593689d8f26507420583542af9010eb1438d81",
    ),
    "WebShop": (
        "c776afbe669bdd82d716f88c3c705e4a2d586191b8c3a34154d68aa6538fbf6f",
        "59a088cdceebfb85886bc48fdae764f44fa753b1ad9ae56cb58ad19db08f97b4",
    ),
    "SQLGym": (
        "e0cd2fccc533d71c13de03702ebef7de3957e28286d23363f7fe5841a973822e",
        "7bf411e7fe197f1bd47e921e9356af4de8468f4f6125b698c4f94ecb4c66ef3f",
    ),
    "SearchQA": (
        "ae63475f5cfa5c10c5f69b2f757b762bfc4f8d1d440d7d3ebe0d30ee7b7d4bdd",
        "bdebc5a3591fbd2212ca7ae3f94aa90a2a439dc4fd63f7e6c6498cd57609e090",
    ),
    "Weather": (
        "d421984d3cd28765d82b7d0f80744b3b16ffb9f75f0622638b4b6b92a24ce0bf",
        "c7f3c04249f90dd664560fd6dd0c9db4429fdb02c376068bd0ac293b88e2bfc1",
    ),
    "Movie": (
        "c33200edaf631b6f840897918302ece25b60f5f3e776ff6e1f332e5df7d589e0",
        "65edb3b06a6a7d8298b6c5cd8f35b552fa074ad18dfe2cb69e12b39d936567b6",
    ),
    "Academia": (
        "9c5532baf9dde0fa7884ea459f6a523870adf6805124c728cb9f8d096f4ed82e",
        "9c5532baf9dde0fa7884ea459f6a523870adf6805124c728cb9f8d096f4ed82e",
    ),
    "Sheet": (
        "cc1387f980fa281b628a4642f710b76c9bf6395f4928d1eae4597e6bc58d4a8b",
        "cc1387f980fa281b628a4642f710b76c9bf6395f4928d1eae4597e6bc58d4a8b",
    ),
    "TODOList": (
        "6545cee45a99fd4af4c1ab0871ffbbea405b53b59ecb1a95be8d36f12b4c7043",
        "e5462c0295e732d6c912c516906a0b56d89448a7ca3c28ad041ee912462ab9b2",
    ),
}
"""SHA-256 of the games of `played`: of some tasks, and of all that a slow test plays.

A change here changes what every id means, and makes old results worthless: say so in the changelog, and raise
the version of the world."""

SAME = {"BabyAI": 49, "ALFWorld": 1}
"""How many tasks have the same game as another one, where there are such tasks."""

AT_RANDOM = {"Maze": 0.3, "BabyAI": 0.3, "Wordle": 0.02, "TODOList": 0.03}
"""The largest share of tasks that a random agent wins, where it wins any."""

each_world = pytest.mark.parametrize("environment", PLAYED, ids=lambda e: e.name)
each_seeded = pytest.mark.parametrize("environment", SEEDED, ids=lambda e: e.name)


def some(environment, runs=12, length=2):
    """Return runs of neighbouring tasks, spread over all."""
    ids = list(environment.task_ids)
    starts = {(len(ids) - length) * n // max(1, runs - 1) for n in range(runs)}
    return sorted({ids[start + n] for start in starts for n in range(length)})


def most(environment):
    """Return all tasks; of SearchQA, which has 221,328, some thousands."""
    return some(environment, 600, 10) if environment.name == "SearchQA" else list(environment.task_ids)


def played(game, tasks):
    """Play the solutions of tasks; return all that is shown and done in each."""
    games = {}
    for task in tasks:
        winnable = task not in game.environment.unwinnable
        start, actions, reward = game.reset(task), [], None
        if winnable:
            actions, outcome = game.win(task)
            reward = outcome.reward
        games[task] = [start.goal, game.seen, [str(action) for action in actions], reward]
    return games


def digest(games):
    return hashlib.sha256(json.dumps(games).encode()).hexdigest()


def number_of_different(games):
    return len({json.dumps(game) for game in games.values()})


def assert_won(environment, games):
    for task, (_, _, actions, reward) in games.items():
        if task not in environment.unwinnable:
            assert reward == 1 or (environment.name == "BabyAI" and 0 < reward < 1), task
            assert len(actions) <= environment.max_turns, task


@pytest.mark.parametrize("tasks", [some, pytest.param(most, marks=pytest.mark.slow)])
@each_world
def test_a_world_is_what_it_was_and_each_solution_wins(environment, tasks):
    with LocalGame(environment.name) as game:
        games = played(game, tasks(environment))
    assert_won(environment, games)
    if tasks is some:
        assert digest(games) == DIGESTS[environment.name][0]
    else:
        assert len(games) - number_of_different(games) == SAME.get(environment.name, 0)
        assert digest(games) == DIGESTS[environment.name][1]


@pytest.mark.slow
@each_world
def test_a_world_is_the_same_in_another_process(environment, local_url):
    """Texts have other hashes there."""
    with LocalGame(environment.name, url=local_url(environment.name.lower())) as game:
        assert digest(played(game, some(environment))) == DIGESTS[environment.name][0]


@pytest.mark.parametrize(
    ("environment", "seed", "runs"),
    [
        *((environment, 1, 6) for environment in SEEDED),
        *(
            pytest.param(environment, seed, 60, marks=pytest.mark.slow)
            for environment in SEEDED
            for seed in (2, 77, 2**40)
            if environment.name != "BabyAI"  # where some tasks cannot be won, and others with each seed
        ),
    ],
    ids=lambda value: getattr(value, "name", value),
)
def test_another_seed_is_another_world_and_can_be_won_too(environment, seed, runs):
    tasks = some(environment, runs)
    with LocalGame(environment.name) as game, LocalGame(environment.name, seed=seed) as other:
        games, others = played(game, tasks), played(other, tasks)
        assert other.head.endswith(f"({environment.name}, seed {seed})")
    assert_won(environment, others)
    assert number_of_different(others) >= 0.9 * len(tasks)
    assert sum(games[task] == others[task] for task in tasks) <= 0.1 * len(tasks)


@pytest.mark.parametrize("runs", [6, pytest.param(30, marks=pytest.mark.slow)])
@each_world
def test_doing_nothing_wins_no_task_and_a_random_agent_next_to_none(environment, runs):
    async def scores(agent):
        app = server_kind(environment.name.lower()).app()
        async with httpx.AsyncClient(transport=httpx.ASGITransport(app)) as client:
            env = partial(AsyncAgentGymEnv, environment.name, server="http://server", http_client=client)
            records = await evaluate_async(env, agent, some(environment, runs), concurrency=1)
        assert {(record.fault, record.agent_fault) for record in records} == {(None, None)}
        return [record.score if record.success else 0.0 for record in records]

    assert set(asyncio.run(scores(NullAgent))) == {0.0}
    at_random = asyncio.run(scores(RandomAgent))
    assert sum(at_random) <= AT_RANDOM.get(environment.name, 0.0) * len(at_random)


@each_seeded
def test_a_world_is_made_in_a_moment(environment):
    seeds = iter(range(5, 100))  # a world that was made is kept

    def make():
        with LocalGame(environment.name, seed=next(seeds)) as game:
            game.reset(0)

    assert cpu_seconds(make, enough=5.0) <= 5.0
