"""Runs the commands of a training, one after another, and prints each."""

from __future__ import annotations

import contextlib
import os
import shlex
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path

from trainers import VARIABLES

__all__ = ["Commands"]


class Commands:
    """Commands with one folder for their output.

    Args:
        here: The folder in which they run.
        folder: The folder of the output.
    """

    def __init__(self, here: Path, folder: Path) -> None:
        self._here = here
        self.folder = Path(os.path.relpath(folder, here))  # as in the commands
        self._began = time.monotonic()

    @property
    def minutes(self) -> float:
        """Minutes since the first command."""
        return round((time.monotonic() - self._began) / 60, 1)

    def agentgym(self, *arguments: str, variables: Mapping[str, str] | None = None) -> None:
        """Run a command of agentgym.

        Raises:
            SystemExit: It failed.
        """
        self._call(["agentgym", *arguments], ["-m", "agentgym_gym", *arguments], variables or {})

    def python(self, *arguments: str, log: str | None = None) -> None:
        """Run a Python program; if a log is named, it is a training, and its output goes there.

        Raises:
            SystemExit: It failed.
        """
        variables = dict(VARIABLES) if log else {}
        if log:  # the file of verl's own file logger
            variables["VERL_FILE_LOGGER_PATH"] = str(self.folder / f"{log}-metrics.jsonl")
        self._call(["python", *arguments], list(arguments), variables, log)

    def announce(self, text: str) -> None:
        """Print what begins now, and the time."""
        print(f"\n== {text}, {self.minutes:.1f} min", flush=True)

    def _call(
        self, shown: list[str], arguments: list[str], variables: Mapping[str, str], log: str | None = None
    ) -> None:
        settings = [f"{name}={shlex.quote(value)}" for name, value in variables.items()]
        path = self._here / self.folder / f"{log}.log"
        into = f" > {self.folder / path.name} 2>&1" if log else ""
        print(f"$ {' '.join(settings + [shlex.quote(each) for each in shown])}{into}", flush=True)
        with path.open("w") if log else contextlib.nullcontext() as out:
            ended = subprocess.run(  # noqa: S603 - our own programs and verl's
                [sys.executable, *arguments],
                cwd=self._here,
                env={"COLUMNS": "120", **os.environ, **variables},  # wide enough for tables, also in a log
                stdout=out,
                stderr=subprocess.STDOUT if log else None,
                check=False,
            )
        if ended.returncode:
            end = f"; the end of {path}:\n{path.read_text(errors='replace')[-3_000:]}" if log else ""
            raise SystemExit(f"{shown[0]} {shown[1]} failed{end}")
