"""The claims of docs/gateways.md, tested with the gateways that it names."""

from __future__ import annotations

import re
import ssl
from pathlib import Path

import httpx
import pytest

import needs
from agentgym_gym import AgentGymEnv, errors
from doc_blocks import blocks_of, run_python

pytestmark = pytest.mark.slow  # each starts an nginx or another gateway

PAGE = (Path(__file__).parents[2] / "docs" / "gateways.md").read_text("utf-8")


def programs(heading):
    """Return the Python blocks below a heading of the page."""
    section = re.split(r"^##+ ", PAGE.split(f" {heading}\n", 1)[1], maxsplit=1, flags=re.MULTILINE)[0]
    return blocks_of(section, "python")


@pytest.fixture(scope="module")
def goal(textcraft_url):
    with AgentGymEnv("TextCraft", server=textcraft_url) as env:
        return env.reset(options={"task_id": 0})[1]["goal"]


@pytest.fixture
def run(tmp_path):
    """Runs the last program below a heading, those before it being modules; returns what it prints."""

    def run(heading, **variables):
        *modules, program = programs(heading)
        for module in modules:
            name = re.match(r"# (\w+\.py)\n", module)[1]
            (tmp_path / name).write_text(module)
        ran = run_python(program, tmp_path, **{name: str(value) for name, value in variables.items()})
        assert (ran.returncode, ran.stderr) == (0, "")
        return ran.stdout.split("\n")[:-1]

    return run


def certificates(nginx):
    folder = nginx.folder
    return {
        "GATEWAY_CA": folder / "ca.pem",
        "CLIENT_CERT": folder / "client.pem",
        "CLIENT_KEY": folder / "client.key",
    }


def test_a_bearer_token(run, nginx, goal):
    assert run("Headers and tokens", GATEWAY_URL=nginx.bearer, GATEWAY_TOKEN=nginx.token) == [goal]


def test_a_bearer_token_by_the_variable(nginx, goal, monkeypatch):
    monkeypatch.setenv("AGENTGYM_TEXTCRAFT_HEADERS", f'{{"Authorization": "Bearer {nginx.token}"}}')
    with AgentGymEnv("TextCraft", server=nginx.bearer) as env:
        assert env.reset(options={"task_id": 0})[1]["goal"] == goal


def test_without_the_token_the_error_names_it(nginx):
    with (
        AgentGymEnv("TextCraft", server=nginx.bearer, headers={"Authorization": "Bearer wr0ng"}) as env,
        pytest.raises(errors.AccessDenied, match="requires credentials") as caught,
    ):
        env.reset(options={"task_id": 0})
    assert "wr0ng" not in str(caught.value)


def test_basic_authentication(run, nginx, goal):
    variables = {"GATEWAY_URL": nginx.basic, "GATEWAY_USER": nginx.user, "GATEWAY_PASSWORD": nginx.password}
    assert run("Basic authentication", **variables) == [goal]


def test_a_client_certificate(run, nginx, goal):
    assert run("Client certificate", GATEWAY_URL=nginx.certificate, **certificates(nginx)) == [goal]


def test_without_the_certificate_nothing_is_played(nginx):
    trusting = ssl.create_default_context(cafile=nginx.folder / "ca.pem")
    with (
        AgentGymEnv(
            "TextCraft",
            server=nginx.certificate,
            http_client=lambda: httpx.Client(verify=trusting),
        ) as env,
        pytest.raises(errors.WrongServer, match="certificate"),
    ):
        env.reset(options={"task_id": 0})


def test_by_import_path(run, nginx, goal):
    assert run("By import path", GATEWAY_URL=nginx.certificate, **certificates(nginx)) == [f"{goal} {goal}"]


def test_http2(run, nginx, goal):
    pytest.importorskip("h2", reason=needs.reason("h2"))
    assert run("HTTP/2", GATEWAY_URL=nginx.http2, **certificates(nginx)) == [goal]


def test_sticky_cookies(run, nginx, goal):
    assert run("Sticky cookies", GATEWAY_URL=nginx.cookies) == [goal, goal]


def test_a_unix_socket(run, nginx, goal):
    assert run("Unix socket", GATEWAY_SOCKET=nginx.folder / "games.sock") == [goal]


def test_other_authentication(run, nginx, goal, tmp_path):
    (tmp_path / "token").write_text(nginx.token + "\n")
    variables = {"GATEWAY_URL": nginx.bearer, "TOKEN_FILE": tmp_path / "token"}
    assert run("Other authentication", **variables) == [goal]


def test_a_forward_proxy(run, textcraft_url, proxy, goal):
    assert run("Forward proxy", GATEWAY_URL=textcraft_url, PROXY_URL=proxy.url) == [goal]


@pytest.mark.slow  # it waits
def test_an_unreachable_proxy_loses_no_environment(textcraft_url, proxy):
    def client():
        return httpx.Client(proxy=proxy.url)

    options = {"server": textcraft_url, "http_client": client, "timeout": {"connect": 20, "step": 20}}
    with AgentGymEnv("TextCraft", **options) as one, AgentGymEnv("TextCraft", **options) as two:
        for env in (one, two):
            env.reset(options={"task_id": 0})
        proxy.stop()
        info = one.step("Action: inventory")[4]
        assert info["fault"]["kind"] == "ServerUnreachable"
        proxy.start()
        assert "fault" not in two.step("Action: inventory")[4]
        one.reset(options={"task_id": 0})
        assert "fault" not in one.step("Action: inventory")[4]
