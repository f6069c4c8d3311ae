"""A server that is restarted while a client thinks gives the client's environment to somebody else."""

from __future__ import annotations

import asyncio
import contextlib
import ssl

import httpx
import pytest

from agentgym_gym import AgentGymEnv, AgentGymVectorEnv, AsyncAgentGymEnv, errors
from inside import records, retry_at_once
from restarting_server import OTHER, OWNER, RestartingServer

TLS = ssl.create_default_context()  # an httpx client takes longer to make one than all else here takes
ACTIONS = {"TextCraft": "Action: inventory", "Maze": "Action: move up"}


@pytest.fixture
def server(started):
    return started(RestartingServer())


@pytest.fixture(autouse=True)
def _no_pauses(monkeypatch):
    retry_at_once(monkeypatch)


class Sync:
    """An environment, and what differs between the ways to use one."""

    def __init__(self, environment, url, **options):
        self.action = ACTIONS[environment]
        self.env = self.make(environment, server=url, headers={OWNER: "us"}, timeout=30, **options)

    make = AgentGymEnv

    def reset(self):
        self.env.reset(options={"task_id": 3})

    def step(self):
        """Return the info."""
        return self.env.step(self.action)[4]

    def close(self):
        self.env.close()

    @property
    def stats(self):
        return self.env.stats


class Async(Sync):
    make = AsyncAgentGymEnv

    def __init__(self, *args, **options):
        self.loop = asyncio.new_event_loop()
        super().__init__(*args, **options)

    def reset(self):
        self.loop.run_until_complete(self.env.reset(options={"task_id": 3}))

    def step(self):
        return self.loop.run_until_complete(self.env.step(self.action))[4]

    def close(self):
        self.loop.run_until_complete(self.env.close())
        self.loop.close()


class Vector(Sync):
    def make(self, environment, **options):
        return AgentGymVectorEnv(1, environment, **options)

    def step(self):
        infos = self.env.step([self.action])[4]
        info = {name: values[0] for name, values in infos.items() if not isinstance(values, dict)}
        if "fault" in infos:
            info["fault"] = {name: values[0] for name, values in infos["fault"].items()}
        return info


class Httpx(Sync):
    def __init__(self, *args, **options):
        super().__init__(*args, http_client=lambda: httpx.Client(verify=TLS), **options)


class AsyncHttpx(Async):
    def __init__(self, *args, **options):
        super().__init__(*args, http_client=lambda: httpx.AsyncClient(verify=TLS), **options)


SLOW = [pytest.param(kind, marks=pytest.mark.slow) for kind in (AsyncHttpx, Vector, Httpx)]
ALL = pytest.mark.parametrize("kind", [Sync, Async, Vector, Httpx, SLOW[0]])
ENVIRONMENTS = pytest.mark.parametrize("environment", ["TextCraft", "Maze"])


@contextlib.contextmanager
def playing(kind, environment, server):
    server.wire = environment
    env = kind(environment, server.url)
    env.reset()
    assert "fault" not in env.step()
    yield env
    env.close()


def unharmed(server):
    return server.thefts == [] and server.others == [f"{OTHER} plays"] * server.taken


@ALL
@ENVIRONMENTS
def test_the_environment_of_another_is_not_played(kind, environment, server):
    with playing(kind, environment, server) as env:
        server.restart()
        info = env.step()
        assert info["fault"]["kind"] == "LeaseLost"
        assert unharmed(server)
        env.reset()
        assert "fault" not in env.step()
    assert unharmed(server)
    assert env.stats.faults == {"LeaseLost": 1}


def test_a_connection_of_another_environment_with_the_same_client_proves_nothing(server):
    """The client opens it to the server after the restart, and has it ready for the next step."""
    server.wire = "TextCraft"
    options = {"server": server.url, "headers": {OWNER: "us"}, "timeout": 5}
    with httpx.Client(verify=TLS) as client:
        first, second = (AgentGymEnv("TextCraft", http_client=client, **options) for _ in range(2))
        first.reset(options={"task_id": 3})
        server.restart()
        second.reset(options={"task_id": 3})
        assert first.step(ACTIONS["TextCraft"])[4]["fault"]["kind"] == "LeaseLost"
        assert unharmed(server)
        first.close()
        second.close()
    assert unharmed(server)


