"""The proxy for an address, from the environment variables, as curl, requests and httpx read them.

``HTTP_PROXY`` and ``HTTPS_PROXY`` apply to addresses of their scheme, and ``ALL_PROXY`` to both. ``NO_PROXY``
lists exceptions, separated by commas or white space: names, which include their subdomains, addresses, ranges
such as ``10.0.0.0/8``, patterns such as ``*.example.org``, and ``*``; each may end with a port. Names of
variables in lower case win. Addresses of this machine have no proxy.
"""

from __future__ import annotations

import contextlib
import importlib.util
import ipaddress
import os
import re
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias
from urllib.parse import SplitResult, urlsplit

from agentgym_gym._http.certificates import tls_context
from agentgym_gym.errors import BadOption

if TYPE_CHECKING:
    import httpx

__all__ = ["Proxy", "check_variables", "http_client", "proxy_for"]

_Address: TypeAlias = ipaddress.IPv4Address | ipaddress.IPv6Address

_PORTS = {"http": 80, "https": 443, "socks5": 1080, "socks5h": 1080}
_WITH_PORT = re.compile(r"(\[[^\]]*\]|[^:]*):([^:]*)")
_ENVIRONMENT = "the environment"  # the place of the variables, for errors
_UNPRINTABLE = re.compile(r"[\s\x00-\x1f\x7f]")


class Proxy(NamedTuple):
    """A proxy.

    Attributes:
        url: Its URL, possibly with a password.
        variable: The environment variable that sets it.
    """

    url: str
    variable: str

    def __repr__(self) -> str:
        """Return the class with the redacted URL."""
        return f"Proxy({_shown(self.url)!r}, {self.variable!r})"

    def __str__(self) -> str:
        """Return the redacted URL and the variable, for messages."""
        return f"the proxy {_shown(self.url)} of {self.variable}"

    @property
    def address(self) -> str:
        """The URL of its host and port, to test whether it can be reached."""
        parts = urlsplit(self.url)
        host = parts.netloc.rpartition("@")[2]
        default = "" if parts.port else f":{_PORTS[parts.scheme]}"
        return f"{'https' if parts.scheme == 'https' else 'http'}://{host}{default}"


def http_client(url: str, **options: Any) -> httpx.AsyncClient:
    """Return an httpx client for a URL, with the proxy of the variables, if any.

    Args:
        url: As for `proxy_for`.
        **options: More arguments of `httpx.AsyncClient`.

    Raises:
        BadOption: As for `check_variables`.
    """
    import httpx  # noqa: PLC0415 - few need a proxy

    proxy, tls = proxy_for(url), tls_context()
    through = None
    if proxy is not None:
        through = httpx.Proxy(proxy.url, ssl_context=tls if proxy.url.startswith("https:") else None)
    # Without trust_env, because httpx fails for values in variables that are not needed.
    return httpx.AsyncClient(proxy=through, verify=tls, trust_env=False, **options)


def proxy_for(url: str) -> Proxy | None:
    """Return the proxy for a URL; None if the variables set none for it.

    Args:
        url: A valid URL of a server, with the scheme http or https.

    Raises:
        BadOption: A variable that applies has an invalid value.
    """
    parts = urlsplit(url)
    host = _plain_host(parts.hostname or "")
    address = _address(host)
    if host == "localhost" or host.endswith(".localhost") or (address is not None and address.is_loopback):
        return None
    for name in (f"{parts.scheme}_proxy", "all_proxy"):
        variable, value = _variable(name)
        if value:
            return None if _is_excepted(host, address, _port(parts)) else _checked(variable, value)
    return None


def check_variables(url: str) -> None:
    """Check the variables that a client of a URL needs, so that it cannot fail later.

    Args:
        url: As for `proxy_for`.

    Raises:
        BadOption: A variable for the proxy or for certificates has an invalid value.
    """
    proxy = proxy_for(url)
    if proxy is not None or urlsplit(url).scheme == "https":
        tls_context()


def _variable(name: str) -> tuple[str, str]:
    """Return the variable that counts, in lower or upper case, and its value; "" if it has none."""
    for spelled in (name, name.upper()):
        if spelled in os.environ:
            return spelled, os.environ[spelled].strip()
    return name.upper(), ""


