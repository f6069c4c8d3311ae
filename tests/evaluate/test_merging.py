"""Checkpoints in pieces are merged once, whole or not at all; a program replaces verl."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import programs
from agentgym_gym.errors import BadOption, SetupError
from agentgym_gym.evaluate import checkpoints

MERGER = """\
import os, pathlib, sys, time
given = dict(zip(sys.argv[2::2], sys.argv[3::2]))
pieces, target = pathlib.Path(given["--local_dir"]), pathlib.Path(given["--target_dir"])
assert sys.argv[1] == "merge" and given["--backend"] == "fsdp"
with open(os.environ["MERGED_BY"], "a") as file:
    file.write(f"{os.getpid()}\\n")
target.mkdir()
(target / "config.json").write_text("{}")
time.sleep(float(os.environ.get("MERGE_SECONDS", 0)))
if os.environ.get("MERGE") == "fail":
    sys.exit("ValueError: a piece is missing")
if os.environ.get("MERGE") == "lora":
    (target / "lora_adapter").mkdir()
(target / "model.safetensors").write_text(pieces.joinpath("model_world_size_1_rank_0.pt").read_text())
"""


@pytest.fixture
def merged_by(tmp_path, monkeypatch):
    """Puts a program in verl's place; returns the file to which it appends when it is run."""
    package = tmp_path / "installed" / "verl"
    package.mkdir(parents=True)
    (package / "__init__.py").touch()
    (package / "model_merger.py").write_text(MERGER)
    monkeypatch.syspath_prepend(tmp_path / "installed")
    monkeypatch.setenv("MERGED_BY", str(tmp_path / "merged_by.txt"))
    return tmp_path / "merged_by.txt"


def save_pieces(folder: Path, below: str) -> Path:
    (folder / below / "huggingface").mkdir(parents=True)
    (folder / below / "huggingface" / "config.json").write_text("{}")
    (folder / below / "model_world_size_1_rank_0.pt").write_text(folder.name)
    return folder / below


@pytest.mark.parametrize("below", ["actor", ""])
def test_each_is_merged_once(below, tmp_path, merged_by):
    for step in (2, 10):
        save_pieces(tmp_path / f"ckpts/global_step_{step}", below)
    said = []
    pattern = str(tmp_path / "ckpts/*")
    found = checkpoints(pattern, merge=said.append)
    assert found == [str(tmp_path / "ckpts" / f"global_step_{step}" / below / "merged") for step in (2, 10)]
    assert [Path(each, "model.safetensors").read_text() for each in found] == [
        "global_step_2",
        "global_step_10",
    ]
    assert [line.split()[-1].strip(".") for line in said] == [found[0], found[0], found[1], found[1]]
    assert checkpoints(pattern, merge=said.append) == found
    assert len(said) == 4
    assert len(merged_by.read_text().splitlines()) == 2


def test_checkpoints_are_merged_only_on_request(tmp_path, merged_by):
    save_pieces(tmp_path / "ckpts/global_step_1", "actor")
    with pytest.raises(BadOption, match="model_merger merge"):
        checkpoints(str(tmp_path / "ckpts/*"))
    assert not merged_by.exists()


def test_a_complete_model_is_used_unchanged(tmp_path, merged_by):
    pieces = save_pieces(tmp_path / "ckpts/global_step_1", "")
    (pieces / "huggingface/model.safetensors").touch()
    assert checkpoints(str(pieces), merge=print) == [str(pieces / "huggingface")]
    assert not merged_by.exists()


def test_without_verl_the_command_is_named(tmp_path, monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    pieces = save_pieces(tmp_path / "global_step_1", "actor")
    with pytest.raises(BadOption, match="merge --backend fsdp"):
        checkpoints(str(tmp_path / "global_step_1"), merge=print)
    assert not (pieces / "merged").exists()


@pytest.mark.parametrize(
    ("how", "said"),
    [("fail", "actor: ValueError: a piece"), ("lora", "by LoRA")],
)
def test_a_failure_is_named_and_leaves_nothing(how, said, tmp_path, merged_by, monkeypatch):
    pieces = save_pieces(tmp_path / "global_step_1", "actor")
    monkeypatch.setenv("MERGE", how)
    for _ in range(2):
        with pytest.raises(SetupError, match=said):
            checkpoints(str(tmp_path / "global_step_1"), merge=lambda _: None)
    assert not (pieces / "merged").exists()
    assert not (pieces / ".merging").exists()
    assert len(merged_by.read_text().splitlines()) == 2  # it is tried again


def test_the_remains_of_a_killed_merge_are_not_a_model(tmp_path, merged_by):
    pieces = save_pieces(tmp_path / "global_step_1", "actor")
    (pieces / ".merging").mkdir()
    (pieces / ".merging/config.json").write_text("{}")
    (pieces / ".merging/model.safetensors").write_text("half")
    (found,) = checkpoints(str(tmp_path / "global_step_1"), merge=lambda _: None)
    assert Path(found, "model.safetensors").read_text() == "global_step_1"
    assert not (pieces / ".merging").exists()
    assert len(merged_by.read_text().splitlines()) == 1


@pytest.mark.slow
def test_two_processes_merge_once(tmp_path, merged_by):
    save_pieces(tmp_path / "global_step_1", "actor")
    code = (
        "import sys; from agentgym_gym.evaluate import checkpoints\n"
        "print(*checkpoints(sys.argv[1], merge=lambda line: None))"
    )
    command = [sys.executable, "-c", code, str(tmp_path / "global_step_1")]
    environment = programs.environment(MERGE_SECONDS="0.5")
    started = [programs.start(command, env=environment, stdout=subprocess.PIPE, text=True) for _ in range(3)]
    said = [process.communicate(timeout=60)[0].strip() for process in started]
    assert said == [str(tmp_path / "global_step_1/actor/merged")] * 3
    assert len(merged_by.read_text().splitlines()) == 1


def test_a_folder_that_cannot_be_written_to_is_named(tmp_path, merged_by):
    pieces = save_pieces(tmp_path / "global_step_1", "actor")
    (pieces / ".merging.lock").mkdir()  # not even root can write it
    with pytest.raises(SetupError, match=r"cannot merge the model in .*actor"):
        checkpoints(str(tmp_path / "global_step_1"), merge=print)
    assert not merged_by.exists()
