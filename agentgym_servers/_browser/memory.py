"""How many environments the memory of this machine is enough for."""

from __future__ import annotations

from pathlib import Path

import psutil

from agentgym_servers._browser.executable import find_chromium

__all__ = ["most_envs"]

_MB = 1_000_000
_BROWSER = 500 * _MB  # the server and its browser with one environment
_WITHOUT_WINDOWS, _WITH_WINDOWS = 25 * _MB, 75 * _MB
"""Memory of a further environment: we measured 19 MB in chromium-headless-shell, up to 69 MB in chromium."""

_LEAST, _MOST = 8, 4096


def most_envs() -> int:
    """Return the default limit of environments for the browser that is installed."""
    browser = Path(find_chromium() or "").name
    each = _WITHOUT_WINDOWS if "headless" in browser else _WITH_WINDOWS
    return min(_MOST, max(_LEAST, (psutil.virtual_memory().available - _BROWSER) // each))
