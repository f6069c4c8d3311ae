"""Blocks of code in the pages and in public docstrings, and how the tests run them.

A page names the language of a block after its fence: `python` and `console` are run; `sh` needs a GPU, a
model or other machines. A docstring has Python after `::` or `>>>`, and names other languages by
`.. code-block::`.
"""

from __future__ import annotations

import ast
import functools
import inspect
import itertools
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from importlib.metadata import requires
from pathlib import Path
from typing import NamedTuple

import pytest
from figures import PACKAGES, Module, modules, public_modules

_LITERAL = re.compile(r"(?P<pad> *)(?!\.\.)(?:.*\S)?::")
_DIRECTIVE = re.compile(r"(?P<pad> *)\.\. (?:code|code-block|sourcecode):: *(?P<language>\w+)")
_ABSENT = re.compile(r"(?:No module named|needs the package) '(\w+)")

_DOCTEST = """
import doctest
test = doctest.DocTestParser().get_doctest({text!r}, {{}}, {place!r}, None, 0)
test.globs = globals()  # in which types of dataclasses are evaluated
assert doctest.DocTestRunner().run(test, clear_globs=False).failed == 0
"""


class Block(NamedTuple):
    """A block of a docstring, by the module or object that the docstring is of."""

    place: str
    language: str
    code: str


def blocks_of(page: str, language: str) -> list[str]:
    """Return the blocks of a language on a page."""
    fences = re.findall(r"^(`{3,})(\w*)\n(.*?)^\1$", page, re.DOTALL | re.MULTILINE)
    return [block for _, name, block in fences if name == language]


def run_python(code: str, folder: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run code in a separate process, in which warnings are errors."""
    return subprocess.run(
        [sys.executable, "-W", "error", "-c", code],
        cwd=folder,
        env=os.environ | variables,
        capture_output=True,
        text=True,
        check=False,
    )


def run_in_shell(code: str, folder: Path, **variables: str) -> str:
    """Run commands as a reader pastes them, with this Python's programs first; return what they print."""
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    run = subprocess.run(
        ["/usr/bin/env", "bash", "-e"],
        input=code,
        cwd=folder,
        env={**os.environ, "PATH": path, **variables},
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stdout[-2000:] + run.stderr[-2000:]
    return run.stdout


def skip_without_package(run: subprocess.CompletedProcess[str]) -> None:
    """Skip the test if code failed because an optional package is not installed."""
    (line,) = run.stderr.strip().splitlines()[-1:] or [""]
    absent = _ABSENT.search(line)
    optional = [re.split(r"[^\w-]", each)[0].replace("-", "_") for each in requires("agentgym-gym") or ()]
    if run.returncode and absent and absent[1] in {*optional, "torch", "transformers", "verl"}:
        pytest.skip(f"{absent[1]} is not installed here")


@functools.cache
def docstring_blocks() -> list[Block]:
    """Return the blocks of all public docstrings; the Python of one docstring is one block."""
    exported = {name for module in public_modules() for name in module.exports}
    found = []
    for module in itertools.chain.from_iterable(map(modules, PACKAGES)):
        for place, text in _docstrings(module, exported):
            python = "\n".join(code for language, code in _parsed(text) if language == "python")
            if ">>> " in text:
                python += _DOCTEST.format(text=text, place=place)
            found += [Block(place, "python", python)] * bool(python)
            found += [Block(place, *each) for each in _parsed(text) if each[0] != "python"]
    return found


def _docstrings(module: Module, exported: set[str]) -> Iterator[tuple[str, str]]:
    """Yield the public docstrings of a module, of exported names also if the module is private."""
    if module.public:
        yield module.name, ast.get_docstring(module.tree) or ""
    yield from _documented(module.tree, module.name, exported)


def _documented(
    node: ast.Module | ast.ClassDef, place: str, names: set[str] | None
) -> Iterator[tuple[str, str]]:
    """Yield the docstrings of public functions, classes and attributes, of all or of some names."""
    attribute = ""
    for each in node.body:
        name = getattr(each, "name", "")
        if isinstance(each, ast.Expr) and isinstance(each.value, ast.Constant) and attribute:
            name, text = attribute, inspect.cleandoc(str(each.value.value))
        elif isinstance(each, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            text = ast.get_docstring(each) or ""
        attribute = ast.unparse(_target(each)) if _target(each) is not None else ""
        if not name or name.startswith("_") or (names is not None and name not in names):
            continue
        yield f"{place}.{name}", text
        if isinstance(each, ast.ClassDef):
            yield from _documented(each, f"{place}.{name}", None)


def _target(node: ast.stmt) -> ast.expr | None:
    if isinstance(node, ast.AnnAssign):
        return node.target
    return node.targets[0] if isinstance(node, ast.Assign) else None


def _parsed(text: str) -> Iterator[tuple[str, str]]:
    """Yield the language and the code of each indented block."""
    lines = text.splitlines()
    for at, line in enumerate(lines):
        directive = _DIRECTIVE.fullmatch(line)
        mark = directive or _LITERAL.fullmatch(line)
        if mark is None:
            continue
        block = []
        for inside in lines[at + 1 :]:
            if inside.strip() and len(inside) - len(inside.lstrip()) <= len(mark["pad"]):
                break
            block.append(inside)
        yield directive["language"] if directive else "python", inspect.cleandoc("\n".join(block)) + "\n"
