"""A model server: its address, API key and headers, and connections to it."""

from __future__ import annotations

import asyncio
import base64
import os
import time
from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, TypeAlias
from urllib.parse import parse_qsl, unquote, urlsplit, urlunsplit

from agentgym_gym._headers import HiddenHeaders, parse_headers
from agentgym_gym._http.asyncio_connection import Connection
from agentgym_gym._http.httpx_client import AwaitedClient, client_source
from agentgym_gym._http.proxies import check_variables, http_client, proxy_for
from agentgym_gym._http.retry import Send
from agentgym_gym._text import redact
from agentgym_gym._version import __version__
from agentgym_gym.calls import Call
from agentgym_gym.errors import AccessDenied, ArgumentName, BadOption

if TYPE_CHECKING:
    from agentgym_gym._http import HttpClient
    from agentgym_gym.calls import Stage

__all__ = ["ModelConnection", "ModelServer"]

OPENAI_URL = "https://api.openai.com/v1"
PLACEHOLDER_KEY = "EMPTY"  # for local servers, which ignore the key unless they were started with one
_SHORTEST_SECRET = 4  # "x" and the like are placeholders if no key is needed
_API_VERSION = "api-version"  # Azure's query
_VARIABLES = {"OpenAI-Organization": "OPENAI_ORG_ID", "OpenAI-Project": "OPENAI_PROJECT_ID"}
_MORE_HEADERS = "OPENAI_CUSTOM_HEADERS"  # one "Name: value" per line, as in OpenAI's client

ModelConnection: TypeAlias = Connection | AwaitedClient
"""A connection for one request at a time: from this library's HTTP engine, or an httpx client."""


