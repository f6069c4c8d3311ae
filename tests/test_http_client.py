"""An HTTP client of the user's in place of the library's own engine: which may be given, and whose it is."""

from __future__ import annotations

import asyncio
import copy
import functools
import gc
import importlib
import itertools
import json
import os
import pickle
import subprocess
import sys
import textwrap

import gymnasium
import httpx
import pytest

import inside
import programs
from agentgym_gym import AgentGymEnv, AgentGymVectorEnv, AsyncAgentGymEnv, errors
from awaited_env import Awaited

made: list[httpx.Client] = []
PATH = "http_client_of_a_user:client"


@pytest.fixture
def module(tmp_path, monkeypatch):
    """A module from which a client is imported."""
    (tmp_path / "http_client_of_a_user.py").write_text(
        textwrap.dedent(
            """
            import httpx

            number = 3

            def answer(request):
                greeting = "This is environment TextCraft."
                body = {"id": 0, "observation": "Goal: craft x.", "reward": 0, "done": False}
                return httpx.Response(200, json=greeting if request.url.path == "/" else body)

            class Made:
                @staticmethod
                def client():
                    return client()

            def client():
                return httpx.Client(transport=httpx.MockTransport(answer))
            """
        )
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    yield
    sys.modules.pop("http_client_of_a_user", None)


def answer(request: httpx.Request) -> httpx.Response:
    greeting = "This is environment TextCraft."
    body = {"id": 0, "observation": "Goal: craft x.", "reward": 0, "done": False}
    return httpx.Response(200, json=greeting if request.url.path == "/" else body)


def make_client() -> httpx.Client:
    made.append(httpx.Client(transport=httpx.MockTransport(answer)))
    return made[-1]


@pytest.fixture
def live():
    with make_client() as client:
        yield client


def play(env):
    env.reset(seed=0)
    assert "fault" not in env.step("Action: inventory")[-1]


def test_a_callable_makes_one_for_each_environment():
    before = len(made)
    envs = [AgentGymEnv("TextCraft", server="http://made.test", http_client=make_client) for _ in range(2)]
    for env in envs:
        play(env)
        env.close()
    assert len(made) >= before + 2


@pytest.mark.parametrize("path", [PATH, "http_client_of_a_user:Made.client"])
def test_an_import_path_goes_through_specs_copies_and_reprs(module, path):
    env = gymnasium.make("agentgym/TextCraft-v0", server="http://imported.test", http_client=path)
    again = gymnasium.make(gymnasium.envs.registration.EnvSpec.from_json(env.spec.to_json()))
    copied = copy.deepcopy(env.unwrapped)
    for each in (env, again, copied):
        play(each)
        each.close()
    assert repr(copied) == repr(again.unwrapped) == repr(env.unwrapped)
    assert f"http_client={path!r}" in repr(copied)


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("", "should be 'module:function'"),
        ("httpx", "should be 'module:function'"),
        ("httpx:", "should be 'module:function'"),
        (":Client", "should be 'module:function'"),
        ("no_such_module:client", "No module named"),
        ("httpx:no_such_client", "has no attribute"),
        ("http_client_of_a_user:number", "a callable that makes one"),
        (3, "http_client=3"),
        ({"a": 1}, "http_client="),
    ],
)
@pytest.mark.parametrize("kind", [AgentGymEnv, AsyncAgentGymEnv, functools.partial(AgentGymVectorEnv, 2)])
def test_an_invalid_client_is_named_when_the_environment_is_created(module, kind, path, said):
    with pytest.raises(errors.BadOption, match=said) as caught:
        kind("TextCraft", http_client=path)
    assert f"http_client={path!r}" in str(caught.value)


def test_a_live_client_stays_the_users(live):
    for _ in range(2):
        env = AgentGymEnv("TextCraft", server="http://live.test", http_client=live)
        play(env)
        env.close()
    del env
    gc.collect()
    assert not live.is_closed


def test_a_live_client_of_the_wrong_kind_is_refused(live):
    with pytest.raises(errors.BadOption, match=r"should be an httpx\.AsyncClient, not a Client"):
        AsyncAgentGymEnv("TextCraft", http_client=live)
    awaited = httpx.AsyncClient(transport=httpx.MockTransport(answer))
    with pytest.raises(errors.BadOption, match=r"should be an httpx\.Client, not a AsyncClient"):
        AgentGymEnv("TextCraft", http_client=awaited)


def test_a_live_client_is_for_one_environment_that_a_class_makes(live):
    awaited = httpx.AsyncClient(transport=httpx.MockTransport(answer))
    with pytest.raises(errors.BadOption, match="vector environment takes no live"):
        AgentGymVectorEnv(2, "TextCraft", http_client=awaited)
    with pytest.raises(errors.BadOption, match="vector environment takes no live"):
        gymnasium.make_vec("agentgym/TextCraft-v0", num_envs=2, http_client=awaited)
    with pytest.raises(errors.BadOption, match=r"gymnasium\.make takes no live"):
        gymnasium.make("agentgym/TextCraft-v0", http_client=live)
    env = AgentGymEnv("TextCraft", http_client=live)
    for again in (copy.deepcopy, pickle.dumps):
        with pytest.raises(errors.BadOption, match="cannot be copied or pickled"):
            again(env)


