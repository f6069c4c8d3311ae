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

# Worlds of servers that start another program, which takes long, are in the tests of these servers.
PLAYED = [e for e in environments() if e.name.lower() in servers().keys() - OTHER_PROGRAMS]
SEEDED = [e for e in PLAYED if "seed" in server_kind(e.name.lower()).takes]

DIGESTS = {
    "TextCraft": (
        "c379464a6db4cef64af3434735916cfa14487c18448c8b81ec5b1bdf08d82cd9",
        "f8e7da04eb3ec0586b821d1fbfb8871d4bf0f631daaa33c28d943898a3933c07",
    ),
    "Maze": (
        "50fcd2705598fbe29a1c1d8370451e20fc869c5769a3e503d653d9660171bcc9",
        "770460e78eb9eebc734d14820c0904c08a5671a6dbd15c3b8c69e33a43e0595d",
    ),
    "Wordle": (
        "bc832d7044276f92ca4756ad2236bff6096934742197fb28abcae078a0e59201",
        "ab4b96d9cf2a42bcffe250be2afc5bf19c3dd03c6f5a9983483ec7373e2ecb55",
        "2432e675d0dea76800e030c7789b3a338afb21b57db1250708e09860c205ee78",
    ),
    "BabyAI": (
        "9d445f84eaf9af681fbadff7d8183ca5b2b1c4343b7d7b830f6f6df69771aabd",
        "7baf8014cc57473979206d12f5f9c0536b315bbca8dfd7b7643575179f6622a4",
        "792a05a68917addcd9f7e5e2cb9e747181df1c61e85aaf767dcf97ff4f1855ab",
    ),
    "ALFWorld": (
        "a58d2df13e64b55fbce5dd68d0bdb4738d85ee7f90164b669c0da4614d41fe38",
        "23e8857036a19421c3e6f3f5b93272a16cc63c5dce358625aa6bc22c35a542a0",
        "604c9af3bda506285988108235ee39751047a467c9bb852cef0f8d1f5dcca558",
    ),
    "WebShop": (
        "f430a6f5f8fbdd7c3e0e2d9ae4ce58bc5f8ae3de5088ed7f885eca64f3731cff",
        "d247a0698e3047ebda5bee95befa92cf21b392b38f432eb14f197531166fed14",
        "59a088cdceebfb85886bc48fdae764f44fa753b1ad9ae56cb58ad19db08f97b4",
    ),
    "SQLGym": (
        "b0716bc6183d85a4f9484aa8b5569e7be28b281bf5b905e42887e9b405f28d30",
        "cfe58fbf2849e2a2682d6dafd55a52055931023f312dda9cc4deef11b8bf05fe",
        "7bf411e7fe197f1bd47e921e9356af4de8468f4f6125b698c4f94ecb4c66ef3f",
    ),
    "SearchQA": (
        "6a8eaf552147811bbade51c5f3d4e2b11f6520b69d4063e06b43598e711b8cef",
        "396a251b5e6bc4b9e888317bf9c8f9b19ec4e31225330942ca0cf1075dedc80e",
        "bdebc5a3591fbd2212ca7ae3f94aa90a2a439dc4fd63f7e6c6498cd57609e090",
    ),
    "Weather": (
        "e3a856801d20c576e8837bb00b1033c82b36d4157fcc89fa8706f2f7101bcffc",
        "c7f3c04249f90dd664560fd6dd0c9db4429fdb02c376068bd0ac293b88e2bfc1",
    ),
    "Movie": (
        "c184042efeb5ecb5604fe236265132c1bb39b038f749979eb8cda76a265e3381",
        "65edb3b06a6a7d8298b6c5cd8f35b552fa074ad18dfe2cb69e12b39d936567b6",
    ),
    "Academia": (
        "8595c9dd1d9ced603568bbbbe2eb991868ed1b4691dec2be60e45e26a2e26987",
        "9c5532baf9dde0fa7884ea459f6a523870adf6805124c728cb9f8d096f4ed82e",
    ),
    "Sheet": (
        "9fdccd31e219e5bb98084c14e045d3f43ac27b8c6f2a8f7cd76a83b161c57e8f",
        "cc1387f980fa281b628a4642f710b76c9bf6395f4928d1eae4597e6bc58d4a8b",
    ),
    "TODOList": (
        "72d3d34a36fc46cb77f98b0c0790fcbbc5f49de442e6dfc4fe6c36ebbeef6fe2",
        "e5462c0295e732d6c912c516906a0b56d89448a7ca3c28ad041ee912462ab9b2",
    ),
}
"""SHA-256 of the games of `played`: of some tasks, of many, and of most.

A change here changes what every id means, and makes old results worthless: put it in the changelog, and raise
the version of the world."""

