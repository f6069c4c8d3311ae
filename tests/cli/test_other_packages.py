"""Commands that other packages bring by the entry points `agentgym.commands`."""

from __future__ import annotations

import functools
import os
import re
import subprocess
import sys
import textwrap
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import pytest
import typer

import programs
from agentgym_gym import commands
from doc_blocks import blocks_of, run_in_shell

pytestmark = pytest.mark.slow  # each command is a process

PAGE = Path(__file__).resolve().parents[2] / "docs" / "howto" / "add_command.md"

GREET = """
    from dataclasses import dataclass
    from typing import Annotated
    import typer
    from agentgym_gym.commands import Json, Option, command, out, print_json, print_table, resolve
    from agentgym_gym.errors import BadOption

    @dataclass(frozen=True, kw_only=True)
    class GreetOptions:
        env: Annotated[str, Option("environment to greet", positional=True, completes="environment")]
        max_turns: Annotated[int, Option("number of greetings")] = 1
        as_json: Json = False

    @command(GreetOptions, groups={"Greeting": ["max_turns"]}, examples=["agentgym greet Maze"])
    def greet(options: GreetOptions) -> None:
        "Greet an environment."
        name = resolve(options.env).id
        if options.max_turns < 1:
            raise BadOption("max_turns", options.max_turns, "1 or more")
        if options.as_json:
            return print_json({"greeted": name})
        print_table(("environment", "greetings"), [(name, str(options.max_turns))], left={"environment"})
        out.print("Hello.")

    group = typer.Typer(no_args_is_help=True, help="Greet in groups.")

    @group.command()
    def twice(env: str) -> None:
        "Greet twice."
        greet(env=env, max_turns=2, as_json=False)

    @group.command()
    def never() -> None:
        "Never greet."
        raise BadOption("nobody to greet")
"""


def install(folder, name, code="", **points):
    """Install a package into a folder as pip does: its module, and its metadata with its entry points."""
    (folder / f"{name}.py").write_text(textwrap.dedent(code))
    metadata = folder / f"{name}-1.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    lines = [f"{command.replace('__', '.')} = {target}\n" for command, target in points.items()]
    (metadata / "entry_points.txt").write_text("".join(["[agentgym.commands]\n", *lines]))


def runner(folder):
    """Return a function that runs the command line with the packages of a folder."""

    @functools.cache
    def run(*words, **variables):
        path = os.pathsep.join([str(folder), programs.environment()["PYTHONPATH"]])
        return subprocess.run(
            [sys.executable, "-W", "error", "-m", "agentgym_gym", *words],
            env=programs.environment(PYTHONPATH=path, COLUMNS="80", **variables),
            capture_output=True,
            text=True,
            check=False,
        )

    return run


@pytest.fixture(scope="module")
def agentgym(tmp_path_factory):
    """Runs the command line where two packages are installed; the second extends a group of the first."""
    folder = tmp_path_factory.mktemp("packages")
    points = {"greet": "greeter:greet", "greetings": "greeter:group", "data__greet": "greeter:greet"}
    install(folder, "greeter", GREET, **points)
    install(folder, "more", greetings__more="greeter:greet")
    return runner(folder)


def test_the_options_of_typer_are_deprecated():
    """Version 0.2 had them in the fields of a dataclass."""

    @dataclass(frozen=True)
    class Options:
        name: Annotated[str, typer.Argument(help="somebody")]
        times: Annotated[int, typer.Option(help="number of greetings")] = 1

    def greet_twice():
        greeted = []
        commands.command(Options)(greeted.append)(name="Maze", times=2)
        return greeted

    with pytest.warns(DeprecationWarning, match=r"use agentgym_gym\.commands\.Option; version 0\.4"):
        greeted = greet_twice()
    assert greeted == [Options("Maze", 2)]


def commands_in(printed):
    """Return the lines of the commands in a help."""
    return printed.stdout.partition("Commands:\n")[2].splitlines()


