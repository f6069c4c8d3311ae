"""Fixtures for the tests of the command line."""

from __future__ import annotations

import pytest
from typer.testing import CliRunner

from agentgym_gym.cli import app, console


@pytest.fixture
def run(monkeypatch):
    """Runs a command in this process."""
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.setattr(console.out, "width", 200)  # which was fixed at import where COLUMNS was set

    def invoke(*arguments, **options):
        result = CliRunner().invoke(app, [str(argument) for argument in arguments], **options)
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        return result

    return invoke
