"""The help of commands with many options: groups, and examples."""

import itertools
import shlex

import pytest

from command_line import commands, options, run

MOST = 12
"""Arguments and options of a command without groups, --help not counted."""


LONG = [words for words in commands() if len(options(*words)) > MOST + 1]


def test_which_commands_have_many_options():
    assert [" ".join(words) for words in LONG] == [
        *("serve", "eval", "validate", "audit", "data sft", "data rl", "verl init", "verl sft")
    ]


@pytest.mark.parametrize("words", LONG, ids=" ".join)
def test_many_options_are_in_groups_that_end_with_the_others(words):
    groups = [option.group for option in options(*words)]
    titles = [title for title, _ in itertools.groupby(groups)]
    assert len(titles) == len(set(titles)) >= 4
    assert titles[-1] == "Other options"
    others = [name for option in options(*words) if option.group == "Other options" for name in option.names]
    assert set(others) <= {"--help-all", "--help", "-h"}
    assert max(map(groups.count, titles)) <= 14


@pytest.mark.parametrize("words", LONG, ids=" ".join)
def test_the_help_ends_with_examples_that_are_valid_commands(words):
    examples = run(*words, "--help").stdout.partition("\n\n  Examples:\n")[2].splitlines()
    assert len(examples) >= 2
    choices = {name: each.metavar for each in options(*words) for name in each.names if "|" in each.metavar}
    for program, *example in map(shlex.split, examples):
        assert (program, *example[: len(words)]) == ("agentgym", *words)
        assert run(*example, "--help").exit_code == 0  # other options, or one without its value, are errors
        for option, value in itertools.pairwise(example):
            assert option not in choices or value in choices[option].strip("<>").split("|")


def test_few_options_have_no_groups():
    assert "\nOptions:\n" in run("parse", "--help").stdout


def test_the_short_help_of_eval_has_the_usual_options_and_names_the_whole_one():
    short, whole = (run("eval", name).stdout for name in ("--help", "--help-all"))
    shown = [line.split()[0] for line in short.splitlines() if line.startswith("  --")]
    assert len(shown) <= 16
    assert shown[-1] == "--help-all"
    assert len(short.splitlines()) <= 50
    assert short.partition("\n\n  Examples:")[2] == whole.partition("\n\n  Examples:")[2]
    assert all(name in whole for name in shown)
    assert "--retry-seconds" in whole
    assert "--retry-seconds" not in short
