"""The asynchronous driver: sends a flow's requests over one kept-alive connection, in an event loop.

The rules for retries and timeouts are those of the synchronous driver.
"""

from __future__ import annotations

import asyncio
import contextlib
import math
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from agentgym_gym._http.asyncio_connection import Connection
from agentgym_gym._http.limits import Limits, Stats
from agentgym_gym._http.retry import IOFlow, Pause, Send, with_retries
from agentgym_gym._threads import call_in_thread
from agentgym_gym.calls import InThread, MaybeRestarted
from agentgym_gym.errors import InUse, SetupError

if TYPE_CHECKING:
    import concurrent.futures

    from agentgym_gym._http import HttpClient
    from agentgym_gym._http.httpx_client import AwaitedClient
    from agentgym_gym.calls import Call, WaitingFlow

__all__ = ["AsyncDriver", "FlowFuture"]

T = TypeVar("T")


class AsyncDriver:
    """Runs flows, one at a time, in the event loop of the caller.

    Args:
        limits: Time limits per stage.
        headers: Sent with every request; they replace default headers of the same name.
        http_client: Sends the requests instead of the built-in client; see `httpx_client`.

    Attributes:
        stats: Metrics of the requests.
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
        self._client: AwaitedClient | None = None
        if http_client is not None:
            from agentgym_gym._http.httpx_client import AwaitedClient  # noqa: PLC0415 - for few users

            self._client = AwaitedClient(http_client, self._headers)
        self._future: FlowFuture[Any] | None = None

    def run(self, flow: WaitingFlow[T], until: float = math.inf) -> FlowFuture[T]:
        """Run a flow. Operations that need no waiting are complete when this method returns.

        Args:
            flow: The flow.
            until: End of the time allowed for the whole episode, on `time.monotonic`.

        Returns:
            A future of the flow's result. Awaiting it raises a `Fault` that the flow did not handle, and any
            exception of the flow itself.

        Raises:
            InUse: Another flow is running.
            SetupError: No asyncio event loop is running.
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
            future.cancel_now()
            raise

    def cancel(self) -> None:
        """Cancel the running flow, if any; for when Ctrl-C came before the caller could await it."""
        if self._future is not None:
            self._future.cancel_now()

    def end_call(self) -> None:
        """End a flow whose event loop has ended before it, as after a second Ctrl-C.

        The replies that its connections still wait for are read in other threads.
        """
        if self._future is None or self._future.get_loop().is_running():
            return
        for connection in list(self._connections.values()):
            connection.leave()
        self._future.end()

    async def close(self) -> None:
        """Close the connections; a later flow opens new ones."""
        if self._client is not None:
            await self._client.aclose()
        if self._connections:
            self.abandon()
            await asyncio.sleep(0)  # asyncio closes sockets in its next iteration

    def abandon(self) -> None:
        """Close the connections without waiting, from any thread."""
        if self._client is not None:
            self._client.abandon()
        for server, connection in list(self._connections.items()):
            connection.abandon()
            self._connections.pop(server, None)  # after it, so that Ctrl-C loses no open connection

    def connection(self, call: Call) -> Connection | AwaitedClient | None:
        """Return the connection for a request; None if a new one must be opened.

        Raises:
            MaybeRestarted: The connection of the environment's last reply is closed.
        """
        if self._client is not None:
            return self._client
        connection = self._connections.get(call.server)
        if connection is not None and not connection.usable:
            connection = None
        if connection is not None and connection.link is call.connection:
            return connection
        if not call.may_be_sent:
            raise MaybeRestarted
        return connection

    async def connect(self, request: Send) -> Connection:
        """Open a connection to the server of a call.

        Raises:
            ServerUnreachable: The connection failed or timed out.
            BadOption: The server's URL is invalid.
            MaybeRestarted: The connection of the environment's last reply is closed.
        """
        call = request.call
        before = self._connections.get(call.server)
        connection = await Connection.open(request, self._headers)
        connection.before, connection.outlives_loop = before, True
        self._connections[call.server] = connection
        self.stats.connections += 1
        connection.skip_unanswered()
        if not call.may_be_sent:
            raise MaybeRestarted
        return connection


