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
PACKAGES = ("agentgym_gym", "agentgym_servers", "verl_bridge")


def test_every_module_that_a_page_names_exists():
    """Paths in code, such as `agentgym_gym/envs` and `verl_bridge/recipes/_gpu_memory.py`."""
    named = {
        (page.name, path)
        for page in PAGES
        if not {"plans", "records"} & set(page.parts) and page.name != "CHANGELOG.md"
        for path in re.findall(rf"`((?:{'|'.join(PACKAGES)})(?:/[a-z0-9_.]+)+)", page.read_text("utf-8"))
    }
    assert len(named) > 15
    missing = {(page, path) for page, path in named if not (ROOT / path).exists()}
    assert missing == set()


@pytest.mark.parametrize("package", ["agentgym_gym", "verl_bridge"])
def test_the_page_on_architecture_names_every_package(package):
    packages = {path.parent.name for path in (ROOT / package).glob("*/__init__.py")}
    assert len(packages) > 4
    named = {path.rpartition("/")[2] for path in re.findall(r"`([\w/]+)`", ARCHITECTURE)}
    assert packages - named == set()


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
