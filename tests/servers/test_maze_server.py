"""The Maze server over a real socket, held against what AgentGym's own was recorded to answer."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections import Counter
from collections.abc import Iterator

import httpx
import pytest

from agentgym_gym import AgentGymEnv, AsyncAgentGymEnv, errors
from agentgym_gym.calls import Reply
from agentgym_gym.envs.maze import MAZE
from agentgym_gym.local_servers import server_kind
from command_line import run
from in_process import replayed

JSON = {"content-type": "application/json"}

OTHER_TEXTS = {
    "'observation'": "The environment 0 has no game yet: reset it first.",
    "'goal_position'": "The environment 0 has no game yet: reset it first.",
    "0": "The environment 0 has no game yet: reset it first.",
    "": "The game 25 is not valid.",
    "list index out of range": "The game -27 is not valid.",
}
"""Our texts where the recorded error is empty, or names a part of a program."""


@pytest.fixture(scope="module")
def url(local_url) -> str:
    return local_url("maze")


@pytest.fixture(scope="module")
def shared(url: str) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=url) as client:
        yield client


def create(client: httpx.Client) -> int:
    return client.post("/maze/create").json()["id"]


def reset(client: httpx.Client, env_id: int, game: int) -> dict:
    return client.post("/maze/reset", json={"id": env_id, "game": game}).json()


def step(client: httpx.Client, env_id: int, action: str) -> dict:
    return client.post("/maze/step", json={"id": env_id, "action": action}).json()


# --- as recorded ---


def told(reply, status: int):
    """The content of a reply; of a 422 the error and its place, as its wording is the framework's."""
    if status == 422:
        return [(each["type"], each["loc"]) for each in reply["detail"]]
    return json.dumps(reply)  # text, in which 0, 0.0 and false differ


def test_every_recorded_exchange_is_answered_alike(recordings):
    seen, asked = Counter(), []
    for exchange in recordings("maze.jsonl"):
        body, recorded = exchange["json_body"], exchange["response_json"]
        if exchange["path"] in {"/openapi.json", "/maze/"}:
            continue  # of the framework, and of Wordle too; an address with the prefix has a greeting here
        if body and body.get("game") == -26:
            body = {**body, "game": 0}  # which it means there; here it is refused (see below)
            seen["said otherwise"] += 1
        if isinstance(recorded, dict) and recorded.get("error") in OTHER_TEXTS:
            recorded = {"error": OTHER_TEXTS[recorded["error"]]}
            if body and body.get("game") == -1:
                recorded = {"error": "The game -1 is not valid."}
            seen["other text"] += 1
        asked.append(({**exchange, "json_body": body}, recorded))
    replies = replayed("maze", [exchange for exchange, _ in asked])
    for (exchange, recorded), reply in zip(asked, replies, strict=True):
        where = f"seq {exchange['seq']}"
        assert reply.status_code == exchange["status"], where
        assert reply.headers["content-type"] == exchange["content_type"], where
        assert told(reply.json(), reply.status_code) == told(recorded, reply.status_code), where
        seen["compared"] += 1
    assert seen == {"compared": 388 - 2, "other text": 7, "said otherwise": 1}


# --- what is different on purpose ---


def test_before_the_first_reset_there_is_nothing_to_see_or_step(shared):
    env_id = create(shared)
    said = {"error": f"The environment {env_id} has no game yet: reset it first."}
    assert step(shared, env_id, "move up") == said
    assert [
        shared.get(f"/maze/{view}", params={"id": env_id}).json() for view in ("observation", "detail")
    ] == [
        said,
        said,
    ]


def test_wordle_is_not_there_and_its_wire_reports_it(url, shared):
    assert shared.post("/wordle/create").status_code == 404
    with (
        contextlib.closing(AgentGymEnv("Wordle", server=url)) as env,
        pytest.raises(errors.WrongServer, match="does not serve Wordle"),
    ):
        env.reset(seed=0)


def test_maze_is_not_played_on_a_server_of_only_wordle():
    flow = MAZE.wire.identify()
    greeted = _reply(next(flow), MAZE.wire.greeting)
    described = _reply(flow.send(greeted), {"paths": {"/wordle/reset": {}}})
    with pytest.raises(errors.WrongServer, match="/maze/reset"):
        flow.send(described)


def _reply(call, said):
    return Reply(call, 200, json.dumps(said).encode())


def test_an_environment_that_was_forgotten_is_made_again_by_the_client():
    """As where a process pauses for hours, and others come and go."""
    app = server_kind("maze").app(max_envs=1, keep_seconds=1e-9)  # a new one replaces it

    async def play():
        transport = httpx.ASGITransport(app)
        async with httpx.AsyncClient(transport=transport, base_url="http://local") as client:
            env = AsyncAgentGymEnv("Maze", server="http://local", http_client=client)
            await env.reset(options={"task_id": 18})
            await client.post("/maze/create")
            _, info = await env.reset(options={"task_id": 18})
            _, reward, *_ = await env.step("Thought: there\n\nAction: move down")
            await env.close()
            return info["task_id"], reward

    assert asyncio.run(play()) == (18, 1.0)


# --- played through the library ---


def test_a_game_without_end_is_lost_at_the_51st_step(url):
    with contextlib.closing(AgentGymEnv("Maze", server=url, max_turns=None, action_format="bare")) as env:
        env.reset(options={"task_id": 0})
        rewards = [env.step("up")[1] for _ in range(50)]
        observation, reward, terminated, truncated, info = env.step("up")
    assert set(rewards) == {0.0}
    assert (observation, reward, terminated, truncated) == ("Failure\n", -1.0, True, False)
    assert (info["score"], info["success"]) == (-1.0, False)


def test_doctor_recognises_it_and_does_not_take_it_for_wordles(url):
    result = run("doctor", url, "--json")
    found = json.loads(result.stdout)
    assert result.exit_code == 0
    assert (found["answers"], found["environments"]) == (
        "This is environment LMRL-Gym.",
        ["agentgym/Maze-v0"],
    )
    assert not found["ambiguous"]
