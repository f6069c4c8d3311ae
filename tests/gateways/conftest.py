"""A real nginx before the TextCraft server that all tests share, and a real forward proxy."""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
import sys
import tempfile
from pathlib import Path
from types import SimpleNamespace
from urllib.parse import urlsplit

import pytest
import trustme

import needs
from agentgym_gym.local_servers import LocalServer
from clock import wait_until
from ports import reserved_ports

TOKEN, USER, PASSWORD = "s3cret-token", "me", "p@ss/w%rd"

MAIN = """
{user}
daemon off;
pid {folder}/nginx.pid;
error_log {folder}/error.log;
events {{ worker_connections 256; }}
http {{
  access_log off;
  client_body_temp_path {folder}/body;
  proxy_temp_path {folder}/proxy;
  fastcgi_temp_path {folder}/fastcgi;
  uwsgi_temp_path {folder}/uwsgi;
  scgi_temp_path {folder}/scgi;
  include {folder}/http.conf;
}}
"""

GATEWAYS = """
  ssl_certificate {folder}/server.pem;
  ssl_certificate_key {folder}/server.key;
  split_clients $request_id $drawn {{ 50% one; * two; }}
  map $cookie_at $at {{ one one; two two; default $drawn; }}
  map $at $sticky {{ one {one}; two {two}; }}
  server {{
    listen 127.0.0.1:{certificate} ssl;
    ssl_client_certificate {folder}/ca.pem;
    ssl_verify_client on;
    location / {{ proxy_pass {one}; }}
  }}
  server {{
    listen 127.0.0.1:{basic};
    auth_basic games;
    auth_basic_user_file {folder}/users;
    location / {{ proxy_pass {one}; }}
  }}
  server {{
    listen 127.0.0.1:{bearer};
    if ($http_authorization != "Bearer {token}") {{ return 401; }}
    location / {{ proxy_pass {one}; }}
  }}
  server {{
    listen 127.0.0.1:{http2} ssl http2;
    if ($server_protocol != "HTTP/2.0") {{ return 426; }}
    location / {{ proxy_pass {one}; }}
  }}
  server {{
    listen 127.0.0.1:{cookies};
    add_header Set-Cookie "at=$at";
    location / {{ proxy_pass $sticky; }}
  }}
  server {{
    listen unix:{folder}/games.sock;
    location / {{ proxy_pass {one}; }}
  }}
"""

PASSING_HOST = """
server {{
  listen 127.0.0.1:{port};
  location / {{ proxy_pass {url}; proxy_set_header Host games.example.org; }}
}}
"""


def listening(number):
    """Return sockets that listen on ports of their own, for an nginx to take over."""
    sockets = [socket.create_server(("127.0.0.1", 0), backlog=511) for _ in range(number)]
    for each in sockets:
        each.setblocking(False)
    return sockets


def port_of(listening):
    return listening.getsockname()[1]


@contextlib.contextmanager
def running_nginx(folder, http, *sockets):
    """An nginx with the block ``http``, which listens on the sockets."""
    program = needs.path_of("nginx")
    as_root = "user root;" if os.geteuid() == 0 else ""
    (folder / "http.conf").write_text(http)
    (folder / "nginx.conf").write_text(MAIN.format(user=as_root, folder=folder))
    files = [each.fileno() for each in sockets]
    process = subprocess.Popen(
        [program, "-c", folder / "nginx.conf", "-p", folder, "-e", folder / "log"],
        pass_fds=files,
        env={**os.environ, "NGINX": "".join(f"{each};" for each in files)},  # as after its own upgrade
    )
    for each in sockets:
        each.close()
    try:
        wait_until(lambda: process.poll() is not None or (folder / "nginx.pid").exists(), 60)
        assert process.poll() is None, (folder / "log").read_text()
        yield
    finally:
        process.terminate()
        process.wait(60)


