"""The asynchronous driver: moves the bytes of a flow over one kept-alive connection, in an event loop.

What may be repeated, and how long it may take, is as for the synchronous driver.
"""

from __future__ import annotations

import asyncio
import contextlib
import math
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from agentgym_gym._http import abandoned, connection_ids
from agentgym_gym._http.asyncio_connection import Connection
from agentgym_gym._http.limits import Limits, Stats
from agentgym_gym._http.retry import IOFlow, Pause, Send, with_retries
from agentgym_gym._threads import call_in_thread
from agentgym_gym.calls import InThread, MaybeRestarted, Reply
from agentgym_gym.errors import InUse, SetupError

if TYPE_CHECKING:
    import concurrent.futures

    from agentgym_gym._http import HttpClient
    from agentgym_gym._http.httpx_client import AwaitedClient
    from agentgym_gym.calls import Call, WaitingFlow

__all__ = ["AsyncDriver", "FlowFuture"]

T = TypeVar("T")


class AsyncDriver:
    """Runs flows, one at a time, in whichever event loop it is called in.

    Args:
        limits: The time allowed.
        headers: Sent with every request; each takes the place of one of the engine's own of the same name.
        http_client: Sends the requests in place of the engine; see `httpx_client`.

    Attributes:
        stats: What was counted.
    """

    def __init__(
        self,
        *,
        limits: Limits,
        headers: Mapping[str, str] | None = None,
        http_client: HttpClient | None = None,
    ) -> None:
        self.limits = limits
        self.stats = Stats()
        self._headers = tuple((headers or {}).items())
        self._connections: dict[str, Connection] = {}
        self._retired: dict[str, Connection] = {}
        self._client: AwaitedClient | None = None
        if http_client is not None:
            from agentgym_gym._http.httpx_client import AwaitedClient  # noqa: PLC0415 - for few users

            self._client = AwaitedClient(http_client, self._headers)
        self._future: FlowFuture[Any] | None = None

    def run(self, flow: WaitingFlow[T], until: float = math.inf) -> FlowFuture[T]:
        """Carry out a flow's calls. What can be done without waiting is done before this returns.

        Args:
            flow: The flow.
            until: When the time of the whole episode is up, on `time.monotonic`.

        Returns:
            What can be awaited for the flow's result; a `Fault` that the flow did not handle is raised there,
            as is whatever the flow itself raises.

        Raises:
            InUse: Another flow is being carried out.
            SetupError: There is no event loop of asyncio here.
        """
        if self._future is not None and not self._future.done():
            raise InUse("this environment is in use by another task; make one for each task")
        try:
            future = FlowFuture(self, with_retries(flow, self.limits, self.stats, until))
        except RuntimeError as error:
            raise SetupError(
                "an asynchronous environment is awaited in an event loop of asyncio, and none is running "
                "here. Under trio, or without an event loop, use AgentGymEnv, in a thread of its own"
            ) from error
        try:
            self._future = future
            future.advance(None)
            return future  # noqa: TRY300 - Ctrl-C may come here, too
        except BaseException:
            future.cancel()
            raise

    def cancel(self) -> None:
        """Stop what is being carried out, if anything is: nobody awaits it, as Ctrl-C came before."""
        if self._future is not None:
            self._future.cancel()

    async def close(self) -> None:
        """Close the connections; a later flow opens new ones."""
        if self._client is not None:
            await self._client.aclose()
        if self._connections or self._retired:
            self.abandon()
            await asyncio.sleep(0)  # asyncio closes sockets when it comes round

    def abandon(self) -> None:
        """Close the connections without waiting, from wherever."""
        if self._client is not None:
            self._client.abandon()
        for connections in (self._connections, self._retired):
            while connections:
                connections.popitem()[1].abandon()

    def connection(self, call: Call) -> Connection | AwaitedClient | None:
        """Return what a request can be sent on at once; None if a connection is to be opened for it.

        Raises:
            MaybeRestarted: None proves that the server was not restarted since the environment was heard.
        """
        if self._client is not None:
            return self._client
        connection = self._connections.get(call.server)
        if connection is not None and not connection.usable:
            self._connections.pop(call.server)
            if not connection.lives or call.server in self._retired:
                connection.abandon()
            else:
                self._retired[call.server] = connection  # it was given up
            connection = None
        elif self._retired and connection is not None and connection.number == call.connection:
            self._retired.popitem()[1].abandon()  # the environment was heard since
        if connection is None and (call.connection is None or call.witness):
            return None
        if connection is None or not connection_ids.proves(connection, call):
            raise MaybeRestarted
        return connection

    async def connect(self, asked: Send) -> Connection:
        """Open a connection to the server of a call.

        Raises:
            ServerUnreachable: Nobody was there, or nobody answered in time.
            BadOption: The server's URL cannot be used.
        """
        connection = self._connections[asked.call.server] = await Connection.open(asked, self._headers)
        self.stats.connections += 1
        return connection


