"""A real nginx before the TextCraft server that all tests share, and a real forward proxy."""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from types import SimpleNamespace
from urllib.parse import urlsplit

import pytest
import trustme

import needs
from agentgym_gym.local_servers import LocalServer

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


def free_ports(number):
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(number)]
    ports = [each.getsockname()[1] for each in sockets]
    for each in sockets:
        each.close()
    return ports


def wait_for(port, process):
    for _ in range(200):
        assert process.poll() is None, "it ended at once"
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.05)
    raise AssertionError(f"nothing listens on port {port}")


@contextlib.contextmanager
def running_nginx(folder, http, *ports):
    """An nginx with the block ``http``, which listens on the ports."""
    program = needs.path_of("nginx")
    as_root = "user root;" if os.geteuid() == 0 else ""
    (folder / "http.conf").write_text(http)
    (folder / "nginx.conf").write_text(MAIN.format(user=as_root, folder=folder))
    process = subprocess.Popen([program, "-c", folder / "nginx.conf", "-p", folder, "-e", folder / "log"])
    try:
        for port in ports:
            wait_for(port, process)
        yield
    finally:
        process.terminate()
        process.wait(10)


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
        ports = dict(zip(names, free_ports(len(names)), strict=True))
        http = GATEWAYS.format(folder=folder, token=TOKEN, one=textcraft_url, two=second.url, **ports)
        urls = {
            name: f"http{'s' if name in {'certificate', 'http2'} else ''}://127.0.0.1:{port}"
            for name, port in ports.items()
        }
        try:
            with running_nginx(folder, http, *ports.values()):
                yield SimpleNamespace(folder=folder, token=TOKEN, user=USER, password=PASSWORD, **urls)
        finally:
            second.stop()


@pytest.fixture
def passing_host(tmp_path):
    """Starts an nginx that passes the host games.example.org to a server; returns its URL."""
    with contextlib.ExitStack() as stack:

        def start(url):
            [port] = free_ports(1)
            stack.enter_context(running_nginx(tmp_path, PASSING_HOST.format(port=port, url=url), port))
            return f"http://127.0.0.1:{port}"

        yield start


@pytest.fixture
def replicas(tmp_path, textcraft_url):
    """Starts deploy/nginx.conf before two servers; returns its URLs of both, and the second server."""
    second = LocalServer("textcraft")
    [port] = free_ports(1)
    http = (Path(__file__).resolve().parents[2] / "deploy" / "nginx.conf").read_text("utf-8")
    for old, new in (
        ("127.0.0.1:36001", urlsplit(textcraft_url).netloc),
        ("127.0.0.1:36002", urlsplit(second.start()).netloc),
        ("listen 8080", f"listen 127.0.0.1:{port}"),
    ):
        assert http.count(old) == 1
        http = http.replace(old, new)
    try:
        with running_nginx(tmp_path, http, port):
            yield [f"http://127.0.0.1:{port}/{number}" for number in (1, 2)], second
    finally:
        second.stop()


class ForwardProxy:
    """A forward proxy on a port of its own, which may be stopped and started again."""

    def __init__(self):
        [self.port] = free_ports(1)
        self.url = f"http://127.0.0.1:{self.port}"

    def start(self):
        options = ["--hostname", "127.0.0.1", "--port", str(self.port), "--num-workers", "1"]
        self._process = subprocess.Popen(
            [sys.executable, "-m", "proxy", *options, "--log-level", "ERROR"],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        wait_for(self.port, self._process)

    def stop(self):
        self._process.terminate()
        self._process.wait(10)


@pytest.fixture
def proxy():
    pytest.importorskip("proxy", reason=needs.reason("proxy"))
    started = ForwardProxy()
    started.start()
    yield started
    started.stop()
