"""Headers of the user's: what they may be, where they come from, that they arrive, and that none is shown."""

from __future__ import annotations

import asyncio
import contextlib
import copy
import gc
import itertools
import json
import logging
import pickle

import gymnasium
import pytest

import command_line
import needs
from agentgym_gym import AgentGymEnv, AgentGymVectorEnv, AsyncAgentGymEnv, errors
from agentgym_gym.data import Recipe
from agentgym_gym.evaluate import RunFolder
from fake_server import FakeServer

SECRET = "s3cr3t-t0k3n"  # noqa: S105 - opens nothing
HEADERS = {"Authorization": f"Bearer {SECRET}", "X-Team": "a"}
SENT = {"authorization", "x-team", "x-run"}
VARIABLE = "AGENTGYM_TEXTCRAFT_HEADERS"


@pytest.fixture
def gateway():
    """URL of a TextCraft server of one task behind a gateway that requires a token with every request."""
    ids = itertools.count()

    def answer(request):
        if request.headers.get("authorization") != HEADERS["Authorization"]:
            return 401, {"detail": "who are you?"}
        if request.path == "/":
            return "This is environment TextCraft."
        if request.path.startswith("/observation"):
            return "Goal: craft x."
        env_id = {"id": next(ids)} if request.path == "/create" else {}
        return {**env_id, "observation": "Goal: craft x.", "reward": 0, "done": False}

    with FakeServer(answer) as server:
        yield server.url


@pytest.fixture
def run():
    """Runs a command in this process."""
    return command_line.run


@pytest.fixture
def arrived(counted, monkeypatch):
    """Plays an environment, and returns the headers of the user that arrive with each of its requests."""

    def play(make):
        server = counted()
        monkeypatch.setenv("AGENTGYM_TEXTCRAFT_URL", server.url)
        with contextlib.closing(make()) as env:
            env.reset(seed=0)
        headers = [{k: v for k, v in each.headers.items() if k in SENT} for each in server.requests]
        assert headers == [headers[0]] * len(headers)
        return headers[0]

    return play


@pytest.mark.parametrize(
    ("headers", "said"),
    [
        (SECRET, "a mapping of header names"),
        ([("Authorization", SECRET)], "a mapping of header names"),
        ({SECRET + ":": "x"}, "invalid header name"),
        ({"": SECRET}, "invalid header name"),
        ({3: SECRET}, "invalid header name"),
        ({"Authorization": SECRET + "\r\nX: y"}, "'Authorization' with a line end"),
        ({"Authorization": SECRET + "\n"}, "'Authorization' with a line end"),
        ({"Authorization": SECRET + "\0"}, "control"),
        ({"Authorization": SECRET + "…"}, "not Latin-1"),
        ({"Authorization": SECRET.encode()}, "a bytes for"),
        ({"X-A": SECRET, "x-a": SECRET}, "'x-a' twice"),
        *[
            ({name: SECRET}, name)
            for name in ("Host", "content-length", "Transfer-Encoding", "CONNECTION", "Upgrade", "TE")
        ],
    ],
)
@pytest.mark.parametrize(
    "kind", [AgentGymEnv, AsyncAgentGymEnv, lambda *_, **o: AgentGymVectorEnv(1, *_, **o)]
)
def test_invalid_headers_are_refused_and_not_quoted(kind, headers, said):
    with pytest.raises(errors.BadOption, match=said) as caught:
        kind("TextCraft", headers=headers)
    assert SECRET not in str(caught.value)


def test_values_may_be_latin_1_and_are_stripped(arrived):
    assert arrived(lambda: AgentGymEnv("TextCraft", headers={"X-Run": " caf\xe9\t"})) == {"x-run": "caf\xe9"}


def test_the_argument_replaces_the_variable_name_by_name(monkeypatch, arrived):
    assert arrived(lambda: AgentGymEnv("TextCraft")) == {}
    monkeypatch.setenv(VARIABLE, json.dumps(HEADERS))
    both = {"authorization": HEADERS["Authorization"], "x-team": "a"}
    assert arrived(lambda: AgentGymEnv("TextCraft")) == both
    given = {"authorization": "mine", "X-Run": "7"}
    expected = {"x-team": "a", "authorization": "mine", "x-run": "7"}
    assert arrived(lambda: AgentGymEnv("TextCraft", headers=given)) == expected


