"""The synchronous driver: sends a flow's requests from the caller's thread.

One driver serves one environment, with one kept-alive connection to each of its servers. Environments share
no connection pool: finding a free connection in a pool takes longer the more there are.
"""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from agentgym_gym._http import abandoned, connection_ids
from agentgym_gym._http.blocking import Connection
from agentgym_gym._http.limits import Limits, Stats
from agentgym_gym._http.retry import Pause, Send, with_retries
from agentgym_gym.calls import InThread, MaybeRestarted, Reply
from agentgym_gym.errors import ConnectionLost, ServerTimeout

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
        self._connections: dict[str, Connection] = {}
        self._retired: dict[str, Connection] = {}
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
        answer: Any = None
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
            if not isinstance(error, Exception) and _answers(answer, operation):
                abandoned.pass_on(answer)  # Ctrl-C came before the flow could use the reply
            raise
        finally:
            work.close()

    def close(self) -> None:
        """Close the connections; a later flow opens new ones."""
        if self._client is not None:
            self._client.close()
        for connections in (self._connections, self._retired):
            while connections:
                connections.popitem()[1].close()

    def _exchange(self, request: Send) -> Reply:
        """Send a request and read the reply to it.

        Meanwhile the connection is in no table, so that after Ctrl-C no other call reads this call's reply.
        An open connection that cannot be reused is retired: while it lives, the server was not restarted.
        """
        if self._client is not None:
            return self._client.exchange(request)
        connection = self._take_connection(request)
        try:
            reply, reusable = connection.exchange(request)
        except ConnectionLost:
            connection.close()
            raise
        except BaseException as error:
            if isinstance(error, ServerTimeout) or not isinstance(error, Exception):  # such as Ctrl-C
                connection.leave(request.call)
            self._retire(request.call.server, connection)
            raise
        if reusable:
            self._connections[request.call.server] = connection
        elif reply.closing:
            connection.close()
        else:
            self._retire(request.call.server, connection)
        return reply

    def _retire(self, server: str, connection: Connection) -> None:
        if self._retired.setdefault(server, connection) is not connection:
            connection.close()

    def _take_connection(self, request: Send) -> Connection:
        """Return a connection for a request, and remove it from the table.

        Raises:
            MaybeRestarted: No connection proves that the server is still the process that last replied about
                the environment.
        """
        call = request.call
        connection = self._connections.pop(call.server, None)
        if connection is not None and not connection.usable:
            connection.close()
            connection = None
        if connection is None and (call.connection is None or call.witness):
            connection = Connection.open(request, self._headers)
            self.stats.connections += 1
        if connection is None:
            raise MaybeRestarted
        if not connection_ids.proves(connection, call):
            self._connections[call.server] = connection
            raise MaybeRestarted
        if self._retired and connection.number == call.connection:
            self._retired.popitem()[1].close()  # a newer reply proves the same
        return connection


def _answers(answer: object, operation: object) -> bool:
    """Return whether this is the reply to the last operation."""
    return isinstance(answer, Reply) and isinstance(operation, Send) and answer.call is operation.call


def _pause(pause: Pause) -> None:
    if pause.until is None:
        time.sleep(pause.seconds)
    else:
        from concurrent.futures import wait  # noqa: PLC0415 - few wait for a place

        wait([pause.until], timeout=pause.seconds)
