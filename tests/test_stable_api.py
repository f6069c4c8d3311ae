"""The page "Stable API" lists the public modules, and no others."""

from __future__ import annotations

import ast
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PACKAGES = ("agentgym_gym", "agentgym_servers", "verl_bridge")
ONE_ENTRY = {"agentgym_gym.envs": "agentgym_gym.envs.*", "agentgym_servers": "agentgym_servers.*"}
"""Packages whose modules are one entry of the page: one for each kind of server."""


def public_modules():
    for package in PACKAGES:
        for path in sorted((ROOT / package).rglob("*.py")):
            name = ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
            if not any(part.startswith("_") for part in name.split(".")):
                yield name, path


def entry_of(name):
    return ONE_ENTRY.get(name.rpartition(".")[0], name)


def exported_by(path):
    for node in ast.parse(path.read_text("utf-8")).body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
            return set(ast.literal_eval(node.value))
    return set()


def test_the_page_lists_the_public_modules():
    page = (ROOT / "docs" / "stability.md").read_text("utf-8")
    listed = re.findall(r"^\| `([\w.*]+)` \|", page, re.MULTILINE)
    assert len(listed) == len(set(listed))
    entries = {entry_of(name) for name, _ in public_modules()} - {"agentgym_gym.envs"}
    assert set(listed) == entries
    assert len(entries) <= 50


def test_the_number_of_public_names_does_not_grow():
    """Apart from the typed actions. 250 are the goal."""
    names = {
        name
        for module, path in public_modules()
        if not module.startswith("agentgym_gym.envs.")
        for name in exported_by(path)
    }
    assert len(names) <= 290