class ModelServer:
    """The address of a model server and its API key, which is read for each connection and never stored.

    Args:
        base_url: Base URL, such as ``http://127.0.0.1:8000/v1``; by default the variable ``OPENAI_BASE_URL``,
            otherwise OpenAI's own server. A user name and password in it are sent as basic authentication in
            place of the key, and never shown. A query such as Azure's ``?api-version=`` is part of every
            request; with that one, the key is sent as the header ``api-key``.
        api_key_variable: The environment variable with the API key.
        headers: Headers for every request.
        http_client: Replaces the library's HTTP engine.

    Attributes:
        base_url: The base URL for requests, without user name, password and query.
        url: The base URL for display, with secrets redacted.
        official: Whether this is OpenAI's own server.

    Raises:
        BadOption: The base URL, a header, the client, or a variable for proxies or certificates is invalid.
    """

    def __init__(
        self,
        base_url: str | None,
        api_key_variable: str,
        *,
        headers: Mapping[str, str] | None = None,
        http_client: HttpClient | None = None,
    ) -> None:
        url = base_url or os.environ.get("OPENAI_BASE_URL") or OPENAI_URL
        self.base_url, self._authorization, self._query = _parts(url)
        self.url = redact(url.strip().rstrip("/"))
        host = urlsplit(self.base_url).hostname or ""
        self.official = host == "openai.com" or host.endswith(".openai.com")
        self.api_key_variable = api_key_variable
        self._headers = parse_headers(headers or {}, "headers")
        self._http_client = http_client
        if http_client is not None:
            client_source(http_client)  # reports a mistyped path here, not at the first request
        else:
            check_variables(self.base_url)

    def __repr__(self) -> str:
        """Return the class and the redacted URL."""
        return f"ModelServer({self.url!r})"

    def call(self, stage: Stage, method: Literal["GET", "POST"], path: str, body: Any = None) -> Call:
        """Return a request to the server, with the query of its base URL."""
        return Call(stage, method, path, body, query=self._query, server=self.base_url)

    async def connect(self, send: Send) -> ModelConnection:
        """Return a new connection.

        Args:
            send: The request that needs the connection.

        Raises:
            ServerUnreachable: The connection failed or timed out.
            AccessDenied: OpenAI's own server requires a key, and there is none.
            BadOption: The key or a header contains invalid characters.
        """
        headers = tuple(self._all_headers().items())
        if self._http_client is not None:
            return AwaitedClient(self._http_client, headers)
        if proxy_for(self.base_url) is not None:
            return AwaitedClient(partial(http_client, self.base_url), headers)
        return await Connection.open(send, headers)

    async def check_connection(self, seconds: float) -> None:
        """Connect to the server, or to its proxy, and disconnect. A user's client is not checked.

        Args:
            seconds: Timeout in seconds.

        Raises:
            ServerUnreachable: The connection failed or timed out.
            AccessDenied: As for `connect`.
            BadOption: As for `connect`.
        """
        headers = tuple(self._all_headers().items())
        if self._http_client is not None:
            return
        proxy = proxy_for(self.base_url)
        call = Call("identify", "GET", "/models", server=self.base_url if proxy is None else proxy.address)
        connection = await Connection.open(Send(call, time.monotonic() + seconds, seconds), headers)
        connection.abandon()
        await asyncio.sleep(0)  # asyncio closes sockets in its next iteration

    @property
    def route(self) -> str:
        """The proxy for requests, to be read after "cannot connect"; empty if there is none."""
        proxy = None if self._http_client is not None else proxy_for(self.base_url)
        return "" if proxy is None else f" through {proxy}"

    def hide_secrets(self, text: str) -> str:
        """Return a text from a server or a library with the key, password and header values redacted."""
        secrets = [os.environ.get(self.api_key_variable, "").strip(), *self._own_headers().values()]
        secrets += [value for name, value in self._query.items() if "***" in redact(f"?{name}={value}")]
        if self._authorization:
            encoded = self._authorization.removeprefix("Basic ")
            secrets += [encoded, base64.b64decode(encoded).decode("utf-8", "replace").partition(":")[2]]
        for secret in secrets:
            if len(secret) >= _SHORTEST_SECRET:
                text = text.replace(secret, "***")
        return text

    def key_advice(self) -> tuple[str, ...]:
        """Return what to do if the server rejects the credentials, as parts of a message."""
        if self._authorization:
            return "correct the user name and password in ", ArgumentName("base_url")
        variable = self.api_key_variable
        if os.environ.get(variable, "").strip():
            return (f"replace the key in the variable {variable} by a valid one",)
        return (
            f"the variable {variable} is not set: set it to a valid key, or name another one by ",
            ArgumentName("api_key_variable"),
        )

    def proxy_advice(self) -> tuple[str, ...]:
        """Return what to do if a proxy rejects a request."""
        proxy = None if self._http_client is not None else proxy_for(self.base_url)
        whose = "the proxy" if proxy is None else f"the proxy in {proxy.variable}"
        return (f"correct the user name and password of {whose}, or list the server in NO_PROXY",)

    def _own_headers(self) -> HiddenHeaders:
        """Return the user's headers: from the argument, and otherwise from the environment variables.

        Raises:
            BadOption: A variable contains invalid headers.
        """
        lines = filter(None, map(str.strip, os.environ.get(_MORE_HEADERS, "").splitlines()))
        pairs = [line.partition(":") for line in lines]
        more = parse_headers({name.strip(): value.strip() for name, _, value in pairs}, _MORE_HEADERS)
        named = {header: os.environ.get(variable, "").strip() for header, variable in _VARIABLES.items()}
        named = {header: value for header, value in named.items() if value}
        return self._headers.over(more).over(parse_headers(named, " and ".join(_VARIABLES.values())))

    def _all_headers(self) -> HiddenHeaders:
        own, key = self._own_headers(), self._key()
        ours = {"User-Agent": f"agentgym-gym/{__version__}"}
        if self._authorization:
            ours["Authorization"] = self._authorization
        elif _API_VERSION in self._query and key:
            ours["api-key"] = key  # Azure's
        elif key or not any(name.lower().endswith("api-key") for name in own):
            ours["Authorization"] = f"Bearer {key or PLACEHOLDER_KEY}"
        return own.over(ours)

    def _key(self) -> str:
        """Return the API key, or "" if none is required.

        Raises:
            AccessDenied: OpenAI's own server requires a key.
            BadOption: The key contains characters that a header cannot have.
        """
        key = os.environ.get(self.api_key_variable, "").strip()
        if not key and self.official and not self._authorization:
            raise AccessDenied(
                f"{self.url} requires a key: set the environment variable {self.api_key_variable}, or "
                "give another server by ",
                ArgumentName("base_url"),
            )
        if not (key.isascii() and key.isprintable()):
            raise BadOption(f"the variable {self.api_key_variable} contains no key: keys are printable ASCII")
        return key


def _parts(url: str) -> tuple[str, str, dict[str, str]]:
    """Return a URL without user name, password and query; the ``Authorization`` header; and the query.

    Raises:
        BadOption: The URL is not a valid base URL.
    """
    shown = redact(url)[:200]
    try:
        parts = urlsplit(url.strip())
        usable = parts.scheme in {"http", "https"} and parts.hostname and (parts.port is None or parts.port)
    except ValueError:
        usable = False
    if not usable:
        raise BadOption("base_url", shown, problem="is not a URL such as 'http://127.0.0.1:8000/v1'")
    if parts.fragment:
        raise BadOption("base_url", shown.partition("#")[0], problem="should not have a fragment: remove #")
    user, at, host = parts.netloc.rpartition("@")
    path = parts.path.rstrip("/").removesuffix("/chat/completions")
    bare = urlunsplit((parts.scheme, host, path, "", ""))
    authorization = f"Basic {base64.b64encode(unquote(user).encode()).decode('ascii')}" if at else ""
    return bare, authorization, dict(parse_qsl(parts.query, keep_blank_values=True))
