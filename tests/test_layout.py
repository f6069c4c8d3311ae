"""What is private to `agentgym_gym` is imported by itself and by its own tests, beside it by name, alone."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]


def modules_named(tree):
    """Yield each module that is imported, or that a text such as one for `importlib` or a patch names."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and not node.level:
            yield from ((node.lineno, f"{node.module}.{alias.name}") for alias in node.names)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            if node.value.startswith("agentgym_gym._"):
                yield node.lineno, node.value
            elif "import " in node.value:  # a program that a test starts
                yield from ((node.lineno, name) for name in _imported_in_text(node.value))


def _imported_in_text(text):
    for line in text.splitlines():
        words = line.split()
        if words[:1] in (["import"], ["from"]) and len(words) > 1:
            yield words[1].rstrip(",;") + (f".{words[3]}" if words[0] == "from" and len(words) > 3 else "")


def is_private(module):
    package, *parts = module.split(".")
    return package == "agentgym_gym" and any(part.startswith("_") and part != "__main__" for part in parts)


def may_import(file):
    """Whether these are tests of what is private, beside it by name: `_http/…`, `test__episode.py`."""
    return any(part.removeprefix("test_").startswith("_") for part in file.relative_to(ROOT).parts)


FILES = [
    file
    for folder in ("tests", "examples", "docs", "verl_bridge")
    for file in sorted((ROOT / folder).rglob("*.py"))
    if not may_import(file) and file != Path(__file__).resolve()
]

ALLOWED = {
    "tests/support/inside.py": "what other tests need from inside is reached for there alone",
}
REMAINING = {
    "docs/generate.py": {"agentgym_gym._templates.fields_of"},
    "tests/cli/test_leases.py": {"agentgym_gym._leasing.capacity", "agentgym_gym._leasing.pool.LeasePool"},
    "tests/test_aio.py": {"agentgym_gym._http.asyncio_connection.Connection"},
    "tests/test_env.py": {"agentgym_gym._base_env"},
}
"""What is still to go."""


@pytest.mark.parametrize("file", FILES, ids=lambda file: str(file.relative_to(ROOT)))
def test_nothing_private_is_imported(file):
    name = file.relative_to(ROOT).as_posix()
    if name in ALLOWED:
        return
    named = {module for _, module in modules_named(ast.parse(file.read_text("utf-8"))) if is_private(module)}
    assert named - REMAINING.get(name, set()) == set()


def test_what_beside_a_private_module_is_named_after_one():
    """So that no test gets leave to look inside by its name alone."""
    private = {file.stem for file in (ROOT / "agentgym_gym").rglob("*.py")} | {
        folder.name for folder in (ROOT / "agentgym_gym").iterdir() if folder.is_dir()
    }
    beside = {
        part.removeprefix("test_").removesuffix(".py")
        for file in (ROOT / "tests").rglob("test_*.py")
        for part in file.relative_to(ROOT).parts
        if part.removeprefix("test_").startswith("_")
    }
    assert {name for name in beside if not any(name.startswith(each) for each in private)} == set()
