"""HTTP headers that a user adds to every request, such as a token. Their values are never shown."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from agentgym_gym.errors import BadOption

if TYPE_CHECKING:
    from agentgym_gym.catalogue import Environment

__all__ = ["HiddenHeaders", "configured_headers", "parse_headers"]

_TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_VALUE = re.compile(r"[\t\x20-\x7e\x80-\xff]*")

# Message framing and hop-by-hop headers: the built-in client writes these.
_RESERVED = frozenset(
    {
        "accept-encoding",
        "connection",
        "content-encoding",
        "content-length",
        "content-type",
        "expect",
        "host",
        "http2-settings",
        "keep-alive",
        "proxy-authorization",
        "proxy-connection",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
    }
)


class HiddenHeaders(dict[str, str]):
    """Headers by name. The ``repr`` shows only their names."""

    def __repr__(self) -> str:
        return repr(dict.fromkeys(self, "***"))

    def over(self, others: Mapping[str, str]) -> HiddenHeaders:
        """Merge these headers with others; these have precedence, and names are case-insensitive."""
        named = {name.lower() for name in self}
        return HiddenHeaders(
            {name: value for name, value in others.items() if name.lower() not in named} | self
        )


def parse_headers(given: Any, name: str) -> HiddenHeaders:
    """Return validated headers. Error messages contain no values.

    Args:
        given: The user's headers: a mapping of strings.
        name: The argument or variable they come from, for the error message.

    Raises:
        BadOption: It is not a mapping of strings; a name is not an HTTP token, is repeated or is reserved for
            the built-in client; or a value has a control character or a character outside Latin-1.
    """
    if not isinstance(given, Mapping):
        raise BadOption(name, expected=f"a mapping of header names to strings, not a {type(given).__name__}")
    headers = HiddenHeaders()
    for header, value in given.items():
        if not isinstance(header, str) or not _TOKEN.fullmatch(header):
            # An invalid name may be a value in the wrong place.
            raise BadOption(name, problem="contain an invalid header name: use letters, digits and hyphens")
        if header.lower() in _RESERVED:
            raise BadOption(name, problem=f"contain {header!r}, which the HTTP engine sets itself")
        if header.lower() in map(str.lower, headers):
            raise BadOption(name, problem=f"contain {header!r} twice")
        if not isinstance(value, str):
            raise BadOption(name, problem=f"have a {type(value).__name__} for {header!r}: use a string")
        if not _VALUE.fullmatch(value):
            raise BadOption(
                name,
                problem=f"have a value of {header!r} with a line end, another control character, or a "
                "character that is not Latin-1",
            )
        headers[header] = value.strip(" \t")
    return headers


def configured_headers(environment: Environment, given: Mapping[str, str] | None = None) -> HiddenHeaders:
    """Return the headers for the server of an environment.

    Args:
        environment: The environment, whose variable ``AGENTGYM_NAME_HEADERS`` may contain a JSON object.
        given: The user's argument. Its headers replace headers of the same name in the variable.

    Raises:
        BadOption: The argument or the variable contains no valid headers.
    """
    headers = parse_headers(given or {}, "headers")
    variable = environment.headers_variable
    text = os.environ.get(variable, "").strip()
    if not text:
        return headers
    try:
        parsed = json.loads(text)
    except (ValueError, RecursionError):
        parsed = None
    if not isinstance(parsed, dict):
        raise BadOption(variable, expected="""a JSON object of strings, such as '{"X-Api-Key": "..."}'""")
    return headers.over(parse_headers(parsed, variable))
