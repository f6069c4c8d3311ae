"""The label of the world on which a run was played."""

from __future__ import annotations

import json

import pytest

import agentgym_gym
import command_line
from agentgym_gym.errors import BadOption
from agentgym_gym.evaluate import EpisodeRecord, RunFolder, RunResult, evaluate, load_oracle, read_run
from agentgym_gym.local_servers import available, server_kind, servers
from fake_server import FakeServer
from report_runs import episode, write_run

WEBSHOP = "agentgym/WebShop-v0"
LOCAL = "agentgym-servers/2 (WebShop, seed 0)"
UNKNOWN = "server of unknown make"


def world_of(env_id, facts, records=()):
    """Return the label of the world of a run."""
    return RunResult(None, {"env_id": env_id, **facts}, tuple(records)).world


@pytest.mark.parametrize(
    ("served_by", "label"),
    [
        (LOCAL, "local world 2, seed 0"),
        ("agentgym-servers/12 (WebShop, seed 7)", "local world 12, seed 7"),
        ("agentgym-servers/2 (WebShop, data)", "local world 2, own data"),
        ("agentgym-servers/2 (BabyAI, seed 0, twin)", "local world 2, seed 0, twin"),
        ("agentgym-servers/2 (Wordle, twin)", "local world 2, twin"),
        ("agentgym-servers/2 (Maze)", "local world 2"),
        ("agentgym-servers/3 (SciWorld, simplified easy)", "local world 3, simplified easy"),
        ("agentgym-servers/3 (WebArena, data, judge org/m-1)", "local world 3, own data, judge org/m-1"),
        ("another/1", "server of unknown make: another/1"),
        (None, UNKNOWN),
    ],
)
def test_the_label_of_a_server(served_by, label):
    assert world_of(WEBSHOP, {"served_by": [served_by]}) == label


@pytest.mark.parametrize(
    ("facts", "world"),
    [
        ({"served_by": [None], "server_make": ["agentgym"]}, "AgentGym's server"),
        ({"served_by": [None], "server_make": [None]}, UNKNOWN),
        ({"served_by": [None], "server_make": ["someone"]}, UNKNOWN),
        ({"served_by": [None, None], "server_make": ["agentgym"]}, UNKNOWN),
        ({"served_by": [LOCAL, LOCAL], "server_make": ["local"] * 2}, "local world 2, seed 0"),
        ({"served_by": [LOCAL, None]}, f"local world 2, seed 0 and {UNKNOWN}"),
        ({"served_by": [LOCAL, None], "server_make": ["local", "unavailable"]}, "local world 2, seed 0"),
        ({"served_by": "nonsense", "server_make": 3}, UNKNOWN),
        ({}, UNKNOWN),
    ],
)
def test_the_world_of_a_run(facts, world):
    assert world_of(WEBSHOP, facts) == world
    assert world_of(f"some_module:{WEBSHOP}", facts) == world


@pytest.mark.parametrize("facts", [{}, {"served_by": [None], "server_make": [None]}])
def test_an_environment_of_another_library_has_no_world(facts, tmp_path):
    assert world_of("textarena/Wordle-v0", facts) is None
    run = read_run(write_run(tmp_path / "run", [episode(env_id="gem/Wordle-v0")], **facts))
    assert (run.world, run.env_label, run.label) == (None, "Wordle-v0", "someone on Wordle-v0")


def test_a_wrapped_local_server_is_named():
    assert world_of("mine/Shop-v0", {}, [episode(served_by=LOCAL)]) == "local world 2, seed 0"


def test_the_episodes_name_their_world_too():
    facts, other = {"served_by": [LOCAL]}, "agentgym-servers/2 (WebShop, seed 7)"
    assert world_of(WEBSHOP, facts, [episode()]) == "local world 2, seed 0"
    both = world_of(WEBSHOP, facts, [episode(served_by=LOCAL), episode(served_by=other)])
    assert both == "local world 2, seed 0 and local world 2, seed 7"
    fault = {"kind": "ServerUnreachable", "message": "gone"}
    assert world_of(WEBSHOP, {}, [episode(served_by=LOCAL), episode(fault=fault)]) == "local world 2, seed 0"
    assert world_of(WEBSHOP, {}, [episode(served_by=LOCAL), episode()]).endswith(f" and {UNKNOWN}")


