"""The processes of a browser and its driver, and the files that killed ones leave."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import psutil

__all__ = ["kill_browser", "temporary_folder"]

_PREFIX = "agentgym-browser"
_NAME = re.compile(rf"{_PREFIX}-(\d+)-\w+")


def kill_browser(mark: str) -> None:
    """Kill the browser that was started with an argument, and the driver that started it.

    A frozen driver cannot end its browser, and a frozen browser does not notice that its driver has ended.

    Args:
        mark: The argument, which no other process has.
    """
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error):
            if mark not in process.cmdline():
                continue
            driver = process.parent()
            process.kill()
            if driver is not None and any("playwright" in part for part in driver.cmdline()):
                driver.kill()


@contextlib.contextmanager
def temporary_folder(stack: contextlib.ExitStack) -> Iterator[None]:
    """Let a driver that is started within this block write its temporary files into a folder of its own.

    These are the profiles of its browsers, which stay behind if it is killed. First, the folders of earlier
    processes that were killed are deleted.

    Args:
        stack: Deletes the folder.
    """
    # Elsewhere, paths of temporary folders are so long that a socket in a folder below has too long a path.
    if sys.platform != "linux":
        yield
        return
    parent = Path(tempfile.gettempdir())
    _delete_stale(parent)
    folder = tempfile.mkdtemp(prefix=f"{_PREFIX}-{os.getpid()}-", dir=parent)
    stack.callback(shutil.rmtree, folder, ignore_errors=True)
    before = os.environ.get("TMPDIR")
    os.environ["TMPDIR"] = folder  # the driver reads it as it starts
    try:
        yield
    finally:
        if before is None:
            del os.environ["TMPDIR"]
        else:
            os.environ["TMPDIR"] = before


def _delete_stale(parent: Path) -> None:
    for folder in parent.glob(f"{_PREFIX}-*"):
        name = _NAME.fullmatch(folder.name)
        if name is not None and not psutil.pid_exists(int(name[1])):
            shutil.rmtree(folder, ignore_errors=True)
