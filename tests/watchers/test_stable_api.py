"""The page "Stable API" lists the public modules, and no others."""

from __future__ import annotations

import re

import pytest
from figures import ROOT, public_modules

ONE_ENTRY = {"agentgym_gym.envs": "agentgym_gym.envs.*", "agentgym_servers": "agentgym_servers.*"}
"""Packages whose modules are one entry of the page: one for each kind of server."""


def entry_of(name):
    return ONE_ENTRY.get(name.rpartition(".")[0], name)


@pytest.mark.slow
def test_the_page_lists_the_public_modules():
    page = (ROOT / "docs" / "stability.md").read_text("utf-8")
    listed = re.findall(r"^\| `([\w.*]+)` \|", page, re.MULTILINE)
    assert len(listed) == len(set(listed))
    entries = {entry_of(module.name) for module in public_modules()} - {"agentgym_gym.envs"}
    assert set(listed) == entries
    assert len(entries) <= 51


@pytest.mark.slow
def test_the_number_of_public_names_does_not_grow():
    """Apart from the typed actions."""
    names = {
        name
        for module in public_modules()
        if not module.name.startswith("agentgym_gym.envs.")
        for name in module.exports
    }
    # 252 before runs from Python and the commands of other packages, 294 before errors and options as data,
    # 300 before the error of a rejected conversation and the dialects of other packages, 302 before audits
    assert len(names) <= 309
