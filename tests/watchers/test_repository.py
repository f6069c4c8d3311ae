"""What a place that hosts the repository reads: the workflow, the templates of issues, the citation."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml

import agentgym_gym

ROOT = Path(__file__).resolve().parents[2]


def read(name):
    return yaml.safe_load((ROOT / name).read_text("utf-8"))


def test_the_workflow_runs_every_check():
    workflow = read(".github/workflows/test.yml")
    assert set(workflow[True]) == {"push", "pull_request"}  # YAML reads "on" as true
    makefile = (ROOT / "Makefile").read_text("utf-8")
    targets = set(re.findall(r"^([a-z-]+):", makefile, re.MULTILINE))
    ran = {}
    for name, job in workflow["jobs"].items():
        assert all(len({"uses", "run"} & set(step)) == 1 for step in job["steps"])
        commands = [step["run"].split() for step in job["steps"] if "run" in step]
        ran[name] = [word for words in commands if words[0] == "make" for word in words[1:]]
    assert ran == {"all": ["test", "libraries"], "properties": ["properties"], "python": ["check", "cov"]}
    assert {"test", "properties", "check", "cov"} <= targets


@pytest.mark.parametrize("name", ["bug", "idea"])
def test_a_template_of_an_issue_has_what_a_form_needs(name):
    form = read(f".github/ISSUE_TEMPLATE/{name}.yml")
    assert {"name", "description", "body"} <= set(form)
    kinds = [part["type"] for part in form["body"]]
    assert set(kinds) <= {"textarea", "input", "markdown", "dropdown", "checkboxes"}
    labels = [part["attributes"]["label"] for part in form["body"]]
    names = [part["id"] for part in form["body"]]
    assert len(set(labels)) == len(set(names)) == len(kinds)


def test_the_citation_is_of_this_version():
    cited = read("CITATION.cff")
    assert {"cff-version", "message", "title", "authors"} <= set(cited)
    project = (ROOT / "pyproject.toml").read_text("utf-8")
    assert cited["version"] == agentgym_gym.__version__
    for key, name in (("title", "name"), ("version", "version"), ("license", "license")):
        assert f'\n{name} = "{cited[key]}"\n' in project
