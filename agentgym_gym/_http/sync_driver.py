"""The synchronous driver: carries out the calls of a flow in the thread that asks.

One driver serves one environment, on one kept-alive connection to each of its servers. Environments share no
pool of connections: to look for a free one takes longer the more there are.
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
        self._client: BlockingClient | None = None
        if http_client is not None:
            from agentgym_gym._http.httpx_client import BlockingClient  # noqa: PLC0415 - for few users

            self._client = BlockingClient(http_client, self._headers)

    def run(self, flow: WaitingFlow[T], until: float = math.inf) -> T:
        """Carry out a flow's calls and return its result.

        Args:
            flow: The flow.
            until: When the time of the whole episode is up, on `time.monotonic`.

        Raises:
            Fault: A call failed and the flow did not handle it.
            AgentGymError: Whatever the flow itself raises.
        """
        work = with_retries(flow, self.limits, self.stats, until)
        asked: Any = None
        answer: Any = None
        try:
            asked = next(work)
            while True:
                if isinstance(asked, Pause):
                    _pause(asked)
                    asked = work.send(None)
                    continue
                try:
                    # This thread does what is to be done in a thread: it has nothing else to do meanwhile.
                    answer = asked.function() if isinstance(asked, InThread) else self._exchange(asked)
                except Exception as error:  # noqa: BLE001 - it is for the flow
                    asked = work.throw(error)
                else:
                    asked = work.send(answer)
        except StopIteration as stop:
            result: T = stop.value
            return result
        except BaseException as error:
            if not isinstance(error, Exception) and _answers(answer, asked):
                abandoned.tell(answer)  # Ctrl-C, before the flow had made use of it
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

    def _exchange(self, asked: Send) -> Reply:
        """Send a request and read the reply to it.

        The connection is out of reach meanwhile. Wherever Ctrl-C comes, nobody else reads on it what was
        meant for this call. One that is not used again and still open is retired: as long as it lives, the
        server was not restarted.
        """
        if self._client is not None:
            return self._client.ask(asked)
        connection = self._take_connection(asked)
        try:
            reply, reusable = connection.ask(asked)
        except ConnectionLost:
            connection.close()
            raise
        except BaseException as error:
            if isinstance(error, ServerTimeout) or not isinstance(error, Exception):  # Ctrl-C, say
                connection.leave(asked.call)
            self._retire(asked.call.server, connection)
            raise
        if reusable:
            self._connections[asked.call.server] = connection
        elif reply.closing:
            connection.close()
        else:
            self._retire(asked.call.server, connection)
        return reply

    def _retire(self, server: str, connection: Connection) -> None:
        if self._retired.setdefault(server, connection) is not connection:
            connection.close()

    def _take_connection(self, asked: Send) -> Connection:
        """Return a connection for a request, taken out of those that are kept.

        Raises:
            MaybeRestarted: None proves that the server was not restarted since the environment was heard.
        """
        call = asked.call
        connection = self._connections.pop(call.server, None)
        if connection is not None and not connection.usable:
            connection.close()
            connection = None
        if connection is None and (call.connection is None or call.witness):
            connection = Connection.open(asked, self._headers)
            self.stats.connections += 1
        if connection is None:
            raise MaybeRestarted
        if not connection_ids.proves(connection, call):
            self._connections[call.server] = connection
            raise MaybeRestarted
        if self._retired and connection.number == call.connection:
            self._retired.popitem()[1].close()  # the environment was heard since
        return connection


def _answers(answer: object, asked: object) -> bool:
    """Return whether this is the reply to what was asked last."""
    return isinstance(answer, Reply) and isinstance(asked, Send) and answer.call is asked.call


def _pause(asked: Pause) -> None:
    if asked.until is None:
        time.sleep(asked.seconds)
    else:
        from concurrent.futures import wait  # noqa: PLC0415 - few wait for a place

        wait([asked.until], timeout=asked.seconds)
