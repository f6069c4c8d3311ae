"""A reverse proxy that injects faults into calls, over real sockets."""

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
_BACKLOG = 2048  # queue of connections to accept; uvicorn's default
_PROBE = 0.02  # seconds between attempts to reach a server that is down


class FaultyProxy:
    """A reverse proxy for one server that injects faults into a share of the calls.

    It is a context manager and serves on 127.0.0.1 in its own thread. To run it in a separate process, use
    ``python -m agentgym_gym.testing``. The proxy reads each request and reply completely and forwards it byte
    for byte, except for the ``Host`` header of requests. Each client has its own connection to the server.

    When the server goes down, the proxy closes its connections and refuses new ones until the server is back
    at its address. It detects this with one extra connection, which sends nothing.

    Args:
        server: Base URL of the server.
        share: Fraction of the calls that fail, from 0 to 1.
        kinds: Kinds of faults, see `Kind`; a kind listed twice is drawn twice as often.
        stages: Stages of the calls that may fail; all by default.
        seed: Random seed: the same sequence of calls gets the same faults. Concurrent calls arrive in a
            different order each time, so the faults hit different calls.
        delay: Seconds by which ``delay`` delays a reply.
        port: The port to listen on; 0 for any free port.

    Attributes:
        faults: The injected faults and their counts; its ``share`` can be changed at any time.

    Raises:
        BadOption: The value of an argument is invalid.
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
            raise BadOption("port", port, "from 0 to 65535; 0 takes any free port")
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
        """The URL of the running proxy, such as ``http://127.0.0.1:43210``."""
        return f"http://{_HOST}:{self._port}"

    @property
    def injected(self) -> Counter[Kind]:
        """The number of faults so far, by kind."""
        return self.faults.injected

    @property
    def unplanned(self) -> int:
        """The number of calls that the server itself did not answer."""
        return self._forwarder.unplanned

    @property
    def journal(self) -> Journal:
        """The environments that the server created."""
        return self._forwarder.journal

    def report(self) -> dict[str, Any]:
        """Return all counts, ready for JSON."""
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
        """Wait for the thread to end, and raise its exception if it failed."""
        with contextlib.suppress(RuntimeError):  # the loop is already closed
            self._loop.call_soon_threadsafe(self._stopping.set)
        self._thread.join()
        if self._failure is not None:
            raise self._failure

    @contextlib.contextmanager
    def down(self) -> Iterator[None]:
        """Close all connections and refuse new ones within this context, as if the server were down."""
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

    # ------------------------------------------------------------------------------ in its own thread

    def _run(self) -> None:
        try:
            with contextlib.closing(self._loop):
                self._loop.run_until_complete(self._main())
        except Exception as failure:  # noqa: BLE001 - it is raised where the context is entered or left
            self._failure = failure
        finally:
            self._ready.set()

    async def _main(self) -> None:
        watch, stop = asyncio.create_task(self._watch()), asyncio.create_task(self._stopping.wait())
        try:
            await asyncio.wait([watch, stop], return_when=asyncio.FIRST_COMPLETED)
            if watch.done():
                watch.result()
        finally:
            for task in (watch, stop):
                task.cancel()
            await asyncio.gather(watch, stop, return_exceptions=True)
            if self._door is not None:
                self._door.close()
            self._socket.close()
            await self._forwarder.stop()

    async def _watch(self) -> None:
        """Detect when the server goes down and when it is back."""
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
        """Start or stop listening: the proxy listens if the server is up and `down` is not active."""
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
                self._socket = _bound(self._port)  # reserve the port
                self._forwarder.drop_all()


def _bound(port: int) -> socket.socket:
    """Return a socket that reserves the port but does not listen, so that connections are refused."""
    bound = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        bound.bind((_HOST, port))
    except OSError as error:
        bound.close()
        raise BadOption(
            f"cannot bind {_HOST}:{port}: {error.strerror or error}; pass port 0 for a free one"
        ) from error
    return bound
