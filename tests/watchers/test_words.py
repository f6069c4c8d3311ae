"""The words of the field are used, and none coined here: in names, in the documentation, in messages."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
THIS = Path(__file__).resolve()

COINED_NAMES = {
    "Errand": "FlowFuture",
    "Incoming": "ResponseParser",
    "Phrase": "a template",
    "Place": "_LazyEnvironment",
    "REST_SECONDS": "OPEN_SECONDS, QUARANTINE_SECONDS",
    "ROADS": "INTEGRATIONS",
    "Reading": "ParseResult",
    "Seat": "BaseTextEnv",
    "Turn": "Waiter, StepResult",
    "Verdict": "Score",
    "Work": "IOFlow",
    "_Told": "StepInfo",
    "delivered": "with_retries",
    "forsake": "abort_episode",
    "hear": "append_reply",
    "in_doubt": "maybe_busy",
    "set_aside": "deprioritize",
    "show": "append_observation",
    "shun": "deprioritize",
    "spoilt": "unusable",
    "take_away": "revoke",
}
"""Names of no class, function, variable, attribute or argument, and their replacements."""

COINED_PARTS = {
    "errand",
    "forsake",
    "forsaken",
    "road",
    "roads",
    "seat",
    "seats",
    "shun",
    "shunned",
    "spoilt",
}
"""Words that are no part of a name either."""

COINED_PHRASES = {
    r"front door": "the public modules",
    r"forsak\w+|forsook": "abort",
    r"(is|are|was|be|been) left alone": "the circuit is open",
    r"held back": "validation",
    r"errands?": "a flow",
    r"(the|this|our) house\b(?! style)": "the project",
    r"(of|three|two|private|public) (the )?rooms": "modules",
    r"roads?": "integration",
    r"seats?": "the base class",
    r"set aside": "deprioritized",
    r"shun\w*": "deprioritize",
    r"spoilt": "unusable",
    r"unreadable": "parse errors",
}
"""Phrases that are not in the documentation and messages, and their replacements."""

ORDINARY = {"docs/training/cpu.md": {"is left alone"}}
"""What is meant as anybody would mean it."""

PYTHON = [
    file
    for folder in (
        "agentgym_gym",
        "verl_bridge",
        "tests",
        "examples",
        "docs",
        "benchmarks",
    )
    for file in sorted((ROOT / folder).rglob("*.py"))
] + sorted(ROOT.glob("*.py"))
ENVIRONMENT_TEXTS = ("agentgym_gym/envs/", "agentgym_servers/")
PAGES = [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").rglob("*.md"))]
ENVIRONMENT_PAGES = "docs/environments/"


def name_of(file):
    return file.relative_to(ROOT).as_posix()


def names_in(tree):
    """Yield each name that is defined or used, with its line."""
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            yield node.lineno, node.name
        elif isinstance(node, ast.Name):
            yield node.lineno, node.id
        elif isinstance(node, ast.Attribute):
            yield node.lineno, node.attr
        elif isinstance(node, (ast.arg, ast.keyword)) and node.arg:
            yield node.lineno, node.arg
        elif isinstance(node, ast.alias):
            yield node.lineno, (node.asname or node.name).rpartition(".")[2]


def parts_of(name):
    return {part.lower() for part in re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+", name)}


@pytest.mark.slow
def test_names():
    coined = {
        f"{name_of(file)}:{line}: {name}"
        for file in PYTHON
        for line, name in names_in(ast.parse(file.read_text("utf-8")))
        if name in COINED_NAMES or parts_of(name) & COINED_PARTS
    }
    assert coined == set()


def phrases_in(file, text):
    """Return the coined phrases in a text, without the ones that its file may use."""
    flat = " ".join(text.split())
    found = {
        match[0].lower() for match in re.finditer(rf"\b({'|'.join(COINED_PHRASES)})\b", flat, re.IGNORECASE)
    }
    return found - ORDINARY.get(name_of(file), set())


def test_the_documentation():
    pages = [page for page in PAGES if not name_of(page).startswith(ENVIRONMENT_PAGES)]
    assert len(pages) > 10
    assert {
        (name_of(page), found) for page in pages for found in phrases_in(page, page.read_text("utf-8"))
    } == set()


@pytest.mark.slow
def test_phrases():
    """Help texts, messages and docstrings."""
    files = [
        file
        for file in PYTHON
        if name_of(file).startswith(("agentgym_gym/", "verl_bridge/"))
        and not name_of(file).startswith(ENVIRONMENT_TEXTS)
    ]
    assert len(files) > 50
    coined = {
        f"{name_of(file)}:{node.lineno}: {found}"
        for file in files
        for node in ast.walk(ast.parse(file.read_text("utf-8")))
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
        for found in phrases_in(file, node.value)
    }
    assert coined == set()
