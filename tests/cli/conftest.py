"""Fixtures for the tests of the command line."""

from __future__ import annotations

import functools
import json
from dataclasses import replace

import pytest
from typer import testing
from typer.main import get_command

import needs
from agentgym_gym import catalogue
from agentgym_gym._cli import app, console

made_once = functools.cache(get_command)


@pytest.fixture
def run(monkeypatch):
    """Runs a command in this process."""
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.setattr(testing, "_get_command", made_once)  # else anew for each of a thousand command lines
    monkeypatch.setattr(console.out, "width", 200)  # which was fixed at import where COLUMNS was set

    def invoke(*arguments, **options):
        result = testing.CliRunner().invoke(app, [str(argument) for argument in arguments], **options)
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        return result

    return invoke


@pytest.fixture
def serverless(monkeypatch):
    """The name of an environment without a local server and without an oracle."""
    environment = replace(catalogue.find("SciWorld"), local_server=None, oracle=None)
    monkeypatch.setitem(catalogue._known, environment.name, environment)
    return environment.name


@pytest.fixture
def write_data(run):
    """Writes data by a command of ``agentgym data`` into the folder `out` of this folder.

    Returns the rows of each part, and what the command told.
    """
    parquet = pytest.importorskip("pyarrow.parquet", reason=needs.reason("pyarrow.parquet"))

    def write(command, *arguments):
        result = run("data", command, *arguments, "--out", "out", "--json")
        assert result.exit_code == 0, result.stderr
        told = json.loads(result.stdout)
        rows = {part: parquet.read_table(path).to_pylist() for part, path in told["files"].items()}
        assert {part: len(rows.get(part, ())) for part in ("train", "val")} == told["rows"]
        return rows, told

    return write
