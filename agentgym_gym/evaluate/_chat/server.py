"""A model's server: its address, the key and headers for it, and connections to it."""

from __future__ import annotations

import base64
import ipaddress
import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, TypeAlias
from urllib.parse import unquote, urlsplit, urlunsplit
from urllib.request import getproxies, proxy_bypass

from agentgym_gym._headers import HiddenHeaders, parse_headers
from agentgym_gym._http.asyncio_connection import Connection
from agentgym_gym._http.httpx_client import AwaitedClient, client_source
from agentgym_gym._http.sockets import tls_context
from agentgym_gym._text import redact
from agentgym_gym._version import __version__
from agentgym_gym.errors import AccessDenied, BadOption

if TYPE_CHECKING:
    import httpx

    from agentgym_gym._http import HttpClient
    from agentgym_gym._http.retry import Send

__all__ = ["ModelConnection", "ModelServer"]

OPENAI_URL = "https://api.openai.com/v1"
PLACEHOLDER_KEY = "EMPTY"  # what local servers are sent; they look at no key unless they are given one
_SHORTEST_SECRET = 4  # "x" and the like stand for a key where none is needed
_VARIABLES = {"OpenAI-Organization": "OPENAI_ORG_ID", "OpenAI-Project": "OPENAI_PROJECT_ID"}
_MORE_HEADERS = "OPENAI_CUSTOM_HEADERS"  # one "Name: value" on each line, as the client of OpenAI reads it

ModelConnection: TypeAlias = Connection | AwaitedClient
"""What sends one request at a time: a connection of this library's HTTP engine, or a client of httpx."""


class ModelServer:
    """Where a model is reached, and the key for it, which is read when a connection is made and kept nowhere.

    Args:
        base_url: Base URL, such as ``http://127.0.0.1:8000/v1``; by default the variable ``OPENAI_BASE_URL``,
            else OpenAI's own. A user name and password in it are sent as basic authentication, in the place
            of the key, and shown nowhere.
        api_key_variable: The environment variable that holds the key.
        headers: Sent with every request.
        http_client: Sends the requests in place of the library's HTTP engine.

    Attributes:
        base_url: The base URL that requests are sent to, without user name and password.
        url: The base URL as it may be shown.
        official: Whether it is OpenAI's own.
        accepted_fields: Optional fields of a request that it has accepted.
        refused_fields: Optional fields that it refused. They are not sent again.

    Raises:
        BadOption: The base URL, a header or the client cannot be used.
    """

    def __init__(
        self,
        base_url: str | None,
        api_key_variable: str,
        *,
        headers: Mapping[str, str] | None = None,
        http_client: HttpClient | None = None,
    ) -> None:
        given = base_url or os.environ.get("OPENAI_BASE_URL") or OPENAI_URL
        self.base_url, self._authorization = _without_user(given)
        self.url = redact(self.base_url) if not self._authorization else redact(given.strip())
        host = urlsplit(self.base_url).hostname or ""
        self.official = host == "openai.com" or host.endswith(".openai.com")
        self.api_key_variable = api_key_variable
        self._headers = parse_headers(headers or {}, "headers")
        self._http_client = http_client
        if http_client is not None:
            client_source(http_client)  # a typing mistake is reported here, not at the first request
        self.accepted_fields: set[str] = set()
        self.refused_fields: set[str] = set()

    def __repr__(self) -> str:
        """Return what may be shown."""
        return f"ModelServer({self.url!r})"

    async def connect(self, send: Send) -> ModelConnection:
        """Return a new connection.

        Args:
            send: The request that it is opened for.

        Raises:
            ServerUnreachable: No connection could be made in time.
            AccessDenied: OpenAI's own server needs a key, and there is none.
            BadOption: The key or a header cannot be sent.
        """
        headers = tuple(self._all_headers().items())
        if self._http_client is not None:
            return AwaitedClient(self._http_client, headers)
        if _has_proxy(self.base_url):
            return AwaitedClient(_proxied_client, headers)
        return await Connection.open(send, headers)

    def hidden(self, text: str) -> str:
        """Return a text of a server or a library without the key, the password and values of headers."""
        secrets = [os.environ.get(self.api_key_variable, "").strip(), *self._own_headers().values()]
        if self._authorization:
            encoded = self._authorization.removeprefix("Basic ")
            secrets += [encoded, base64.b64decode(encoded).decode("utf-8", "replace").partition(":")[2]]
        for secret in secrets:
            if len(secret) >= _SHORTEST_SECRET:
                text = text.replace(secret, "***")
        return text

    def _own_headers(self) -> HiddenHeaders:
        """Return the user's headers: those of the argument, and those of variables that it does not name.

        Raises:
            BadOption: A variable holds no headers.
        """
        lines = filter(None, map(str.strip, os.environ.get(_MORE_HEADERS, "").splitlines()))
        pairs = [line.partition(":") for line in lines]
        more = parse_headers({name.strip(): value.strip() for name, _, value in pairs}, _MORE_HEADERS)
        named = {header: os.environ.get(variable, "").strip() for header, variable in _VARIABLES.items()}
        named = {header: value for header, value in named.items() if value}
        return self._headers.over(more).over(parse_headers(named, " and ".join(_VARIABLES.values())))

    def _all_headers(self) -> HiddenHeaders:
        authorization = self._authorization or f"Bearer {self._key() or PLACEHOLDER_KEY}"
        ours = {"Authorization": authorization, "User-Agent": f"agentgym-gym/{__version__}"}
        return self._own_headers().over(ours)

    def _key(self) -> str:
        """Return the key, "" where none is needed.

        Raises:
            AccessDenied: OpenAI's own server needs one.
            BadOption: It cannot be sent in a header.
        """
        key = os.environ.get(self.api_key_variable, "").strip()
        if not key and self.official and not self._authorization:
            raise AccessDenied(
                f"{self.url} needs a key: put it into the environment variable {self.api_key_variable}, or "
                "name another server by base_url"
            )
        if not (key.isascii() and key.isprintable()):
            raise BadOption(
                f"the variable {self.api_key_variable} holds no key: it has characters that no key has"
            )
        return key


