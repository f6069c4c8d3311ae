"""The examples run, and reach the results that they state."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import needs
from agentgym_gym import AgentGymEnv, find
from agentgym_gym.evaluate import evaluate, load_oracle
from fake_model import completion
from fake_server import FakeServer, in_turn

EXAMPLES = Path(__file__).resolve().parents[1] / "examples"

SAYS = {
    "many.py": r"{'solved': 100}\n",
    "own_environment.py": r"(?s).*\nreward=1.0 success=True turns=\d\n",
    "text_env.py": r"random 0\.\d+ .*\nhalving 1\.0 (.*\n){4}",
    "textcraft.py": r"(?s)(.*parse_error=None\n.*NoAction\n.*ManyActions\n)reward=1\.0 terminated=True .*",
}
"""What each of the scripts prints; that with a model is not here."""


def run(arguments: list[str], folder: Path, **variables: str) -> str:
    ran = subprocess.run(
        [sys.executable, "-W", "error", *arguments],
        cwd=folder,
        env={**os.environ, **variables},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (ran.returncode, ran.stderr) == (0, "")
    return ran.stdout


def test_there_are_these():
    assert {path.name for path in EXAMPLES.glob("*.py")} == SAYS.keys() | {"model.py"}


@pytest.mark.slow
@pytest.mark.parametrize("name", SAYS)
def test_a_script_runs(name, tmp_path):
    assert re.fullmatch(SAYS[name], run([str(EXAMPLES / name)], tmp_path))


@pytest.mark.slow
def test_a_model_plays(tmp_path, textcraft_url):
    pytest.importorskip("openai", reason=needs.reason("openai"))
    with AgentGymEnv("TextCraft", server=textcraft_url) as env:
        (won,) = evaluate(env, load_oracle(find("TextCraft")), [0])
    with FakeServer(in_turn(*(completion(f"Action: {action}") for action in won.replies))) as model:
        printed = run(
            [str(EXAMPLES / "model.py"), "a-model"],
            tmp_path,
            AGENTGYM_TEXTCRAFT_URL=textcraft_url,
            OPENAI_BASE_URL=f"{model.url}/v1",
            OPENAI_API_KEY="EMPTY",
        )
        asked = [request.json for request in model.requests]
    assert printed.splitlines()[-1].strip() == f"success=True turns={won.turns}"
    assert [each["model"] for each in asked] == ["a-model"] * won.turns
    roles = [message["role"] for message in asked[-1]["messages"]]
    assert roles == ["system", "user", *["assistant", "user"] * (won.turns - 1)]


@pytest.fixture(scope="module")
def notebook():
    return json.loads((EXAMPLES / "tour.ipynb").read_text("utf-8"))


def test_the_notebook_is_kept_without_outputs(notebook):
    assert (notebook["nbformat"], notebook["nbformat_minor"]) == (4, 5)
    assert len({cell["id"] for cell in notebook["cells"]}) == len(notebook["cells"])
    code = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    assert len(code) >= 4
    assert [cell for cell in code if cell["outputs"] or cell["execution_count"]] == []


@pytest.mark.slow
def test_the_notebook_runs(notebook, tmp_path):
    cells = ("".join(cell["source"]) for cell in notebook["cells"] if cell["cell_type"] == "code")
    printed = run(["-c", "\n".join(cells)], tmp_path)
    assert "Inventory: You are not carrying anything." in printed
    assert "\nNoAction\n" in printed
    assert re.search(r"^TextCraftOracle 1\.0 |^oracle 1\.0 ", printed, re.MULTILINE)
    assert re.search(r"^random 0\.\d+ ", printed, re.MULTILINE)