class FlowFuture(asyncio.Future[T]):
    """A running flow: the future of its result.

    Callbacks drive it. A task with its coroutines would cost each step as much as the rest of the work
    together.

    Args:
        driver: The driver, which owns the connections.
        work: The operations to carry out.
    """

    def __init__(self, driver: AsyncDriver, work: IOFlow[T]) -> None:
        super().__init__(loop=asyncio.get_running_loop())
        self._driver = driver
        self._work = work
        self._give_up: Callable[[], object] | None = None  # cancels the operation under way
        self._in_thread = False
        self._from_thread: list[object] = []  # results that the flow has not received yet
        self._cancelling = False

    def advance(self, how: object) -> None:
        """Run the flow until it has to wait.

        Args:
            how: Result of the last operation: its return value, or the exception that it raised. None after a
                pause and at the start.
        """
        self._give_up = None  # the last operation is over
        if self.done():
            return
        try:
            self._carry_out(self._resume(how))
        except StopIteration as stop:
            if self._cancelling:
                self.cancel_now()
            else:
                self.set_result(stop.value)
        except Exception as error:  # noqa: BLE001 - it is for the caller that awaits this
            self._work.close()
            if self._cancelling:
                self.cancel_now()
            else:
                self.set_exception(error)
        except BaseException:
            self.cancel_now()  # such as Ctrl-C
            raise

    def _resume(self, how: object) -> Send | Pause | InThread:
        """Run the flow up to its next operation."""
        return self._work.throw(how) if isinstance(how, BaseException) else self._work.send(how)

    def _carry_out(self, operation: Send | Pause | InThread) -> None:
        """Start an operation of the flow."""
        if isinstance(operation, InThread):
            self._run_in_thread(operation.function)
        elif self._cancelling:
            self.cancel_now()
        elif isinstance(operation, Pause):
            self._give_up = self._pause(operation)
        else:
            self._send(operation)

    def _send(self, request: Send) -> None:
        """Send a request, over a new connection if necessary."""
        try:
            connection = self._driver.connection(request.call)
        except MaybeRestarted as error:
            self.advance(error)
            return
        if connection is not None:
            self._send_over(connection, request)
        else:
            self._give_up = self.get_loop().create_task(self._connect(request)).cancel

    def cancel(self, msg: Any = None) -> bool:
        """Cancel the flow in the next iteration of the event loop.

        Not at once: at a Ctrl-C, `asyncio.run` cancels its task from a signal handler, between any two
        instructions, also those of the callbacks that drive this flow.
        """
        if self.done():
            return False
        self._cancelling = True
        try:
            self.get_loop().call_soon(self.cancel_now, msg)
        except RuntimeError:  # the event loop is closed
            return self.cancel_now(msg)
        return True

    def cancel_now(self, msg: Any = None) -> bool:
        """Cancel the flow. The reply to a request under way may still arrive; the flow does not receive it.

        Work in a thread is waited for: the flow must learn which files it has changed, or which slot it has
        taken.
        """
        if self._in_thread:
            self._cancelling = True
            if self._from_thread:
                self._thread_done()
            return True
        if not super().cancel(msg):
            return False
        if self._give_up is not None:
            self._give_up()
        self._work.close()
        return True

    def end(self) -> None:
        """Pass on what the flow has received from a thread, if its event loop ended before it could do so."""
        if self._in_thread and not self.done():
            with contextlib.suppress(RuntimeError):  # the event loop is closed: no caller awaits the flow
                self.cancel_now()

    def _run_in_thread(self, function: Callable[[], Any]) -> None:
        """Call a function in another thread, and resume the flow when it returns."""
        self._give_up = None
        call_in_thread(lambda: self._call(function))
        # Set only after the call: if an interrupt came before, `cancel` would wait for work that never
        # starts.
        self._in_thread = True

    def _call(self, function: Callable[[], Any]) -> None:
        """Call a function, and pass its result or exception to the event loop."""
        how = _outcome(function)
        self._from_thread.append(how)
        try:
            self.get_loop().call_soon_threadsafe(self._thread_done)
        except RuntimeError:  # the event loop is closed, so no caller awaits the flow
            self._in_thread = False
            with contextlib.suppress(Exception), contextlib.closing(self._work):
                while isinstance(operation := self._resume(how), InThread):
                    how = _outcome(operation.function)

    def _thread_done(self) -> None:
        if self._in_thread:  # otherwise `cancel` came first
            self._in_thread = False  # first: after an interrupt here, `cancel` would wait forever
            self.advance(self._from_thread.pop())

    def _pause(self, pause: Pause) -> Callable[[], object]:
        if pause.until is None:
            return self.get_loop().call_later(pause.seconds, self.advance, None).cancel
        return self.get_loop().create_task(self._wait(pause.until, pause.seconds)).cancel

    async def _wait(self, until: concurrent.futures.Future[Any], seconds: float) -> None:
        await asyncio.wait({asyncio.wrap_future(until)}, timeout=seconds)
        self.advance(None)

    async def _connect(self, request: Send) -> None:
        try:
            connection = await self._driver.connect(request)
            if not self.done():
                self._send_over(connection, request)
        except Exception as error:  # noqa: BLE001 - it is for the flow
            failed = error
        else:
            return
        self.advance(failed)

    def _send_over(self, connection: Connection | AwaitedClient, request: Send) -> None:
        self._give_up = connection.give_up
        connection.send(request, self.advance)


def _outcome(function: Callable[[], Any]) -> object:
    """Return a function's result, or the exception that it raised."""
    try:
        return function()
    except BaseException as error:  # noqa: BLE001 - it is for the flow
        return error
