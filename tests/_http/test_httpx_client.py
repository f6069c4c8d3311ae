"""Clients that users hand in: whose they are, and what is not one."""

from __future__ import annotations

import asyncio
import importlib.util
import os
import warnings

import httpx
import pytest

from agentgym_gym import errors
from agentgym_gym._http.async_driver import AsyncDriver
from agentgym_gym._http.httpx_client import client_source
from agentgym_gym._http.limits import Limits
from agentgym_gym._http.sync_driver import SyncDriver
from agentgym_gym.calls import Call, at
from by_hand import ask

LIBRARIES = [pytest.param(name, marks=pytest.mark.needs(name)) for name in ("httpx", "httpx2")]


@pytest.fixture(params=LIBRARIES)
def library(request):
    return importlib.import_module(request.param)


def step():
    return at("http://made.test", ask(Call("step", "POST", "/step", {"action": "look"})))


def answering(library, requests):
    def answer(request):
        requests.append(request)
        return library.Response(200, json={"observation": "x"})

    return library.MockTransport(answer)


@pytest.mark.parametrize("handed_in", ["client", "callable"])
def test_what_is_made_here_is_closed_here_and_what_is_the_users_is_not(library, handed_in):
    made = []

    def make():
        made.append(library.Client(transport=answering(library, [])))
        return made[-1]

    driver = SyncDriver(limits=Limits(), http_client=make if handed_in == "callable" else make())
    for _ in range(2):
        assert driver.run(step()).text("observation") == "x"
    driver.close()
    assert [each.is_closed for each in made] == [handed_in == "callable"]
    if handed_in == "callable":
        driver.run(step())  # opens anew, as the engine does
        driver.close()
    assert [each.is_closed for each in made] == [True] * 2 if handed_in == "callable" else [False]


@pytest.mark.parametrize("handed_in", ["client", "callable"])
def test_likewise_where_it_is_awaited(library, handed_in):
    made = []

    def make():
        made.append(library.AsyncClient(transport=answering(library, [])))
        return made[-1]

    driver = AsyncDriver(limits=Limits(), http_client=make if handed_in == "callable" else make())

    async def play():
        for _ in range(2):
            assert (await driver.run(step())).text("observation") == "x"
        await driver.close()

    asyncio.run(play())
    assert [each.is_closed for each in made] == [handed_in == "callable"]


def test_a_callable_makes_a_client_for_each_event_loop(library):
    made = []

    def make():
        made.append(library.AsyncClient(transport=answering(library, [])))
        return made[-1]

    driver = AsyncDriver(limits=Limits(), http_client=make)

    async def play():
        return await driver.run(step())

    for _ in range(2):
        assert asyncio.run(play()).text("observation") == "x"
    assert len(made) == 2


def test_a_request_that_nobody_waits_for_is_cancelled(library):
    async def never(request):
        await asyncio.sleep(60)

    driver = AsyncDriver(
        limits=Limits(), http_client=lambda: library.AsyncClient(transport=library.MockTransport(never))
    )

    async def play():
        waiting = driver.run(step())
        await asyncio.sleep(0.01)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        await driver.close()
        return [each for each in asyncio.all_tasks() if each is not asyncio.current_task()]

    assert asyncio.run(play()) == []


@pytest.mark.slow
@pytest.mark.parametrize("awaited", [False, True])
def test_faults_are_those_of_the_engine(library, awaited):
    kinds = {
        library.ConnectTimeout: errors.ServerUnreachable,
        library.PoolTimeout: errors.ServerUnreachable,
        library.ConnectError: errors.ServerUnreachable,
        library.ProxyError: errors.ServerUnreachable,
        library.ReadTimeout: errors.ServerTimeout,
        library.WriteTimeout: errors.ServerTimeout,
        library.ReadError: errors.ConnectionLost,
        library.RemoteProtocolError: errors.ConnectionLost,
        ConnectionResetError: errors.ConnectionLost,
        library.DecodingError: errors.BadReply,
        library.UnsupportedProtocol: errors.BadOption,
    }
    for raised, fault in kinds.items():

        def fail(request, raised=raised):
            raise raised("why")

        transport = library.MockTransport(fail)
        driver = (
            AsyncDriver(limits=Limits(), http_client=lambda: library.AsyncClient(transport=transport))  # noqa: B023
            if awaited
            else SyncDriver(limits=Limits(), http_client=lambda: library.Client(transport=transport))  # noqa: B023
        )

        async def play():
            try:
                return await driver.run(step())  # noqa: B023
            finally:
                await driver.close()  # noqa: B023

        with pytest.raises(fault, match=r"why|time allowed"):
            asyncio.run(play()) if awaited else driver.run(step())


class NoClient:
    def __call__(self):
        return object()


@pytest.mark.parametrize("given", ["no_such_module:x", "json", "json:no_such", "json:__name__", 7, object()])
def test_what_is_no_source_of_clients_is_refused_by_name(given):
    with pytest.raises(errors.BadOption, match="http_client"):
        client_source(given)


def test_an_import_path_is_that_of_a_callable():
    assert client_source("httpx:Client") is httpx.Client
    SyncDriver(limits=Limits(), http_client="httpx:Client").close()


@pytest.mark.parametrize("source", [NoClient(), httpx.AsyncClient])
def test_what_makes_no_client_of_the_right_kind_is_refused_by_name(source):
    driver = SyncDriver(limits=Limits(), http_client=source)
    with pytest.raises(errors.BadOption, match=r"should give an httpx\.Client"):
        driver.run(step())


def test_a_client_that_is_closed_is_named(library):
    client = library.Client(transport=answering(library, []))
    client.close()
    with pytest.raises(errors.BadOption, match="is closed"):
        SyncDriver(limits=Limits(), http_client=client).run(step())


def test_cookies_last_as_long_as_the_environment(library):
    seen = []

    def answer(request):
        seen.append(request.headers.get("cookie"))
        status = 500 if len(seen) == 2 else 200
        return library.Response(status, headers={"Set-Cookie": "at=one"}, json={"observation": "x"})

    driver = SyncDriver(
        limits=Limits(), http_client=lambda: library.Client(transport=library.MockTransport(answer))
    )
    driver.run(step())
    with pytest.raises(errors.ServerError):
        driver.run(step())
    driver.run(step())
    driver.close()
    assert seen == [None, "at=one", "at=one"]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
def test_a_forked_child_makes_its_own():
    made = []

    def make():
        made.append(os.getpid())
        return httpx.Client(transport=answering(httpx, []))

    driver = SyncDriver(limits=Limits(), http_client=make)
    driver.run(step())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # pytest may have threads
        child = os.fork()
    if child == 0:
        driver.run(step())
        os._exit(0 if made == [os.getppid(), os.getpid()] else 1)
    assert os.waitpid(child, 0)[1] == 0
    driver.close()
