"""An httpx transport that injects faults into calls, without sockets."""

from __future__ import annotations

import contextlib
import time
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from typing import TYPE_CHECKING

import httpx

from agentgym_gym.testing._faults import ARRIVES, ERROR, KINDS, PAGE, STAGES, Faults, Kind, stage_of

if TYPE_CHECKING:
    from agentgym_gym.calls import Stage

__all__ = ["FaultyTransport"]


class FaultyTransport(httpx.BaseTransport):
    """Forwards requests to another transport and injects faults into a share of them.

    Use it with ``AgentGymEnv(http_client=lambda: httpx.Client(transport=...))`` or any other httpx client. A
    request that would time out fails immediately, without waiting.

    Args:
        inner: The transport to forward to: ``httpx.HTTPTransport()`` for real servers, or a mock transport.
        share: Fraction of the calls that fail, from 0 to 1.
        kinds: Kinds of faults, see `Kind`; a kind listed twice is drawn twice as often.
        stages: Stages of the calls that may fail; all by default.
        seed: Random seed: the same sequence of calls gets the same faults.
        delay: Seconds by which ``delay`` delays a reply.

    Attributes:
        faults: The injected faults and their counts; its ``share`` can be changed at any time.

    Raises:
        BadOption: The value of an argument is invalid.
    """

    def __init__(
        self,
        inner: httpx.BaseTransport,
        share: float = 0.05,
        *,
        kinds: Sequence[Kind] = KINDS,
        stages: Collection[Stage] = STAGES,
        seed: int = 0,
        delay: float = 1.0,
    ) -> None:
        self.faults = Faults(share, kinds=kinds, stages=stages, seed=seed, delay=delay)
        self._inner = inner
        self._is_down = False

    @property
    def injected(self) -> Counter[Kind]:
        """The number of faults so far, by kind."""
        return self.faults.injected

    @contextlib.contextmanager
    def down(self) -> Iterator[None]:
        """Refuse all connections within this context, as if the server were down."""
        self._is_down = True
        try:
            yield
        finally:
            self._is_down = False

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        """Send a request and return the response, or raise the httpx error of the injected fault."""
        if self._is_down:
            raise httpx.ConnectError("injected: no server", request=request)
        kind = self.faults.draw(stage_of(request.url.path))
        if kind == "reset":
            raise httpx.ReadError("injected: the connection was reset", request=request)
        if kind == "silent":
            raise httpx.ReadTimeout("injected: no reply", request=request)
        if kind == "error":
            return httpx.Response(500, content=ERROR, request=request)
        response = self._inner.handle_request(request)
        if kind is None:
            return response
        assert kind in ARRIVES  # noqa: S101 - all others were dealt with
        try:
            content = response.read()
        finally:
            response.close()
        if kind == "lost":
            raise httpx.ReadError("injected: the connection was reset", request=request)
        if kind == "garble":
            return httpx.Response(200, content=PAGE, headers={"Content-Type": "text/html"}, request=request)
        if kind == "delay":
            limit = request.extensions.get("timeout", {}).get("read")
            if limit is not None and self.faults.delay >= limit:
                raise httpx.ReadTimeout("injected: the reply is late", request=request)
            time.sleep(self.faults.delay)
        body = (
            _TruncatedBody(content[: len(content) // 2]) if kind == "truncate" else httpx.ByteStream(content)
        )
        return httpx.Response(
            response.status_code, headers=_plain(response.headers), stream=body, request=request
        )

    def close(self) -> None:
        """Close the inner transport."""
        self._inner.close()


class _TruncatedBody(httpx.SyncByteStream):
    """A response body that ends with an error."""

    def __init__(self, content: bytes) -> None:
        self._content = content

    def __iter__(self) -> Iterator[bytes]:
        yield self._content
        raise httpx.RemoteProtocolError("injected: the connection was closed within the reply")


def _plain(headers: httpx.Headers) -> list[tuple[bytes, bytes]]:
    """Drop the headers that describe the encoding of the body, which is already decoded."""
    travel = {b"content-encoding", b"content-length", b"transfer-encoding"}
    return [(name, value) for name, value in headers.raw if name.lower() not in travel]
