"""`agentgym verl sft`, and `agentgym verl check` of what it writes, without verl."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import check_mistakes
import needs
from agentgym_gym.data import read_trajectories
from agentgym_gym.evaluate import RunFolder
from doc_blocks import run_in_shell
from trajectories import ENTRY, FACTS, PROMPT, episode
from verl_bridge.recipes import SFT_PRESETS

yaml = pytest.importorskip("yaml", reason=needs.reason("yaml"))
parquet = pytest.importorskip("pyarrow.parquet", reason=needs.reason("pyarrow.parquet"))


@pytest.fixture(autouse=True)
def _here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def games():
    """A run of 40 games of Maze in ReAct, two of each training task, half of them solved."""
    with RunFolder(Path("games"), FACTS) as folder:
        for task in range(20):
            folder.add(episode(task))
            lost = episode(task, "Thought:\nDown.\n\nAction:\nmove down", success=False, score=0.0, sample=1)
            folder.add(lost)
    return "games"


@pytest.fixture
def sft(run, games):
    """Writes a folder of the games; returns its settings, what was printed, and its rows by their part."""

    def write(*options, source=games):
        result = run("verl", "sft", source, "--out", "sft", "--gpus", "1", *options)
        assert result.exit_code == 0, result.stderr
        config = yaml.safe_load(Path("sft/config.yaml").read_text("utf-8"))
        rows = {file.stem: parquet.read_table(file).to_pylist() for file in Path("sft/data").iterdir()}
        return config, " ".join(result.stdout.split()), rows

    return write


def problems(run, folder="sft"):
    result = run("verl", "check", folder, "--json")
    found = json.loads(result.stdout)["findings"]
    wrong = [each for each in found if each["status"] == "problem"]
    assert (result.exit_code == 1) is bool(wrong)
    return wrong


@pytest.mark.parametrize("preset", SFT_PRESETS)
def test_a_folder_is_written(sft, run, preset):
    val = ["--val", "0.4", "--batch", "16"] if preset == "full" else []
    config, printed, rows = sft("--preset", preset, *val)
    assert config["defaults"][0] == "sft_trainer_engine"
    assert config["trainer"]["total_epochs"] == SFT_PRESETS[preset].epochs
    assert config["optim"]["lr"] == 1e-5
    assert config["data"]["custom_cls"]["name"] == "GameDataset"
    assert "hf_model" in config["checkpoint"]["save_contents"]
    if preset == "full":
        assert {part: len(of) for part, of in rows.items()} == {"train": 24, "val": 16}
        assert config["data"]["val_files"] == "${folder}/data/val.parquet"
        assert config["trainer"]["save_freq"] == config["trainer"]["test_freq"] == "after_each_epoch"
    else:
        assert set(rows) == {"train"}
        assert "val_files" not in config["data"]
    assert "Next: agentgym verl check sft" in printed
    assert problems(run) == []


def test_sft_writes_the_chosen_settings(sft):
    options = ["--batch", "4", "--epochs", "7", "--learning-rate", "2e-5", "--max-length", "16384"]
    config, _, rows = sft(*options, "--successful", "--offload", "--no-checkpointing", "--best", "1")
    assert len(rows["train"]) == 20
    assert all(row["success"] for row in rows["train"])
    assert config["data"]["train_batch_size"] == 4
    assert config["trainer"]["total_epochs"] == 7
    assert config["optim"]["lr"] == 2e-5
    assert config["data"]["max_length"] == config["data"]["max_token_len_per_gpu"] == 16_384
    assert config["engine"] == {"strategy": "fsdp2", "offload_policy": True}
    assert config["model"]["enable_gradient_checkpointing"] is False


def test_games_are_put_into_the_format_that_is_learned(sft):
    _, _, rows = sft("--action-format", "adapt")
    assert {row["action_format"] for row in rows["train"]} == {"adapt"}
    row = next(row for row in rows["train"] if row["success"])
    assert row["messages"][-1]["content"] == "> think: Up.\n> move up"
    assert row["messages"][0]["content"] != PROMPT  # the rules say how replies are written


def test_a_game_is_left_out_if_its_format_cannot_be_converted(sft, run):
    with RunFolder(Path("bad"), FACTS) as folder:
        for task in range(9):
            folder.add(
                episode(task, said="No action at all" if task == 4 else f"Action:\nmove up {task}"[:16])
            )
    _, printed, rows = sft("--action-format", "adapt", source="bad")
    assert len(rows["train"]) == 8
    assert "1 NoAction" in printed
    assert "Left out, unconverted reply: 1." in printed
    with RunFolder(Path("worse"), FACTS) as folder:
        folder.add(episode(0, said="No action at all"))
    result = run("verl", "sft", "worse", "--out", "none", "--action-format", "adapt")
    assert result.exit_code == 2
    assert "any of 1 trajectories to adapt" in result.stderr


def test_rows_that_were_written_are_a_source(sft, run, games):
    assert run("data", "sft", games, "--val", "0", "--out", "rows").exit_code == 0
    _, _, rows = sft(source="rows/train.parquet")
    key = str
    assert sorted(rows["train"], key=key) == sorted(
        parquet.read_table("rows/train.parquet").to_pylist(), key=key
    )


def test_a_folder_that_is_divided_stays_so(sft, run, games):
    assert run("data", "sft", games, "--val", "8", "--out", "rows").exit_code == 0
    tasks = {
        part: {row["task_id"] for row in parquet.read_table(f"rows/{part}.parquet").to_pylist()}
        for part in ("train", "val")
    }
    _, _, rows = sft(source="rows")
    assert {part: {row["task_id"] for row in of} for part, of in rows.items()} == tasks
    _, _, rows = sft("--val", "0", "--force", source="rows")
    assert {part: len(of) for part, of in rows.items()} == {"train": 40}


def test_marks_are_kept_and_reported(sft):
    Path("traj.json").write_text(json.dumps([{**ENTRY, "item_id": f"maze_{at}"} for at in range(8)]))
    _, printed, _ = sft("--prompt", "turns", source="traj.json")
    assert "8 replies are marked as excluded from training." in printed
    (first, *_) = read_trajectories(Path("sft/data/train.parquet"))
    assert [said.loss for said in first.messages if said.role == "assistant"] == [False, True]


@pytest.mark.parametrize("again", [False, True])
def test_the_evaluation_has_the_history_of_the_rows(run, sft, games, again):
    source = games
    if again:
        assert run("data", "sft", games, "--history", "turns:2", "--val", 8, "--out", "rows").exit_code == 0
        source = "rows"
    _, _, rows = sft("--eval", "Maze", *([] if again else ["--history", "turns:2"]), source=source)
    assert {json.loads(row["rest"])["extra"]["history"] for row in rows["train"]} == {"turns:2"}
    (line,) = [line for line in Path("sft/run.sh").read_text("utf-8").splitlines() if "eval Maze" in line]
    assert "--action-format react --history turns:2" in line
    assert problems(run) == []
    sft("--eval", "Maze", "--eval-options", "--history turns:4", "--force", source=source)
    script = Path("sft/run.sh").read_text("utf-8")
    assert ("--history turns:4" in script, "--history turns:2" in script) == (True, False)


def test_the_script_contains_the_evaluation(sft, tmp_path):
    Path("some.txt").write_text("0\n1\n")
    sft("--eval", "Maze", "--eval", "TextCraft", "--eval-tasks", "some.txt", "--eval-engine", "transformers")
    script = Path("sft/run.sh").read_text("utf-8")
    calls = [line for line in script.splitlines() if "agentgym_gym eval" in line]
    assert [line.split()[3:5] for line in calls] == [["eval", "Maze"], ["eval", "TextCraft"]]
    for line in calls:
        assert "--launch transformers --action-format react" in line
        assert f"--tasks {tmp_path}/some.txt" in line
        assert '--model-path "checkpoints/global_step_$step"' in line
    assert "agentgym report eval" in Path("sft/README.md").read_text("utf-8")


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--gpus", "3"], "gpus=3 does not divide the batch of 8 games"),
        (["--batch", "64", "--gpus", "1"], "40 trajectories in train do not fill a batch of 64"),
        (["--val", "2", "--gpus", "1"], "4 trajectories in val do not fill a batch of 8"),
        (["--learning-rate", "0"], "--learning-rate=0.0 should be above 0"),
        (["--offload", "--verl", "0.7"], "use a later verl"),
        (["--eval", "Nope"], "there is no environment 'Nope'"),
        (["--min-score", "2"], "all 40 trajectories are left out"),
    ],
)
def test_wrong_options_are_errors(run, games, options, said):
    result = run("verl", "sft", games, "--out", "sft", *options)
    assert result.exit_code == 2
    assert said in result.stderr
    assert not Path("sft").exists()


def test_sft_overwrites_nothing_without_force(sft, run, games):
    sft("--preset", "test")
    before = {path: path.read_bytes() for path in Path("sft").rglob("*") if path.is_file()}
    result = run("verl", "sft", games, "--out", "sft", "--gpus", "1", "--batch", "4")
    assert result.exit_code == 2
    assert "config.yaml" in result.stderr
    assert {path: path.read_bytes() for path in Path("sft").rglob("*") if path.is_file()} == before
    sft("--batch", "4", "--force")
    assert "train_batch_size: 4" in Path("sft/config.yaml").read_text("utf-8")


@pytest.mark.parametrize(
    ("key", "value", "check", "said"),
    [
        ("data.train_batch_size", 41, "data", "nothing is left"),
        ("trainer.n_gpus_per_node", 3, "sizes", "8 games cannot be divided among 3 GPUs"),
        ("data.max_length", 9000, "sizes", "8192 tokens at a time, and a game may have 9000"),
        ("data.train_files", "gone.parquet", "data", "cannot read"),
    ],
)
def test_a_setting_that_does_not_fit_is_found(sft, run, key, value, check, said):
    sft()
    check_mistakes.config({key: value})(Path("sft"))
    (found,) = problems(run)
    assert found["check"] == check
    assert said in found["text"]


def test_an_earlier_training_is_reported(sft, run):
    sft()
    Path("sft/checkpoints/global_step_12").mkdir(parents=True)
    Path("sft/checkpoints/latest_checkpointed_iteration.txt").write_text("12\n")
    result = run("verl", "check", "sft")
    assert "verl resumes from its step 12" in result.stdout
    assert result.exit_code == 0
    check_mistakes.config({"trainer.resume_mode": "disable"})(Path("sft"))
    printed = run("verl", "check", "sft").stdout
    assert "resumes" not in printed
    assert "which new ones replace step by step" in printed


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda rows: [row.pop("messages") for row in rows], "row 0: there are no messages"),
        (lambda rows: rows[3]["messages"][1].update(role="human"), "row 3: message 1 should have a role"),
        (lambda rows: rows[2].update(loss=[False] * 3), "row 2: it has no reply to learn"),
    ],
)
def test_a_row_without_a_game_is_found(sft, run, change, said):
    sft()
    check_mistakes.rows("train", change)(Path("sft"))
    (found,) = problems(run)
    assert said in found["text"]


def test_a_task_in_both_files_is_found(sft, run):
    sft("--val", "8")
    Path("sft/data/val.parquet").write_bytes(Path("sft/data/train.parquet").read_bytes())
    (found,) = problems(run)
    assert found["check"] == "validation"
    assert "12 of the tasks in val are in train too" in found["text"]


def test_the_script_evaluates_the_trained_model(sft, tmp_path):
    """A program in place of Python writes down what it is started with, and where verl left a checkpoint."""
    sft("--eval", "Maze", "--eval-tasks", "0:2", "--eval-options", "--max-tokens 4")
    python = tmp_path / "python"
    python.write_text(
        f"#!{sys.executable}\nimport json, pathlib, sys\n"
        "with open('started.jsonl', 'a') as file:\n    file.write(json.dumps(sys.argv[1:]) + '\\n')\n"
        "pathlib.Path('checkpoints').mkdir(exist_ok=True)\n"
        "pathlib.Path('checkpoints/latest_checkpointed_iteration.txt').write_text('5')\n"
    )
    python.chmod(0o755)
    variables = {**os.environ, "PYTHON": str(python), "GPUS": "2"}
    variables.pop("VERL_USE_EXTERNAL_MODULES", None)
    command = ["bash", str(tmp_path / "sft/run.sh"), "trainer.total_epochs=2"]
    subprocess.run(command, check=True, cwd="/", env=variables)
    folder = tmp_path / "sft"
    training, evaluation = map(json.loads, (folder / "started.jsonl").read_text("utf-8").splitlines())
    assert training[:7] == [
        "-m",
        "torch.distributed.run",
        "--standalone",
        "--nproc-per-node",
        "2",
        "-m",
        "verl.trainer.sft_trainer",
    ]
    assert training[-3:] == [f"folder='{folder}'", "trainer.n_gpus_per_node=2", "trainer.total_epochs=2"]
    assert evaluation[:6] == ["-m", "agentgym_gym", "eval", "Maze", "--launch", "vllm"]
    assert evaluation[-5:] == [
        *("--model-path", "checkpoints/global_step_5"),
        *("--out", "eval/Maze/global_step_5", "--resume"),
    ]
    variables["VERL_USE_EXTERNAL_MODULES"] = "verl_bridge.cpu"
    subprocess.run(command, check=True, cwd="/", env=variables)
    started = [json.loads(line) for line in (folder / "started.jsonl").read_text("utf-8").splitlines()]
    assert started[2][:2] == ["-m", "verl_bridge.cpu.sft"]


@pytest.mark.slow
def test_the_commands_of_the_page_run(tmp_path):
    page = (Path(__file__).resolve().parents[2] / "docs/training/sft.md").read_text("utf-8")
    code = re.findall(r"^```console\n(.*?)^```", page, re.DOTALL | re.MULTILINE)[0]
    run_in_shell(code, tmp_path)
    assert parquet.read_table(tmp_path / "runs/sft/data/train.parquet").num_rows == 64
