"""The Weather and Movie servers, held against what AgentGym's were recorded to answer."""

from __future__ import annotations

import re

import pytest

from agentgym_gym.envs.movie import MOVIE
from agentgym_gym.envs.weather import WEATHER
from agentgym_gym.local_servers import server_kind
from agentgym_gym.wire import SERVER_HEADER
from agentgym_servers.movie._questions import KINDS as MOVIE_KINDS
from agentgym_servers.movie._world import world_of as movies
from agentgym_servers.weather._places import PLACES
from agentgym_servers.weather._questions import KINDS
from agentgym_servers.weather._world import world_of as weather
from in_process import posted, replayed

BOTH = pytest.mark.parametrize("environment", [WEATHER, MOVIE], ids=lambda each: each.name)
WORLDS = {"Weather": weather, "Movie": movies}
JSON = {"content-type": "application/json"}


# --- as recorded ---


def shape(value: object) -> object:
    """Return the types of a reply, with the names of its fields."""
    if isinstance(value, dict):
        return {key: shape(each) for key, each in value.items()}
    return type(value).__name__


def without_the_world(reply: object) -> object:
    """Return a reply with what it tells of its world taken out: the goal and the weather."""
    if isinstance(reply, dict):
        return {key: without_the_world(each) for key, each in reply.items()}
    return re.sub(r"(?<=goal: ).*", "…", reply) if isinstance(reply, str) else reply


def as_sent_here(row: dict) -> dict:
    """Return a recorded request as it means the same here."""
    if row["seq"] >= RECORDED_LATER and "env_idx" in row["json_body"]:
        return {**row, "json_body": {**row["json_body"], "env_idx": 0}}
    return row


RECORDED_LATER = 100_000  # on another server, where there were more environments

EVERYWHERE: dict[int, str] = {
    7: "200 and 500",  # a negative task id
    9: "another value",  # as that made no environment
    16: "200 and 500",
    43: "done",  # a text with "finish" that calls no `finish`
    46: "done",
}
RUN = "observation, reward, done"  # a call in the input, which is run there; and an episode stays over
OTHERWISE: dict[str, dict[int, str]] = {
    "Weather": {
        **EVERYWHERE,
        **dict.fromkeys((48, 49), "observation"),  # another date and place
        50: "observation",  # there, the network was cut
        **dict.fromkeys((53, 55, 57, 59, 61), "reward"),  # the answers of other tasks
        62: RUN,
    },
    "Movie": {
        **EVERYWHERE,
        **dict.fromkeys((48, 52, 55), "reward"),
        56: RUN,
        RECORDED_LATER: "another value",
        RECORDED_LATER + 2: "observation",
    },
}
"""What is answered otherwise than recorded, on purpose, by the number of the exchange."""


@BOTH
def test_every_recorded_exchange_is_answered_alike(environment, recordings):
    """The same status, types and fields; the same texts too, but for those of the world and those listed."""
    rows = [row for row in recordings(f"{environment.name.lower()}.jsonl") if row["path"] != "/openapi.json"]
    otherwise: dict[int, str] = {}
    for row, reply in zip(rows, replayed(environment.name, map(as_sent_here, rows)), strict=True):
        recorded = row["response_json"] if row.get("response_json") is not None else row["response_text"]
        is_json = reply.headers["content-type"] == "application/json"
        told = reply.json() if is_json else reply.text
        if (reply.status_code, shape(told)) != (row["status"], shape(recorded)):
            otherwise[row["seq"]] = f"{row['status']} and {reply.status_code}"
        elif reply.status_code != 422 and without_the_world(told) != without_the_world(recorded):
            fields = [key for key in told if told[key] != recorded[key]] if isinstance(told, dict) else []
            otherwise[row["seq"]] = ", ".join(fields) or "another value"
        else:
            assert reply.headers["content-type"] == row["content_type"]
    assert len(rows) > 55
    assert otherwise == OTHERWISE[environment.name]


# --- play ---


@BOTH
def test_check_valid_actions_lists_what_the_grammar_has(environment):
    action = "Action: check_valid_actions with Action Input: {}"
    app = server_kind(environment.name).app()
    _, reply = posted(app, ("/create", {"id": 0}), ("/step", {"env_idx": 0, "action": action}))
    told = reply.json()["observation"]
    listed = re.findall(r"'(\w+)'", told)
    assert set(listed) == {action.name() for action in environment.grammar.actions}


@BOTH
def test_another_seed_is_another_server(environment):
    app = server_kind(environment.name).app(seed=1)
    made, goal = posted(app, ("/create", {"id": 0}), ("/reset", {"env_idx": 0, "id": 7}))
    assert made.headers[SERVER_HEADER].endswith(f"({environment.name}, seed 1)")
    assert WORLDS[environment.name](1).tasks[7].goal in goal.json()


def test_the_pages_say_how_much_there_is():
    assert f"{len(KINDS)} kinds" in WEATHER.local_quirks
    assert 115 <= len(PLACES) <= 125
    library = movies(0).setting
    assert f"{len(library.films)} films and {len(library.people)} people" in MOVIE.local_quirks
    assert f"{len(MOVIE_KINDS)} kinds" in MOVIE.local_quirks.replace("\n", " ")
