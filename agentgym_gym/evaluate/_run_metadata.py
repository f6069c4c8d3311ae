"""Provenance of a run: package versions and the state of the git repository."""

from __future__ import annotations

import platform
import subprocess
from importlib import metadata
from pathlib import Path

from agentgym_gym._version import __version__

__all__ = ["git_state", "versions"]

_GIT_SECONDS = 10.0


def versions(*others: str) -> dict[str, str | None]:
    """Return the versions of Python, this library, its dependencies and other packages; None if missing."""
    found: dict[str, str | None] = {"python": platform.python_version(), "agentgym-gym": __version__}
    for package in ("gymnasium", "httpx", "numpy", *others):
        try:
            found[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            found[package] = None
    return found


def git_state(folder: Path | None = None) -> dict[str, str | bool] | None:
    """Return the state of the git repository of a folder, by default the working directory.

    Returns:
        ``commit``, the hash, and ``dirty``, whether a tracked file has uncommitted changes; None if there is
        no repository, no commit or no git.
    """
    commit = _git("rev-parse", "HEAD", folder=folder)
    if not commit:
        return None
    changed = _git("status", "--porcelain", "--untracked-files=no", folder=folder)
    return {"commit": commit, "dirty": bool(changed)}


def _git(*words: str, folder: Path | None) -> str:
    try:
        done = subprocess.run(  # noqa: S603 - words of this module
            ["git", *words],  # noqa: S607 - the user's own git
            cwd=folder,
            capture_output=True,
            text=True,
            timeout=_GIT_SECONDS,
            check=False,
        )
    except (OSError, subprocess.SubprocessError):
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""
