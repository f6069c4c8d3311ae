"""`--twin`: BabyAI and Wordle as AgentGym's servers play them, to the letter."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Iterator

import httpx
import pytest

from agentgym_gym import AgentGymEnv
from agentgym_gym.envs.babyai import BABYAI
from agentgym_gym.envs.wordle import WORDLE, WORDS
from agentgym_gym.errors import BadOption
from agentgym_gym.evaluate import evaluate, load_oracle
from agentgym_gym.local_servers import LocalServer, ServedWorld, server_kind
from agentgym_servers import serve
from in_process import in_process, sent
from served_app import served

OPEN_THE_RED_DOOR = 12
GO_THROUGH = "toggle and go through red closed door 1"


@pytest.fixture(scope="module")
def twin() -> Iterator[Callable[[str], str]]:
    """Returns the URL of a twin."""
    urls: dict[str, str] = {}
    with contextlib.ExitStack() as stack:

        def url(name: str) -> str:
            if name not in urls:
                urls[name] = stack.enter_context(served(server_kind(name).app(twin=True)))
            return urls[name]

        yield url


# --- the recordings of AgentGym's servers ---


# What cannot be equal: how a picture is compressed, and a guess before the first reset, whose word is drawn
# without a seed.
FREE = {"babyai": {"/render"}, "wordle": set()}
UNSEEDED = {"babyai": 0, "wordle": 1}


@pytest.mark.slow
@pytest.mark.parametrize("name", ["babyai", "wordle"])
def test_every_recorded_reply_is_equal(name, recordings):
    rows = [row for row in recordings(f"{name}.jsonl") if row["path"] != "/openapi.json"]
    replies = in_process(
        server_kind(name).app(twin=True), *((row["method"], row["path"], sent(row)) for row in rows)
    )
    different = []
    for row, reply in zip(rows, replies, strict=True):
        assert reply.status_code == row["status"], row["seq"]
        if row["path"] not in FREE[name] and reply.json() != row["response_json"]:
            different.append(row)
    assert len(rows) > 100
    assert len(different) <= UNSEEDED[name]
    for row in different:
        assert not any(other["path"].endswith("/reset") for other in rows if other["seq"] < row["seq"])


# --- BabyAI ---


def test_a_door_that_is_opened_and_gone_through_pays_nothing(twin, local_url):
    paid = {}
    for where, url in (("twin", twin("babyai")), ("own", local_url("babyai"))):
        with contextlib.closing(AgentGymEnv("BabyAI", server=url)) as env:
            env.reset(options={"task_id": OPEN_THE_RED_DOOR})
            _, reward, done, _, info = env.step(f"Action: {GO_THROUGH}")
            paid[where] = reward > 0, done, info["success"]
            if where == "twin":
                assert info["served_by"] == "agentgym-servers/3 (BabyAI, seed 0, twin)"
    assert paid == {"twin": (False, False, False), "own": (True, True, True)}


def test_the_score_adds_up_and_an_unknown_action_is_paid_again(twin):
    with httpx.Client(base_url=twin("babyai")) as client:
        env_id = client.post("/create").json()["id"]

        def step(action: str) -> dict:
            return client.post("/step", json={"id": env_id, "action": action}).json()

        def play_the_oracle(task: int) -> dict:
            client.post("/reset", json={"id": env_id, "data_idx": task})
            oracle = load_oracle(BABYAI)
            served_by = "agentgym-servers/3 (BabyAI, seed 0, twin)"
            oracle.reset(None, "", {"task_id": task, "served_by": served_by})
            while (action := oracle.act("", {})) is not None:
                last = step(str(action))
            return last

        last = play_the_oracle(OPEN_THE_RED_DOOR)
        assert last["done"]
        assert last["score"] == last["reward"] > 0.5
        assert step("turn left") == {"error": f"The task with environment {env_id} has finished."}
        # The limit of this level is 50 moves. The end of a late success is taken back, and the score adds up.
        for turns, least, most in ((32, 0, 0.5), (120, -2, -0.5)):
            client.post("/reset", json={"id": env_id, "data_idx": OPEN_THE_RED_DOOR})
            for _ in range(turns):
                step("turn left")
            step("go to red closed door 1")
            late = step("toggle")
            assert (least < late["reward"] < most, late["done"]) == (True, False)
            assert "The task is completed." in late["observation"]
            again = step("nonsense")
            assert (again["reward"], again["score"]) == (late["reward"], 2 * late["reward"])


def test_an_environment_that_is_closed_before_its_reset_stays(twin):
    with httpx.Client(base_url=twin("babyai")) as client:
        env_id = client.post("/create").json()["id"]
        assert client.post("/step", json={"id": env_id, "action": "turn left"}).json() == {
            "error": str(env_id)
        }
        assert client.post("/close", json={"id": env_id}).json() is False
        assert "observation" in client.post("/reset", json={"id": env_id, "data_idx": 0}).json()
        assert client.post("/close", json={"id": env_id}).json() is False
        other = client.post("/create").json()["id"]
        client.post("/reset", json={"id": other, "data_idx": 0})
        assert [client.post("/close", json={"id": other}).json() for _ in range(2)] == [True, False]


# --- Wordle ---


def test_wordle_has_agentgyms_words_and_draws_again(twin):
    with httpx.Client(base_url=twin("wordle")) as client:
        env_id = client.post("/wordle/create").json()["id"]
        listed = client.get("/wordle/filtered_vocab", params={"id": env_id}).json()
        assert sorted(listed) == sorted(WORDS)
        start = client.post("/wordle/reset", json={"id": env_id, "seed": 1})
        assert start.json()["observation"] == "Let's start Wordle!"
        assert start.headers["agentgym-server"] == "agentgym-servers/3 (Wordle, twin)"


# --- both ---


@pytest.mark.parametrize("environment", [BABYAI, WORDLE], ids=lambda e: e.name)
def test_the_oracle_wins_on_a_twin(environment, twin):
    tasks = [12, 479] if environment is BABYAI else range(0, 980, 196)
    url = twin(environment.name.lower())
    with contextlib.closing(AgentGymEnv(environment.name, server=url)) as env:
        records = list(evaluate(env, load_oracle(environment), tasks))
    assert [record.task_id for record in records if not record.success] == []


def test_a_twin_takes_neither_a_seed_nor_data(tmp_path):
    for options in ({"seed": 1}, {"data": tmp_path}):
        with pytest.raises(BadOption, match="leave out seed and data"):
            serve("wordle", twin=True, **options)


@pytest.mark.slow
def test_serve_all_names_each_twin():
    server = LocalServer("all", arguments=("--twin",))
    url = server.start()
    try:
        heads = {
            name: httpx.get(f"{url}/{name}").headers["agentgym-server"]
            for name in ("babyai", "wordle", "maze")
        }
    finally:
        server.stop()
    assert heads == {
        "babyai": "agentgym-servers/3 (BabyAI, seed 0, twin)",
        "wordle": "agentgym-servers/3 (Wordle, twin)",
        "maze": "agentgym-servers/3 (Maze)",
    }


@pytest.mark.parametrize(
    "world",
    [
        ServedWorld("BabyAI", 1, 0, twin=True),
        ServedWorld("BabyAI", 1, 0),
        ServedWorld("Wordle", 3, twin=True),
        ServedWorld("Wordle", 1, data=True),
        ServedWorld("WebShop", 1, data=True, twin=True),
    ],
    ids=str,
)
def test_the_header_is_read_as_it_is_written(world):
    assert ServedWorld.parse(str(world)) == world
    assert re.fullmatch(r"agentgym-servers/\d+ \([\w, ]+\)", str(world))
