"""Tasks that a server cannot judge: a fault that names the task and the reason, never a score of 0."""

from __future__ import annotations

import asyncio
import json
import os
import signal
from functools import partial

import httpx
import pytest

from agentgym_gym import AgentGymEnv
from agentgym_gym.aio import AsyncAgentGymEnv
from agentgym_gym.errors import JudgeFailed, ServerError
from agentgym_gym.evaluate import evaluate
from agentgym_gym.local_servers import server_kind
from agentgym_gym.rollout import Episode, Pool
from agentgym_gym.testing import ScriptedAgent
from bird_folder import DATABASE, FIRST_TASK, write_bird
from fake_server import FakeServer, as_json, http
from local_game import LocalGame
from served_app import served

RIGHT = "SELECT 2"
GOOD, NO_TABLE, WRONG_COLUMN, SYNTAX, TOO_LARGE, EMPTY, CLOCK = range(FIRST_TASK, FIRST_TASK + 7)
REFERENCES = (
    "SELECT count(*) FROM animal",
    "SELECT * FROM beast",
    "SELECT name FROM animal",
    "SELECT count(* FROM animal",
    "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT x FROM c",
    "-- to be written",
    "SELECT 2 + strftime('%Y', 'now') - strftime('%Y', 'now')",
)
REASONS = {
    NO_TABLE: "its reference statement fails on the database dev/zoo: no such table: beast",
    WRONG_COLUMN: "no such column: name",
    SYNTAX: "syntax error",
    TOO_LARGE: "its reference statement exceeds a limit (the result is too large)",
    EMPTY: "its reference statement is empty",
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return write_bird(tmp_path_factory.mktemp("bird"), *REFERENCES)


@pytest.fixture(scope="module")
def url(folder):
    with served(server_kind("sqlgym").app(data=folder)) as url:
        yield url


def reset(env, task_id):
    return env.reset(options={"task_id": task_id})


@pytest.mark.parametrize("task_id", REASONS)
def test_a_task_of_bird_whose_reference_fails_does_not_start(url, task_id):
    with AgentGymEnv("SQLGym", server=url) as env:
        for _ in range(2):  # the second time, its failure may be known
            with pytest.raises(JudgeFailed) as error:
                reset(env, task_id)
            assert f"task {task_id} cannot be judged: " in str(error.value)
            assert REASONS[task_id] in str(error.value)


def test_such_a_task_costs_neither_an_environment_nor_the_server(url):
    """It is not tried again, keeps its remote environment, and opens no circuit."""
    with httpx.Client(base_url=url) as client, AgentGymEnv("SQLGym", server=url) as env:
        reset(env, GOOD)
        before, posted = client.get("/list_envs").json(), env.stats.requests
        for _ in range(10):
            with pytest.raises(JudgeFailed):
                reset(env, NO_TABLE)
        assert (env.stats.requests - posted, env.stats.retries) == (10, 0)
        assert client.get("/list_envs").json() == before
        reset(env, GOOD)
        assert env.step(f"Action:\n```sql\n{RIGHT}\n```")[4]["success"]


@pytest.mark.parametrize(
    ("statement", "state", "score"),
    [
        (RIGHT, "[(2,)]", 1.0),
        ("SELECT name FROM animal", "no such column: name", 0.0),
        ("SELECT * FROM beast", "no such table: beast", 0.0),
        (REFERENCES[4], "the result is too large", 0.0),
    ],
)
@pytest.mark.parametrize("task_id", [GOOD, CLOCK])
def test_a_failing_statement_of_the_agent_is_scored(url, statement, state, score, task_id):
    with AgentGymEnv("SQLGym", server=url) as env:
        reset(env, task_id)
        observation, reward, terminated, _, info = env.step(f"Action:\n```sql\n{statement}\n```")
        assert (observation, reward, terminated, "fault" in info) == (state, score, True, False)


def test_a_database_that_breaks_during_an_episode_is_a_fault(tmp_path):
    file = write_bird(tmp_path, REFERENCES[0]) / DATABASE
    app = server_kind("sqlgym").app(data=tmp_path)
    with served(app) as url, AgentGymEnv("SQLGym", server=url) as env:
        for broken in (b"not a database " * 40, None):
            reset(env, GOOD)
            content = file.read_bytes()
            file.unlink()
            if broken is not None:
                file.write_bytes(broken)
            for pid in app.state.workers.process_ids:  # which have it open
                os.kill(pid, signal.SIGKILL)
            _, reward, terminated, truncated, info = env.step(f"Action:\n```sql\n{REFERENCES[0]}\n```")
            assert (reward, terminated, truncated) == (0.0, False, True)
            assert info["fault"]["kind"] == "JudgeFailed"
            assert "its database dev/zoo cannot be read: " in info["fault"]["message"]
            assert info["fault"]["transient"] is False
            file.write_bytes(content)


def test_an_evaluation_does_not_score_it_and_training_does_not_replay_it(url):
    agent = ScriptedAgent(f"Action:\n```sql\n{RIGHT}\n```")
    with AgentGymEnv("SQLGym", server=url) as env:
        records = evaluate(env, agent, [GOOD, NO_TABLE])
    assert [(each.score, each.success, each.ending) for each in records] == [
        (1.0, True, "terminated"),
        (None, None, "fault"),
    ]
    assert records[1].fault["kind"] == "JudgeFailed"

    async def play():
        make_env = partial(AsyncAgentGymEnv, "SQLGym", server=url)
        async with Pool(make_env) as pool, Episode(pool, task=NO_TABLE) as episode:
            return episode.over, episode.transient

    assert asyncio.run(play()) == (True, False)


def test_the_reply_names_the_task_and_has_its_own_header(folder):
    """The servers that answer failures with JSON are in the tests of MiniWoB."""
    with LocalGame("SQLGym", data=folder) as game:
        game.reset(GOOD)
        reply = game.post("/reset", env_idx=game.id, item_id=NO_TABLE)
    assert (reply.status_code, reply.headers["agentgym-judge"]) == (500, "failed")
    assert reply.text.startswith(f"Internal Server Error: task {NO_TABLE} cannot be judged: ")


@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        (as_json({"error": "task 3 cannot be judged"}), "EnvironmentFailed"),
        (http(b"Internal Server Error: task 3 cannot be judged", "500 No"), "ServerError"),
        (http(json.dumps({"error": "task 3 …"}).encode(), "200 OK", "agentgym-judge: failed"), "JudgeFailed"),
        (http(b"task 3 \xff", "500 No", "agentgym-judge: failed"), "JudgeFailed"),
        (http(b"", "200 OK", "agentgym-judge: failed"), "JudgeFailed"),
    ],
)
def test_the_header_makes_a_failure_one_of_the_judge(started, answer, kind):
    def answers(request):
        state = {"id": 0, "observation": "Goal: craft stick.", "reward": 0, "done": False}
        routes = {
            "/": "This is environment TextCraft.",
            "/create": {"id": 0},
            "/reset": state,
            "/step": answer,
        }
        return routes.get(request.path, http(b"true"))

    with AgentGymEnv("TextCraft", server=started(FakeServer(answers)).url) as env:
        reset(env, 3)
        *_, truncated, info = env.step("Action: inventory")
    assert (truncated, info["fault"]["kind"]) == (True, kind)


@pytest.mark.slow
def test_only_a_failure_of_the_judge_is_permanent():
    assert "transient" not in ServerError("no").as_dict()
    assert JudgeFailed("no").as_dict() == {"kind": "JudgeFailed", "message": "no", "transient": False}
