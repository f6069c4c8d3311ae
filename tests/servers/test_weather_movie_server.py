"""The Weather and Movie servers, held against what AgentGym's were recorded to answer."""

from __future__ import annotations

import re

import pytest

from agentgym_gym.envs.movie import MOVIE
from agentgym_gym.envs.weather import WEATHER
from in_process import replayed

BOTH = pytest.mark.parametrize("environment", [WEATHER, MOVIE], ids=lambda each: each.name)


def shape(value: object) -> object:
    """Return the types of a reply, with the names of its fields."""
    if isinstance(value, dict):
        return {key: shape(each) for key, each in value.items()}
    return type(value).__name__


def without_the_world(reply: object) -> object:
    """Return a reply without what depends on its world: the goal and the weather."""
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
    """The same status, types and fields; the same texts too, except for the world's and listed ones."""
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


@BOTH
def test_the_page_has_the_number_of_questions(environment):
    assert f"{len(environment.task_ids)} questions" in environment.local_quirks