@pytest.mark.parametrize(
    "value", [SECRET, f'["{SECRET}"]', f'{{"A": ["{SECRET}"]}}', f'{{"Host": "{SECRET}"}}']
)
def test_a_variable_without_headers_is_named_and_not_quoted(monkeypatch, value):
    monkeypatch.setenv(VARIABLE, value)
    with pytest.raises(errors.BadOption, match=VARIABLE) as caught:
        AgentGymEnv("TextCraft")
    assert SECRET not in str(caught.value)


def test_no_repr_and_no_spec_shows_them():
    sync = gymnasium.make("agentgym/TextCraft-v0", headers=HEADERS)
    many = gymnasium.make_vec("agentgym/TextCraft-v0", num_envs=2, headers=HEADERS)
    awaited = AsyncAgentGymEnv("TextCraft", headers=HEADERS)
    public = [sync, sync.unwrapped, many, many.unwrapped, many.envs, awaited]
    public += [vars(sync.unwrapped), vars(awaited)]
    public += [sync.spec, sync.unwrapped.spec, many.unwrapped.spec]
    for each in public:
        assert SECRET not in repr(each)
        assert SECRET not in str(each)
    for spec in (sync.spec, many.unwrapped.spec):
        assert SECRET not in spec.to_json()
        assert "headers" not in spec.kwargs
    assert "headers={'Authorization': '***', 'X-Team': '***'}" in repr(sync.unwrapped)
    many.close()


def test_an_environment_made_by_a_spec_takes_them_from_the_variable(monkeypatch, arrived):
    spec = gymnasium.make("agentgym/TextCraft-v0", headers=HEADERS).spec
    assert arrived(lambda: gymnasium.make(spec)) == {}
    monkeypatch.setenv(VARIABLE, json.dumps(HEADERS))
    again = gymnasium.make(spec)
    assert SECRET not in repr(again.unwrapped)
    assert again.spec == spec
    assert arrived(lambda: gymnasium.make(spec))["authorization"] == HEADERS["Authorization"]


@pytest.mark.parametrize("again", [copy.deepcopy, lambda env: pickle.loads(pickle.dumps(env))])  # noqa: S301
def test_a_copy_keeps_them(arrived, again):
    env = AgentGymEnv("TextCraft", headers=HEADERS)
    assert repr(again(env)) == repr(env)
    make = lambda: again(AgentGymEnv("TextCraft", headers=HEADERS))  # noqa: E731
    assert arrived(make)["authorization"] == HEADERS["Authorization"]


def test_no_log_and_no_fault_shows_them(caplog, counted, unreachable_url):
    caplog.set_level(logging.DEBUG)
    server = counted()
    server.broken.add("/create")
    env = AgentGymEnv("TextCraft", server=server.url, headers=HEADERS)
    with pytest.raises(errors.Fault) as caught:
        env.reset(seed=0)
    env.close()
    dead = AsyncAgentGymEnv("TextCraft", server=unreachable_url, headers=HEADERS, timeout=1)
    with pytest.raises(errors.Fault) as refused:
        asyncio.run(dead.reset(seed=0))
    said = [*map(str, (caught.value, refused.value)), json.dumps(refused.value.as_dict()), caplog.text]
    assert caplog.records
    assert SECRET not in "".join(said)


def test_gymnasium_does_not_quote_them_where_an_environment_cannot_be_made():
    def one(argument):
        raise AssertionError(argument)

    class Client:
        """Is called without its required argument."""

        def __call__(self, argument):
            raise AssertionError(argument)

    for client in (one, Client()):
        options = {"server": "http://games.test", "headers": HEADERS, "http_client": client}
        with pytest.raises((errors.AgentGymError, TypeError)) as caught:
            gymnasium.make("agentgym/TextCraft-v0", **options).reset(seed=0)
        assert SECRET not in str(caught.value)


def test_they_do_not_go_into_files(tmp_path, run):
    run_of = {"env_id": "x", "agent": "y", "headers": HEADERS, "options": {"headers": HEADERS, "split": None}}
    with RunFolder(tmp_path / "run", run_of):
        pass
    assert json.loads((tmp_path / "run" / "summary.json").read_text())["run"]["options"] == {"split": None}
    with pytest.raises(errors.BadOption, match="HEADERS") as caught:
        Recipe({"headers": HEADERS}, "prompt")
    assert SECRET not in str(caught.value)
    made = run(
        *("verl", "init", "--env", "TextCraft", "--out", tmp_path / "verl"),
        *("--env-kwargs", json.dumps({"headers": HEADERS})),
    )
    assert made.exit_code == 2
    assert VARIABLE in made.stderr
    assert SECRET not in made.output
    assert not any(SECRET.encode() in file.read_bytes() for file in tmp_path.rglob("*") if file.is_file())


