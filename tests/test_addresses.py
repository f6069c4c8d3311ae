"""Which server an environment uses."""

from __future__ import annotations

from dataclasses import replace

import pytest

import by_hand
from agentgym_gym import AgentGymEnv, errors
from agentgym_gym import local_servers as local


def servers_of(server=None):
    return AgentGymEnv("TextCraft", server=server).servers


def test_the_argument_comes_first_then_the_variable_then_a_local_server(monkeypatch):
    monkeypatch.setattr(local, "local_server_url", lambda name: f"http://local-{name}")
    assert servers_of() == ("http://local-agentgym_servers.textcraft:SERVER",)
    monkeypatch.setenv("AGENTGYM_TEXTCRAFT_URL", "http://variable/")
    assert servers_of() == ("http://variable",)
    assert servers_of("http://argument") == ("http://argument",)


def test_several_servers(monkeypatch):
    monkeypatch.setenv("AGENTGYM_TEXTCRAFT_URL", " http://a:1, https://b/prefix/ ,http://a:1")
    assert servers_of() == ("http://a:1", "https://b/prefix")
    assert servers_of(["http://c", "http://d"]) == ("http://c", "http://d")


@pytest.mark.parametrize(
    "url",
    ["nonsense", "localhost:8000", "ftp://a", "http://", "http://a:99999", "http://a?x=1", "http://[1", ","],
)
def test_invalid_urls_are_refused_by_name(monkeypatch, url):
    with pytest.raises(errors.BadOption, match="server"):
        servers_of(url)
    monkeypatch.setenv("AGENTGYM_TEXTCRAFT_URL", url)
    with pytest.raises(errors.BadOption, match="AGENTGYM_TEXTCRAFT_URL"):
        AgentGymEnv("TextCraft").reset()


def test_the_error_without_any_server_lists_every_way_to_get_one(monkeypatch):
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


def test_no_server_of_our_own(monkeypatch):
    by_hand.register(replace(by_hand.make(by_hand.HandWire()), local_server=None), monkeypatch)
    with pytest.raises(errors.NoServer, match="no local server for it"):
        AgentGymEnv("Hand").reset()