def test_a_repr_names_it_and_shows_nothing_of_it(live):
    secret = functools.partial(httpx.Client, headers={"Authorization": "secret"})
    assert "http_client='httpx:Client'" in repr(AgentGymEnv("TextCraft", http_client=httpx.Client))
    assert "http_client='functools:partial'" in repr(AgentGymEnv("TextCraft", http_client=secret))
    assert "http_client='httpx:Client'" in repr(AgentGymEnv("TextCraft", http_client=live))


def test_an_environment_with_an_async_client_is_released_when_dropped(textcraft_url):
    def exists(env_id):
        return "error" not in httpx.get(f"{textcraft_url}/observation", params={"id": env_id}).json()

    async def drop():
        env = AsyncAgentGymEnv("TextCraft", server=textcraft_url, http_client=httpx.AsyncClient)
        await env.reset(seed=0)
        env_id = env._episode.lease.env_id
        del env
        gc.collect()
        for _ in range(200):
            await asyncio.sleep(0.05)
            if not exists(env_id):
                return True
        return False

    assert asyncio.run(drop())


def test_a_live_async_client_releases_nothing_elsewhere_and_logs_it(textcraft_url, caplog):
    async def play_awaited():
        async with httpx.AsyncClient() as client:
            env = AsyncAgentGymEnv("TextCraft", server=textcraft_url, http_client=client)
            await env.reset(seed=0)
            assert await asyncio.to_thread(env._release)  # as at exit
            await env.close()
            assert not client.is_closed

    asyncio.run(play_awaited())
    assert "stays open" in caplog.text


PROGRAM = """
    import asyncio, sys
    from agentgym_gym import AgentGymEnv, AsyncAgentGymEnv

    one = AgentGymEnv("TextCraft", server=sys.argv[1], http_client="httpx:Client")
    one.reset(seed=0)

    async def play():
        env = AsyncAgentGymEnv("TextCraft", server=sys.argv[1], http_client="httpx:AsyncClient")
        await env.reset(seed=0)
        return env

    other = asyncio.run(play())
    print("over")
"""


@pytest.mark.slow
def test_at_exit_a_client_is_created_to_release_leases(counted):
    server = counted()
    url = server.url.replace("127.0.0.1", "localhost")  # a name, which is looked up at exit, too
    ended = subprocess.run(
        [sys.executable, "-W", "error", "-c", textwrap.dedent(PROGRAM), url],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
        env=dict(os.environ),
    )
    assert (ended.stdout, ended.stderr) == ("over\n", "")
    assert (server.most, server.open) == (2, set())


def test_an_environment_that_was_never_used_can_be_closed():
    async def close():
        await AsyncAgentGymEnv("TextCraft", server="http://made.test", http_client=httpx.AsyncClient).close()

    asyncio.run(close())
    AgentGymEnv("TextCraft", server="http://made.test", http_client=httpx.Client).close()


# --------------------------------------------------------------------------------- either library of clients

LIBRARIES = [pytest.param(name, marks=pytest.mark.needs(name)) for name in ("httpx", "httpx2")]
numbers = itertools.count()  # of servers: the library keeps its state of an address
each_way = pytest.mark.parametrize("awaited", [False, True])


@pytest.fixture(params=LIBRARIES)
def library(request):
    return importlib.import_module(request.param)


class Clients:
    """Makes clients that a function answers, and keeps them.

    Args:
        library: The library of the clients.
        awaited: Whether they are to be awaited.
        respond: Takes a request and returns the status and headers, or raises.
    """

    def __init__(self, library, awaited=False, respond=lambda request: (200, {})):
        self.library, self.awaited, self.respond = library, awaited, respond
        self.made = []

    def __call__(self):
        transport = self.library.MockTransport(self._answer)
        kind = self.library.AsyncClient if self.awaited else self.library.Client
        self.made.append(kind(transport=transport))
        return self.made[-1]

    def env(self, http_client=None):
        kind = Awaited if self.awaited else AgentGymEnv
        return kind("TextCraft", server=f"http://{next(numbers)}.test", http_client=http_client or self)

    def _answer(self, request):
        status, headers = self.respond(request)
        body = json.loads(answer(request).content)
        return self.library.Response(status, headers=headers, json=body)


@each_way
@pytest.mark.parametrize("handed_in", ["client", "callable"])
def test_only_clients_created_here_are_closed(library, awaited, handed_in):
    clients = Clients(library, awaited)
    env = clients.env(None if handed_in == "callable" else clients())
    for _ in range(2):
        play(env)
    env.close()
    assert [each.is_closed for each in clients.made] == [handed_in == "callable"]