def test_rows_and_folders_do_not_contain_the_variable(tmp_path, run, monkeypatch):
    pytest.importorskip("pyarrow", reason=needs.reason("pyarrow"))
    monkeypatch.setenv(VARIABLE, json.dumps(HEADERS))
    assert run("data", "rl", "TextCraft", "--tasks", "0:40", "--out", tmp_path / "rows").exit_code == 0
    made = run("verl", "init", "--env", "TextCraft", "--out", tmp_path / "verl")
    assert made.exit_code == 0, made.output
    files = [file for file in tmp_path.rglob("*") if file.is_file()]
    assert len(files) > 3
    assert not any(SECRET.encode() in file.read_bytes() for file in files)


@pytest.mark.parametrize(
    ("headers", "said"),
    [
        ([SECRET], "'NAME: VALUE'"),
        ([f"Host: {SECRET}"], "Host"),
        ([f"X-A: {SECRET}", f"X-A: {SECRET}"], "twice"),
        ([f"X-A: {SECRET}", f"x-a: {SECRET}"], "twice"),
    ],
)
@pytest.mark.parametrize("command", [("doctor", "http://games.test"), ("leases", "http://games.test")])
def test_a_command_does_not_quote_an_invalid_header(run, command, headers, said):
    result = run(*command, *[word for header in headers for word in ("--header", header)])
    assert result.exit_code == 2
    assert said in result.stderr
    assert SECRET not in result.output


def test_doctor_without_a_url_sends_no_header(run):
    result = run("doctor", "--header", f"X-A: {SECRET}")
    assert result.exit_code == 2
    assert "AGENTGYM_<NAME>_HEADERS" in result.stderr


def test_doctor_names_a_variable_without_headers(run, monkeypatch):
    monkeypatch.setenv(VARIABLE, SECRET)
    result = run("doctor", "--json")
    assert result.exit_code == 1
    (found,) = [each for each in json.loads(result.stdout)["environments"] if "TextCraft" in each["id"]]
    assert (found["server"], SECRET in result.output) == ("invalid", False)


def test_they_arrive_with_every_request(gateway):
    options = {"server": gateway, "headers": HEADERS}
    env = AgentGymEnv("TextCraft", **options)
    env.reset(seed=0)
    assert "fault" not in env.step("Action: inventory")[-1]
    env.close()

    async def play():
        async with AsyncAgentGymEnv("TextCraft", **options) as awaited:
            await awaited.reset(seed=0)
            return (await awaited.step("Action: inventory"))[-1]

    assert "fault" not in asyncio.run(play())
    many = AgentGymVectorEnv(2, "TextCraft", **options)
    assert "fault" not in many.reset(seed=0)[1]
    many.close()


@pytest.mark.slow
def test_commands_send_them(gateway, run, tmp_path, monkeypatch):
    header = ("--header", f"Authorization:{HEADERS['Authorization']}")
    plays = ("--agent", "random", "--tasks", "0:2", "--max-turns", "2", "--server", gateway)
    commands = [
        ("doctor", gateway),
        ("leases", gateway),
        ("play", "TextCraft", "--server", gateway),
        ("eval", "TextCraft", *plays, "--out", tmp_path / "run"),
    ]
    for command in commands:
        result = run(*command, *header, input="inventory\nquit\n")
        assert (result.exit_code, SECRET in result.output) == (0, False), result.output
    assert not any(SECRET in file.read_text() for file in (tmp_path / "run").iterdir())
    assert run("doctor", gateway).exit_code == 1
    monkeypatch.setenv("AGENTGYM_TEXTCRAFT_URL", gateway)
    monkeypatch.setenv(VARIABLE, json.dumps(HEADERS))
    assert run("doctor", gateway).exit_code == 0  # which is TextCraft's by the variables


@pytest.mark.parametrize("kind", [AgentGymEnv, AsyncAgentGymEnv])
def test_a_dropped_environment_is_released_with_them(counted, kind):
    """Its driver is gone, too: another one closes it, as at exit."""
    server = counted()

    async def drop():
        env = kind("TextCraft", server=server.url, headers=HEADERS)
        await env.reset(seed=0) if kind is AsyncAgentGymEnv else env.reset(seed=0)
        del env
        gc.collect()
        for _ in range(600):
            if server.asked["/close"]:
                break
            await asyncio.sleep(0.05)

    asyncio.run(drop())
    (closed,) = (each for each in server.requests if each.path == "/close")
    assert closed.headers["authorization"] == HEADERS["Authorization"]
