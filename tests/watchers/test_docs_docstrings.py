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

READERS = {"json": json.loads, "toml": tomllib.loads, "yaml": yaml.safe_load}
OTHERS = {"text"}
"""Languages of blocks that are neither run nor read."""


pytestmark = pytest.mark.slow


def test_each_block_is_of_a_language_that_is_checked():
    languages = {block.language for block in docstring_blocks()}
    assert languages - {"python", *READERS, *OTHERS} == set()


def test_the_examples_run(tmp_path, textcraft_url, subtests):
    """Of one test: as parameters, every worker would parse the sources to count them."""
    examples = [block for block in docstring_blocks() if block.language == "python"]
    assert len(examples) >= 7
    for block in examples:
        with subtests.test(block.place):
            folder = tmp_path / block.place
            folder.mkdir()
            run = run_python(block.code, folder, AGENTGYM_TEXTCRAFT_URL=textcraft_url)
            skip_without_package(run)
            assert (run.returncode, run.stderr) == (0, ""), run.stdout


def test_the_examples_of_files_can_be_read():
    for block in docstring_blocks():
        if block.language in READERS:
            assert READERS[block.language](block.code), block.place


def test_the_tree_of_errors_is_the_tree_of_classes():
    (block,) = (each for each in docstring_blocks() if each.place == "agentgym_gym.errors")
    depths: list[str] = []
    for line in block.code.splitlines():
        mark = line.find("── ")
        depth = 0 if mark < 0 else (mark + 3) // 4
        name = line[mark + 3 if mark >= 0 else 0 :].split()[0]
        depths[depth:] = [name]
        if depth:
            parent = getattr(errors, depths[depth - 1], None) or __import__("gymnasium").error.Error
            assert parent in getattr(errors, name).__bases__, name