def test_a_closed_environment_makes_another_client_when_it_connects_again(library):
    clients = Clients(library)
    env = clients.env()
    for _ in range(2):
        play(env)
        env.close()
    assert [each.is_closed for each in clients.made] == [True] * 2


def test_a_callable_makes_a_client_for_each_event_loop(library):
    clients = Clients(library, awaited=True)
    env = AsyncAgentGymEnv("TextCraft", server="http://made.test", http_client=clients)
    for _ in range(2):
        asyncio.run(env.reset(seed=0))
    assert len(clients.made) == 2


def test_an_abandoned_request_is_cancelled(library):
    asked = asyncio.Event()

    async def respond(request):
        if request.url.path == "/step":
            asked.set()
            await asyncio.sleep(60)
        return library.Response(200, json=json.loads(answer(request).content))

    async def play():
        client = library.AsyncClient(transport=library.MockTransport(respond))
        env = AsyncAgentGymEnv("TextCraft", server="http://made.test", http_client=lambda: client)
        await env.reset(seed=0)
        step = asyncio.ensure_future(env.step("Action: inventory"))
        await asked.wait()
        step.cancel()
        with pytest.raises(asyncio.CancelledError):
            await step
        await env.close()
        return [each for each in asyncio.all_tasks() if each is not asyncio.current_task()]

    assert asyncio.run(play()) == []


@each_way
@pytest.mark.parametrize(
    ("raised", "fault"),
    [
        ("ConnectTimeout", errors.ServerUnreachable),
        ("PoolTimeout", errors.ServerUnreachable),
        ("ConnectError", errors.ServerUnreachable),
        ("ProxyError", errors.ServerUnreachable),
        ("ReadTimeout", errors.ServerTimeout),
        ("WriteTimeout", errors.ServerTimeout),
        ("ReadError", errors.ConnectionLost),
        ("RemoteProtocolError", errors.ConnectionLost),
        ("ConnectionResetError", errors.ConnectionLost),
        ("DecodingError", errors.BadReply),
        ("UnsupportedProtocol", errors.BadOption),
    ],
)
def test_faults_match_the_engine(library, awaited, raised, fault, monkeypatch):
    inside.retry_at_once(monkeypatch)

    def respond(request):
        raise getattr(library, raised, ConnectionResetError)("why")

    env = Clients(library, awaited, respond).env()
    with pytest.raises(fault, match=r"why|time allowed"):
        env.reset(seed=0)
    env.close()


@pytest.mark.parametrize("source", [lambda: object(), httpx.AsyncClient])  # noqa: PLW0108
def test_a_client_of_the_wrong_kind_is_refused_by_name(source):
    env = AgentGymEnv("TextCraft", server="http://wrong.test", http_client=source)
    with pytest.raises(errors.BadOption, match=r"should be or return an httpx\.Client"):
        env.reset(seed=0)


def test_a_client_that_is_closed_is_named(library):
    clients = Clients(library)
    client = clients()
    client.close()
    with pytest.raises(errors.BadOption, match="is closed"):
        clients.env(client).reset(seed=0)


def test_cookies_last_as_long_as_the_environment(library):
    cookies = []

    def respond(request):
        cookies.append(request.headers.get("cookie"))
        failed = request.url.path == "/step" and cookies.count("at=one") < 4
        return 500 if failed else 200, {"Set-Cookie": "at=one"}

    env = Clients(library, respond=respond).env()
    env.reset(seed=0)
    assert env.step("Action: inventory")[4]["fault"]["kind"] == "ServerError"
    play(env)
    assert cookies == [None, *["at=one"] * (len(cookies) - 1)]
    env.close()
    assert "at=one" in cookies


FORKS = """
    import os, httpx
    from agentgym_gym import AgentGymEnv

    made = []

    def answer(request):
        body = {"id": 0, "observation": "Goal: craft x.", "reward": 0, "done": False}
        greeting = "This is environment TextCraft."
        return httpx.Response(200, json=greeting if request.url.path == "/" else body)

    def make():
        made.append(os.getpid())
        return httpx.Client(transport=httpx.MockTransport(answer))

    env = AgentGymEnv("TextCraft", server="http://made.test", http_client=make)
    env.reset(seed=0)
    child = os.fork()
    if child == 0:
        env.reset(seed=0)
        os._exit(0 if made == [os.getppid(), os.getpid()] else 1)
    assert os.waitpid(child, 0)[1] == 0
    env.close()
"""


@pytest.mark.slow  # a separate program
@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
def test_a_forked_child_makes_its_own():
    ended = programs.run(
        [sys.executable, "-c", textwrap.dedent(FORKS)], capture_output=True, text=True, timeout=120
    )
    assert (ended.returncode, ended.stderr) == (0, "")
