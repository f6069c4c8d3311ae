"""HTTP/1.1: how a call reaches a server, in a thread or in an event loop. Private."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Callable

    import httpx

__all__ = ["HttpClient"]

HttpClient: TypeAlias = (
    "str | httpx.Client | httpx.AsyncClient | Callable[[], httpx.Client | httpx.AsyncClient]"
)
"""What ``http_client=`` takes: a client, a callable that makes one, or where that is found, as
``"module:function"``."""
