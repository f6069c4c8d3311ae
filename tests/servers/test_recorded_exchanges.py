"""Each local server answers what was recorded of AgentGym's own: the same status, types and keys.

What the texts are about differs with the world, and with it when an episode is over. So a reply need not be
the recorded one: it must have the recorded status, and the form of one of the replies of that status on that
route.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import Any

import httpx
import pytest

from agentgym_gym.local_servers import servers
from needs import with_needs

FILES = {"todolist": "todo.jsonl"}
IDS_NAMED_ID = {"textcraft", "babyai", "maze", "wordle", "alfworld", "sciworld"}  # the others use env_idx
TASKS = ("data_idx", "game", "session_id", "item_id", "idx", "id")

MOST = 40
"""How many exchanges of a route, of one status, are asked."""

# Where a local server answers by another status: (method, path, recorded, ours) and why.
DEVIATIONS: dict[str, dict[tuple[str, str, int, int], str]] = {
    "textcraft": {
        ("GET", "/commands", 500, 200): "there it always fails",
        ("GET", "/goal", 500, 200): "there it always fails",
    },
    "maze": {("GET", "/maze/", 404, 200): "there the address with the prefix has no greeting"},
    "searchqa": {("GET", "/list_envs", 404, 200): "there it is missing"},
    "webarena": {("GET", "/list_envs", 500, 200): "there it always fails"},
    "webshop": {("GET", "/instruction_text", 500, 200): "after a purchase of a product that is not here"},
}


# Forms that were not recorded, since it depends on the words when a game is over.
UNRECORDED: dict[tuple[str, str, int], list[Any]] = {("GET", "/wordle/observation", 200): ["str"]}


def form(value: Any) -> Any:
    """Return what of a JSON value does not depend on the world: types and keys."""
    if isinstance(value, dict) and value and all(key.isdigit() for key in value):
        return [form(next(iter(value.values())))]  # elements by number
    if isinstance(value, dict):
        return {key: form(each) for key, each in value.items()}
    if isinstance(value, list):
        return [form(value[0])] if value else []
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return "number"
    return type(value).__name__


def fits(ours: Any, theirs: Any) -> bool:
    """Return whether a form was recorded; an empty list has the form of any list."""
    if isinstance(ours, dict) and isinstance(theirs, dict):
        return ours.keys() == theirs.keys() and all(fits(ours[key], theirs[key]) for key in ours)
    if isinstance(ours, list) and isinstance(theirs, list):
        return not ours or not theirs or fits(ours[0], theirs[0])
    return bool(ours == theirs)


class Replayed:
    """Sends the recorded requests to AgentGym's server to a local one.

    Args:
        name: The name of the server.
        client: A client of the local server.
    """

    def __init__(self, name: str, client: httpx.Client) -> None:
        self._key = "id" if name in IDS_NAMED_ID else "env_idx"
        self._client = client
        self._ours: dict[int, int] = {}  # ids of ours by those recorded

    def ask(self, row: dict[str, Any]) -> httpx.Response:
        """Send a request to our counterpart of the recorded environment, and note created ones."""
        query, body = (self._renamed(row[part]) for part in ("query", "json_body"))
        asked: dict[str, Any] = {"params": query}
        if row.get("raw_body") is not None:
            asked |= {"content": row["raw_body"], "headers": {"Content-Type": "application/json"}}
        elif body is not None:
            asked["json"] = body
        reply = self._client.request(row["method"], row["path"], **asked)
        if row["path"].endswith("/create") and reply.status_code == row["status"] == 200:
            self._ours[_id_of(row["response_json"])] = _id_of(reply.json())
        return reply

    def _renamed(self, fields: Any) -> Any:
        if not isinstance(fields, dict) or self._key not in fields:
            return fields
        recorded = fields[self._key]
        known = isinstance(recorded, int) and recorded in self._ours
        return {**fields, self._key: self._ours[recorded] if known else recorded}


def _id_of(created: Any) -> int:
    found = next(iter(created.values())) if isinstance(created, dict) else created
    assert isinstance(found, int)
    return found


def has_negative_task(row: dict[str, Any]) -> bool:
    """Return whether AgentGym's server would count a task from the end."""
    body = row["json_body"] if isinstance(row["json_body"], dict) else {}
    numbers = [body[key] for key in TASKS if isinstance(body.get(key), int)]
    return any(number < 0 for number in numbers)


