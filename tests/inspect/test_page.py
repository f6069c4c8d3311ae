"""What docs/inspect.md shows runs."""

from __future__ import annotations

import re
import shutil
import sys
from pathlib import Path

import pytest

import needs

pytest.importorskip("inspect_ai", reason=needs.reason("inspect_ai"))

from inspect_ai.log import read_eval_log

from agentgym_gym.catalogue import BUILT_IN
from agentgym_gym.evaluate.inspect_task import TASKS
from doc_blocks import blocks_of, run_in_shell

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "inspect.md").read_text("utf-8")


def test_the_commands_export_a_run(tmp_path, textcraft_url):
    played, exported, viewed = blocks_of(PAGE, "console")[0].splitlines()
    assert viewed == "inspect view --log-dir logs"  # which would not end
    run_in_shell(f"{played}\n{exported}\n", tmp_path, AGENTGYM_TEXTCRAFT_URL=textcraft_url)
    (path,) = (tmp_path / "logs").iterdir()
    log = read_eval_log(str(path))
    assert len(log.samples) == 50
    assert log.results.scores[0].metrics["accuracy"].value == 1.0


def test_the_arguments_of_a_task_match_the_page():
    shown = re.findall(r"^\| (`.*?`) \|", PAGE.partition("| `-T` |")[2], re.MULTILINE)
    named = [name for row in shown for name in re.findall(r"`(\w+)`", row)]
    made = TASKS["WebShop"]
    accepted = made.__wrapped__.__kwdefaults__
    assert sorted(named) == sorted(accepted)
    assert {each.name for each in BUILT_IN} == set(TASKS)


def test_an_environment_of_ones_own_becomes_a_task(tmp_path):
    (code,) = blocks_of(PAGE, "python")
    (tmp_path / "my_task.py").write_text(code, "utf-8")
    shutil.copy(ROOT / "examples" / "own_environment.py", tmp_path)
    program = "import my_task; print([sample.id for sample in my_task.guessing().dataset])"
    assert run_in_shell(f"{sys.executable} -c '{program}'", tmp_path) == f"{list(range(1, 11))}\n"