LARGE = {"Wordle", "BabyAI", "ALFWorld", "WebShop", "SQLGym", "SearchQA"}
"""The worlds whose games all take more than 10 s."""

QUICKLY_MADE = {"ALFWorld", "Movie", "Academia", "Sheet", "TODOList"}

SAME = {"BabyAI": 49}
"""How many tasks have the same game as another one, where there are such tasks."""

AT_RANDOM = {"Maze": 0.3, "BabyAI": 0.3, "Wordle": 0.02, "TODOList": 0.04}
"""The largest share of tasks that a random agent wins, where it wins any."""

each_world = pytest.mark.parametrize("environment", PLAYED, ids=lambda e: e.name)
each_seeded = pytest.mark.parametrize("environment", SEEDED, ids=lambda e: e.name)


def some(environment, runs=3, length=2):
    """Return runs of neighbouring tasks, spread over all."""
    ids = list(environment.task_ids)
    starts = {(len(ids) - length) * n // max(1, runs - 1) for n in range(runs)}
    return sorted({ids[start + n] for start in starts for n in range(length)})


def many(environment):
    """Return all tasks of a small world, and some of each other one."""
    return some(environment, 30) if environment.name in LARGE else list(environment.task_ids)


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


@pytest.mark.parametrize(
    ("environment", "tasks"),
    [
        *((environment, some) for environment in PLAYED),
        *(pytest.param(environment, many, marks=pytest.mark.slow) for environment in PLAYED),
        *(
            pytest.param(environment, most, marks=pytest.mark.exhaustive)
            for environment in PLAYED
            if environment.name in LARGE
        ),
    ],
    ids=lambda value: getattr(value, "name", None) or value.__name__,
)
def test_a_world_is_what_it_was_and_each_solution_wins(environment, tasks):
    with LocalGame(environment.name) as game:
        games = played(game, tasks(environment))
    assert_won(environment, games)
    assert digest(games) == DIGESTS[environment.name][(some, many, most).index(tasks)]
    if len(games) == len(environment.task_ids):
        assert len(games) - number_of_different(games) == SAME.get(environment.name, 0)


@pytest.mark.slow
@each_world
def test_a_world_is_the_same_in_another_process(environment, local_url):
    """Texts have other hashes there."""
    with LocalGame(environment.name, url=local_url(environment.name.lower())) as game:
        assert digest(played(game, some(environment))) == DIGESTS[environment.name][0]


@pytest.mark.parametrize(
    ("environment", "seed", "runs"),
    [
        *((environment, 1, 2) for environment in SEEDED if environment.name in QUICKLY_MADE),
        *(
            # Of BabyAI, some tasks cannot be won, and others with each seed.
            pytest.param(
                environment,
                *(1, 6) if environment.name == "BabyAI" else (2**40, 8),
                marks=pytest.mark.slow,
            )
            for environment in SEEDED
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


@pytest.mark.slow
@each_world
def test_doing_nothing_wins_no_task_and_a_random_agent_next_to_none(environment):
    async def scores(agent):
        app = server_kind(environment.name.lower()).app()
        async with httpx.AsyncClient(transport=httpx.ASGITransport(app)) as client:
            env = partial(AsyncAgentGymEnv, environment.name, server="http://server", http_client=client)
            records = await evaluate_async(env, agent, some(environment, 15), concurrency=1)
        assert {(record.fault, record.agent_fault) for record in records} == {(None, None)}
        return [record.score if record.success else 0.0 for record in records]

    assert set(asyncio.run(scores(NullAgent))) == {0.0}
    at_random = asyncio.run(scores(RandomAgent))
    assert sum(at_random) <= AT_RANDOM.get(environment.name, 0.0) * len(at_random)


@pytest.mark.slow
@each_seeded
def test_a_world_is_made_in_a_moment(environment):
    seeds = iter(range(5, 100))  # a world that was made is kept

    def make():
        with LocalGame(environment.name, seed=next(seeds)) as game:
            game.reset(0)

    assert cpu_seconds(make, enough=5.0) <= 5.0
