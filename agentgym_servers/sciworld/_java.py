"""Finds the Java that runs the simulator."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from agentgym_gym.errors import SetupError

__all__ = ["find_java", "java_error", "missing_java"]

_REMEDY = (
    "install it, for example with 'apt install default-jre-headless', 'dnf install java-headless' or "
    "'brew install openjdk', so that java is on the PATH; or set JAVA_HOME to its folder"
)


def find_java() -> str | None:
    """Return the path of ``java``: in JAVA_HOME if it is set, otherwise on the PATH."""
    home = os.environ.get("JAVA_HOME")
    return shutil.which("java", path=str(Path(home) / "bin") if home else None)


def missing_java() -> SetupError | None:
    """Return the error if there is no Java; None if there is one."""
    if find_java() is not None:
        return None
    home = os.environ.get("JAVA_HOME")
    where = f"JAVA_HOME={home} contains none" if home else "there is no java on the PATH"
    return java_error(where)


def java_error(reason: str) -> SetupError:
    """Return the error of a Java that is missing or cannot run the simulator, with the remedy."""
    return SetupError(f"the local SciWorld server needs Java 8 or newer, but {reason}: {_REMEDY}")
