"""A reverse proxy that makes calls go wrong, over real sockets."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import threading
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from agentgym_gym.errors import BadOption
from agentgym_gym.testing._faults import KINDS, STAGES, Faults, Kind
from agentgym_gym.testing._forwarding import MAX_HEAD_BYTES, Address, Forwarder

if TYPE_CHECKING:
    from typing_extensions import Self

    from agentgym_gym.calls import Stage
    from agentgym_gym.testing._created_envs import Journal

__all__ = ["FaultyProxy"]

_HOST = "127.0.0.1"
_MAX_PORT = 65_535
_BACKLOG = 2048  # connections that wait to be accepted, as many as uvicorn lets wait
_PROBE = 0.02  # seconds between looks whether a server that was gone is back


class FaultyProxy:
    """A reverse proxy of one server that makes a share of the calls go wrong.

    It is a context manager and serves at 127.0.0.1 in its own thread; ``python -m agentgym_gym.testing`` is
    the same in its own process. Each request and each reply is read whole and forwarded byte for byte, except
    for the request's ``Host``. Each client has its own connection to the server. While the server is down, so
    is the proxy: its connections are closed, and new ones are refused until the server is back at its
    address. It learns of that by one more connection, on which nothing is sent.

    Args:
        server: Base URL of the server.
        share: How many of the calls go wrong, from 0 to 1.
        kinds: How, as `Kind` lists them; one that is named twice is drawn twice as often.
        stages: What the calls that may go wrong are for; all by default.
        seed: Seed of the draws: the same sequence of calls meets the same faults. Concurrent calls come in
            another order each time, so different ones are hit.
        delay: Seconds by which ``delay`` is late.
        port: The port to listen on; 0 takes any free one.

    Attributes:
        faults: The injected faults and their counts; its ``share`` may be changed at any time.

    Raises:
        BadOption: An argument has a value it cannot have.
    """

    def __init__(
        self,
        server: str,
        share: float = 0.05,
        *,
        kinds: Sequence[Kind] = KINDS,
        stages: Collection[Stage] = STAGES,
        seed: int = 0,
        delay: float = 1.0,
        port: int = 0,
    ) -> None:
        if not 0 <= port <= _MAX_PORT:
            raise BadOption(f"port {port} is out of range; 0 takes any free one")
        self.faults = Faults(share, kinds=kinds, stages=stages, seed=seed, delay=delay)
        self._address = Address(server)
        self._forwarder = Forwarder(self._address, self.faults)
        self._port = port
        self._there = self._was_there = self._held_down = False
        self._door: asyncio.Server | None = None
        self._settling, self._stopping, self._ready = asyncio.Lock(), asyncio.Event(), threading.Event()
        self._failure: Exception | None = None
        self._thread = threading.Thread(target=self._run, name="faulty-proxy", daemon=True)

    @property
    def url(self) -> str:
        """Where it listens, once it does, such as ``http://127.0.0.1:43210``."""
        return f"http://{_HOST}:{self._port}"

    @property
    def injected(self) -> Counter[Kind]:
        """The faults so far, by kind."""
        return self.faults.injected

    @property
    def unplanned(self) -> int:
        """How many calls the server itself did not answer."""
        return self._forwarder.unplanned

    @property
    def journal(self) -> Journal:
        """Which environments were made."""
        return self._forwarder.journal

    def report(self) -> dict[str, Any]:
        """Return what was counted, as for JSON."""
        return {
            "calls": dict(self.faults.calls),
            "injected": dict(self.injected),
            "unplanned": self.unplanned,
            "created": [asdict(made) for made in self.journal.created],
        }

    def __enter__(self) -> Self:
        self._socket = _bound(self._port)
        self._port = self._socket.getsockname()[1]
        self._loop = asyncio.new_event_loop()
        self._thread.start()
        self._ready.wait()
        if self._failure is not None:
            self._end()
        return self

    def __exit__(self, *_: object) -> None:
        self._end()

    def _end(self) -> None:
        """Wait for the thread to end, and raise what it failed by."""
        with contextlib.suppress(RuntimeError):  # its loop is closed already
            self._loop.call_soon_threadsafe(self._stopping.set)
        self._thread.join()
        if self._failure is not None:
            raise self._failure

    @contextlib.contextmanager
    def down(self) -> Iterator[None]:
        """End all connections and refuse new ones until this context is left, as if the server were gone."""
        self._hold(down=True)
        try:
            yield
        finally:
            self._hold(down=False)

    def _hold(self, *, down: bool) -> None:
        async def hold() -> None:
            self._held_down = down
            await self._settle()

        asyncio.run_coroutine_threadsafe(hold(), self._loop).result()

    # ------------------------------------------------------------------------------ in a thread of its own

    def _run(self) -> None:
        try:
            with contextlib.closing(self._loop):
                self._loop.run_until_complete(self._main())
        except Exception as failure:  # noqa: BLE001 - it is raised where the context is entered or left
            self._failure = failure
        finally:
            self._ready.set()

    async def _main(self) -> None:
        watch, told = asyncio.create_task(self._watch()), asyncio.create_task(self._stopping.wait())
        try:
            await asyncio.wait([watch, told], return_when=asyncio.FIRST_COMPLETED)
            if watch.done():
                watch.result()
        finally:
            for task in (watch, told):
                task.cancel()
            await asyncio.gather(watch, told, return_exceptions=True)
            if self._door is not None:
                self._door.close()
            self._socket.close()
            await self._forwarder.stop()

    async def _watch(self) -> None:
        """Watch when the server goes down, and when it is back."""
        while True:
            try:
                reader, writer = await self._address.connect()
            except OSError:
                self._there = False
                await self._settle()
                self._ready.set()
                await asyncio.sleep(_PROBE)
                continue
            try:
                if not self._there:
                    self.journal.life += self._was_there
                self._there = self._was_there = True
                await self._settle()
                self._ready.set()
                with contextlib.suppress(OSError):
                    await reader.read()
            finally:
                writer.transport.abort()

    async def _settle(self) -> None:
        """Listen while the server is up and the proxy is not told to be down."""
        async with self._settling:
            if self._there and not self._held_down:
                if self._door is None:
                    accept = self._forwarder.accept
                    self._door = await asyncio.start_server(
                        accept, sock=self._socket, backlog=_BACKLOG, limit=MAX_HEAD_BYTES
                    )
            elif self._door is not None:
                self._door.close()
                self._door = None
                self._socket = _bound(self._port)  # nobody else is to have it meanwhile
                self._forwarder.drop_all()


def _bound(port: int) -> socket.socket:
    """Return a socket that is bound and does not listen: connections are refused, and the port is ours."""
    bound = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        bound.bind((_HOST, port))
    except OSError as error:
        bound.close()
        raise BadOption(f"port {port} of {_HOST} cannot be had: {error.strerror or error}") from error
    return bound
