"""What a process holds on a server: made, used again, replaced and lost."""

from __future__ import annotations

import errno
import socket

import pytest
from gymnasium.error import ResetNeeded

import by_hand
import inside
from agentgym_gym import AgentGymEnv, errors
from by_hand import HandServer, HandWire, Small, Wrapping
from fake_server import hang_up


@pytest.fixture
def server(started):
    return started(HandServer())


@pytest.fixture
def make(server, monkeypatch):
    """Registers an environment of a wire, and makes environments on the server."""

    def make(wire, number=1, *servers, **options):
        by_hand.register(by_hand.make(wire), monkeypatch)
        urls = [each.url for each in servers or (server,)]
        return [AgentGymEnv("Hand", server=urls, **options) for _ in range(number)]

    return make


def begun(envs):
    for env in envs:
        env.reset(seed=0)
    return envs


def test_a_server_is_identified_once(server, make):
    envs = begun(make(HandWire(), 3))
    assert (server.times("/"), server.there) == (1, [0, 1, 2])
    assert len(envs) == 3


def test_the_wrong_server_is_reported_with_what_to_check(server, make):
    server.bad["/"] = "This is environment BabyAI."
    (env,) = make(HandWire(), max_envs_per_server=1)
    for _ in range(2):
        with pytest.raises(errors.WrongServer, match=r"not serve Hand.*AGENTGYM_HAND_URL") as caught:
            env.reset(seed=0)
    assert "BabyAI" in str(caught.value)
    assert server.url in str(caught.value)
    server.bad.clear()
    env.reset(seed=0)


def test_a_full_server_is_reported_with_its_environments(server, make):
    first, second, third = make(Small(), 3)
    begun([first, second])
    with pytest.raises(errors.ServerFull, match="at most 2"):
        third.reset(seed=0)
    first.close()
    third.reset(seed=0)
    assert server.there == [1, 2]


def test_a_failed_create_frees_its_place(server, make):
    server.bad["/create"] = hang_up
    envs = make(Small(), 2)
    for _ in range(3):
        with pytest.raises(errors.ConnectionLost):
            envs[0].reset(seed=0)
    server.bad.clear()
    begun(envs)


def test_an_environment_is_used_from_task_to_task(server, make):
    (env,) = begun(make(HandWire()))
    env.reset(options={"task_id": 4})
    assert server.asked[-1] == ("/reset", {"id": 0, "task": 4})
    env.close()
    env.close()
    assert server.used("/close") == [0]


def test_an_unusable_environment_is_replaced_at_reset(server, make):
    (env,) = begun(make(HandWire()))
    server.at["/create"] = server.bad.clear
    server.bad["/reset"] = {"error": "no such id"}
    env.reset(seed=0)
    assert server.used("/reset") == [0, 0, 1]
    assert server.there == [1]


def test_a_new_environment_that_cannot_be_reset_is_a_fault(server, make):
    server.bad["/reset"] = {"error": "broken"}
    (env,) = make(HandWire())
    with pytest.raises(errors.EnvironmentFailed):
        env.reset(seed=0)
    assert (server.times("/create"), server.there) == (1, [])
    with pytest.raises(ResetNeeded):
        env.step("inventory")


def test_a_full_server_is_passed_over(started, make):
    full, roomy = started(HandServer([0, 0])), started(HandServer())
    begun(make(Wrapping(), 3, full, roomy))
    assert (full.times("/create"), roomy.there) == (2, [0, 1])


def test_a_connection_that_cannot_be_opened_takes_nothing_away(server, make, monkeypatch):
    inside.retry_at_once(monkeypatch)
    first, second = make(HandWire(), 2)
    first.reset(seed=0)
    with monkeypatch.context() as patch:
        patch.setattr(socket.socket, "connect_ex", lambda *_args: errno.ENETUNREACH)
        with pytest.raises(errors.ServerUnreachable):
            second.reset(seed=0)
    assert "fault" not in first.step("inventory")[4]
    first.close()
    assert server.there == []


def test_a_lease_lost_with_its_server_names_the_reason(server, make, monkeypatch):
    inside.retry_at_once(monkeypatch)
    first, second = make(HandWire(), 2)
    first.reset(seed=0)
    server.stop()
    with pytest.raises(errors.ServerUnreachable):
        second.reset(seed=0)
    fault = first.step("inventory")[4]["fault"]
    assert fault["kind"] == "LeaseLost"
    assert fault["message"].startswith(f"{server.url} went down (it refused a connection)")
    assert "restarted" not in fault["message"]


def test_an_id_given_out_again_shows_a_restart_where_ids_only_grow(server, make):
    server.ids = iter([5, 5])
    first, second = begun(make(HandWire(), 2))
    fault = first.step("inventory")[4]["fault"]
    assert fault["kind"] == "LeaseLost"
    assert fault["message"].startswith(f"{server.url} was restarted: it gave out the id 5 again")
    first.close()
    assert server.used("/close") == []  # the id is another's now
    assert "fault" not in second.step("inventory")[4]
    second.close()
    assert server.used("/close") == [5]
