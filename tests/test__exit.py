"""What is released when the program ends; that it is, by a program that ends, is in test_exit.py."""

from __future__ import annotations

import weakref

import httpx

from agentgym_gym import AgentGymEnv, _base_env, _exit


def test_at_exit_a_server_that_does_not_answer_is_asked_once(monkeypatch):
    closes = []

    class Silent(httpx.BaseTransport):
        """Makes environments and resets them, and never answers to a close."""

        def handle_request(self, request):
            if request.url.path == "/close":
                closes.append(request)
                raise httpx.ReadTimeout("no answer")
            body = {"observation": "Goal: craft x."}
            if request.url.path == "/create":
                body["id"] = Silent.made
                Silent.made += 1
            return httpx.Response(
                200, json="This is environment TextCraft." if request.method == "GET" else body
            )

    Silent.made = 0
    monkeypatch.setattr(_base_env, "_live", weakref.WeakSet())
    envs = [
        AgentGymEnv("TextCraft", server="http://silent.test", http_client=httpx.Client(transport=Silent()))
        for _ in range(4)
    ]
    for env in envs:
        env.reset(seed=0)
    _exit.release_all()
    assert len(closes) == 1


def test_at_exit_it_is_told_how_many_there_was_no_time_for(textcraft_url, monkeypatch, caplog):
    monkeypatch.setattr(_base_env, "_live", weakref.WeakSet())
    monkeypatch.setattr(_exit, "EXIT_SECONDS", -1.0)
    envs = [AgentGymEnv("TextCraft", server=textcraft_url) for _ in range(3)]
    for env in envs[:2]:
        env.reset(seed=0)
    _exit.release_all()
    assert caplog.messages == ["2 remote environments stay open: there was no time to close them at exit"]
    for env in envs:
        env.close()
