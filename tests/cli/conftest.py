"""Fixtures for the tests of the command line."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

import command_line
import inside
import needs
from agentgym_gym import catalogue


@pytest.fixture
def run():
    """Runs a command in this process."""
    return command_line.run


@pytest.fixture
def serverless(monkeypatch):
    """The name of an environment without a local server and without an oracle."""
    inside.forget_registrations(monkeypatch)
    environment = replace(catalogue.find("SciWorld"), name="Serverless", local_server=None, oracle=None)
    catalogue.register(environment)
    return environment.name


@pytest.fixture
def write_data(run):
    """Writes data by a command of ``agentgym data`` into the folder `out` of this folder.

    Returns the rows of each part, and the output of the command.
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
