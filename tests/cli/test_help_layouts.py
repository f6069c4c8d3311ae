"""The help of commands with many options: groups, and examples."""

import shlex

import pytest
from typer import Context
from typer.main import get_command

from agentgym_gym._cli import app

MOST = 12
"""Options of a command without groups."""


def leaf_commands(command, name="agentgym"):
    below = getattr(command, "commands", {})
    if not below:
        return {name: command}
    return {k: c for short, one in below.items() for k, c in leaf_commands(one, f"{name} {short}").items()}


COMMANDS = leaf_commands(get_command(app))
LONG = [name for name, command in COMMANDS.items() if len(command.params) > MOST]


def test_which_commands_have_many_options():
    assert [f"agentgym {name}" for name in ("eval", "validate", "data rl", "verl init", "verl sft")] == LONG


@pytest.mark.parametrize("name", LONG)
def test_many_options_are_in_groups(name):
    groups = COMMANDS[name].grouped(Context(COMMANDS[name]))
    assert [option.name for option in groups.pop("Other options")] == ["help"]
    groups.pop("Arguments", None)
    assert len(groups) >= 3
    assert max(map(len, groups.values())) <= 14


@pytest.mark.parametrize("name", LONG)
def test_the_help_shows_groups_in_order_and_then_examples(run, name):
    command = COMMANDS[name]
    lines = run(*name.split()[1:], "--help").stdout.splitlines()
    titles = [line.removesuffix(":") for line in lines if line.endswith(":") and not line.startswith(" ")]
    assert titles == list(command.grouped(Context(command)))
    assert lines.index("  Examples:") > lines.index(f"{titles[-1]}:")


@pytest.mark.parametrize("name", LONG)
def test_the_examples_are_valid_commands(name):
    examples = [line.strip() for line in COMMANDS[name].epilog.splitlines() if line.startswith("  ")]
    assert len(examples) >= 2
    for example in examples:
        assert example.startswith(f"{name} ")
        COMMANDS[name].make_context(name, shlex.split(example)[len(name.split()) :])


def test_few_options_have_no_groups(run):
    assert "\nOptions:\n" in run("serve", "--help").stdout
