"""A proxy before a server of environments that fails at random, by a seed, and knows which it gave out."""

from __future__ import annotations

import json
import random
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import httpx


class FaultyProxy:
    """Forwards to `server`, and fails a share of the resets and steps, in three ways."""

    def __init__(self, server: str, share: float, seed: int) -> None:
        self.server, self.share = server, share
        self.created: list[int] = []
        self.failed = 0
        self._random = random.Random(seed)  # noqa: S311
        self._lock = threading.Lock()
        limits = httpx.Limits(max_keepalive_connections=0)
        self._client = httpx.Client(base_url=server, timeout=30, limits=limits)
        proxy = self

        class Server(ThreadingHTTPServer):
            request_queue_size = 512  # hundreds come at once, and only the faults are to be ours
            daemon_threads = True

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self):
                proxy._answer(self)

            do_POST = do_GET  # noqa: N815 - the names are the standard library's

            def log_message(self, *args):
                pass

        self._httpd = Server(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._httpd.serve_forever, daemon=True)
        self.url = f"http://127.0.0.1:{self._httpd.server_port}"

    def __enter__(self) -> str:
        self._thread.start()
        return self.url

    def __exit__(self, *_: object) -> None:
        self._httpd.shutdown()
        self._httpd.server_close()
        self._thread.join()
        self._client.close()

    def _answer(self, handler: BaseHTTPRequestHandler) -> None:
        body = handler.rfile.read(int(handler.headers.get("Content-Length", 0)))
        way = self._way(handler.path)
        if way == "refused":
            self._send(handler, 500, b"broken")
            return
        headers = {"Content-Type": handler.headers.get("Content-Type", "application/json")}
        answer = self._client.request(handler.command, handler.path, content=body, headers=headers).content
        if handler.path == "/create":
            with self._lock:
                self.created.append(json.loads(answer)["id"])
        if way == "lost":
            handler.close_connection = True  # nothing is said, though it was done
        elif way == "garbled":
            self._send(handler, 200, b"<html>")
        else:
            self._send(handler, 200, answer)

    def _way(self, path: str) -> str:
        with self._lock:
            fails = path in ("/reset", "/step") and self._random.random() < self.share
            self.failed += fails
            return self._random.choice(["refused", "lost", "garbled"]) if fails else ""

    @staticmethod
    def _send(handler: BaseHTTPRequestHandler, status: int, body: bytes) -> None:
        handler.send_response(status)
        handler.send_header("Content-Type", "application/json")
        handler.send_header("Content-Length", str(len(body)))
        handler.end_headers()
        handler.wfile.write(body)