QUICK = {"textcraft", "wordle", "alfworld", "academia"}


@pytest.mark.parametrize(
    "name",
    [
        each if each.values[0] in QUICK else pytest.param(*each.values, marks=[*each.marks, pytest.mark.slow])
        for each in with_needs(servers())
    ],
)
def test_it_answers_as_recorded(name, recordings, local_url, report_at_end):
    rows = [row for row in recordings(FILES.get(name, f"{name}.jsonl")) if row["path"] != "/openapi.json"]
    forms = defaultdict(list)
    for row in rows:
        if "response_json" in row and form(row["response_json"]) not in forms[key := _route(row)]:
            forms[key].append(form(row["response_json"]))
    rows = _not_too_many(rows)
    allowed, seen = DEVIATIONS.get(name, {}), Counter()
    with httpx.Client(base_url=local_url(name), timeout=60) as client:
        replayed = Replayed(name, client)
        replies = [replayed.ask(row) for row in rows]
    for row, reply in zip(rows, replies, strict=True):
        status = reply.status_code
        if status != row["status"]:
            deviation = (row["method"], row["path"], row["status"], status)
            told = f"{row['json_body'] or row['query']} was answered {status}: {reply.text:.200}"
            if has_negative_task(row) and (status == 500 or "error" in reply.json()):
                seen["a negative task id"] += 1
                continue
            assert deviation in allowed, f"{_route(row)} {told}"
            seen[deviation] += 1
            continue
        known = [*forms[_route(row)], *UNRECORDED.get(_route(row), [])]
        assert reply.headers["content-type"] == row["content_type"], _route(row)
        if "response_text" in row:
            assert reply.text == row["response_text"]
            assert status != 500 or "Internal Server Error" in reply.text
        else:
            _check_json(row, reply, known)
    assert set(allowed) <= set(seen), "a deviation that is none"
    report_at_end(f"the local {name} server answered {len(rows)} recorded exchanges; deviations {dict(seen)}")


def _check_json(row: dict[str, Any], reply: httpx.Response, known: list[Any]) -> None:
    """Assert that a reply of the recorded status has one of the known forms."""
    if reply.status_code == 200:
        ours = form(reply.json())
        refused = has_negative_task(row) and ours == {"error": "str"}
        assert refused or any(fits(ours, each) for each in known), f"{_route(row)}: {ours}"
    elif reply.status_code == 422:
        assert _wrong(reply.json()) == _wrong(row["response_json"])
    else:
        assert reply.json().keys() == row["response_json"].keys()


def _not_too_many(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return recorded exchanges, of each route only the first.

    Where there are hundreds, most are steps of whole games, whose texts the test of that server compares.
    """
    asked: Counter[tuple[str, str, int]] = Counter()
    few = []
    for row in rows:
        asked[_route(row)] += 1
        if asked[_route(row)] <= MOST:
            few.append(row)
    return few


def _wrong(invalid: dict[str, Any]) -> list[tuple[str, list[Any]]]:
    """Return what was wrong and where, as its wording is the framework's."""
    return [(each["type"], each["loc"]) for each in invalid["detail"]]


def _route(row: dict[str, Any]) -> tuple[str, str, int]:
    return row["method"], row["path"], row["status"]


def test_forms_are_distinguished():
    assert fits(form({"a": [1], "b": None}), form({"a": [2.5], "b": None}))
    assert fits(form([]), form(["a"]))
    for one, other in (({"a": 1}, {"b": 1}), ({"a": 1}, {"a": "1"}), ({"a": True}, {"a": 1}), ([1], ["a"])):
        assert not fits(form(one), form(other))
