"""A local server asked in this process, without a socket."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from typing import Any

import httpx

from agentgym_gym.local_servers import server_kind

Asked = tuple[str, str, Mapping[str, Any]]  # method, path, and other arguments of httpx


def in_process(app: Any, *asked: Asked) -> list[httpx.Response]:
    """Ask an application, one after the other."""

    async def ask() -> list[httpx.Response]:
        async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://server") as client:
            return [await client.request(method, path, **sent) for method, path, sent in asked]

    return asyncio.run(ask())


def posted(app: Any, *calls: tuple[str, Any]) -> list[httpx.Response]:
    """Post JSON to an application, one after the other."""
    return in_process(app, *(("POST", path, {"json": body}) for path, body in calls))


def replayed(name: str, rows: Iterable[dict[str, Any]]) -> list[httpx.Response]:
    """Return what a new local server answers to recorded requests.

    Args:
        name: The name of the server.
        rows: The recorded exchanges.
    """
    return in_process(server_kind(name).app(), *((row["method"], row["path"], sent(row)) for row in rows))


def sent(row: dict[str, Any]) -> dict[str, Any]:
    """Return the content of a recorded request."""
    raw = row.get("raw_body")
    if raw:
        return {"params": row["query"], "content": raw, "headers": {"content-type": "application/json"}}
    return {"params": row["query"], "json": row["json_body"]}
