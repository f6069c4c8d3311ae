"""The synchronous driver: sends a flow's requests from the caller's thread.

One driver serves one environment, with one kept-alive connection to each of its servers. Environments share
no connection pool: finding a free connection in a pool takes longer the more there are.
"""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from agentgym_gym._http import abandoned
from agentgym_gym._http.blocking import BlockingConnection
from agentgym_gym._http.limits import Limits, Stats
from agentgym_gym._http.retry import Pause, Send, with_retries
from agentgym_gym.calls import InThread, MaybeRestarted, Reply
from agentgym_gym.errors import ServerTimeout

if TYPE_CHECKING:
    from agentgym_gym._http import HttpClient
    from agentgym_gym._http.httpx_client import BlockingClient
    from agentgym_gym.calls import WaitingFlow

__all__ = ["SyncDriver"]

T = TypeVar("T")


class SyncDriver:
    """Runs flows, one at a time.

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
        self._connections: dict[str, BlockingConnection] = {}
        self._reply: Reply | None = None  # the last one, as long as the flow may not have received it
        self._client: BlockingClient | None = None
        if http_client is not None:
            from agentgym_gym._http.httpx_client import BlockingClient  # noqa: PLC0415 - for few users

            self._client = BlockingClient(http_client, self._headers)

    def run(self, flow: WaitingFlow[T], until: float = math.inf) -> T:
        """Run a flow and return its result.

        Args:
            flow: The flow.
            until: End of the time allowed for the whole episode, on `time.monotonic`.

        Raises:
            Fault: A call failed and the flow did not handle it.
            AgentGymError: The flow itself raised it.
        """
        work = with_retries(flow, self.limits, self.stats, until)
        operation: Any = None
        try:
            operation = next(work)
            while True:
                if isinstance(operation, Pause):
                    _pause(operation)
                    operation = work.send(None)
                    continue
                try:
                    # Functions for another thread run here: this thread would only wait for them.
                    answer = (
                        operation.function() if isinstance(operation, InThread) else self._exchange(operation)
                    )
                except Exception as error:  # noqa: BLE001 - it is for the flow
                    operation = work.throw(error)
                else:
                    operation = work.send(answer)
        except StopIteration as stop:
            result: T = stop.value
            return result
        except BaseException as error:
            reply, call = self._reply, operation.call if isinstance(operation, Send) else None
            if not isinstance(error, Exception) and reply is not None and reply.call is call:
                abandoned.pass_on(reply)  # Ctrl-C came before the flow could use the reply
            raise
        finally:
            work.close()

    def close(self) -> None:
        """Close the connections; a later flow opens new ones."""
        if self._client is not None:
            self._client.close()
        for server, connection in list(self._connections.items()):
            connection.close()
            self._connections.pop(server, None)  # after it, so that Ctrl-C loses no open connection

    def _exchange(self, request: Send) -> Reply:
        """Send a request and read the reply to it."""
        self._reply = None
        if self._client is not None:
            self._reply = self._client.exchange(request)
            return self._reply
        server, connection = request.call.server, self._connection(request)
        try:
            reply, reusable = connection.exchange(request)
            self._reply = reply
            connection.busy = not reusable
        except BaseException as error:
            interrupted = not isinstance(error, Exception) and self._reply is None  # such as by Ctrl-C
            if interrupted or isinstance(error, ServerTimeout):
                connection.leave(request.call)
            raise
        connection.close_before()
        if reply.closing:
            connection.close()
            self._connections.pop(server, None)
        return reply

    def _connection(self, request: Send) -> BlockingConnection:
        """Return the connection for a request.

        Raises:
            MaybeRestarted: The connection of the environment's last reply is closed.
        """
        call, before = request.call, self._connections.get(request.call.server)
        if before is not None and before.usable:
            if before.link is call.connection or call.may_be_sent:
                return before
            raise MaybeRestarted
        if not call.may_be_sent:
            raise MaybeRestarted
        connection = BlockingConnection.open(request, self._headers)
        connection.before = before  # no call from here to the next line, so that Ctrl-C loses no connection
        self._connections[call.server] = connection
        self.stats.connections += 1
        connection.skip_unanswered()
        if not call.may_be_sent:
            raise MaybeRestarted
        return connection


def _pause(pause: Pause) -> None:
    if pause.until is None:
        time.sleep(pause.seconds)
    else:
        from concurrent.futures import wait  # noqa: PLC0415 - few wait for a place

        wait([pause.until], timeout=pause.seconds)
