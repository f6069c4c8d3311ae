"""How every command speaks: its tables at any width, its errors in its own words, its help."""

from __future__ import annotations

import ast
import io
import itertools
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import typer
import typer.main
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len
from rich.console import Console

import agentgym_gym
import inside
from agentgym_gym._cli import app, console
from agentgym_gym._cli.console import Command
from fake_server import FakeServer
from report_runs import episode, write_run

PACKAGE = Path(agentgym_gym.__file__).parent


APP = typer.main.get_command(app)
UsageError = typer.BadParameter.__base__


def refused(*words):
    """Return what is said of words that are no command."""
    try:
        status = APP.main(words, standalone_mode=False)
    except UsageError as error:
        return error.format_message()
    assert status == 2, f"{words} is a command"
    return ""


def commands(group=APP, path=()):
    """Yield the words and the command of every command there is."""
    for name, command in group.commands.items():
        if hasattr(command, "commands"):
            yield from commands(command, (*path, name))
        else:
            yield (*path, name), command


def valued(command):
    """Return the options of a command that take a value."""
    return [each for each in command.params if each.param_type_name == "option" and not each.is_flag]


# Help


@pytest.mark.parametrize("words", [(), ("data",), ("verl",), *(words for words, _ in commands())])
def test_h_is_help(run, words):
    assert run(*words, "-h").stdout == run(*words, "--help").stdout != ""


# Tables


@pytest.fixture
def shown(run, monkeypatch):
    """Runs a command on a terminal of so many columns, or in a pipe, and returns what it printed."""

    def invoke(columns, *arguments):
        if columns is None:
            monkeypatch.delenv("COLUMNS", raising=False)
        else:
            monkeypatch.setenv("COLUMNS", str(columns))
            monkeypatch.setattr(console.out, "width", columns)
        result = run(*arguments)
        assert result.exit_code in {0, 1}, result.stderr
        return result.stdout

    return invoke


def tables(text):
    """Return the lines of each table in a text: headings, a rule, and rows."""
    blocks = [block.splitlines() for block in re.split(r"\n\s*\n", text)]
    return [block for block in blocks if any(re.fullmatch("─+", line) for line in block)]


def rows(table):
    """Return the lines of a table below its rule."""
    return table[1 + next(at for at, line in enumerate(table) if re.fullmatch("─+", line)) :]


LONG = ("Qwen/Qwen2.5-7B-Instruct-grpo-step-100", "Qwen/Qwen2.5-7B-Instruct-grpo-step-300")
NAMES = (*LONG, "meta/大型语言模型非常长的名字版本一", "meta/大型语言模型非常长的名字版本二")


@pytest.fixture
def several(tmp_path):
    """The folder of runs of models with long names in several environments, and of some twice."""
    for name, env, sample in [
        *itertools.product(NAMES, ("TextCraft", "Maze", "SciWorld", "WebArena"), (0,)),
        (NAMES[0], "Maze", 1),
    ]:
        env_id = f"agentgym/{env}-v0"
        records = [episode(task, agent=name, env_id=env_id, score=float(task % 3 == 0)) for task in range(9)]
        folder = tmp_path / "runs" / f"{env}-{NAMES.index(name)}-{sample}"
        write_run(folder, records, env_id=env_id, agent=name, selection={"split": "test"})
    return tmp_path / "runs"


def words(command, url, folder):
    """Return the words of a command line of this test."""
    out = folder.parent / "out"
    return [str({"URL": url, "RUNS": folder, "OUT": out}.get(word, word)) for word in command.split()]


TABLES = [
    "envs",
    "doctor",
    "leases URL",
    "table RUNS",
    "compare RUNS",
    "eval TextCraft --agent oracle --tasks 0:2 --resume --out OUT",
    "validate TextCraft --tasks 0:2",
    "data rl SciWorld Maze --out OUT --force",
    "verl init --env SciWorld --env TextCraft --out OUT --force",
]


