"""The certificate authorities that this library's connections trust."""

from __future__ import annotations

import errno
import os
import re
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from agentgym_gym._text import reason
from agentgym_gym.errors import BadOption

if TYPE_CHECKING:
    import ssl
    from collections.abc import Iterable

__all__ = ["check_certificates", "tls_context"]

_HASHED_NAME = re.compile(r"[0-9a-f]{8}\.r?[0-9]+")


def check_certificates(urls: Iterable[str]) -> None:
    """Load the certificates if one of some URLs needs them, so that no connection fails for a variable later.

    Args:
        urls: URLs of servers.

    Raises:
        BadOption: A variable names no certificates.
    """
    if any(urlsplit(url).scheme == "https" for url in urls):
        tls_context()


@lru_cache(maxsize=1)
def tls_context() -> ssl.SSLContext:
    """Return the TLS context of all connections.

    It trusts the certificates of the system, so that a company installs its certificate authority in one
    place. ``SSL_CERT_FILE`` and ``SSL_CERT_DIR`` select another store, as in OpenSSL, and
    ``REQUESTS_CA_BUNDLE`` adds certificates. The store of certifi is used on a system without one.

    Raises:
        BadOption: A variable names no certificates.
    """
    import ssl  # noqa: PLC0415 - plain HTTP needs none of it

    for variable in ("SSL_CERT_FILE", "SSL_CERT_DIR"):  # OpenSSL itself ignores a missing file
        _load_certificates(ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT), variable)
    context = ssl.create_default_context()
    paths = ssl.get_default_verify_paths()
    if not (paths.cafile or paths.capath):
        import certifi  # noqa: PLC0415 - few systems need it

        context.load_verify_locations(certifi.where())
    if not os.environ.get("SSL_CERT_FILE"):
        _load_certificates(context, "REQUESTS_CA_BUNDLE")
    return context


def _load_certificates(context: ssl.SSLContext, variable: str) -> None:
    """Load the certificates of a variable, if it is set: a file, or folders with OpenSSL's hashed names.

    Raises:
        BadOption: There are none.
    """
    import ssl  # noqa: PLC0415 - plain HTTP needs none of it

    value = os.environ.get(variable, "")
    problem = ""
    for path in value.split(os.pathsep) if variable == "SSL_CERT_DIR" else [value]:
        folder = Path(path)
        try:
            if not path:
                continue
            if not folder.is_dir():
                if variable == "SSL_CERT_DIR":
                    raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR))
                context.load_verify_locations(cafile=path)
                return
            if any(_HASHED_NAME.fullmatch(each.name) for each in folder.iterdir()):
                context.load_verify_locations(capath=path)
                return
            problem = "is a folder without certificates of hashed names: run `openssl rehash` on it"
        except ssl.SSLError:
            problem = "is a file without certificates in PEM format"
        except (OSError, ValueError) as error:
            problem = f"cannot be read: {reason(error)}"
    if problem:
        raise BadOption(variable, value, problem=problem).found_in("the environment")