def test_an_episode_records_its_world(textcraft_url):
    with agentgym_gym.AgentGymEnv("TextCraft", server=textcraft_url) as env:
        (record,) = evaluate(env, load_oracle(agentgym_gym.find("TextCraft")), [3])
        assert record.served_by == env.reset(options={"task_id": 3})[1]["served_by"]
    value = record.to_json()
    assert EpisodeRecord.from_json(value) == record
    assert "served_by" not in episode().to_json()
    with pytest.raises(BadOption, match="'served_by' cannot be 3"):
        EpisodeRecord.from_json({**value, "served_by": 3})


@pytest.fixture
def world_at(started):
    """Returns the world that `agentgym doctor` reports of a server with these views."""

    def doctor(views):
        server = started(FakeServer(lambda request: views.get(request.path, (404, {"detail": "Not Found"}))))
        return json.loads(command_line.run("doctor", server.url, "--json").stdout)["world"]

    return doctor


@pytest.fixture
def views_of(recordings):
    """Returns the views of AgentGym's server of an environment that identify the server."""

    def views(name):
        name = name.lower()
        rows = recordings(f"{ {'wordle': 'maze', 'todolist': 'todo'}.get(name, name) }.jsonl")
        return {row["path"]: row["response_json"] for row in rows if row["path"] in {"/", "/openapi.json"}}

    return views


# AgentGym's server of WebArena has no OpenAPI description.
DESCRIBED = [
    each.name for each in agentgym_gym.environments() if each.of_agentgym and each.name != "WebArena"
]


@pytest.mark.parametrize("name", DESCRIBED)
def test_agentgyms_servers_are_recognised(name, views_of, world_at):
    assert world_at(views_of(name)) == "AgentGym's server"


@pytest.mark.parametrize(
    "name",
    [name if name == "TextCraft" else pytest.param(name, marks=pytest.mark.slow) for name in DESCRIBED],
)
def test_others_are_not(name, views_of, world_at):
    """Ours is asked without the header by which it is known."""
    views = views_of(name)
    described = views["/openapi.json"]
    for other in ({"info": {"title": name}}, {"paths": {"/create": {}, "/step": {}}}):
        assert world_at({**views, "/openapi.json": {**described, **other}}) in {UNKNOWN, None}
    if name.lower() in servers() and available(name.lower()) is None:
        assert world_at({**views, "/openapi.json": server_kind(name.lower()).app().openapi()}) == UNKNOWN


@pytest.mark.parametrize(
    "description", [None, [], {}, {"info": 3, "paths": 4}, {"info": {"title": "FastAPI"}}]
)
def test_another_description_is_not_agentgyms(description, world_at):
    views = {"/": "This is environment TextCraft.", "/openapi.json": description}
    assert world_at(views) == UNKNOWN


def test_a_run_is_not_resumed_on_another_world(tmp_path):
    facts = {"env_id": WEBSHOP, "agent": "someone", "served_by": [LOCAL]}
    with RunFolder(tmp_path, facts) as folder:
        folder.add(episode(0, env_id=WEBSHOP, served_by=LOCAL))
    other = {**facts, "served_by": ["agentgym-servers/2 (WebShop, seed 7)"]}
    with pytest.raises(BadOption, match=r"seed 0\), not .*seed 7\)"):
        RunFolder(tmp_path, other, resume=True)
    with RunFolder(tmp_path, facts, resume=True) as folder:
        assert len(folder.records) == 1
    assert json.loads((tmp_path / "summary.json").read_text("utf-8"))["run"]["served_by"] == [LOCAL]
