"""Runs the commands of a training, one after another, and prints each."""

from __future__ import annotations

import contextlib
import json
import os
import shlex
import subprocess
import sys
import time
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from pathlib import Path

from trainers import VARIABLES, Training

__all__ = ["Commands", "attempts", "folders_of", "keep_recipe", "rename_earlier"]


class Commands:
    """Commands with one folder for their output.

    Args:
        here: The folder in which they run.
        folder: The folder of the output.

    Attributes:
        folder: The folder of the output, relative to the one in which the commands run: for commands.
        path: The same folder as an absolute path: for files.
    """

    def __init__(self, here: Path, folder: Path) -> None:
        self._here = here
        self.path = folder.resolve()
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
        """Run a Python program.

        Args:
            *arguments: Its command line.
            log: A name; the output goes to ``NAME.log``, and the metrics of verl's file logger to
                ``NAME-metrics.jsonl``. Those of an interrupted run become ``NAME-1.log`` and so on.

        Raises:
            SystemExit: It failed.
        """
        variables = dict(VARIABLES) if log else {}
        if log:
            variables["VERL_FILE_LOGGER_PATH"] = str(self.folder / f"{log}-metrics.jsonl")
            for name in (f"{log}.log", f"{log}-metrics.jsonl"):
                rename_earlier(self.path / name)
        self._call(["python", *arguments], list(arguments), variables, log)

    def announce(self, text: str) -> None:
        """Print what begins now, and the time."""
        print(f"\n== {text}, {self.minutes:.1f} min", flush=True)

    def _call(
        self, shown: list[str], arguments: list[str], variables: Mapping[str, str], log: str | None = None
    ) -> None:
        settings = [f"{name}={shlex.quote(value)}" for name, value in variables.items()]
        path = self.path / f"{log}.log"
        into = f" > {self.folder / log}.log 2>&1" if log else ""
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
            raise SystemExit(f"{' '.join(shown[:3])} failed{end}")


def keep_recipe(folder: Path, recipe: Training) -> None:
    """Create a folder for the runs of a recipe, with the recipe in ``recipe.json``.

    Raises:
        SystemExit: It has runs of another recipe; one report of both would be wrong.
    """
    numbers = json.loads(json.dumps({"recipe": type(recipe).__name__, **asdict(recipe)}))
    path = folder / "recipe.json"
    before = json.loads(path.read_text()) if path.exists() else numbers
    for name in {**before, **numbers}:
        if before.get(name) != numbers.get(name):
            raise SystemExit(
                f"{folder} has runs of a recipe with {name}={before.get(name)}, not {numbers.get(name)}: "
                "choose another --out"
            )
    folder.mkdir(parents=True, exist_ok=True)
    part = path.with_suffix(".part")
    part.write_text(json.dumps(numbers, indent=1) + "\n")
    part.replace(path)


def folders_of(seeds: Iterable[int], out: Path) -> dict[int, Path]:
    """Return the folder of each seed; a seed that is given twice counts once.

    Raises:
        SystemExit: One of them exists already.
    """
    folders = {seed: out / f"seed_{seed}" for seed in seeds}
    for folder in folders.values():
        if folder.exists():
            raise SystemExit(f"{folder} exists already: remove it, or choose another --out")
    return folders


def rename_earlier(path: Path) -> None:
    """Rename the file of an interrupted run, if there is one, to ``NAME-1``, ``NAME-2`` and so on."""
    if path.exists():
        path.rename(path.with_stem(f"{path.stem}-{len(attempts(path))}"))


def attempts(path: Path) -> list[Path]:
    """Return the files that `rename_earlier` renamed, oldest first, and the last one."""
    earlier = path.parent.glob(f"{path.stem}-[0-9]*{path.suffix}")
    return [*sorted(earlier, key=lambda file: int(file.stem.rpartition("-")[2])), path]
