"""A model's server: its address, the key for it, and clients of ``openai`` that are connected to it."""

from __future__ import annotations

import base64
import functools
import importlib
import ipaddress
import os
import ssl
from collections.abc import Awaitable, Callable
from typing import Any, TypeAlias
from urllib.parse import unquote, urlsplit, urlunsplit

from agentgym_gym._http.sockets import tls_context
from agentgym_gym._text import redact
from agentgym_gym.errors import AccessDenied, BadOption, MissingExtra, SetupError

__all__ = ["ModelServer", "http_library", "openai_package"]

OPENAI_URL = "https://api.openai.com/v1"
PLACEHOLDER_KEY = "EMPTY"  # what local servers are sent; they look at no key unless they are given one
CONNECT_SECONDS = 30.0
_SHORTEST_SECRET = 4  # "x" and the like stand for a key where none is needed


Trace: TypeAlias = Callable[[str, Any], Awaitable[None]]


class ModelServer:
    """Where a model is reached, and the key for it, which is read when a connection is made and kept nowhere.

    Args:
        base_url: Base URL, such as ``http://127.0.0.1:8000/v1``; by default the variable ``OPENAI_BASE_URL``,
            else OpenAI's own. A user name and password in it are sent as basic authentication, in the place
            of the key, and shown nowhere.
        api_key_variable: The environment variable that holds the key.

    Attributes:
        url: The base URL as it may be shown.
        official: Whether it is OpenAI's own.
        accepted_fields: Optional fields of a request that it has accepted.
        refused_fields: Optional fields that it refused. They are not sent again.

    Raises:
        BadOption: It is no base URL.
    """

    def __init__(self, base_url: str | None, api_key_variable: str) -> None:
        given = base_url or os.environ.get("OPENAI_BASE_URL") or OPENAI_URL
        self._base_url, self._authorization = _without_user(given)
        self.url = redact(self._base_url) if not self._authorization else redact(given.strip())
        host = urlsplit(self._base_url).hostname or ""
        self.official = host == "openai.com" or host.endswith(".openai.com")
        self.api_key_variable = api_key_variable
        self.accepted_fields: set[str] = set()
        self.refused_fields: set[str] = set()

    def __repr__(self) -> str:
        """Return what may be shown."""
        return f"ModelServer({self.url!r})"

    def connect(self, timeout: float, trace: Trace) -> Any:
        """Return a new ``AsyncOpenAI`` with a connection of its own, which repeats nothing by itself.

        Args:
            timeout: Seconds that each wait for the server may take.
            trace: Is told the progress of each request, as httpx's extension of that name.

        Raises:
            AccessDenied: OpenAI's own server needs a key, and there is none.
            BadOption: The key cannot be sent.
        """
        openai = openai_package()

        async def traced(request: Any) -> None:
            request.extensions["trace"] = trace

        limit = openai.Timeout(timeout, connect=min(timeout, CONNECT_SECONDS))
        return openai.AsyncOpenAI(
            api_key=self._key() or PLACEHOLDER_KEY,
            base_url=self._base_url,
            default_headers=self._authorization,
            max_retries=0,
            timeout=limit,
            http_client=openai.DefaultAsyncHttpxClient(
                verify=_tls(),
                trust_env=not _is_loopback(self._base_url),  # no proxy leads to this machine
                event_hooks={"request": [traced]},
            ),
        )

    def hidden(self, text: str) -> str:
        """Return what a server or a library said, without the key and the password in it."""
        secrets = [os.environ.get(self.api_key_variable, "").strip()]
        if self._authorization:
            encoded = self._authorization["Authorization"].removeprefix("Basic ")
            secrets += [encoded, base64.b64decode(encoded).decode("utf-8", "replace").partition(":")[2]]
        for secret in secrets:
            if len(secret) >= _SHORTEST_SECRET:
                text = text.replace(secret, "***")
        return text

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


def openai_package() -> Any:
    """Return the package ``openai``.

    Raises:
        MissingExtra: It is not installed.
    """
    try:
        return importlib.import_module("openai")
    except ImportError:
        raise MissingExtra("a model behind OpenAI's protocol", extra="eval", module="openai") from None


@functools.lru_cache(maxsize=1)
def http_library() -> Any:
    """Return the HTTP library on which the ``openai`` client is built: httpx2, or httpx in earlier versions.

    Raises:
        SetupError: It is another one.
    """
    openai = openai_package()
    for base in openai.DefaultAsyncHttpxClient.__mro__:
        library = base.__module__.partition(".")[0]
        if library in {"httpx", "httpx2"}:
            return importlib.import_module(library)
    raise SetupError(
        f"openai {openai.__version__} is built on neither httpx nor httpx2; install another version"
    )


@functools.lru_cache(maxsize=1)
def _tls() -> ssl.SSLContext:
    return tls_context()


def _without_user(url: str) -> tuple[str, dict[str, str]]:
    """Return a URL without user name and password, and the header that says them.

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
        return bare, {}
    encoded = base64.b64encode(unquote(user).encode()).decode("ascii")
    return bare, {"Authorization": f"Basic {encoded}"}


def _is_loopback(url: str) -> bool:
    host = urlsplit(url).hostname or ""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
