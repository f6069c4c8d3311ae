"""How every command speaks: its tables at any width, its errors in its own words, its help."""

from __future__ import annotations

import ast
import itertools
import json
import re
from collections import Counter
from pathlib import Path

import pytest
from rich.cells import cell_len

import agentgym_gym
import command_line
import inside
from fake_server import FakeServer
from report_runs import episode, write_run

PACKAGE = Path(agentgym_gym.__file__).parent

COMMANDS = command_line.commands()


def refused(*words):
    """Return the error of words that are no command."""
    result = command_line.run(*words)
    assert (result.exit_code, result.stdout) == (2, ""), words
    return result.stderr


def valued(words):
    """Return the options of a command that take a value."""
    options = command_line.options(*words)
    return [each for each in options if each.metavar and each.group != "Arguments"]


# Help


@pytest.mark.parametrize("words", [(), ("data",), ("verl",), *COMMANDS], ids=" ".join)
def test_h_is_help(run, words):
    assert run(*words, "-h").stdout == run(*words, "--help").stdout != ""


# Tables


@pytest.fixture
def shown(run, monkeypatch):
    """Runs a command on a terminal of a given width, or in a pipe, and returns its output."""

    def invoke(columns, *arguments):
        if columns is None:
            monkeypatch.delenv("COLUMNS", raising=False)
        else:
            monkeypatch.setenv("COLUMNS", str(columns))
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


@pytest.fixture(scope="module")
def several(tmp_path_factory):
    """The folder of runs of models with long names in several environments, and of some twice."""
    runs = tmp_path_factory.mktemp("several")
    for name, env, sample in [
        *itertools.product(NAMES, ("TextCraft", "Maze", "SciWorld", "WebArena"), (0,)),
        (NAMES[0], "Maze", 1),
    ]:
        env_id = f"agentgym/{env}-v0"
        records = [episode(task, agent=name, env_id=env_id, score=float(task % 3 == 0)) for task in range(9)]
        folder = runs / f"{env}-{NAMES.index(name)}-{sample}"
        write_run(folder, records, env_id=env_id, agent=name, selection={"split": "test"})
    return runs


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


@pytest.mark.parametrize(
    "columns", [60, *(pytest.param(each, marks=pytest.mark.slow) for each in (73, 80, 140)), None]
)
@pytest.mark.parametrize("command", TABLES)
def test_a_table_is_a_table(shown, monkeypatch, tmp_path, several, textcraft_url, command, columns):
    values = {"URL": textcraft_url, "RUNS": several, "OUT": tmp_path / "out"}
    monkeypatch.setenv("AGENTGYM_TEXTCRAFT_URL", textcraft_url)
    monkeypatch.setenv("AGENTGYM_MAZE_URL", f"{textcraft_url},{textcraft_url}/")
    monkeypatch.setenv("AGENTGYM_CHROMIUM", "/no/browser")
    held_by_two(monkeypatch)
    text = shown(columns, *(values.get(word, word) for word in command.split()))
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


def test_the_first_command_of_the_readme_prints_a_line_for_each_environment(run):
    """In a pipe, without a browser."""
    printed = run("envs", env={"COLUMNS": None, "AGENTGYM_CHROMIUM": "/no/browser"}).stdout
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


def numbers(text):
    """Return how often each number with two decimals is a cell."""
    return Counter(re.findall(r"(?<=  )\d+\.\d\d(?=\s)", text))


@pytest.mark.parametrize("columns", [60, pytest.param(100, marks=pytest.mark.slow)])
def test_cut_names_differ_and_json_has_them_whole(shown, several, columns):
    headings = "\n".join(
        "\n".join(table[: -len(rows(table))]) for table in tables(shown(columns, "table", several))
    )
    cut = set(re.findall(r"\S+…\S*(?: #2)?", headings))
    assert len([name for name in cut if name.startswith(("Qwen", "meta"))]) >= len(NAMES)
    whole = shown(None, "table", several)
    assert numbers(shown(columns, "table", several)) == numbers(whole)
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


def held_by_two(monkeypatch):
    """A server of which two processes, one of them ended, hold many environments."""

    class Record:
        def __init__(self, pid, alive, ids):
            self.pid, self.alive, self.ids, self.environment = pid, alive, ids, "TextCraft"

    made = dict.fromkeys([*range(0, 90, 3), 1234567], 1.7e9)
    processes = [Record(4_194_303, False, made), Record(7, True, {1: 1.7e9})]
    inside.list_leases_of(processes, monkeypatch)


# Errors


def templates():
    """Yield the text of every error that this library raises by name, with its place."""
    ours = set(agentgym_gym.errors.__all__)
    for file in sorted(PACKAGE.rglob("*.py")):
        for node in ast.walk(ast.parse(file.read_text("utf-8"))):
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") in ours and node.args:
                texts = [*node.args, *(keyword.value for keyword in node.keywords)]
                yield f"{file.relative_to(PACKAGE)}:{node.lineno}", " ".join(map(_text_of, texts))


def _text_of(node):
    if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "ArgumentName":
        return "--option"
    if isinstance(node, (ast.List, ast.Tuple)):
        return "".join(map(_text_of, node.elts))
    if isinstance(node, ast.JoinedStr):
        return "".join(_text_of(part) for part in node.values)
    if isinstance(node, ast.FormattedValue):
        return "server" if getattr(node.value, "id", "") == "name" else "5"
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else "5"


@pytest.mark.slow
def test_no_error_speaks_of_the_library_s_arguments():
    """Each text in the source has the name of an argument in a separate part."""
    found = list(templates())
    assert len(found) > 100
    options = {name for words in COMMANDS for option in valued(words) for name in option.names}
    names = {option.removeprefix("--").replace("-", "_") for option in options} | {"headers", "task_id"}
    named = re.compile(rf"(?<![-\w])({'|'.join(names)})=")
    for place, text in found:
        if place.startswith(("testing", "evaluate/inspect_task")) or "http_client" in text:
            continue  # no command uses these
        assert not named.search(text), (place, text)
        assert "gymnasium.make(" not in text, (place, text)
        assert "force=True" not in text, (place, text)


def test_where_no_server_is_an_option_is_advised(run, serverless):
    result = run("play", serverless)
    assert result.exit_code == 2
    variable = f"AGENTGYM_{serverless.upper()}_URL"
    assert f"Give --server='http://HOST:PORT'; or set the variable {variable}" in result.stderr
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


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_a_value_of_another_type_is_an_error_in_plain_words(words):
    """Where an option requires text, the error names what is missing instead."""
    for option in valued(words):
        error = refused(*words, option.names[0], "hf")
        for leak in ("Value error", "Input should", "pydantic", "parse string", "validation"):
            assert leak not in error


def test_a_value_of_another_type_is_named():
    assert "'--gpus': it should be a whole number" in refused("verl", "init", "--gpus", "hf")
    assert "'--engine': 'hf' is not one of" in refused("verl", "init", "--engine", "hf")


def may_be_repeated(option):
    """Whether an option may be given several times, by the help."""
    return "repeatable" in option.help or option.metavar.startswith(("[ENV=]", "[NAME=]"))


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_a_repeated_option_is_refused(words):
    for option in valued(words):
        name = option.names[-1]
        error = refused(*words, name, "1", name, "2")
        assert (f"{name} is given 2 times" in error) is not may_be_repeated(option), (words, name, error)