@pytest.mark.parametrize("columns", [60, pytest.param(73, marks=pytest.mark.slow), 80, 140, None])
@pytest.mark.parametrize("command", TABLES)
def test_a_table_is_a_table(shown, monkeypatch, several, textcraft_url, command, columns):
    monkeypatch.setenv("AGENTGYM_MAZE_URL", f"{textcraft_url},{textcraft_url}/")
    monkeypatch.setenv("AGENTGYM_CHROMIUM", "/no/browser")
    held_by_two(monkeypatch)
    text = shown(columns, *words(command, textcraft_url, several))
    found = tables(text)
    assert found
    for table in found:
        entries = [line for line in rows(table) if not line.startswith((" ", "(", "or "))]
        assert len(rows(table)) <= 2 * len(entries) + 1, table  # two lines for two servers
        assert columns is None or all(cell_len(line) <= columns for line in table), table
        assert len(set(entries)) == len(entries)
    if columns is None:
        assert "…" not in text
        assert len(found) <= 2


def test_the_first_command_of_the_readme_prints_a_line_for_each_environment():
    """In a pipe, without a browser."""
    variables = {name: value for name, value in os.environ.items() if name != "COLUMNS"}
    printed = subprocess.run(
        [sys.executable, "-m", "agentgym_gym", "envs"],
        env={**variables, "AGENTGYM_CHROMIUM": "/no/browser"},
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    known = agentgym_gym.environments()
    missing = [line for line in printed.splitlines() if line.startswith("needs ")]
    assert len(printed.splitlines()) <= len(known) + 8 + len(missing)
    (table,) = tables(printed)
    for environment in known:
        assert any(line.startswith(environment.id) for line in rows(table)), environment.id
    needs = ("needs Chromium", "needs extra servers-miniwob")  # the latter without the package miniwob
    assert sum(line.endswith(needs) for line in rows(table)) == 2
    assert any("WebArena" in line and line.endswith("needs Chromium") for line in rows(table))
    assert printed.count("apt-get install chromium") == 1


@pytest.mark.parametrize("columns", [60, 80, 100])
def test_cut_names_differ_and_json_has_them_whole(shown, several, columns):
    headings = "\n".join(
        "\n".join(table[: -len(rows(table))]) for table in tables(shown(columns, "table", several))
    )
    cut = set(re.findall(r"\S+…\S*(?: #2)?", headings))
    assert len([name for name in cut if name.startswith(("Qwen", "meta"))]) >= len(NAMES)
    full = json.loads(shown(columns, "table", several, "--json"))
    assert {row["model"] for row in full} >= set(NAMES)
    compared = json.loads(shown(columns, "compare", several, "--json"))
    assert set(LONG) <= {each[side]["agent"] for each in compared["comparisons"] for side in ("a", "b")}


def test_a_narrow_terminal_has_lists(shown, several):
    text = shown(50, "table", several)
    assert not tables(text)
    assert "…" not in text
    for name in NAMES:
        assert name in text


@given(
    names=st.lists(st.text("abcdefgh/漢字-", min_size=1, max_size=60), min_size=1, max_size=5, unique=True),
    numbers=st.integers(1, 12),
    columns=st.integers(60, 150),
)
def test_print_table_at_any_width(names, numbers, columns):
    headings = ["name", *(f"a heading {number}" for number in range(numbers))]
    lines = [
        [name, *(f"{at}.{number:02} ({number:03} to {at:03})" for number in range(numbers))]
        for at, name in enumerate(names)
    ]
    with pytest.MonkeyPatch.context() as patch, io.StringIO() as file:
        patch.setenv("COLUMNS", str(columns))
        patch.setattr(console, "out", Console(file=file, width=columns, soft_wrap=True))
        console.print_table(headings, lines, left={"name"}, title="A title")
        text = file.getvalue()
    title, *rest = text.split("\n", 1)
    assert title == "A title"
    assert all(cell_len(line) <= columns for line in rest[0].splitlines())
    for at, number in itertools.product(range(len(names)), range(numbers)):
        assert f"{at}.{number:02}" in text
        assert f"({number:03} to {at:03})" in text
    for table in tables(rest[0]):
        firsts = [line.split("  ")[0] for line in rows(table) if not line.startswith(" ")]
        assert len(set(firsts)) == len(firsts) == len(names)


def held_by_two(monkeypatch):
    """A server of which two processes, one of them ended, hold many environments."""

    class Record:
        def __init__(self, pid, alive, ids):
            self.pid, self.alive, self.ids, self.environment = pid, alive, ids, "TextCraft"

    made = dict.fromkeys([*range(0, 90, 3), 1234567], 1.7e9)
    monkeypatch.setattr(
        inside.journals, "records", lambda _: [Record(4_194_303, False, made), Record(7, True, {1: 1.7e9})]
    )


# Errors


def templates():
    """Yield the text of every error that this library raises by name, with its place."""
    ours = set(agentgym_gym.errors.__all__)
    for file in sorted(PACKAGE.rglob("*.py")):
        for node in ast.walk(ast.parse(file.read_text("utf-8"))):
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") in ours and node.args:
                yield f"{file.relative_to(PACKAGE)}:{node.lineno}", "".join(map(_text_of, node.args))


def _text_of(node):
    if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "Argument":
        return "--option"
    if isinstance(node, ast.JoinedStr):
        return "".join(_text_of(part) for part in node.values)
    if isinstance(node, ast.FormattedValue):
        return "server" if getattr(node.value, "id", "") == "name" else "5"
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else "5"


@pytest.mark.slow
def test_no_error_speaks_of_the_library_s_arguments():
    """Each text in the source has the name of an argument in a part of its own."""
    found = list(templates())
    assert len(found) > 100
    options = {option for _, command in commands() for each in valued(command) for option in each.opts}
    names = {option.removeprefix("--").replace("-", "_") for option in options} | {"headers", "task_id"}
    named = re.compile(rf"(?<![-\w])({'|'.join(names)})=")
    for place, text in found:
        if place.startswith(("testing", "evaluate/inspect_task")) or "http_client" in text:
            continue  # no command uses these
        assert not named.search(text), (place, text)
        assert "gymnasium.make(" not in text, (place, text)
        assert "force=True" not in text, (place, text)


def test_every_command_speaks_so():
    assert all(type(command) is Command for _, command in commands())


def test_where_no_server_is_an_option_is_advised(run, serverless):
    result = run("play", serverless)
    assert result.exit_code == 2
    variable = f"AGENTGYM_{serverless.upper()}_URL"
    assert f"give --server='http://HOST:PORT'; or set the variable {variable}" in result.stderr
    assert "gymnasium.make" not in result.stderr


@pytest.mark.parametrize("command", ["play", "eval", "leases"])
def test_a_wrong_server_is_named_and_its_password_is_not(run, tmp_path, command):
    with FakeServer(lambda request: "I am somebody else") as server:
        url = server.url.replace("http://", "http://me:secret@")
        more = {
            "play": ["play", "Maze", "--server", url],
            "eval": ["eval", "Maze", "--agent", "random", "--tasks", "1", "--out", tmp_path, "--server", url],
            "leases": ["leases", url, "--clear"],
        }[command]
        result = run(*more)
    assert result.exit_code == 2
    assert server.url.replace("http://", "http://***@") in result.stderr
    assert "I am somebody else" in result.stderr
    assert "secret" not in result.stderr
    assert "server=" not in result.stderr


@pytest.mark.parametrize("words", [words for words, _ in commands()])
def test_a_value_of_another_type_is_told_in_plain_words(words):
    """Where it is text that an option wants, what is missing is told instead."""
    for option in valued(dict(commands())[words]):
        said = refused(*words, option.opts[0], "hf")
        for leak in ("Value error", "Input should", "pydantic", "parse string", "validation"):
            assert leak not in said
    if words == ("verl", "init"):
        assert "'--gpus': it should be a whole number" in refused(*words, "--gpus", "hf")
        assert "'--engine': 'hf' is not one of" in refused(*words, "--engine", "hf")


@pytest.mark.parametrize("words", [words for words, _ in commands()])
def test_an_option_given_twice_is_no_last_word(words):
    for option in valued(dict(commands())[words]):
        name = option.opts[-1]
        said = refused(*words, name, "1", name, "2")
        assert (f"{name} is given 2 times" in said) is (not option.multiple), (words, name, said)