@ALL
def test_the_environment_of_another_is_not_closed(kind, server):
    with playing(kind, "TextCraft", server):
        server.restart()
    assert unharmed(server)


@ALL
def test_the_environment_of_another_is_not_reset(kind, server):
    with playing(kind, "TextCraft", server) as env:
        server.restart()
        env.reset()
        assert "fault" not in env.step()
    assert unharmed(server)
    assert env.stats.faults == {"LeaseLost": 1}


@ALL
@ENVIRONMENTS
def test_one_look_for_each_connection_that_was_opened_again(kind, environment, server):
    path = "/maze/observation" if environment == "Maze" else "/observation"
    with playing(kind, environment, server) as env:
        for _ in range(3):
            assert "fault" not in env.step()
        assert (server.asked[path], env.stats.looks) == (0, 0)
        for number in range(1, 4):
            server.hang_up_all()
            for _ in range(3):
                assert "fault" not in env.step()
            env.reset()
            assert (server.asked[path], env.stats.looks) == (number, number)
        server.hang_up_all()
    assert (server.asked[path], env.stats.looks) == (4, 4) if environment == "TextCraft" else (3, 3)
    assert env.stats.faults == {}


@ALL
@ENVIRONMENTS
def test_a_check_that_fails_once_does_not_lose_the_environment(kind, environment, server):
    path = "/maze/observation" if environment == "Maze" else "/observation"
    with playing(kind, environment, server) as env:
        server.hang_up_all()
        server.broken[path] = 1
        assert "fault" not in env.step()
        assert (env.stats.looks, env.stats.retries) == (1, 1)
        server.hang_up_all()
        server.broken[path] = 1
    assert environment == "Maze" or server.envs == {}  # it was closed
    assert env.stats.faults == {}


@ALL
@pytest.mark.parametrize(("when", "broken"), [("step", 1), ("step", 2), ("step", 3), ("close", 1)])
def test_an_error_without_the_number_of_the_process_does_not_lose_the_environment(kind, broken, when, server):
    server.header = True
    with playing(kind, "TextCraft", server) as env:
        server.hang_up_all()
        server.broken["/"] = broken
        if when == "step":
            fault = env.step().get("fault")
            assert fault is None if broken < 3 else fault["kind"] == "ServerError"
            assert env.stats.retries == min(broken, 2)
    assert server.envs == {}  # it was closed
    assert not any(record.ids for record in records(server.url))
    assert env.stats.faults.get("LeaseLost", 0) == 0


@ALL
def test_another_number_of_the_process_is_another_server(kind, server):
    server.header = True
    with playing(kind, "TextCraft", server) as env:
        server.restart()
        assert env.step()["fault"]["kind"] == "LeaseLost"
    assert unharmed(server)


@pytest.mark.parametrize("kind", [Sync, Async, *SLOW])
@pytest.mark.parametrize("moment", ["before", "unanswered", "answered"])
def test_restarts_at_any_time_harm_no_client(kind, moment, server):
    """At each request of a whole life: making, starting, playing, looking, starting again, closing."""
    server.moment = moment

    def play():
        env = kind("TextCraft", server.url)
        with contextlib.suppress(errors.Fault):
            env.reset()
            for turn in range(3):
                if turn == 1:
                    server.hang_up_all()
                if "fault" in env.step():
                    env.reset()
            env.reset()
            env.step()
        env.close()

    play()
    requests = sum(server.asked.values())
    for number in range(1, requests + 2):
        server.restart_at = sum(server.asked.values()) + number
        play()
        assert server.thefts == [], number
        assert server.others in ([], [f"{OTHER} plays"] * server.taken)


@pytest.mark.parametrize("kind", [Sync, Async])
def test_a_server_that_keeps_no_connections_is_looked_at_before_each_step(kind, server):
    server.keep_alive = False
    with playing(kind, "TextCraft", server) as env:
        assert "fault" not in env.step()
        server.restart()
        assert env.step()["fault"]["kind"] == "LeaseLost"
    assert unharmed(server)
    assert env.stats.looks == 3


@ALL
def test_lost_ids_are_removed_from_the_record(kind, server):
    with playing(kind, "TextCraft", server) as env:
        assert [list(record.ids) for record in records(server.url)] == [[0]]
        server.restart()
        env.step()
        assert [list(record.ids) for record in records(server.url)] in ([[]], [])