@pytest.fixture(scope="session")
def nginx(textcraft_url):
    """URLs of the gateways, and the files that clients of them need."""
    # Short, since the path of a unix socket is; and readable for nginx.
    with tempfile.TemporaryDirectory(prefix="gateway") as name:
        folder = Path(name)
        second = LocalServer("textcraft")
        second.start()
        authority = trustme.CA()
        authority.cert_pem.write_to_path(folder / "ca.pem")
        server, client = authority.issue_cert("127.0.0.1"), authority.issue_cert("client@example.org")
        for which, issued in (("server", server), ("client", client)):
            (folder / f"{which}.pem").write_bytes(b"".join(each.bytes() for each in issued.cert_chain_pems))
            issued.private_key_pem.write_to_path(folder / f"{which}.key")
        (folder / "users").write_text(f"{USER}:{{PLAIN}}{PASSWORD}\n")
        names = ("certificate", "basic", "bearer", "http2", "cookies")
        sockets = listening(len(names))
        ports = dict(zip(names, map(port_of, sockets), strict=True))
        http = GATEWAYS.format(folder=folder, token=TOKEN, one=textcraft_url, two=second.url, **ports)
        urls = {
            name: f"http{'s' if name in {'certificate', 'http2'} else ''}://127.0.0.1:{port}"
            for name, port in ports.items()
        }
        try:
            with running_nginx(folder, http, *sockets):
                yield SimpleNamespace(folder=folder, token=TOKEN, user=USER, password=PASSWORD, **urls)
        finally:
            second.stop()


@pytest.fixture
def passing_host(tmp_path):
    """Starts an nginx that passes the host games.example.org to a server; returns its URL."""
    with contextlib.ExitStack() as stack:

        def start(url):
            [taken] = listening(1)
            port = port_of(taken)
            stack.enter_context(running_nginx(tmp_path, PASSING_HOST.format(port=port, url=url), taken))
            return f"http://127.0.0.1:{port}"

        yield start


@pytest.fixture
def replicas(tmp_path, textcraft_url):
    """Starts deploy/nginx.conf before two servers; returns its URLs of both, and the second server."""
    second = LocalServer("textcraft")
    [taken] = listening(1)
    port = port_of(taken)
    http = (Path(__file__).resolve().parents[2] / "deploy" / "nginx.conf").read_text("utf-8")
    for old, new in (
        ("127.0.0.1:36001", urlsplit(textcraft_url).netloc),
        ("127.0.0.1:36002", urlsplit(second.start()).netloc),
        ("listen 8080", f"listen 127.0.0.1:{port}"),
    ):
        assert http.count(old) == 1
        http = http.replace(old, new)
    try:
        with running_nginx(tmp_path, http, taken):
            yield [f"http://127.0.0.1:{port}/{number}" for number in (1, 2)], second
    finally:
        second.stop()


class ForwardProxy:
    """A forward proxy, which may be stopped, and started again on its port."""

    def __init__(self, folder, port):
        self._file = folder / "port"
        self._port = str(port)
        self.url = f"http://127.0.0.1:{port}"

    def start(self):
        self._file.unlink(missing_ok=True)
        options = ["--hostname", "127.0.0.1", "--port", self._port, "--port-file", self._file]
        self._process = subprocess.Popen(
            [sys.executable, "-m", "proxy", *options, "--num-workers", "1", "--log-level", "ERROR"],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        wait_until(lambda: self._process.poll() is not None or self._file.exists(), 60)
        assert self._process.poll() is None, "it ended at once"
        wait_until(lambda: self._file.read_text() == f"{self._port}\n")

    def stop(self):
        self._process.terminate()
        self._process.wait(60)


@pytest.fixture
def proxy(tmp_path):
    pytest.importorskip("proxy", reason=needs.reason("proxy"))
    with reserved_ports(1) as (port,):
        started = ForwardProxy(tmp_path, port)
        started.start()
        yield started
        started.stop()
