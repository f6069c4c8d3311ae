"""The examples in public docstrings run, like the blocks of the pages."""

from __future__ import annotations

import json
import sys

import pytest
import yaml

from agentgym_gym import errors
from doc_blocks import docstring_blocks, run_python, skip_without_package

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

BLOCKS = docstring_blocks()
READERS = {"json": json.loads, "toml": tomllib.loads, "yaml": yaml.safe_load}
OTHERS = {"text"}
"""Languages of blocks that are neither run nor read."""


def test_each_block_is_of_a_language_that_is_checked():
    assert {block.language for block in BLOCKS} - {"python", *READERS, *OTHERS} == set()
    assert len([block for block in BLOCKS if block.language == "python"]) >= 7


@pytest.mark.parametrize(
    "block",
    [pytest.param(each, id=each.place) for each in BLOCKS if each.language == "python"],
)
def test_an_example_runs(block, tmp_path, textcraft_url):
    run = run_python(block.code, tmp_path, AGENTGYM_TEXTCRAFT_URL=textcraft_url)
    skip_without_package(run)
    assert (run.returncode, run.stderr) == (0, ""), run.stdout


@pytest.mark.parametrize(
    "block", [pytest.param(each, id=each.place) for each in BLOCKS if each.language in READERS]
)
def test_an_example_of_a_file_can_be_read(block):
    assert READERS[block.language](block.code)


def test_the_tree_of_errors_is_the_tree_of_classes():
    (block,) = (each for each in BLOCKS if each.place == "agentgym_gym.errors")
    depths: list[str] = []
    for line in block.code.splitlines():
        mark = line.find("── ")
        depth = 0 if mark < 0 else (mark + 3) // 4
        name = line[mark + 3 if mark >= 0 else 0 :].split()[0]
        depths[depth:] = [name]
        if depth:
            parent = getattr(errors, depths[depth - 1], None) or __import__("gymnasium").error.Error
            assert parent in getattr(errors, name).__bases__, name
