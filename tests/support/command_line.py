"""Run the command line in this process, as the console script `agentgym` does, and read its help."""

from __future__ import annotations

import functools
import io
import os
import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, TextIO

import pytest

import needs
from agentgym_gym.__main__ import main

os.environ.pop("COLUMNS", None)  # of the terminal in which the tests run


@dataclass(frozen=True)
class Result:
    """What a command left.

    Attributes:
        exit_code: The exit status.
        stdout: The standard output.
        stderr: The standard error.
        output: Both, in the order in which they were written.
    """

    exit_code: int
    stdout: str
    stderr: str
    output: str


def run(
    *words: object,
    input: str | bytes | TextIO = "",  # noqa: A002 - as in subprocess
    env: Mapping[str, str | None] | None = None,
    stderr: TextIO | None = None,
) -> Result:
    """Run a command in this process; without the package typer, skip the test.

    Lines are as long as in a pipe unless `COLUMNS` is set. An exception that the command line does not
    report as an error is raised.

    Args:
        words: The arguments after `agentgym`; each is converted to a text.
        input: The standard input, or a stream in its place, such as a terminal.
        env: Environment variables of the command; None removes one.
        stderr: A stream in place of the standard error, which is then not part of the result.
    """
    typer_main = pytest.importorskip("typer.main", reason=needs.reason("typer"))
    _imported()
    output = io.BytesIO()
    recorded = [_Recorded(output), _Recorded(output)]
    out, err = map(_text, recorded)
    if isinstance(input, str):
        input = input.encode()  # noqa: A001
    with pytest.MonkeyPatch.context() as patch:
        for name, value in (env or {}).items():
            patch.delenv(name, raising=False) if value is None else patch.setenv(name, value)
        patch.setattr(typer_main, "get_command", _made_once(typer_main.get_command))
        patch.setattr(sys, "argv", ["agentgym", *map(str, words)])
        patch.setattr(sys, "stdin", _text(io.BytesIO(input)) if isinstance(input, bytes) else input)
        patch.setattr(sys, "stdout", out)
        patch.setattr(sys, "stderr", stderr or err)
        patch.setattr(sys, "excepthook", sys.excepthook)  # typer replaces it
        code: Any = 0
        try:
            main()
        except SystemExit as ended:
            code = ended.code or 0
    assert isinstance(code, int), code
    return Result(code, *(each.getvalue().decode("utf-8", "replace") for each in (*recorded, output)))


@functools.cache
def _imported() -> None:
    """Import the command line while no width is set: rich would keep it for all commands."""
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("COLUMNS", raising=False)
        patch.setattr(sys, "argv", ["agentgym", "--version"])
        patch.setattr(sys, "stdout", io.StringIO())
        patch.setattr(sys, "excepthook", sys.excepthook)
        with pytest.raises(SystemExit):
            main()


@functools.cache
def _made_once(get_command: Any) -> Any:
    """Return a function that makes the commands once, not for each of a thousand command lines."""
    return functools.cache(get_command)


class _Recorded(io.BytesIO):
    """Bytes that are also written to another buffer."""

    def __init__(self, copy: io.BytesIO) -> None:
        super().__init__()
        self._copy = copy

    def write(self, data: Any) -> int:
        self._copy.write(data)
        return super().write(data)


def _text(buffer: io.BytesIO) -> TextIO:
    return io.TextIOWrapper(buffer, "utf-8", write_through=True)


_DETAILS = re.compile(r" +\[(default: |required|[\d.]*<?=?x[<>]).*\]")


class Option(NamedTuple):
    """An option or an argument in the help of a command.

    Attributes:
        group: The title of its group, such as "Options"; "Arguments" for arguments.
        names: Its names, such as `--help` and `-h`; the name of an argument, such as `ID`.
        metavar: The placeholder of its value, such as `<int>`; empty for a flag.
        help: Its help, without the default and the limits.
    """

    group: str
    names: tuple[str, ...]
    metavar: str
    help: str


@functools.cache
def commands() -> tuple[tuple[str, ...], ...]:
    """Return the words of each command that runs something, such as `("data", "rl")`."""
    return tuple(_commands_below(()))


def _commands_below(words: tuple[str, ...]) -> list[tuple[str, ...]]:
    below = [name for group, name, _ in _records(words) if group == "Commands"]
    return [each for name in below for each in _commands_below((*words, name))] if below else [words]


@functools.cache
def options(*words: str) -> tuple[Option, ...]:
    """Return the arguments and options of a command, in the order of its help."""
    return tuple(_option(*record) for record in _records(words) if record[0] != "Commands")


def _option(group: str, head: str, text: str) -> Option:
    if head.startswith("-"):
        names = re.findall(r"(?:^|, )(-[\w-]+)", head)
        metavar = head.partition(names[-1])[2].strip()
    else:  # an argument, in brackets if it is optional
        name, _, metavar = head.replace("[", "", 1).replace("]", "", 1).partition(" ")
        names = [name]
    return Option(group, tuple(names), metavar, _DETAILS.sub("", text))


@functools.cache
def _records(words: tuple[str, ...]) -> list[tuple[str, str, str]]:
    """Return the group, the head and the text of each record in a help, in the whole one if it is short."""
    records: list[tuple[str, str, str]] = []
    group = ""
    wide = {"COLUMNS": "200"}
    text = run(*words, "--help", env=wide).stdout
    if "\n  --help-all " in text:
        text = run(*words, "--help-all", env=wide).stdout
    for line in text.splitlines():
        titled = re.fullmatch(r"(\w[^:]*):", line)
        if titled or not line:
            group = titled[1] if titled else ""
        elif group and re.match(r"  \S", line):
            head, _, text = line.strip().partition("  ")
            records.append((group, head, text.strip()))
        elif group:
            *before, (group, head, text) = records
            records = [*before, (group, head, f"{text} {line.strip()}".strip())]
    return records
