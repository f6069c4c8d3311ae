"""`agentgym verl check`: realistic mistakes, overrides, earlier trainings; without verl."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from types import SimpleNamespace

import pytest

from check_mistakes import MISTAKES, checkpoint, config, loop, make_folder
from command_line import run as agentgym

DOCS = Path(__file__).resolve().parents[2] / "docs/training/check.md"


def checked(folder, *overrides):
    """Return what `verl check` finds."""
    found = json.loads(agentgym("verl", "check", folder, *overrides, "--json").stdout)
    return [SimpleNamespace(**each) for each in found["findings"]]


def test_the_docs_have_this_table():
    text = DOCS.read_text("utf-8")
    rows = [f"| {each.text} | {each.status} | {each.finding} |" for each in MISTAKES]
    table = text[text.index("| mistake |") :].split("\n\n")[0].splitlines()[2:]
    assert table == rows
    assert len(rows) >= 24


@pytest.fixture(scope="module")
def made(tmp_path_factory, textcraft_url):
    return make_folder(tmp_path_factory.mktemp("made") / "folder", textcraft_url)


@pytest.fixture
def folder(made, tmp_path):
    """A folder in which nothing is wrong."""
    return Path(shutil.copytree(made, tmp_path / "folder"))


@pytest.mark.parametrize(
    "mistake",
    [pytest.param(each, id=each.text, marks=pytest.mark.slow) for each in MISTAKES if not each.needs],
)
def test_a_mistake_is_found(folder, mistake):
    mistake.make(folder)
    findings = checked(folder)
    found = [each for each in findings if mistake.finding in each.text]
    assert mistake.status in {each.status for each in found}, findings
    assert all(each.advice for each in found if each.status == mistake.status)


def test_nothing_is_wrong_without_a_mistake(folder):
    findings = checked(folder)
    assert not [each for each in findings if each.status in {"problem", "warning"}]
    (length,) = (each for each in findings if each.check == "response length")
    assert "by 2 episodes of oracle and random up to 20 turns" in length.text


# what is not on this machine


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
        assert "choose another --out" in printed
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


def test_episodes_of_an_earlier_training_are_reported(folder):
    (folder / "episodes").mkdir()
    (folder / "episodes/episodes.jsonl").write_text("{}\n")
    (found,) = (each for each in checked(folder) if each.check == "checkpoints")
    assert (found.status, "reports will mix both" in found.text) == ("warning", True)


def test_checkpoints_without_the_file_of_the_last_step(folder):
    checkpoint(folder)
    (folder / "checkpoints/latest_checkpointed_iteration.txt").unlink()
    (found,) = (each for each in checked(folder) if each.check == "checkpoints")
    assert "no latest_checkpointed_iteration.txt: verl starts from step 1" in found.text


# tasks


def test_a_turn_limit_that_is_wrong_ends_no_check(folder):
    loop({"max_turns": None, "horizon": {"turns": "many"}})(folder)
    wrong = [each for each in checked(folder) if each.status == "problem"]
    assert [each.check for each in wrong] == ["loop"]
