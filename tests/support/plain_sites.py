"""The sites of WebArena at addresses of their own, as a user's sites are for `--data`."""

from __future__ import annotations

import threading
from contextlib import ExitStack, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qsl, urlsplit

from agentgym_servers.webarena._sites import SITES
from agentgym_servers.webarena._sites.state import fresh_state
from agentgym_servers.webarena._sites.web import Request, signed_in_cookie

__all__ = ["fresh_state", "plain_sites", "signed_in_cookie"]


def handler_of(site, state):
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            self.reply("GET", {})

        def do_POST(self):
            body = self.rfile.read(int(self.headers["content-length"])).decode()
            self.reply("POST", dict(parse_qsl(body)))

        def reply(self, method, form):
            url = urlsplit(self.path)
            pairs = (part.partition("=") for part in self.headers.get("cookie", "").split("; "))
            cookies = {name: value for name, _, value in pairs}
            request = Request(method, "", url.path, dict(parse_qsl(url.query)), form, cookies)
            response = site.answer(state, request)
            self.send_response(response.status)
            for name, value in response.headers:
                self.send_header(name, value)
            content = response.html.encode()
            self.send_header("Content-Type", "text/html; charset=utf-8")
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *_):
            pass

    return Handler


@contextmanager
def site_of(handler):
    """Serve pages by a handler of requests; return their address."""
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        server.daemon_threads = True
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()


@contextmanager
def plain_sites(state, *keys):
    """Serve sites; return their addresses by WebArena's placeholders."""
    with ExitStack() as stack:
        addresses = {}
        for site in SITES:
            if site.key in keys:
                addresses[f"__{site.key.upper()}__"] = stack.enter_context(site_of(handler_of(site, state)))
        yield addresses
