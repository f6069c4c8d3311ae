"""A server on loopback for one page, which follows runs as they go."""

from __future__ import annotations

import ipaddress
import re
import threading
import time
from collections.abc import Iterable
from functools import partial
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from agentgym_gym._logging import logger
from agentgym_gym.errors import ArgumentName, BadOption
from agentgym_gym.evaluate._report.contents import Contents, Reader, Stamp, packed
from agentgym_gym.evaluate._report.page import complete, served_page

__all__ = ["PageServer"]

_ADDRESS = "127.0.0.1"
_SECONDS = 1.0
"""Least time between two reads of changed runs, in seconds."""

_SHARE = 10
"""Reads of changed runs take at most one in N parts of the time, for this N."""

_DATA = "/data/"
_HOST = re.compile(r"(?:\[([0-9A-Fa-f:.]+)\]|([^:/@\[\]\s]+))(?::[0-9]*)?")


class PageServer:
    """Serves the report of runs on loopback.

    Args:
        paths: Folders of runs or trainings, or folders that contain them.
        port: The port; 0 for any free port.
        title: The report title; by default the agents and environments.
        last: Number of last training steps whose episodes the page includes; by default all steps.
        watch: Whether to read the runs again when their files change.

    Attributes:
        url: The address of the page.

    Raises:
        BadOption: There is no run at a path, a run cannot be read, or the port is not available.
    """

    def __init__(
        self,
        paths: Iterable[Path],
        *,
        port: int = 0,
        title: str | None = None,
        last: int | None = None,
        watch: bool = False,
    ) -> None:
        self._reader = Reader(paths, last=last)
        self._title = title
        self._watch = watch
        self._reading = threading.Lock()
        self._comparing = threading.Lock()
        self._stamps: list[Stamp] = []
        self._next_read = 0.0
        self._version = 0
        self._blocks: dict[str, str] = {}
        self._read(self._reader.stamps())
        try:
            self._server = _Server((_ADDRESS, port), partial(_Handler, self))
        except (OSError, OverflowError) as error:
            reason = getattr(error, "strerror", None) or error
            raise BadOption(
                (
                    f"cannot listen on port {port} of {_ADDRESS}: {reason}; pass ",
                    ArgumentName("port"),
                    "=0 for a free port",
                )
            ) from error
        self.url = f"http://{_ADDRESS}:{self._server.server_port}/"

    def serve(self) -> None:
        """Serve until `stop`, or until KeyboardInterrupt, which is raised."""
        try:
            self._server.serve_forever()
        finally:
            self._server.server_close()

    def stop(self) -> None:
        """End `serve`, which runs in another thread."""
        self._server.shutdown()

    def body(self, path: str) -> tuple[str, str] | None:
        """Return the media type and the text at a path; None if there is nothing."""
        if path == "/":
            return "text/html", served_page(self._contents.index["title"], watch=self._watch)
        name = path.removeprefix(_DATA) if path.startswith(_DATA) else ""
        text = {
            "version": self._current_version,
            "index": lambda: self._index,
            "comparisons": self._current_comparisons,
        }.get(name, lambda: self._blocks.get(name))()
        return None if text is None else ("text/plain", text)

    def _current_version(self) -> str:
        """Read the runs again if they have changed, and return the version of the index."""
        if self._watch and time.monotonic() >= self._next_read and self._reading.acquire(blocking=False):
            try:
                stamps = self._reader.stamps()
                if stamps != self._stamps:
                    self._read(stamps)
            except (BadOption, OSError) as error:  # the page keeps the last readable state
                logger.warning("cannot read the runs again: %s", error)
                self._next_read = time.monotonic() + _SECONDS
            finally:
                self._reading.release()
        return str(self._version)

    def _read(self, stamps: list[Stamp]) -> None:
        began = time.monotonic()
        contents = complete(self._reader.collect(), self._title)
        self._stamps = stamps
        self._contents: Contents = contents
        self._comparisons: str | None = None
        # A page that still has the last index may request its blocks.
        self._blocks = {**getattr(self, "_own_blocks", {}), **contents.blocks}
        self._own_blocks = contents.blocks
        self._version += 1
        self._index = packed({**contents.index, "number": str(self._version)})
        ended = time.monotonic()
        self._next_read = ended + max(_SECONDS, _SHARE * (ended - began))

    def _current_comparisons(self) -> str:
        with self._comparing:
            if self._comparisons is None:
                self._comparisons = self._contents.comparisons()
            return self._comparisons


class _Server(ThreadingHTTPServer):
    def handle_error(self, request: Any, client_address: Any) -> None:
        logger.debug("a request from %s failed", client_address, exc_info=True)  # a closed tab, mostly


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    timeout = 60.0
    server_version = "agentgym"

    def __init__(self, page: PageServer, *arguments: Any) -> None:
        self._page = page
        super().__init__(*arguments)

    def do_GET(self) -> None:
        hosts = self.headers.get_all("Host") or []
        if len(hosts) != 1 or not _is_loopback(hosts[0]):  # DNS rebinding: see docs/report.md
            self._send(HTTPStatus.MISDIRECTED_REQUEST, "text/plain", "The Host is not a loopback address.\n")
            return
        found = self._page.body(self.path.partition("?")[0])
        if found is None:
            self._send(HTTPStatus.NOT_FOUND, "text/plain", "There is no such page.\n")
        else:
            self._send(HTTPStatus.OK, *found)

    def _send(self, status: HTTPStatus, media_type: str, text: str) -> None:
        content = text.encode("utf-8")
        self.send_response(status)
        for name, value in {
            "Content-Type": f"{media_type}; charset=utf-8",
            "Content-Length": str(len(content)),
            "Cache-Control": "no-store",
            "X-Content-Type-Options": "nosniff",
            "Cross-Origin-Resource-Policy": "same-origin",
            "Content-Security-Policy": "frame-ancestors 'none'",
        }.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the name in the base class
        pass


def _is_loopback(host: str) -> bool:
    match = _HOST.fullmatch(host.strip())
    if match is None:
        return False
    name = (match[1] or match[2]).rstrip(".").lower()
    try:
        return name == "localhost" or ipaddress.ip_address(name).is_loopback
    except ValueError:
        return False
