"""Where the system's Chromium is. Imports nothing that an extra installs."""

from __future__ import annotations

import os
import shutil

from agentgym_gym.errors import SetupError

__all__ = ["HOW_TO_INSTALL", "VARIABLE", "find_chromium", "missing_chromium"]

VARIABLE = "AGENTGYM_CHROMIUM"
"""The environment variable with the path of a browser, for one that is not on the PATH."""

HOW_TO_INSTALL = (
    "apt-get install chromium (Debian's chromium-headless-shell takes a third of the memory), or set "
    f"{VARIABLE} to the path of Chromium or Chrome"
)

# The first one has no windows, and so needs less than half of the processor time of the others.
_NAMES = (
    "chromium-headless-shell",
    "chromium",
    "chromium-browser",
    "google-chrome",
    "google-chrome-stable",
    "chrome",
)
_MAC = "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome"


def find_chromium() -> str | None:
    """Return the path of Chromium or Chrome; None if there is none."""
    given = os.environ.get(VARIABLE)
    return next(filter(None, map(shutil.which, [given] if given else [*_NAMES, _MAC])), None)


def missing_chromium() -> SetupError | None:
    """Return the error for a missing browser; None if there is one."""
    if find_chromium() is not None:
        return None
    return SetupError(f"Chromium or Chrome is not installed: {HOW_TO_INSTALL}")
