"""Private modules are imported by their own package and by the tests of their room; the rest is public."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest
from figures import PACKAGES, ROOT, public_modules


def modules_named(tree):
    """Yield each module that is imported, or that a text such as one for `importlib` or a patch names."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and not node.level:
            yield from ((node.lineno, f"{node.module}.{alias.name}") for alias in node.names)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            if re.fullmatch(r"(agentgym_gym|agentgym_servers|verl_bridge)(\.\w+)+", node.value):
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
    return package in PACKAGES and any(part.startswith("_") and not part.endswith("__") for part in parts)


def may_import(file):
    """Whether these are tests of what is private, beside it by name: `_http/…`, `test__episode.py`."""
    return any(part.removeprefix("test_").startswith("_") for part in file.relative_to(ROOT).parts)


ROOMS = {
    "bridge": ("verl_bridge",),
    "cli": ("agentgym_gym._cli", "agentgym_gym.evaluate"),
    "contract": ("agentgym_gym._cli",),
    "data": ("agentgym_gym.data",),
    "engines": ("agentgym_gym.evaluate",),
    "envs": ("agentgym_servers",),
    "evaluate": ("agentgym_gym.evaluate",),
    "formats": ("agentgym_gym.formats",),
    "inspect": ("agentgym_gym.evaluate",),
    "oracles": ("agentgym_servers",),
    "ray": ("agentgym_gym._cli", "agentgym_gym.evaluate"),
    "rollout": ("agentgym_gym.rollout",),
    "servers": ("agentgym_servers", "agentgym_gym._cli"),
    "support": ("agentgym_gym.evaluate", "agentgym_servers", "verl_bridge"),
    "testing": ("agentgym_gym.testing",),
    "verl": ("verl_bridge", "agentgym_gym.evaluate", "agentgym_gym.rollout", "agentgym_gym._cli"),
}
"""The packages whose private modules the tests in a folder may import."""


def own_room(file, module):
    """Whether a file may import a private module: a test of its package, or a part of it."""
    folder, room, *_ = file.relative_to(ROOT).parts
    packages = ROOMS.get(room, ()) if folder == "tests" else (folder,)
    return any(module == package or module.startswith(f"{package}.") for package in packages)


FILES = [
    file
    for folder in ("tests", "examples", "docs", "benchmarks", "agentgym_servers", "verl_bridge")
    for file in sorted((ROOT / folder).rglob("*.py"))
    if not may_import(file) and file != Path(__file__).resolve()
]

ALLOWED = {
    "tests/support/inside.py": "other tests reach the insides of agentgym_gym through it",
    "tests/support/page_commands.py": "selects the tasks of a page's evaluations as the command does",
    "docs/generate.py": "docs/cli/ is written from the typer application",
    "docs/screenshot.py": "finds Chromium as the servers do",
    "tests/test_site.py": "compares the options on the site with the typer application",
    "tests/test_docs.py": "compares tables of the docs with the code",
    "benchmarks/evaluation.py": "empties a cache, as in a new process",
}


@pytest.mark.slow
def test_nothing_private_is_imported():
    assert len(FILES) > 100
    named = {
        f"{file.relative_to(ROOT)}:{line}: {module}"
        for file in FILES
        if file.relative_to(ROOT).as_posix() not in ALLOWED
        for line, module in modules_named(ast.parse(file.read_text("utf-8")))
        if is_private(module) and not own_room(file, module)
    }
    assert named == set()


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


def test_the_page_on_architecture_names_every_module():
    page = (ROOT / "docs" / "architecture.md").read_text("utf-8")
    table = page.partition("## Modules")[2].partition("## Decisions")[0]
    named = {name.rstrip("/") for name in re.findall(r"`([\w/]+)`", table)}
    package = ROOT / "agentgym_gym"
    modules = {
        path.relative_to(package).with_suffix("").as_posix()
        for pattern in ("*.py", "_http/*.py", "_leasing/*.py")
        for path in package.glob(pattern)
    }
    folders = {path.parent.name for path in package.glob("*/__init__.py")} - {"_http", "_leasing"}
    expected = {each for each in modules | folders if "__" not in each}
    assert expected - named == set()


def private_types(tree):
    """Return the types that come from a private module, by the name under which it imports them."""
    return {
        alias.asname or alias.name
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and is_private(str(node.module))
        for alias in node.names
    }


def annotations_of(body, within=""):
    """Yield the annotations of what is public in a module or class."""
    for node in body:
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
            yield from annotations_of(node.body, f"{within}{node.name}.")
        elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and (
            not node.name.startswith("_") or node.name == "__init__"
        ):
            given = [each.annotation for each in (*node.args.args, *node.args.kwonlyargs)]
            yield from ((within + node.name, each) for each in (*given, node.returns) if each)


@pytest.mark.slow
def test_public_signatures_name_public_types():
    modules = [module for module in public_modules() if module.name.startswith("agentgym_gym")]
    assert len(modules) > 40
    public = {name for module in modules for name in module.exports}
    named = set()
    for module in modules:
        private = private_types(module.tree) - public
        named |= {
            f"{module.name}: {where}: {name.id}"
            for where, annotation in annotations_of(module.tree.body)
            for name in ast.walk(annotation)
            if isinstance(name, ast.Name) and name.id in private
        }
    assert named == set()