def _without_user(url: str) -> tuple[str, str]:
    """Return a URL without user name and password, and the ``Authorization`` that stands for these.

    Raises:
        BadOption: It is no base URL.
    """
    shown = redact(url)[:200]
    try:
        parts = urlsplit(url.strip())
        usable = parts.scheme in {"http", "https"} and parts.hostname and (parts.port is None or parts.port)
    except ValueError:
        usable = False
    if not usable:
        raise BadOption(f"base_url={shown!r} is no URL such as 'http://127.0.0.1:8000/v1'")
    if parts.query or parts.fragment:
        raise BadOption(
            f"base_url={shown.partition('?')[0]!r} should have nothing behind its path: no ? and no #"
        )
    user, at, host = parts.netloc.rpartition("@")
    bare = urlunsplit((parts.scheme, host, parts.path.rstrip("/"), "", ""))
    if not at:
        return bare, ""
    return bare, f"Basic {base64.b64encode(unquote(user).encode()).decode('ascii')}"


def _has_proxy(url: str) -> bool:
    """Return whether the environment's variables name a proxy for a URL; none leads to this machine."""
    parts, proxies = urlsplit(url), getproxies()
    host = parts.hostname or ""
    if not (proxies.get(parts.scheme) or proxies.get("all")) or _is_loopback(host):
        return False
    return not proxy_bypass(host if parts.port is None else f"{host}:{parts.port}")


def _proxied_client() -> httpx.AsyncClient:
    """Return a client that reads the variables of proxies by itself."""
    import httpx  # noqa: PLC0415 - few need a proxy

    return httpx.AsyncClient(verify=tls_context())


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