class FlowFuture(asyncio.Future[T]):
    """A flow that is being carried out: the future of what it returns.

    It is moved on by callbacks, since a task and its coroutines would cost a step as much as all else that is
    done for it.

    Args:
        driver: Who has the connections.
        work: What is to be done.
    """

    def __init__(self, driver: AsyncDriver, work: IOFlow[T]) -> None:
        super().__init__(loop=asyncio.get_running_loop())
        self._driver = driver
        self._work = work
        self._give_up: Callable[[], object] | None = None  # what is being waited for
        self._in_thread = False
        self._from_thread: list[object] = []  # what has ended there, and not been told to the flow
        self._cancelled_in_thread = False

    def advance(self, how: object) -> None:
        """Go on as far as that goes without waiting.

        Args:
            how: How what was waited for has ended: the answer, or the exception in place of one; None for a
                pause, and at the beginning.
        """
        if self.done():
            return
        try:
            self._carry_out(self._resume(how))
        except StopIteration as stop:
            if self._cancelled_in_thread:
                self.cancel()
            else:
                self.set_result(stop.value)
        except Exception as error:  # noqa: BLE001 - it is for whoever awaits this
            self._work.close()
            if self._cancelled_in_thread:
                self.cancel()
            else:
                self.set_exception(error)
        except BaseException:
            self.cancel()  # Ctrl-C, say
            if isinstance(how, Reply):
                abandoned.tell(how)
            raise

    def _resume(self, how: object) -> Send | Pause | InThread:
        """Have the flow go on until it asks for something."""
        return self._work.throw(how) if isinstance(how, BaseException) else self._work.send(how)

    def _carry_out(self, asked: Send | Pause | InThread) -> None:
        """Begin what the flow asks for."""
        if isinstance(asked, InThread):
            self._run_in_thread(asked.function)
        elif self._cancelled_in_thread:
            self.cancel()
        elif isinstance(asked, Pause):
            self._give_up = self._pause(asked)
        else:
            self._send(asked)

    def _send(self, asked: Send) -> None:
        """Send a request, over a new connection if need be."""
        try:
            connection = self._driver.connection(asked.call)
        except MaybeRestarted as error:
            self.advance(error)
            return
        if connection is not None:
            self._ask(connection, asked)
        else:
            self._give_up = self.get_loop().create_task(self._connect(asked)).cancel

    def cancel(self, msg: Any = None) -> bool:
        """Stop. The reply to a request that was sent may still come, and will not be read.

        Work in a thread is waited for: the flow must learn which files it has changed, or which slot it has
        taken.
        """
        if self._in_thread:
            self._cancelled_in_thread = True
            if self._from_thread:
                self._thread_done()
            return True
        if not super().cancel(msg):
            return False
        if self._give_up is not None:
            self._give_up()
        self._work.close()
        return True

    def _run_in_thread(self, function: Callable[[], Any]) -> None:
        """Call a function in another thread, and go on when it is done."""
        self._give_up = None
        call_in_thread(lambda: self._call(function))
        # Not before: an interrupt on the way there must not have `cancel` wait for work that nobody does.
        self._in_thread = True

    def _call(self, function: Callable[[], Any]) -> None:
        """Call a function, and have the event loop go on with what it returned or raised."""
        how = _outcome(function)
        self._from_thread.append(how)
        try:
            self.get_loop().call_soon_threadsafe(self._thread_done)
        except RuntimeError:  # the event loop was closed meanwhile: nobody waits for the flow any more
            with contextlib.suppress(Exception), contextlib.closing(self._work):
                while isinstance(asked := self._resume(how), InThread):
                    how = _outcome(asked.function)

    def _thread_done(self) -> None:
        if self._in_thread:  # else `cancel` was here first
            self._in_thread = False  # first, or an interrupt here would have `cancel` wait for ever
            self.advance(self._from_thread.pop())

    def _pause(self, asked: Pause) -> Callable[[], object]:
        if asked.until is None:
            return self.get_loop().call_later(asked.seconds, self.advance, None).cancel
        return self.get_loop().create_task(self._wait(asked.until, asked.seconds)).cancel

    async def _wait(self, until: concurrent.futures.Future[Any], seconds: float) -> None:
        await asyncio.wait({asyncio.wrap_future(until)}, timeout=seconds)
        self.advance(None)

    async def _connect(self, asked: Send) -> None:
        try:
            connection = await self._driver.connect(asked)
            if not connection_ids.proves(connection, asked.call):
                raise MaybeRestarted
            if not self.done():
                self._ask(connection, asked)
        except Exception as error:  # noqa: BLE001 - it is for the flow
            failed = error
        else:
            return
        self.advance(failed)

    def _ask(self, connection: Connection | AwaitedClient, asked: Send) -> None:
        self._give_up = connection.give_up
        connection.ask(asked, self.advance)


def _outcome(function: Callable[[], Any]) -> object:
    """Return what a function returns, or the exception that it raises."""
    try:
        return function()
    except BaseException as error:  # noqa: BLE001 - it is for the flow
        return error
