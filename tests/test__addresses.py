"""Which server an environment talks to."""

from __future__ import annotations

from dataclasses import replace

import pytest

from agentgym_gym import AgentGymEnv, catalogue, errors
from agentgym_gym import local_servers as local
from agentgym_gym._addresses import addresses, configured, parse_urls

TEXTCRAFT = catalogue.find("TextCraft")


def test_the_argument_comes_first_then_the_variable_then_a_local_server(monkeypatch, textcraft_url):
    monkeypatch.setattr(local, "local_server_url", lambda name: f"http://local-{name}")
    assert addresses(TEXTCRAFT, None) == ("http://local-agentgym_servers.textcraft:SERVER",)
    monkeypatch.setenv("AGENTGYM_TEXTCRAFT_URL", "http://variable/")
    assert addresses(TEXTCRAFT, None) == ("http://variable",)
    assert addresses(TEXTCRAFT, "http://argument") == ("http://argument",)


def test_several_servers(monkeypatch):
    monkeypatch.setenv("AGENTGYM_TEXTCRAFT_URL", " http://a:1, https://b/prefix/ ,http://a:1")
    assert configured(TEXTCRAFT) == ("http://a:1", "https://b/prefix")
    assert configured(TEXTCRAFT, ["http://c", "http://d"]) == ("http://c", "http://d")


@pytest.mark.parametrize(
    "url",
    ["", "localhost", "localhost:8000", "ftp://a", "http://", "http://a:99999", "http://a?x=1", "http://[1"],
)
def test_what_is_not_the_url_of_a_server_is_refused(url):
    with pytest.raises(errors.BadOption, match="MY_URL"):
        parse_urls(url, "MY_URL")


def test_a_variable_that_is_not_a_url_is_named(monkeypatch):
    monkeypatch.setenv("AGENTGYM_TEXTCRAFT_URL", "nonsense")
    with pytest.raises(errors.BadOption, match="AGENTGYM_TEXTCRAFT_URL='nonsense'"):
        AgentGymEnv("TextCraft").reset()


def test_no_server_at_all_tells_every_way_to_get_one(monkeypatch):
    monkeypatch.setattr(local, "available", lambda name: "fastapi is not installed")
    with pytest.raises(errors.NoServer) as caught:
        AgentGymEnv("TextCraft").reset()
    for way in (
        "server=",
        "AGENTGYM_TEXTCRAFT_URL",
        "agentgym serve textcraft",
        "pip install '.[servers]'",
        "fastapi is not installed",
    ):
        assert way in str(caught.value)


def test_no_server_of_our_own():
    with pytest.raises(errors.NoServer, match="no server of its own"):
        addresses(replace(TEXTCRAFT, local_server=None), None)
