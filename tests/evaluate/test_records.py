"""The record of an episode, and its file."""

import json

import pytest

from agentgym_gym.errors import BadOption
from agentgym_gym.evaluate import EpisodeRecord, read_records


def line(record):
    return json.dumps(record.to_json(), ensure_ascii=False).encode() + b"\n"


@pytest.mark.parametrize("fault", [None, "ServerTimeout"])
def test_json_there_and_back(record, fault):
    steps = ({"action": "a", "ignored_actions": ["b", "c"]}, {"action": "a"})
    made = record(3, fault=fault, goal=None, parse_errors={"NoAction": 2}, steps=steps)
    assert EpisodeRecord.from_json(json.loads(line(made))) == made


def test_counters_may_be_missing_or_of_another_version(record):
    value = record().to_json()
    del value["counters"]
    assert EpisodeRecord.from_json(value).counters is None
    later = {"requests": 3, "faults": {"BadReply": 1}, "mood": "good"}
    assert EpisodeRecord.from_json({**value, "counters": later}).counters == later


def test_the_json_names(record):
    value = record().to_json()
    assert value["return"] == 1.0
    assert "return_" not in value
    assert value["messages"][1] == {"role": "assistant", "content": "get 1 stick"}


def test_keys_of_a_later_version_are_passed_over(record):
    assert EpisodeRecord.from_json({**record().to_json(), "mood": "good"}) == record()


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"task_id": "3"}, "'task_id' cannot be '3'"),
        ({"task_id": True}, "'task_id'"),
        ({"score": float("nan")}, "'score'"),
        ({"score": 10**400}, "'score'"),
        ({"success": 1}, "'success'"),
        ({"messages": [{"role": "user"}]}, "'messages'"),
        ({"parse_errors": {"NoAction": "many"}}, "'parse_errors'"),
        ({"rewards": [None]}, "'rewards'"),
        ({"steps": [{"ignored_actions": "look"}]}, "'steps'"),
        ({"steps": [{"ignored_actions": [1]}]}, "'steps'"),
        ({"counters": {"requests": "3"}}, "'counters'"),
        ({"counters": {"faults": [1]}}, "'counters'"),
        ({"return": 10**5000}, "line 2"),
    ],
)
def test_a_bad_file_names_the_line(tmp_path, record, change, told):
    path = tmp_path / "episodes.jsonl"
    value = {**record().to_json(), **change}
    try:
        bad = json.dumps(value).encode()
    except ValueError:  # an integer that Python does not print
        bad = json.dumps({**value, "return": 0}).encode().replace(b'"return": 0', b'"return": ' + b"1" * 5000)
    path.write_bytes(line(record()) + bad + b"\n")
    with pytest.raises(BadOption, match="line 2") as caught:
        read_records(path)
    assert told in str(caught.value)


@pytest.mark.parametrize("bad", [b"{", b"[]", b"\xff", b"{}", b"[" * 100_000, b"null"])
def test_lines_that_are_not_episodes_are_reported(tmp_path, bad):
    path = tmp_path / "episodes.jsonl"
    path.write_bytes(b"\n" + bad)
    with pytest.raises(BadOption, match="line 2"):
        read_records(path)


def test_a_torn_end_is_skipped_on_request(tmp_path, record):
    path = tmp_path / "episodes.jsonl"
    path.write_bytes(line(record(1)) + line(record(2))[:40])
    assert read_records(path, torn_end=True) == ([record(1)], len(line(record(1))))
    with pytest.raises(BadOption, match="line 2"):
        read_records(path)


def test_a_file_that_is_not_there(tmp_path):
    with pytest.raises(BadOption, match="cannot read"):
        read_records(tmp_path / "none.jsonl")
