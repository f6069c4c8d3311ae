"""Commands that are declared by dataclasses."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal

import pytest
import typer
from typer.testing import CliRunner

from agentgym_gym._cli.declared import CliValue, GivenOptions, command, marked


@dataclass(frozen=True)
class ServerFields:
    """Options that several commands share."""

    server: Annotated[str | None, typer.Option(envvar="DECLARED_SERVER", help="server URL")] = None
    header: Annotated[list[str], typer.Option("--header", help="HTTP header")] = field(default_factory=list)


@dataclass(frozen=True)
class PlayFields(ServerFields):
    """The options of one command: its own, those of a base class and those of a field."""

    name: Annotated[str, typer.Argument(metavar="ID")] = "maze"
    format: Annotated[Literal["react", "bare"], typer.Option()] = "react"
    turns: Annotated[int, typer.Option("--max-turns", "-n", min=1)] = 10
    force: Annotated[bool, typer.Option("--force")] = False
    arguments: Annotated[Mapping[str, Any], typer.Option(metavar="JSON"), CliValue(str, json.loads)] = field(
        default_factory=dict
    )
    kept: int = 7


@dataclass(frozen=True)
class Grouped:
    """Options that are those of another dataclass, beside a required argument."""

    folder: Annotated[Path, typer.Argument()]
    server: ServerFields
    limit: Annotated[float | None, typer.Option()] = None


@dataclass(frozen=True)
class Repeated:
    """Two groups with the same names."""

    one: ServerFields
    other: ServerFields


@dataclass(frozen=True)
class Undeclared:
    """A field that nothing can set."""

    number: int


def run(options, *arguments, **settings):
    """Run a command that prints its options, and return them."""
    app = typer.Typer()

    @app.command()
    @command(options)
    def print_options(options):
        """Show the options."""
        assert type(options).__name__ in {"PlayFields", "Grouped", "GivenFields"}
        typer.echo(json.dumps(asdict(options), default=str))

    result = CliRunner().invoke(app, arguments, **settings)
    return json.loads(result.stdout) if result.exit_code == 0 and "--help" not in arguments else result


DEFAULTS = asdict(PlayFields())


def test_fields_have_their_defaults():
    assert run(PlayFields) == DEFAULTS


def test_fields_are_arguments_options_flags_and_lists():
    read = run(
        PlayFields, "grid", "--header", "A: 1", "--header", "B: 2", "-n", "3", "--force", "--format", "bare"
    )
    assert read == {
        **DEFAULTS,
        "name": "grid",
        "header": ["A: 1", "B: 2"],
        "turns": 3,
        "force": True,
        "format": "bare",
    }


def test_a_value_may_come_from_the_environment():
    assert run(PlayFields, env={"DECLARED_SERVER": "http://h"})["server"] == "http://h"


def test_a_field_may_be_converted_from_what_the_command_line_reads():
    assert run(PlayFields, "--arguments", '{"size": 5}')["arguments"] == {"size": 5}


@pytest.mark.parametrize("arguments", [["--max-turns", "0"], ["--format", "tags"], ["--kept", "1"]])
def test_typer_checks_the_values(arguments):
    assert run(PlayFields, *arguments).exit_code == 2


def test_a_field_may_be_a_group_of_options():
    read = run(Grouped, "runs", "--server", "http://h", "--limit", "0.5")
    assert read == {"folder": "runs", "server": {"server": "http://h", "header": []}, "limit": 0.5}
    assert run(Grouped).exit_code == 2  # its argument is required


def test_help_is_that_of_the_function_and_of_the_fields():
    text = run(PlayFields, "--help").stdout
    assert all(word in text for word in ("Show the options", "server URL", "DECLARED_SERVER", "ID", "JSON"))


def test_a_name_is_declared_once():
    with pytest.raises(TypeError, match="Repeated declares server, header more than once"):
        command(Repeated)


def test_a_field_without_an_option_needs_a_default():
    with pytest.raises(TypeError, match=r"Undeclared\.number needs a typer\.Option, or a default"):
        command(Undeclared)


def test_a_group_names_options_that_exist():
    with pytest.raises(TypeError, match="there is no option nothing to group"):
        command(PlayFields, {"Group": ("server", "nothing")})


@dataclass(frozen=True, kw_only=True)
class GivenFields:
    """A group of which only the options that were given are kept."""

    given: Annotated[Mapping[str, Any], GivenOptions(PlayFields, without=("name", "server"))]


def test_a_field_may_hold_the_options_that_were_given():
    assert run(GivenFields) == {"given": {}}
    read = run(GivenFields, "--max-turns", "10", "--arguments", "{}", "--header", "A: 1")
    assert read == {"given": {"header": ["A: 1"], "turns": 10}}
    assert run(GivenFields, "--server", "http://h").exit_code == 2


@dataclass(frozen=True)
class Mark:
    """A mark of a field."""

    name: str


@dataclass(frozen=True)
class MarkedFields:
    """Fields, of which one is marked."""

    one: Annotated[int, typer.Option(), Mark("first")] = 1
    other: Annotated[int, typer.Option()] = 2


def test_fields_may_be_found_by_their_marks():
    assert marked(MarkedFields, Mark) == {"one": Mark("first")}
