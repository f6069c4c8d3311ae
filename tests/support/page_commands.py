"""Replay the commands of pages and examples without an episode or a training, to find their tasks."""

from __future__ import annotations

import contextlib
import os
import re
import shlex
import subprocess
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import takewhile
from pathlib import Path
from typing import Any
from unittest import mock

from pyarrow import parquet

import command_line
from agentgym_gym._cli import evaluate as eval_command
from agentgym_gym.data import read_trajectories
from agentgym_gym.errors import UnknownEnvironment
from agentgym_gym.evaluate import Run, RunFolder
from agentgym_gym.evaluate._prepared import prepare
from agentgym_gym.evaluate._resolve import resolve
from trajectories import FACTS, episode
from verl_bridge.tasks import EnvTask

Task = tuple[str, int]
"""A gymnasium id, and a task id or seed."""

_BLOCK = re.compile(r"^```(?:console|sh|bash)\n(.*?)^```", re.DOTALL | re.MULTILINE)
_WRITES = {("verl", "init"), ("verl", "sft"), ("data", "rl"), ("data", "sft"), ("data", "agenttraj")}
_REAL = ("cat", "dirname", "mkdir")
"""The only programs that a script of a page starts: they write its files."""


@dataclass(frozen=True)
class Line:
    """A command of agentgym.

    Attributes:
        folder: The working folder.
        words: The arguments.
    """

    folder: Path
    words: tuple[str, ...]

    @property
    def writes(self) -> bool:
        """Whether the command writes training data."""
        return self.words[:2] in _WRITES

    @property
    def evaluates(self) -> bool:
        """Whether the command plays tasks, of an environment or a run file that exists here."""
        if self.words[:1] != ("eval",):
            return False
        name = self.words[1]
        if name.startswith("-"):
            return (self.folder / (self.option("--items") or "")).exists()
        if name.endswith(".toml"):
            return (self.folder / name).exists()
        with working_in(self.folder), contextlib.suppress(UnknownEnvironment):
            return bool(resolve(name))
        return False

    @property
    def of_model(self) -> bool:
        """Whether a model plays."""
        return any(word.startswith(("--model", "--launch")) for word in self.words)

    @property
    def out(self) -> Path | None:
        """The output folder."""
        out = self.option("--out")
        return None if out is None else Path(os.path.normpath(self.folder / out))

    @property
    def sources(self) -> set[Path]:
        """The sources of training data."""
        if self.words[:1] != ("data",) and self.words[:2] != ("verl", "sft"):
            return set()
        named = takewhile(lambda word: not word.startswith("-"), self.words[2:])
        return {Path(os.path.normpath(self.folder / name)) for name in named}

    def option(self, name: str) -> str | None:
        """Return the value of an option, or None."""
        for word, following in zip(self.words, (*self.words[1:], ""), strict=True):
            head, equals, tail = word.partition("=")
            if head == name:
                return tail if equals else following
        return None


def script_of(page: Path) -> str:
    """Return the shell blocks of a page."""
    return "\n".join(_BLOCK.findall(page.read_text("utf-8")))


def lines_of(script: Path, folder: Path) -> list[Line]:
    """Return the commands of agentgym that a script of bash would start, in order.

    Args:
        script: The script. It starts only programs that write its files.
        folder: The working folder.
    """
    programs = script.with_suffix(".programs")
    programs.mkdir()
    log = programs / "log"
    log.touch()
    for name in _REAL:
        (programs / name).symlink_to(f"/bin/{name}")
    for name in ("agentgym", "python"):
        # In one write, since a script may start several at once.
        words = f'words=$(printf "%q " {name} "$PWD" "$@")'
        text = f'#!/bin/bash\n{words}\necho "$words" >> {shlex.quote(str(log))}\n'
        (programs / name).write_text(text)
        (programs / name).chmod(0o755)
    subprocess.run(
        ["/bin/bash", script], cwd=folder, env={"PATH": str(programs)}, capture_output=True, check=False
    )
    lines = []
    for program, at, *words in map(shlex.split, log.read_text().splitlines()):
        if program == "agentgym":
            lines.append(Line(Path(at), tuple(words)))
        elif words[:2] == ["-m", "agentgym_gym"]:
            lines.append(Line(Path(at), tuple(words[2:])))
    return lines


