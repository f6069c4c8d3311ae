"""The Python in README and docs passes mypy and pyright, both strict, each block separately."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

import needs

ROOT = Path(__file__).resolve().parents[2]
PAGES = [*sorted(ROOT.glob("*.md")), *sorted(ROOT.glob("docs/**/*.md"))]

# It imports an extra that is not installed with the others: nox -s inspect runs it.
NEEDS_MORE = {"docs/inspect.md"}

# gymnasium's own `register` is not fully typed.
UNTYPED = "# pyright: reportUnknownMemberType=false\n"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Every block in a separate file, and the modules that blocks for the shell write."""
    folder = tmp_path_factory.mktemp("blocks")
    for page in PAGES:
        name = page.relative_to(ROOT).with_suffix("").as_posix().translate(str.maketrans("/-.", "___"))
        fences = re.finditer(r"^(`{3,})(\w*)\n(.*?)^\1$", page.read_text("utf-8"), re.DOTALL | re.MULTILINE)
        for number, (_, language, block) in enumerate(fence.groups() for fence in fences):
            if language == "python" and page.relative_to(ROOT).as_posix() not in NEEDS_MORE:
                (folder / f"{name}_{number}.py").write_text(block)
            for module in re.findall(r"<<'END'\n(.*?)^END$", block, re.DOTALL | re.MULTILINE):
                (folder / f"{name}_{number}_shell.py").write_text(UNTYPED + module)
    return folder


def test_there_are_blocks(folder):
    names = {path.name for path in folder.iterdir()}
    assert len(names) > 20
    assert {name.rpartition("_")[0] for name in names} >= {"README", "docs_environment", "docs_many"}


@pytest.mark.slow
def test_mypy_has_no_complaint(folder, tmp_path):
    wrong = tmp_path / "wrong.py"  # these must be found, to show that the check works
    wrong.write_text(
        "from agentgym_gym import AgentGymEnv\n\n"
        'AgentGymEnv("Maze", action_format="xml").system_prompt\n'
        'AgentGymEnv("Maze", action_format="tool_calls").step(3)\n'
    )
    mypy = [sys.executable, "-m", "mypy", "--no-error-summary"]  # with the settings and cache of `make check`
    run = subprocess.run(
        [*mypy, str(wrong), *map(str, sorted(folder.glob("*.py")))],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    told = [line for line in run.stdout.splitlines() if ": note: " not in line]
    places = [Path(line.split(" ")[0]).name for line in told]
    assert places == ["wrong.py:3:", "wrong.py:4:"], run.stdout + run.stderr


@pytest.mark.slow
def test_pyright_has_no_complaint(folder, tmp_path):
    pytest.importorskip("basedpyright", reason=needs.reason("basedpyright"))
    config = tmp_path / "pyrightconfig.json"
    config.write_text(
        json.dumps({"include": [str(folder)], "extraPaths": [str(ROOT)], "typeCheckingMode": "strict"})
    )
    pyright = [sys.executable, "-m", "basedpyright", "--project", str(config), "--outputjson"]
    run = subprocess.run(
        [*pyright, "--pythonpath", sys.executable], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    said = json.loads(run.stdout)
    assert said["generalDiagnostics"] == []
    assert said["summary"]["filesAnalyzed"] >= len(list(folder.iterdir()))