def _checked(variable: str, value: str) -> Proxy:
    """Return the proxy of a value.

    Raises:
        BadOption: The value is not the URL of a proxy, or httpx cannot use it here.
    """
    url = value if "://" in value else f"http://{value}"
    try:
        parts = urlsplit(url)
        host = parts.hostname or ""
        valid = bool(host) and parts.port != 0 and _UNPRINTABLE.search(url) is None
        valid = valid and parts.path in {"", "/"} and not parts.query and not parts.fragment
        valid = valid and (":" not in host or _address(host) is not None)
    except ValueError:
        valid = False
    if not valid:
        expected = "the URL of a proxy, such as 'http://proxy.example.org:3128'"
        raise BadOption(variable, expected=expected).found_in(_ENVIRONMENT)  # its value may have a password
    if parts.scheme not in _PORTS:
        kinds = ", ".join(f"{scheme}://" for scheme in _PORTS)
        raise BadOption(variable, _shown(value), f"a URL that begins with one of {kinds}").found_in(
            _ENVIRONMENT
        )
    if parts.scheme.startswith("socks") and importlib.util.find_spec("socksio") is None:
        problem = "needs the package 'socksio' for SOCKS: pip install socksio, or unset the variable"
        raise BadOption(variable, _shown(value), problem=problem).found_in(_ENVIRONMENT)
    return Proxy(url, variable)


def _shown(value: str) -> str:
    """Return a value without anything that may be a password."""
    scheme, separator, rest = value.rpartition("://")
    return f"{scheme}{separator}{'***@' if '@' in rest else ''}{rest.rpartition('@')[2]}"


def _is_excepted(host: str, address: _Address | None, port: int) -> bool:
    """Return whether ``NO_PROXY`` has a host, given also as an address if it is one.

    Raises:
        BadOption: An entry is invalid.
    """
    variable, value = _variable("no_proxy")
    entries = [entry for entry in re.split(r"[\s,]+", value) if entry]
    found = [_matches(entry, variable, host, address, port) for entry in entries]  # all, to find invalid ones
    return any(found)


def _matches(entry: str, variable: str, host: str, address: _Address | None, port: int) -> bool:
    pattern = entry.lower()
    try:
        if _address(pattern) is None and (found := _WITH_PORT.fullmatch(pattern)):
            pattern = found[1]
            number = int(found[2])
            if not 0 < number < 2**16:
                raise ValueError(pattern)
            if number != port:
                return False
        if "/" in pattern:
            network = ipaddress.ip_network(_without_brackets(pattern), strict=False)
            if network.version != getattr(address, "version", None) == 4:  # noqa: PLR2004 - ::ffff:10.0.0.0/104
                address = ipaddress.ip_address(f"::ffff:{address}")
            return address is not None and address in network
        if "[" in pattern or ":" in pattern:
            ipaddress.ip_address(_without_brackets(pattern))
    except ValueError:
        expected = "names, addresses and ranges such as 'example.org', '192.0.2.1' and '10.0.0.0/8'"
        raise BadOption(variable, _shown(entry), expected).found_in(_ENVIRONMENT) from None
    listed = _address(_without_brackets(pattern))
    if listed is not None or (address is not None and "*" not in pattern):
        return listed == address
    if "*" in pattern:
        return fnmatchcase(host, pattern)
    name = _plain_host(pattern.lstrip("."))
    return host == name or host.endswith(f".{name}")


def _port(parts: SplitResult) -> int:
    return parts.port or _PORTS[parts.scheme]


def _without_brackets(text: str) -> str:
    """Return an address or a range without brackets: ``[fd00::]/8`` → ``fd00::/8``."""
    return re.sub(r"^\[([^\[\]]*)\](?=$|/)", r"\1", text)


def _plain_host(host: str) -> str:
    """Return a host as it is compared: in lower case, without a final dot, as ASCII."""
    host = host.lower().removesuffix(".")
    with contextlib.suppress(UnicodeError):
        return host if host.isascii() else host.encode("idna").decode("ascii")
    return host


def _address(host: str) -> _Address | None:
    """Return a host as an address, an IPv4 address in IPv6 as IPv4; None if it is a name."""
    try:
        address = ipaddress.ip_address(_without_brackets(host).partition("%")[0])
    except ValueError:
        return None
    return getattr(address, "ipv4_mapped", None) or address