@contextlib.contextmanager
def working_in(folder: Path) -> Iterator[None]:
    """Change the working folder for a while."""
    before = Path.cwd()
    os.chdir(folder)
    try:
        yield
    finally:
        os.chdir(before)


@dataclass
class Replay:
    """Commands that are replayed.

    Attributes:
        played: The tasks of each evaluation, by its command. Runs that become training data are left out.
        trained: The tasks of the rows for training.
    """

    played: dict[str, set[Task]] = field(default_factory=dict)
    trained: set[Task] = field(default_factory=set)
    _runs: dict[Path | None, str] = field(default_factory=dict)

    def run(self, line: Line) -> None:
        """Run a command. An evaluation writes a solved episode for each of its tasks, if it names a folder.

        Args:
            line: The command, which evaluates or writes training data.

        Raises:
            AssertionError: The command failed.
        """
        stated: list[tuple[Sequence[Run], Path | None]] = []
        with (
            working_in(line.folder),
            # The models of the pages need not be here.
            mock.patch.object(eval_command, "checkpoints", lambda pattern, **_: [pattern]),
            mock.patch.object(
                eval_command, "play_and_print", lambda runs, _, *, out, **__: stated.append((runs, out))
            ),
        ):
            ended = command_line.run(*line.words)
            assert ended.exit_code == 0, f"{shlex.join(line.words)}\n{ended.output}"
            for runs, out in stated:
                command = self._runs[line.out] = shlex.join(line.words)
                self.played[command] = {task for each in _recorded(runs, out) for task in each}
        if line.writes:
            self.trained |= tasks_in(files_in(line.out))
            for source in line.sources:
                self.played.pop(self._runs.get(source, ""), None)
        if line.words[:2] == ("verl", "sft"):
            (line.out / "checkpoints").mkdir()
            (line.out / "checkpoints/latest_checkpointed_iteration.txt").write_text("1")
            for each in lines_of(line.out / "run.sh", line.out):
                self.run(each)


def _recorded(runs: Sequence[Run], out: Path | None) -> Iterator[list[Task]]:
    """Write runs in which all tasks are solved; yield the tasks of each run."""
    prepared = prepare([replace(run, agent="oracle", name=run.name or _name(run.agent)) for run in runs])
    for each in prepared:
        env_id = each.env.chosen.id
        if out is not None:
            facts = FACTS | {"env_id": env_id, "options": {"action_format": "bare"}}
            with RunFolder(each.folder(out, several=len(prepared) > 1), facts) as folder:
                for task in each.env.tasks:
                    folder.add(episode(task, env_id=env_id))
        yield [(env_id, task) for task in each.env.tasks]


def _name(agent: object) -> str:
    return agent if isinstance(agent, str) else str(agent.model or agent.model_path)  # type: ignore[attr-defined]


def files_in(out: Path) -> Iterable[Path]:
    """Return the files of training data at a path."""
    return out.rglob("train.parquet") if out.is_dir() else [out]


def tasks_in(files: Iterable[Path]) -> set[Task]:
    """Return the tasks of the rows in files."""
    return {task for file in files for task in _tasks(file)}


def _tasks(file: Path) -> Iterator[Task]:
    if file.suffix != ".parquet":
        yield from ((each.env_id, each.task_id) for each in read_trajectories(file))
        return
    for row in parquet.read_table(file).to_pylist():
        yield (row["data_source"], row["task_id"]) if "task_id" in row else _task_of(row)


def _task_of(row: dict[str, Any]) -> Task:
    task = EnvTask.of(row)
    number = task.options.get("task_id", task.seed)
    return task.env_id.rpartition(":")[2], number


def in_words(tasks: Collection[Task]) -> str:
    """Return the first of some tasks as text."""
    return f"{len(tasks)} tasks, such as {sorted(tasks)[:3]}"