def test_commands_are_listed_after_the_built_in_ones(agentgym):
    listed = agentgym("--help")
    assert (listed.returncode, listed.stderr) == (0, "")
    assert "  greet      Greet an environment." in commands_in(listed)
    assert "  greetings  Greet in groups." in commands_in(listed)
    assert [line.split()[0] for line in commands_in(listed)][-4:] == ["data", "greet", "greetings", "verl"]
    assert commands_in(agentgym("data", "--help"))[-2] == "  greet      Greet an environment."
    assert commands_in(agentgym("greetings", "--help")) == [
        "  twice  Greet twice.",
        "  never  Never greet.",
        "  more   Greet an environment.",
    ]


def test_the_help_of_a_command_has_its_groups_and_examples(agentgym):
    printed = agentgym("greet", "-h").stdout
    assert "Greeting:\n  --max-turns <int>  number of greetings" in printed
    assert printed.endswith("Examples:\n    agentgym greet Maze\n")


def test_commands_run(agentgym):
    shown = agentgym("greet", "maze", "--max-turns", "3")
    assert (shown.returncode, shown.stderr) == (0, "")
    assert "agentgym/Maze-v0          3\n" in shown.stdout
    assert shown.stdout.endswith("\nHello.\n")
    assert agentgym("greetings", "twice", "Maze").stdout.endswith("\nHello.\n")
    assert agentgym("greetings", "more", "Maze").stdout.endswith("\nHello.\n")
    assert agentgym("data", "greet", "Maze", "--json").stdout == '{\n  "greeted": "agentgym/Maze-v0"\n}\n'


@pytest.mark.parametrize(
    ("words", "error"),
    [
        ("greet Maze --max-turns 0", "error: --max-turns=0 should be 1 or more\n"),
        ("greetings never", "error: nobody to greet\n"),
        ("greetings twice Nowhere", "error: there is no environment 'Nowhere'"),
        ("greet Maze --max-turns 2 --max-turns 3", "Error: --max-turns is given 2 times; give it once\n"),
        (
            "greet Maze --max-turns many",
            "Error: Invalid value for '--max-turns': it should be a whole number\n",
        ),
        ("gret Maze", "Error: No such command 'gret'. Did you mean 'greet'"),
    ],
)
def test_errors_are_printed_like_errors_of_our_commands(agentgym, words, error):
    result = agentgym(*words.split())
    assert (result.returncode, result.stdout) == (2, "")
    assert error in result.stderr
    assert "Traceback" not in result.stderr


@pytest.mark.parametrize(
    ("words", "offered"),
    [
        ("agentgym gr", ["greet", "greetings"]),
        ("agentgym greetings t", ["twice"]),
        ("agentgym greet Te", ["TextCraft"]),
    ],
)
def test_the_shell_completes(agentgym, words, offered):
    variables = {"COMP_WORDS": words, "COMP_CWORD": str(len(words.split(" ")) - 1)}
    result = agentgym(_AGENTGYM_COMPLETE="complete_bash", **variables)
    assert (result.stdout.split(), result.stderr) == (offered, "")


def test_a_command_is_loaded_only_when_it_is_called_or_listed(tmp_path):
    install(
        tmp_path, "noisy", "print('imported'); greet = print", greet="noisy:greet", data__greet="noisy:greet"
    )
    agentgym = runner(tmp_path)
    for words in (["--version"], ["eval", "-h"], ["data", "sft", "-h"]):
        assert "imported" not in agentgym(*words).stdout
    for words in (["--help"], ["greet", "--help"], ["data", "--help"]):
        assert "imported" in agentgym(*words).stdout


