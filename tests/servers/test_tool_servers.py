"""The five tool servers: how they read actions and pay answers, compared with AgentGym's recorded replies."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator

import httpx
import pytest

from agentgym_gym.actions import MAX_ACTION_CHARS
from clock import cpu_seconds
from in_process import replayed
from local_game import LocalGame

JSON = {"content-type": "application/json"}
NAMES = ("academia", "movie", "sheet", "todolist", "weather")
RECORDINGS = {"academia": "academia.jsonl", "sheet": "sheet.jsonl", "todolist": "todo.jsonl"}


@pytest.fixture(params=NAMES)
def client(request, local_url: Callable[[str], str]) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=local_url(request.param)) as client:
        yield client


def create(client: httpx.Client, task: int = 0) -> int:
    return client.post("/create", json={"id": task}).json()


def step(client: httpx.Client, env_idx: int, action: str) -> dict:
    return client.post("/step", json={"env_idx": env_idx, "action": action}).json()


def shape(reply) -> object:
    """What a reply is made of: its type and keys, and of a refusal what was wrong and where."""
    if isinstance(reply, dict) and isinstance(reply.get("detail"), list):
        return [(each["type"], each["loc"]) for each in reply["detail"]]
    return {key: type(value) for key, value in reply.items()} if isinstance(reply, dict) else type(reply)


def is_other_here(row: dict) -> bool:
    negative = isinstance(row["json_body"], dict) and row["json_body"].get("id") in {-1, -21, -156}
    return negative or row["path"] in {"/openapi.json", "/list_envs"}


@pytest.mark.parametrize("name", RECORDINGS)
def test_every_recorded_exchange_is_answered_alike(name, recordings):
    """But for negative ids, which are refused here, and for what follows from another world."""
    compared = 0
    rows = [row for row in recordings(RECORDINGS[name]) if not is_other_here(row)]
    for exchange, reply in zip(rows, replayed(name, rows), strict=True):
        body = exchange["json_body"]
        where = f"seq {exchange['seq']}"
        if exchange["status"] == 200 and body and body.get("env_idx") not in {None, 0, 1}:
            assert reply.status_code in {200, 500}, where  # ids go on where a create was left out
            continue
        assert reply.status_code == exchange["status"], where
        assert reply.headers["content-type"] == exchange["content_type"], where
        recorded = exchange.get("response_json")
        if reply.status_code == 500:
            assert reply.text == "Internal Server Error"
            continue
        assert shape(reply.json()) == shape(recorded), where
        action = body.get("action") if body else None
        if isinstance(action, str) and "done" in recorded and "__import__" not in action:
            _same_words(reply.json()["observation"], recorded["observation"], where)
        compared += 1
    assert compared > 40


def _same_words(here: str, there: str, where: str) -> None:
    """Check that texts that do not depend on the world are the same."""
    for words in (
        "Format error",
        "You can use following valid actions",
        "ERROR | Invalid action",
        "KeyError",
    ):
        if words in there:
            assert here == there, where
    assert here.endswith("\nGive me one action.") is there.endswith("\nGive me one action."), where


def test_a_reset_without_an_id_repeats_the_task(client):
    env_idx = create(client, 3)
    goal = client.get("/observation", params={"env_idx": env_idx}).json()
    step(client, env_idx, "Action: finish with Action Input: {'answer': 1}")
    for body in ({"env_idx": env_idx}, {"env_idx": env_idx, "id": None}):
        assert client.post("/reset", json=body).json() == goal
        assert step(client, env_idx, "x")["done"] is False


HOSTILE = (
    "finish",
    "Action: finish with Action Input: ",
    "Action: finish with Action Input: __import__('os').abort()",
    'Action: finish with Action Input: {"answer": (lambda: 1)()}',
    'Action: finish with Action Input: {"answer": ' + "9" * 10_000 + "}",
    "Action: finish with Action Input: {1: 9**9**9}",
    "Action: get_all_values with Action Input: \0",
    "Action: paperNodeCheck with Action Input: {'node': '\ud800'}",
    "Action: get_tasks with Action Input: {'project_id': 0x" + "F" * 5_000 + "}",
    "Action: get_tasks with Action Input: {'project_id': b'x'}",
    "Action: update_task with Action Input: {'task_id': {1}, 'due_date': 1j}",
    "Action: get_elevation with Action Input: 5",
    'Action: get_movie_cast with Action Input: ["movie_id"]',
    "Action: open_sheet with Action Input: " + "[" * 5_000,
    "Action: finish with Action Input: " + "[" * 5_000 + "]" * 5_000,
    "Action: " * 100_000 + "with Action Input: {}",
    "Action: " + "x" * 1_000_000 + " with Action Input: {}",
)


def test_no_action_is_run_or_does_harm(client):
    env_idx = create(client)
    for action in HOSTILE:
        content = json.dumps({"env_idx": env_idx, "action": action})
        reply = client.post("/step", content=content, headers=JSON)
        assert (reply.status_code, reply.json()["reward"]) == (200, 0.0), action[:50]
        assert len(reply.content) < 100_000
    assert step(client, env_idx, "x")["observation"].startswith("Format error")


def test_two_accounts_share_nothing(local_url):
    with httpx.Client(base_url=local_url("todolist")) as client:
        first, second = create(client, 7), create(client, 7)
        shown = step(client, first, "Action: get_projects with Action Input: {}")["observation"]
        project = shown.split("'id': '")[1][:10]
        change = f"{{'project_id': {project}, 'is_favorite': 'True'}}"
        step(client, first, f"Action: update_project with Action Input: {change}")
        assert step(client, first, "Action: get_projects with Action Input: {}")["observation"] != shown
        assert step(client, second, "Action: get_projects with Action Input: {}")["observation"] == shown


# --- how an action is read ---

TITLES = ("Academia", "Movie", "Sheet", "TODOList", "Weather")
FIRST = {
    "Academia": ("paperNodeCheck", "node"),
    "Movie": ("get_search_person", "person_name"),
    "Sheet": ("open_sheet", "name"),
    "TODOList": ("get_tasks", "project_id"),
    "Weather": ("get_latitude_longitude", "name"),
}
"""A function of each server and its argument."""

FORMAT_ERROR = "Format error, please response in the format of"
NOT_PLAIN = "ERROR | Exception(Parameters in action input are not valid"


@pytest.fixture(scope="module", params=TITLES)
def shared(request):
    with LocalGame(request.param) as game:
        yield game


@pytest.fixture
def game(shared):
    shared.reset(0)
    return shared


def observed(game, text):
    return game.step(text).observation.removeprefix("Observation: ")


@pytest.mark.parametrize(
    "text",
    [
        "Thought: so\n\nAction: {f} with Action Input: {{\"{x}\": 'no'}}\n",
        "Action: no\nAction: {f} with Action Input: {{'{x}': 'no'}}",
        "I think Action: {f}  with  Action Input:\n{{'{x}': 'no'}}",
        "Action: {f} with Action Input: {{'{x}': 'no', 'y': ' with Action Input: '}}",
    ],
)
def test_an_action_is_read_as_agentgym_reads_it(game, text):
    function, argument = FIRST[game.environment.name]
    expected = game.step(f"Action: {function} with Action Input: {{'{argument}': 'no'}}")
    assert not expected.observation.startswith((FORMAT_ERROR, f"Observation: {NOT_PLAIN}"))
    assert game.step(text.format(f=function, x=argument)) == expected


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", FORMAT_ERROR),
        ("Action: {f}", FORMAT_ERROR),
        ("Action: {f} with Action Input: {{'{x}': 1}}\n\n", FORMAT_ERROR),
        ("Action: {f} with Action Input: {{\n'{x}': 1}}", FORMAT_ERROR),
        ("{f} with Action Input: {{}}", "ERROR | TypeError(cannot unpack"),
        ("Action: other with Action Input: {{}}", "ERROR | Invalid action: other."),
        ("Action: {f} with Action Input: {{'other': 1}}", "ERROR | KeyError('{x}')"),
        ("Action: {f} with Action Input: 5", "ERROR | TypeError('int' object is not"),
    ],
)
def test_text_without_an_action_is_answered_as_by_agentgym(game, text, words):
    function, argument = FIRST[game.environment.name]
    seen = observed(game, text.format(f=function, x=argument))
    assert seen.startswith(words.format(x=argument))


def test_the_functions_are_listed(game):
    listed = game.call("check_valid_actions")  # of Sheet, a mistake that is answered with the list
    names = {action.name() for action in game.environment.grammar.actions}
    assert set(re.findall(r"'(\w+)'", listed)) == names


@pytest.mark.parametrize(
    "written",
    [
        "{'x': __import__('os').getpid()}",
        "{'x': 1 + 1}",
        "{'x': true}",
        "{'x': [i for i in (1,)]}",
        "{'x': 0x" + "F" * 9_000 + "}",
        "{'x': " + "9" * 5_000 + "}",
        "{",
        "[" * 9_000,
        "-" * 9_000 + "1",
        "\0",
        "{'x': '" + "y" * MAX_ACTION_CHARS + "'}",
    ],
    ids=lambda written: written[:20],
)
def test_an_input_that_is_not_a_plain_value_is_neither_run_nor_read(game, written):
    function, _ = FIRST[game.environment.name]
    assert observed(game, f"Action: {function} with Action Input: {written}").startswith(NOT_PLAIN)


@pytest.mark.parametrize(
    "text",
    [
        "with Action Input: " * 50_000,
        " " * 1_000_000,
        "with" + " " * 1_000_000,
        "\n" * 500_000,
        "Action:" * 140_000 + " with Action Input: {}",
    ],
    ids=["inputs", "blanks", "blanks behind with", "lines", "actions"],
)
def test_a_megabyte_is_read_in_linear_time(text):
    with LocalGame("Sheet") as game:
        game.reset(0)
        assert cpu_seconds(lambda: game.step(text), 1.0) <= 1.0


ODD = (
    *(None, True, "", "\0", "\ud800", "x" * 10_000, 10**400, -1e308, "9" * 5000, "²", float("inf")),
    *([], {}, [[1]], b"x", {1}, 1j),
)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["Movie", "Weather", "Academia", "TODOList"])
def test_no_argument_does_harm(name):
    """For Sheet they are in the tests of its world."""
    with LocalGame(name) as game:
        game.reset(0)
        actions = [each for each in game.environment.grammar.actions if each.name() != "finish"]
        names = {key for _, (_, key) in FIRST.items()} | {
            *("movie_name", "movie_id", "person_id", "latitude", "longitude", "start_date", "end_date"),
            *("current_date", "air_quality_index", "latitude1", "longitude1", "latitude2", "longitude2"),
            *("graph", "node1", "node2", "task_id", "due_date", "is_favorite"),
        }
        for action in actions:
            for odd in ODD:
                assert len(game.call(action.name(), **dict.fromkeys(names, odd))) < 21_000
                game.step(f"Action: {action.name()} with Action Input: {odd!r}")
        assert game.win(0)[1].reward == 1


# --- how an answer is paid ---

ANSWERED = ("Academia", "Movie", "TODOList", "Weather")  # a sheet is its own answer


@pytest.fixture(scope="module", params=ANSWERED)
def solved(request):
    """A game, and the actions that win its first tasks."""
    with LocalGame(request.param) as game:
        yield game, {task: game.win(task)[0] for task in list(game.environment.task_ids)[:3]}


def test_the_word_finish_elsewhere_does_not_end_the_trial(game):
    function, argument = FIRST[game.environment.name]
    for text in (
        f"I finish. Action: {function} with Action Input: {{'{argument}': 'finish'}}",
        "Action: Finish with Action Input: {'answer': 'a'}",
        "Action: foofinish with Action Input: {}",
    ):
        assert game.step(text).done is False


def test_only_finish_is_paid(solved):
    game, solutions = solved
    for task, (*calls, _) in solutions.items():
        outcome = game.play(task, calls)
        assert (outcome.reward, outcome.done) == (0, False)
