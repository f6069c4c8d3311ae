"""`agentgym verl check`: realistic mistakes, overrides, earlier trainings; without verl."""

from __future__ import annotations

import json
import re
import shutil
import sys
from pathlib import Path

import pytest

import forked
from check_mistakes import MISTAKES, MORE_MISTAKES, TABLE, checkpoint, config, make_folder
from command_line import run as agentgym
from verl_bridge.recipes import Finding


@pytest.fixture(autouse=True)
def _without_verl(monkeypatch):
    monkeypatch.setitem(sys.modules, "verl", None)


def checked(folder, *overrides):
    """Return what `verl check` finds; its exit status is that of the findings."""
    ended = agentgym("verl", "check", folder, *overrides, "--json")
    found = json.loads(ended.stdout)
    findings = [Finding(**each) for each in found["findings"]]
    right = all(each.status != "problem" for each in findings)
    assert (found["ok"], ended.exit_code == 0) == (right, right)
    return findings


def test_each_mistake_of_the_docs_is_made():
    assert [each.text for each in MISTAKES] == [*TABLE]
    assert len(MISTAKES) >= 24


@pytest.fixture(scope="module")
def made(tmp_path_factory, textcraft_url):
    """Folders in which nothing is wrong, by whether they play through interactions; tests copy them."""
    place = tmp_path_factory.mktemp("made")
    return {
        False: make_folder(place / "loop", textcraft_url),
        True: make_folder(place / "interaction", textcraft_url, "0.7", interaction=True),
    }


@pytest.fixture
def folder(made, tmp_path):
    return Path(shutil.copytree(made[False], tmp_path / "folder"))


@pytest.mark.parametrize(
    "mistake",
    [
        pytest.param(each, id=each.text, marks=[pytest.mark.slow] * each.rows)
        for each in (*MISTAKES, *MORE_MISTAKES)
        if not each.needs_verl
    ],
)
def test_a_mistake_is_found(made, tmp_path, mistake):
    folder = Path(shutil.copytree(made[mistake.interaction], tmp_path / "folder"))
    mistake.make_in(folder)
    mistake.assert_found(checked(folder))


@pytest.mark.parametrize("interaction", [False, True])
def test_nothing_is_wrong_without_a_mistake(made, interaction):
    findings = checked(made[interaction])
    assert not [each for each in findings if each.status in {"problem", "warning"}]
    (length,) = (each for each in findings if each.check == "response length")
    assert "by 2 episodes of oracle and random up to 20 turns" in length.text


def test_the_findings_are_printed(folder):
    printed = agentgym("verl", "check", folder).stdout
    assert "ok       environment: agentgym_gym:agentgym/TextCraft-v0 begins and answers" in printed
    assert "ok       server: http://127.0.0.1" in printed
    assert "skipped  settings: verl is not installed here: the settings were not composed" in printed
    assert "its context length was not checked" in printed


# what is not on this machine


def test_without_pyarrow_no_rows_are_read(folder, monkeypatch):
    for module in ("pyarrow", "pyarrow.parquet"):
        monkeypatch.setitem(sys.modules, module, None)
    assert "pyarrow is not installed here: not read" in agentgym("verl", "check", folder).stdout


@pytest.mark.slow  # in a process of its own
def test_without_yaml_the_command_that_installs_it_is_named(folder):
    """pyarrow is not imported before."""
    absent = dict.fromkeys(["yaml", "pyarrow", "pyarrow.parquet"])
    code = (
        f"import sys; sys.modules |= {absent}; sys.argv = ['agentgym', 'verl', 'check', {str(folder)!r}]\n"
        "from agentgym_gym.__main__ import main; main()"
    )
    result = forked.run(code)
    assert result.returncode == 2
    assert "pip install '.[cli]'" in result.stderr


def test_an_environment_without_a_server_here_is_skipped(run, tmp_path, monkeypatch):
    options = ["--env", "SciWorld", "--preset", "test", "--out", tmp_path / "run"]
    assert run("verl", "init", *options).exit_code == 0
    monkeypatch.setenv("PATH", "")
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.delenv("AGENTGYM_SCIWORLD_URL", raising=False)
    findings = checked(tmp_path / "run")
    assert [each for each in findings if each.status == "problem"] == []
    (found,) = (each for each in findings if each.check == "environment")
    assert (found.status, "needs" in found.text) == ("skipped", True)


# overrides


def test_overrides_apply_as_in_the_script(run, folder):
    result = run("verl", "check", folder, "trainer.n_gpus_per_node=3", "--json")
    assert result.exit_code == 1
    assert "cannot be divided among 3 GPUs" in result.stdout
    config({"trainer.n_gpus_per_node": 3})(folder)
    result = run(
        "verl", "check", folder, "trainer.n_gpus_per_node=4", "data.max_response_length=5000", "--json"
    )
    findings = json.loads(result.stdout)["findings"]
    assert any("5000" in each["text"] for each in findings if each["check"] == "response length")
    assert not any("GPUs" in each["text"] for each in findings if each["status"] == "problem")


def test_an_override_with_an_earlier_training(folder):
    checkpoint(folder)
    texts = [each.text for each in checked(folder, "trainer.resume_mode=disable")]
    assert not any("resumes from" in text for text in texts)
    (found,) = (each for each in checked(folder, "trainer.total_training_steps=40") if "resumes" in each.text)
    assert "it has done all 40 training steps" in found.text


# an earlier training


def test_force_does_not_continue_from_other_weights(run, tmp_path):
    out = tmp_path / "run"
    usual = ("--preset", "test", "--out", out)
    assert run("verl", "init", "--env", "TextCraft", *usual).exit_code == 0
    checkpoint(out)
    before = (out / "config.yaml").read_bytes()
    for options, change in {
        (
            "--env",
            "WebShop",
        ): "environment agentgym_gym:agentgym/TextCraft-v0, now agentgym_gym:agentgym/WebShop-v0",
        (
            "--env",
            "TextCraft",
            "--env",
            "Maze",
        ): "environment agentgym_gym:agentgym/TextCraft-v0, now agentgym",
        ("--env", "TextCraft", "--model", "Qwen/Qwen3-4B"): "now Qwen/Qwen3-4B",
        ("--env", "TextCraft", "--algorithm", "rloo"): "algorithm grpo, now rloo",
    }.items():
        result = run("verl", "init", *options, *usual, "--force")
        assert result.exit_code == 2
        printed = " ".join(result.stderr.split())
        assert change in printed
        assert "step 40" in printed
        assert "choose another folder" in printed
        assert (out / "config.yaml").read_bytes() == before
    assert run("verl", "init", "--env", "TextCraft", "--gpus", "8", *usual, "--force").exit_code == 0


def test_force_knows_several_environments(run, tmp_path):
    def init(*names):
        environments = [word for name in names for word in ("--env", name)]
        return run("verl", "init", *environments, "--preset", "test", "--out", tmp_path / "run", "--force")

    assert init("Maze", "TextCraft").exit_code == 0
    checkpoint(tmp_path / "run")
    assert init("TextCraft", "Maze").exit_code == 0
    refused = init("Maze", "Wordle")
    assert refused.exit_code == 2
    assert re.search(r"now agentgym_gym:agentgym/Maze-v0, .*Wordle", " ".join(refused.stderr.split()))
