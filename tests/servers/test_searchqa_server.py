"""The SearchQA server over a real socket, held against what AgentGym's own was recorded to answer."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

import httpx
import pytest

from agentgym_gym.envs.searchqa import SEARCHQA
from agentgym_gym.local_servers import server_kind
from in_process import posted
from local_game import solution

JSON = {"content-type": "application/json"}


@pytest.fixture(scope="module")
def url(local_url) -> str:
    return local_url("searchqa")


@pytest.fixture(scope="module")
def shared(url: str) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=url) as client:
        yield client


def step(client: httpx.Client, env_idx: int, action: str) -> dict:
    return client.post("/step", json={"env_idx": env_idx, "action": action}).json()


# --- as recorded ---


def shape(said):
    """The types and keys of a reply; of a 422 what is wrong and where, as its wording is the framework's."""
    if isinstance(said, dict) and "detail" in said and isinstance(said["detail"], list):
        return [(each["type"], each["loc"]) for each in said["detail"]]
    if isinstance(said, dict):
        return {key: shape(value) for key, value in said.items()}
    return type(said).__name__


@pytest.mark.slow
def test_every_recorded_exchange_is_answered_alike(shared, recordings):
    """The status, content type, types and keys; and of each step what it was taken for."""
    first = shared.post("/create", json={"id": 0}).json() + 1  # where it is 0 in the recording
    compared = 0
    for exchange in recordings("searchqa.jsonl"):
        if exchange["path"] in {"/openapi.json", "/list_envs"}:
            continue  # see below
        raw = exchange.get("raw_body")
        reply = shared.request(
            exchange["method"],
            exchange["path"],
            params=moved(exchange["query"], first),
            content=raw,
            json=moved(exchange["json_body"], first),
            headers=JSON if raw else None,
        )
        where, recorded = f"seq {exchange['seq']}", exchange.get("response_json")
        assert reply.status_code == exchange["status"], where
        assert reply.headers["content-type"] == exchange["content_type"], where
        if reply.status_code == 500:
            assert reply.text == exchange["response_text"] == "Internal Server Error", where
        else:
            assert shape(reply.json()) == shape(recorded), where
        if exchange["path"] == "/create" and reply.status_code == 200:
            assert reply.json() == recorded + first, where  # a create that fails uses an id up, too
        if exchange["path"] == "/step" and reply.status_code == 200:
            assert kind_of(reply.json()) == kind_of(recorded), where
        compared += 1
    assert compared == 73 - 2


def moved(asked, first):
    """Name the environments of a recorded request as they are named here; there is none of id 999."""
    if not asked or asked.get("env_idx") in {None, 999}:
        return asked
    return {**asked, "env_idx": asked["env_idx"] + first}


def kind_of(outcome):
    """What an action was taken for. Answers that are right there are wrong here, as the questions differ."""
    said = outcome["observation"]
    if said.startswith("<information>Doc 1(Title: ") and said.endswith("</information>"):
        return len(re.findall(r"^(?:<information>)?Doc \d\(Title: \"[^\"]+\"\) \S", said, re.MULTILINE))
    return "neither" if "between <search> and </search>" in said else "answer"


def test_the_routes_that_are_described_are_agentgyms(shared, recordings):
    (described,) = [
        row["response_json"] for row in recordings("searchqa.jsonl") if row["path"] == "/openapi.json"
    ]
    ours = shared.get("/openapi.json").json()
    assert {path: list(routes) for path, routes in ours["paths"].items()} == {
        path: list(routes) for path, routes in described["paths"].items()
    }


# --- what is different on purpose ---


def test_environments_are_listed(shared):
    made = [shared.post("/create", json={"id": 0}).json() for _ in range(2)]
    listed = shared.get("/list_envs").json()
    assert made[1] > made[0]
    assert set(made) <= set(listed)
    assert shared.post("/close", json={"env_idx": made[0]}).json() is True
    assert set(listed) - set(shared.get("/list_envs").json()) == {made[0]}


# --- wrong input ---


# --- documents and questions of the user's ---


@pytest.mark.parametrize("more", [0, pytest.param(20_000, marks=pytest.mark.slow)])
def test_a_folder_is_served(tmp_path, more):
    """In a thread, where there are many documents."""
    corpus = [{"id": "0", "contents": '"Gold"\nA metal.'}, {"id": "1", "contents": '"Paris"\nA capital.'}]
    corpus += [{"id": "2", "contents": '"Z"\nz'}] * more
    (tmp_path / "corpus.jsonl").write_text("\n".join(map(json.dumps, corpus)))
    (tmp_path / "train.jsonl").write_text(json.dumps({"question": "Which?", "golden_answers": ["Paris"]}))
    replies = posted(
        server_kind("searchqa").app(data=tmp_path),
        ("/create", {"id": 51_713}),
        ("/step", {"env_idx": 0, "action": "<search>capital</search>"}),
        ("/step", {"env_idx": 0, "action": "<answer>paris</answer>"}),
        ("/create", {"id": 0}),
    )
    created, found, right, none = replies
    assert created.json() == 0
    assert created.headers["agentgym-server"].endswith("(SearchQA, data)")
    text = '<information>Doc 1(Title: "Paris") A capital.\nDoc 2(Title: "Gold") A metal.'
    assert found.json()["observation"].startswith(text)
    assert right.json()["reward"] == 1.0
    assert none.status_code == 500


def test_an_answer_is_only_in_the_reply_to_the_second_search(shared):
    """Neither by what is shown at the start nor after answers."""
    for task in SEARCHQA.task_ids[::30_011]:
        env_idx = shared.post("/create", json={"id": task}).json()
        answer = solution("SearchQA", task)[-1].answer
        replies = [
            shared.get("/observation", params={"env_idx": env_idx}).text,
            shared.post("/reset", json={"env_idx": env_idx, "id": task}).text,
            *(json.dumps(step(shared, env_idx, action)) for action in ("", "<answer>no</answer>")),
        ]
        assert not any(answer in reply for reply in replies)
