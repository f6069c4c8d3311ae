"""The Wordle server over a real socket, held against what AgentGym's own was recorded to answer."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import httpx
import pytest

from agentgym_gym import AgentGymEnv, errors
from agentgym_gym.local_servers import server_kind
from in_process import in_process

JSON = {"content-type": "application/json"}


@pytest.fixture(scope="module")
def url(local_url) -> str:
    return local_url("wordle")


@pytest.fixture(scope="module")
def shared(url: str) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=url) as client:
        yield client


def create(client: httpx.Client) -> int:
    return client.post("/wordle/create").json()["id"]


def reset(client: httpx.Client, env_id: int, seed: int) -> dict:
    return client.post("/wordle/reset", json={"id": env_id, "seed": seed}).json()


def step(client: httpx.Client, env_id: int, action: str) -> dict:
    return client.post("/wordle/step", json={"id": env_id, "action": action}).json()


def test_a_new_environment_has_a_game_but_nothing_to_see(shared):
    env_id = create(shared)
    said = {"error": f"The environment {env_id} has no observation yet: reset it first."}
    assert shared.get("/wordle/observation", params={"id": env_id}).json() == said
    before = shared.get("/wordle/detail", params={"id": env_id}).json()
    assert before == {"done": False, "reward": 0, "deleted": False}
    assert step(shared, env_id, "zzzzz") == {"observation": "invalid word", "reward": 0, "done": False}
    assert env_id in shared.get("/list_envs").json()


def test_after_a_reset_the_views_show_the_game(shared):
    env_id = create(shared)
    told = reset(shared, env_id, 5)["observation"]
    assert told == "Let's start Wordle! Any common English word of five letters may be hidden."
    after = step(shared, env_id, "crane")
    assert shared.get("/wordle/observation", params={"id": env_id}).json() == after["observation"]
    detail = shared.get("/wordle/detail", params={"id": env_id}).json()
    assert detail == {
        "observation": after["observation"],
        "reward": 0,
        "done": False,
        "deleted": False,
        "seed": 5,
    }


def test_a_game_that_is_over_ends_all_but_a_reset(shared):
    env_id = create(shared)
    reset(shared, env_id, 5)
    for _ in range(6):
        last = step(shared, env_id, "")
    assert last == {"observation": "invalid word", "reward": 0, "done": True}
    over = {"error": f"The task with environment {env_id} has finished."}
    assert step(shared, env_id, "crane") == over
    for view in ("observation", "detail", "filtered_vocab"):
        assert shared.get(f"/wordle/{view}", params={"id": env_id}).json() == over
    assert reset(shared, env_id, 6)["id"] == env_id


@pytest.mark.parametrize("seed", [b"-1", b"1000000000000000000", b"1" + b"0" * 4000])
def test_any_seed_is_played(shared, seed):
    body = b'{"id": %d, "seed": %s}' % (create(shared), seed)
    assert shared.post("/wordle/reset", content=body, headers=JSON).json()["observation"].startswith("Let's")


def test_neither_server_passes_for_the_other(local_url):
    for name, other in (("Maze", "wordle"), ("Wordle", "maze")):
        env = AgentGymEnv(name, server=local_url(other))
        with contextlib.closing(env), pytest.raises(errors.WrongServer, match=f"does not serve {name}"):
            env.reset(seed=0)


def test_a_file_of_the_users_is_played(tmp_path):
    (tmp_path / "words.txt").write_text("Solar\nsugar\n\nsolar\n")
    _, told, words = in_process(
        server_kind("wordle").app(data=tmp_path),
        ("POST", "/wordle/create", {}),
        ("POST", "/wordle/reset", {"json": {"id": 0, "seed": 0}}),
        ("GET", "/wordle/filtered_vocab", {"params": {"id": 0}}),
    )
    assert told.json()["observation"] == "Let's start Wordle! There are 2 words."
    assert words.json() == ["solar", "sugar"]
    assert told.headers["agentgym-server"].endswith("(Wordle, data)")


def marks(guess: str, hidden: str) -> str:
    pairs = zip(guess, hidden, strict=True)
    return " ".join("g" if a == b else "y" if a in hidden else "b" for a, b in pairs)


def test_the_list_of_words_fits_the_first_message_of_agentgyms_client(shared):
    """Their client puts it there before the first reset, and their Evaluator allows 4,096 tokens in all."""
    env_id = create(shared)
    vocab = shared.get("/wordle/filtered_vocab", params={"id": env_id}).json()
    assert vocab == ["any common English word of five letters"]
    whole = shared.get("/wordle/filtered_vocab", params={"id": env_id, "whole": True}).json()
    assert len(whole) == 1748
    reset(shared, env_id, 7)
    lengths = []
    for guess in ("bulky", "crane", "moist"):
        answer = step(shared, env_id, guess)["observation"].strip()
        vocab = shared.get("/wordle/filtered_vocab", params={"id": env_id}).json()
        whole = [word for word in whole if marks(guess, word) == answer]
        assert vocab == (whole if len(whole) <= 40 else ["any common English word of five letters"])
        lengths.append(len(whole))
    assert lengths[0] > 40 >= lengths[-1] > 0


def test_a_long_file_of_the_users_is_summarized(tmp_path):
    words = [f"{a}{b}lad" for a in "abcdefg" for b in "abcdefg"]
    (tmp_path / "words.txt").write_text("\n".join(words))
    _, listed, whole = in_process(
        server_kind("wordle").app(data=tmp_path),
        ("POST", "/wordle/create", {}),
        ("GET", "/wordle/filtered_vocab", {"params": {"id": 0}}),
        ("GET", "/wordle/filtered_vocab", {"params": {"id": 0, "whole": True}}),
    )
    assert listed.json() == ["any of 49 words of five letters"]
    assert whole.json() == words
