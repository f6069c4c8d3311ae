"""Find the package whose absence caused an error: the machine that checks a folder may lack the engine."""

from __future__ import annotations

import importlib.util
import re
from collections.abc import Iterator
from importlib import metadata

from verl_bridge.recipes._choices import ENGINES

__all__ = ["absent_package", "is_installed"]

_REPORTED = re.compile(
    r"version None|not (?:be )?(?:installed|found|available|importable)|unavailable|no module|pip install"
    r"|(?:please|must|to) install|(?:cannot|could not|failed to|unable to) (?:import|find|load)"
    r"|(?:is|are) (?:missing|required)",
    re.IGNORECASE,
)
"""The words with which libraries report a package that is not installed, in errors of any class."""

_MODULE = re.compile(r"(?:No module named '?|import of )(\w+)")
_LIBRARY = re.compile(r"(\S+\.so[.\d]*): cannot open shared object file")
_REQUIREMENT = re.compile(r"[\w.-]+")


def is_installed(module: str) -> bool:
    """Return whether there is a module; only its parents are imported."""
    try:
        return importlib.util.find_spec(module) is not None
    except (ImportError, ValueError):
        return False


def absent_package(error: BaseException | str, *, named: str = "") -> str | None:
    """Return the package, or shared library, whose absence caused an error; None if the cause is another.

    Errors of imports have the name. verl and the engines also raise other errors, such as ``ValueError: vllm
    version None not supported``: packages of verl's extras are searched for in their texts.

    Args:
        error: The error, or its text.
        named: The module that the folder names itself. If that is missing, its name may be wrong.
    """
    for text in [error] if isinstance(error, str) else map(str, _causes(error)):
        package = _named_in(text)
        if package is not None and package != named.partition(".")[0]:
            return package
    return None


def _named_in(text: str) -> str | None:
    modules = [module for module in _MODULE.findall(text) if not is_installed(module)]
    names = modules or _LIBRARY.findall(text)
    if names:
        return str(names[0])
    if not _REPORTED.search(text):
        return None
    found = {match.start(): package for package in _packages() if (match := _find(package, text))}
    return found[min(found)] if found else None


def _causes(error: BaseException) -> Iterator[BaseException]:
    """Yield an error, and the errors that led to it."""
    seen: list[BaseException] = []
    cause: BaseException | None = error
    while cause is not None and cause not in seen:
        yield cause
        seen.append(cause)
        cause = cause.__cause__ or cause.__context__


def _packages() -> set[str]:
    """Return the engines, and the packages of all extras of verl, that are not installed."""
    try:
        requirements = metadata.requires("verl") or []
    except metadata.PackageNotFoundError:
        requirements = []
    names = {match[0] for each in requirements if (match := _REQUIREMENT.match(each))}
    return {name for name in {*ENGINES, *names} if not _is_distributed(name)}


def _find(package: str, text: str) -> re.Match[str] | None:
    words = "[-_. ]?".join(map(re.escape, re.split("[-_.]", package)))
    return re.search(rf"(?<![\w-]){words}(?![\w-])", text, re.IGNORECASE)


def _is_distributed(package: str) -> bool:
    try:
        metadata.version(package)
    except metadata.PackageNotFoundError:
        return is_installed(package.replace("-", "_"))
    return True
