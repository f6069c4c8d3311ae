"""The modules that the documentation names exist, and its examples import public ones only."""

from __future__ import annotations

import ast
import re
from pathlib import Path
from textwrap import dedent

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGES = [*sorted(ROOT.glob("*.md")), *sorted(ROOT.glob("docs/**/*.md"))]
ARCHITECTURE = (ROOT / "docs" / "architecture.md").read_text("utf-8")

FOLDERS = {
    "`agentgym_gym/`": "agentgym_gym",
    "`agentgym_gym/formats/`": "agentgym_gym/formats",
    "module of `rollout/`": "agentgym_gym/rollout",
    "`verl_bridge/`": "verl_bridge",
    "file": "agentgym_servers",
}
"""The folder of each table of modules, by the heading of its first column."""

COMPLETE = ("agentgym_gym/formats", "agentgym_gym/rollout", "verl_bridge", "agentgym_servers/_frame")


def modules_named():
    """Return the paths of the modules in the tables, relative to the root; NAME is any environment."""
    paths = set()
    for heading, folder in FOLDERS.items():
        (table,) = re.findall(
            rf"^\| {re.escape(heading)} \| contents \|\n((?:\|.*\n)+)", ARCHITECTURE, re.MULTILINE
        )
        for row in table.splitlines()[1:]:
            for name in re.findall(r"`([\w/.]+)`", row.split(" | ")[0]):
                path = name if name.startswith("agentgym_gym/") else f"{folder}/{name}"
                paths.add(path.removesuffix("/").removesuffix(".py"))
    return paths


def exists(path):
    """Return whether a module or package exists, for one environment at least."""
    pattern = path.replace("NAME", "*")
    return any(ROOT.glob(f"{pattern}.py")) or any(ROOT.glob(f"{pattern}/__init__.py"))


def test_every_module_in_the_tables_exists():
    named = modules_named()
    assert len(named) > 90
    assert {path for path in named if not exists(path)} == set()


@pytest.mark.parametrize("folder", COMPLETE)
def test_the_tables_are_complete(folder):
    files = (path for path in (ROOT / folder).glob("*.py") if not path.stem.startswith("__"))
    packages = (path.parent for path in (ROOT / folder).glob("*/__init__.py"))
    modules = {path.relative_to(ROOT).with_suffix("").as_posix() for path in (*files, *packages)}
    assert len(modules) > 10
    assert modules - modules_named() == set()


def imports(code):
    """Yield the dotted path of each module and name that a block imports."""
    for node in ast.walk(ast.parse(dedent(code))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def test_no_example_imports_a_private_module():
    private, count = [], 0
    for page in PAGES:
        for _, code in re.findall(
            r"^ *(`{3,})python\n(.*?)^ *\1$", page.read_text("utf-8"), re.DOTALL | re.MULTILINE
        ):
            for path in imports(code):
                count += 1
                if any(re.match(r"_(?!_)", part) for part in path.split(".")):
                    private.append(f"{page.relative_to(ROOT)}: {path}")
    assert count > 50
    assert private == []
