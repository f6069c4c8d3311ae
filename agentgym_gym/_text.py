"""Helpers for text that comes from models and servers."""

from __future__ import annotations

import os
import re
import reprlib
from collections.abc import Iterable
from typing import NoReturn
from urllib.parse import urlsplit

__all__ = [
    "CONTROLS",
    "UNSEEN",
    "no_constant",
    "reason",
    "redact",
    "redact_within",
    "scrub",
    "server_name",
    "shown",
]

UNSEEN = (
    "\ufeff\u200b\u200c\u200d\u200e\u200f\u2060\u2061\u2062\u2063\u2064\u00ad\u180e\u202a-\u202e\u2066-\u2069"
)
"""Characters without a glyph, for a character class: byte order mark, zero width, direction, soft hyphen."""

CONTROLS = "\x00-\x08\x0e-\x1b\x7f-\x84\x86-\x9f"
"""Control characters except white space, for a character class."""

_USER = re.compile(r"^(\s*[a-z][a-z0-9+.-]*://)?[^/?#]*@", re.IGNORECASE)

_QUERY_SECRET = re.compile(
    r"(?<=[?&])([\w.-]*(?:key|token|secret|sig|signature|password|code)=)[^&#\s,]+", re.IGNORECASE
)
_USER_WITHIN = re.compile(r"(?<=://)[^/\s]*@")
_SHORTEST_SECRET = 6

_repr = reprlib.Repr()
_repr.maxstring = _repr.maxother = 80


def shown(value: object) -> str:
    """Return a short ``repr`` of any value from a model or a server, for an error message.

    A plain ``repr`` may be megabytes long, and fails for integers of over 4,300 digits.
    """
    try:
        return _repr.repr(value)
    except (ValueError, RecursionError):
        return f"<{type(value).__name__} too large to show>"


def reason(error: Exception) -> str:
    """Return the message of an error, or its class name if it has none.

    asyncio has ``Connect call failed`` in place of the system's words, such as ``Connection refused``.
    """
    if isinstance(error, OSError) and error.errno is not None and error.strerror:
        by_asyncio = error.strerror.startswith("Connect call failed")
        words = os.strerror(error.errno) if by_asyncio else error.strerror
        return words if error.filename is None else f"{words}: {error.filename}"
    return str(error) or type(error).__name__


def no_constant(name: str) -> NoReturn:
    """Reject NaN and Infinity, which Python accepts but JSON does not: for ``parse_constant`` of `json`.

    Raises:
        ValueError: Always.
    """
    raise ValueError(f"{name} is not JSON")


def scrub(value: str) -> str:
    """Replace lone surrogates, which JSON can contain but UTF-8, and so any file or tokenizer, cannot."""
    return value if value.isascii() else value.encode("utf-8", "replace").decode("utf-8")


def redact(url: str) -> str:
    """Return a URL, or a comma-separated list, without user names, passwords and keys in queries."""
    shown = ",".join(_USER.sub(r"\1***@", part) for part in url.split(","))
    return _QUERY_SECRET.sub(r"\1***", shown)


def server_name(url: str) -> str:
    """Return the host, port and path of a URL, to name a server in metrics."""
    try:
        parts = urlsplit(url)
    except ValueError:  # such as an unclosed bracket
        return redact(url)
    return parts.netloc.rpartition("@")[2] + parts.path.rstrip("/") or redact(url)


def redact_within(text: str, secrets: Iterable[str] = ()) -> str:
    """Return text without the user names, passwords and keys in its URLs, and without secrets.

    Args:
        text: Any text.
        secrets: Other strings to remove, such as keys. Those of fewer than six characters are kept, because
            they would match ordinary words.
    """
    for secret in secrets:
        if len(secret) >= _SHORTEST_SECRET:
            text = text.replace(secret, "***")
    return _QUERY_SECRET.sub(r"\1***", _USER_WITHIN.sub("***@", text))
