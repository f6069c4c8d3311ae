"""The environments that a server holds."""

from __future__ import annotations

import pytest

from agentgym_gym.local_servers import ServerOptions
from agentgym_servers._frame import held_envs as held
from agentgym_servers._frame.app import Failed
from agentgym_servers._frame.held_envs import HeldEnvs


@pytest.fixture
def clock(monkeypatch):
    """The time in seconds, which a test sets."""
    now = [0.0]
    monkeypatch.setattr(held.time, "monotonic", lambda: now[0])
    return now


def test_ids_count_up_and_are_not_used_again():
    envs = HeldEnvs(ServerOptions(max_envs=2))
    assert [envs.add(str), envs.add(str)] == [0, 1]
    assert (envs.get(0), envs.get(1), envs.ids()) == ("0", "1", [0, 1])
    assert (envs.close(0), envs.close(0)) == (True, False)
    assert (envs.add(str), envs.ids(), len(envs)) == (2, [1, 2], 2)
    with pytest.raises(Failed, match=r"^The id 0 is not valid\.$"):
        envs.get(0)


def test_where_ids_are_to_be_new_they_begin_anywhere():
    first, second = HeldEnvs(ServerOptions(), new_ids=True), HeldEnvs(ServerOptions(), new_ids=True)
    ids = [envs.add(str) for envs in (first, first, second, second)]
    assert len(set(ids)) == 4
    assert (ids[1] - ids[0], ids[3] - ids[2]) == (1, 1)
    assert (first.get(ids[1]), second.ids()) == ("1", ids[2:])


def test_a_full_server_says_what_to_do():
    envs = HeldEnvs(ServerOptions(max_envs=1, keep_seconds=60))
    envs.add(str)
    with pytest.raises(Failed, match=r"holds 1 environments.*in the last 60 s.*--max-envs, or ServerKind"):
        envs.add(str)
    assert envs.ids() == [0]


def test_what_nobody_asks_for_is_forgotten_when_another_is_made(clock):
    envs = HeldEnvs(ServerOptions(keep_seconds=60))
    for _ in range(4):
        envs.add(str)
    clock[0] = 50.0
    envs.get(1)
    clock[0] = 60.0
    assert envs.ids() == [0, 1, 2, 3]
    assert envs.add(str) == 4
    assert envs.ids() == [1, 4]
    clock[0] = 110.0
    envs.add(str)
    assert envs.ids() == [4, 5]


def test_an_environment_that_cannot_be_made_takes_no_place():
    envs = HeldEnvs(ServerOptions(max_envs=1, keep_seconds=60))

    def fail(_):
        raise Failed("no")

    for _ in range(3):
        with pytest.raises(Failed, match="no"):
            envs.add(fail)
    assert envs.ids() == []
    assert envs.get(envs.add(str)) == "3"
