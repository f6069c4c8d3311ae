"""How every command speaks: its tables at any width, its errors in its own words, its help."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest
import typer
import typer.main

import agentgym_gym
import inside
from agentgym_gym._cli import app, console
from agentgym_gym._cli.console import Command
from fake_server import FakeServer

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
def narrow(run, monkeypatch):
    """Runs a command on a terminal of so many columns, and of very many; returns what each printed."""

    def invoke(columns, *arguments, code=0):
        said = []
        for width in (columns, 1_000):
            monkeypatch.setattr(console.out, "width", width)
            result = run(*map(str, arguments))
            assert result.exit_code == code, result.stderr
            said.append(result.stdout)
        return said

    return invoke


def held_by_two(monkeypatch):
    """A server of which two processes, one of them ended, hold many environments."""

    class Record:
        def __init__(self, pid, alive, ids):
            self.pid, self.alive, self.ids, self.environment = pid, alive, ids, "TextCraft"

    made = dict.fromkeys([*range(0, 90, 3), 1234567], 1.7e9)
    monkeypatch.setattr(
        inside.journals, "records", lambda _: [Record(4_194_303, False, made), Record(7, True, {1: 1.7e9})]
    )


@pytest.mark.slow
@pytest.mark.parametrize("columns", [60, 40])
@pytest.mark.parametrize("command", ["envs", "doctor", "doctor URL", "leases URL", "eval", "data rl"])
def test_no_table_is_cut(narrow, monkeypatch, tmp_path, textcraft_url, columns, command):
    """Every word of the widest table is there in the narrowest."""
    monkeypatch.setenv("AGENTGYM_TEXTCRAFT_URL", f"{textcraft_url},{textcraft_url}/")
    held_by_two(monkeypatch)
    arguments = command.replace("URL", textcraft_url).split()
    if command == "eval":
        run_ = ["TextCraft", "--agent", "oracle", "--tasks", "0:2", "--resume", "--out", str(tmp_path)]
        arguments += run_
    if command == "data rl":
        arguments += ["SciWorld", "Maze", "--out", str(tmp_path), "--force"]
    small, large = (re.sub(r"[\d.]+ m?s\b|[─━]+", "", text) for text in narrow(columns, *arguments))
    assert "…" not in small
    assert sorted(set(large.split()) - set(small.split())) == []
    assert all(len(line) <= columns or "  " in line or not line for line in small.splitlines()[2:5])


def test_a_table_is_a_table_where_it_fits(narrow):
    small, large = narrow(80, "envs")
    assert "agentgym/WebArena-v0        812" in re.sub(r" {8,}", " " * 8, small) or "─" in large
    assert re.search(r"id +tasks +turns +score +server", large)


@pytest.mark.parametrize("columns", [80, 60, 40, 20])
def test_print_table_keeps_every_cell(capsys, monkeypatch, columns):
    monkeypatch.setattr(console.out, "width", columns)
    rows = [("a" * 30, "1.00 to 2.00", "漢字 two\nlines"), ("b", "-", "")]
    console.print_table(("name", "score", "words"), rows, left={"name", "words"}, title="A long title")
    said = capsys.readouterr().out
    for cell in ("A long title", "a" * 30, "1.00 to 2.00", "漢字 two", "lines"):
        assert cell in said
    assert ("─" in said) is (columns >= 55)


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