@pytest.mark.parametrize("words", [("--version",), ("eval", "-h"), ("data", "sft", "-h")], ids=" ".join)
def test_other_commands_do_not_import_the_bridge(words):
    command = [sys.executable, "-X", "importtime", "-m", "agentgym_gym", *words]
    lines = subprocess.run(command, capture_output=True, text=True, check=True).stderr.splitlines()
    imported = {line.rpartition("|")[2].strip() for line in lines}
    assert "typer.core" in imported
    assert not {name for name in imported if name.startswith("verl_bridge")}


BROKEN = {
    "import nothing": "ModuleNotFoundError: No module named 'nothing'",
    "1 / 0": "ZeroDivisionError: division by zero",
    "raise ImportError('two\\nlines')": "ImportError: two lines",
    "": "AttributeError: module 'broken3' has no attribute 'greet'",
    "greet = 3": "TypeError: 3 is neither a function nor a typer.Typer",
}
"""Modules that cannot be loaded, and the reasons."""


def test_broken_packages_break_no_other_command(tmp_path):
    for number, code in enumerate(BROKEN):
        install(tmp_path, f"broken{number}", code, **{f"fail{number}": f"broken{number}:greet"})
    agentgym = runner(tmp_path)
    listed = agentgym("--help")
    assert (listed.returncode, listed.stderr) == (0, "")
    assert "  verl      Write and check folders for training with verl." in commands_in(listed)
    for number, reason in enumerate(BROKEN.values()):
        problem = f"unavailable: cannot load it from the package broken{number}: {reason}"
        assert f"fail{number} {problem}" in " ".join(listed.stdout.split())
        more = [[], ["--help"], ["now", "--at", "once"]][number % 3]
        result = agentgym(f"fail{number}", *more)
        assert (result.returncode, result.stdout) == (2, "")
        assert result.stderr == f"error: the command fail{number} is {problem}\n"
    assert agentgym("--version").returncode == 0


def test_conflicts_are_reported(tmp_path):
    """A built-in command wins; of two packages neither does."""
    install(tmp_path, "one", "greet = print", eval="one:greet", data__sft="one:greet", nowhere__x="one:greet")
    for name in ("two", "three"):
        install(tmp_path, name, "greet = print", greet=f"{name}:greet")
    agentgym = runner(tmp_path)
    listed = agentgym("--help")
    assert "  eval      Evaluate agents or models" in listed.stdout
    assert listed.stderr.splitlines() == [
        "warning: ignored the command eval of the package one: agentgym has a command of this name",
        "warning: ignored the command nowhere.x of the package one: there is no group nowhere",
    ]
    assert "ignored the command sft of the package one" in agentgym("data", "--help").stderr
    assert agentgym("eval", "-h").stderr == ""
    reason = "the packages three and two both define it; uninstall one of them"
    assert f"greet unavailable: {reason}" in " ".join(listed.stdout.split())
    result = agentgym("greet", "Maze")
    assert (result.returncode, result.stdout) == (2, "")
    assert result.stderr == f"error: the command greet is unavailable: {reason}\n"


def test_the_example_of_the_page(tmp_path):
    (block,) = blocks_of(PAGE.read_text("utf-8"), "console")
    run_in_shell(block, tmp_path)
    package = tmp_path / "agentgym-greet"
    points = dict(
        re.findall(r'^(\w+) = "(\w+:\w+)"$', (package / "pyproject.toml").read_text(), re.MULTILINE)
    )
    install(package, "agentgym_greet", (package / "agentgym_greet.py").read_text(), **points)
    (line,) = blocks_of(PAGE.read_text("utf-8"), "sh")
    _, *words = line.split()
    assert runner(package)(*words).stdout == "Hello, agentgym/TextCraft-v0.\n" * 2


def test_the_page_lists_what_the_module_exports():
    table = PAGE.read_text("utf-8").partition("## What agentgym_gym.commands contains")[2]
    named = re.findall(r"`(\w+)`", "".join(re.findall(r"^\| (`.*?) \|", table, re.MULTILINE)))
    assert sorted(named) == sorted(commands.__all__)
