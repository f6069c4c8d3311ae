"""HTTP/1.1 transport: sends calls to a server, from a thread or from an event loop. Private."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Callable

    import httpx

__all__ = ["HttpClient"]

HttpClient: TypeAlias = (
    "str | httpx.Client | httpx.AsyncClient | Callable[[], httpx.Client | httpx.AsyncClient]"
)
"""Values of ``http_client=``: a client, a callable that returns one, or the import path of such a callable,
``"module:function"``."""
