"""`agentgym eval --launch transformers`: a tiny model plays all tasks of Maze on the CPU."""

from __future__ import annotations

import json
import shutil
import sys

import needs

needs.skip_without("torch", "transformers", "openai", "uvicorn", "fastapi", "typer", "rich")

import programs  # noqa: E402 - not before it is known that all is there

EVAL = (
    *(sys.executable, "-m", "agentgym_gym", "eval", "Maze"),
    *("--tasks", "0:25", "--launch", "transformers"),
)


def evaluated(model, out, *more):
    """Evaluate the model; return its records by task and sample."""
    command = [*EVAL]
    command += ["--model-path", str(model), "--engine-arguments", "--device cpu", "--action-format", "bare"]
    command += ["--max-turns", "2", "--max-tokens", "4", "--on-cut-reply", "play", "--concurrency", "16"]
    environment = programs.environment(OPENAI_API_KEY="sk-not-for-an-engine")
    done = programs.run(
        [*command, "--out", str(out), *more],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=500,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    lines = (out / "episodes.jsonl").read_text("utf-8").splitlines()
    return {(record["task_id"], record["sample"]): record for record in map(json.loads, lines)}


def test_greedily_each_task_is_played_alike_again(model, tmp_path):
    records = evaluated(model, tmp_path / "run", "--temperature", "0", "--samples", "2")
    assert set(records) == {(task, sample) for task in range(25) for sample in range(2)}
    for (task, _), record in records.items():
        assert record["agent_fault"] is None
        assert [step["completion_tokens"] for step in record["steps"]] == [4, 4]
        assert record["messages"] == records[task, 0]["messages"]
    summary = json.loads((tmp_path / "run" / "summary.json").read_text("utf-8"))
    assert summary["run"]["agent_settings"]["engine"] == "transformers"
    assert "sk-not-for-an-engine" not in json.dumps(summary)


def test_samples_of_a_task_differ(model, tmp_path):
    records = evaluated(model, tmp_path / "run", "--temperature", "1", "--samples", "4")
    assert set(records) == {(task, sample) for task in range(25) for sample in range(4)}
    said = [tuple(records[0, sample]["messages"][1]["content"] for sample in range(4))]
    said += [tuple(records[task, 0]["messages"][1]["content"] for task in range(25))]
    assert all(len(set(each)) > 1 for each in said)
    summary = json.loads((tmp_path / "run" / "summary.json").read_text("utf-8"))
    assert (summary["samples"], summary["episodes"], summary["scored"]) == (4, 100, 100)
    assert set(summary["pass_at"]) == {"1", "2", "4"}


def test_a_checkpoint_that_cannot_be_loaded_plays_nothing(tmp_path):
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / "config.json").write_text('{"model_type": "of another world"}')
    (tmp_path / "broken" / "model.safetensors").touch()
    command = [*EVAL]
    command += ["--model-path", str(tmp_path / "bro*"), "--out", str(tmp_path / "run")]
    done = programs.run(
        command, env=programs.environment(), capture_output=True, text=True, check=False, timeout=300
    )
    assert done.returncode == 2
    reason = " ".join(done.stderr.split())
    assert "ended with status 1" in reason
    assert "Unrecognized processing class" in reason
    assert not (tmp_path / "run" / "episodes.jsonl").exists()


def test_the_script_of_a_fine_tuning_plays_its_last_checkpoint(model, tmp_path):
    """The training itself, which needs verl, is left out: a program in place of Python skips it."""
    from verl_bridge.recipes import Evaluation, SftRecipe, write_sft

    options = ("--tasks", "0:2", "--engine-arguments", "--device cpu", "--action-format", "bare")
    options += ("--max-turns", "2", "--max-tokens", "4", "--on-cut-reply", "play")
    evaluations = (Evaluation("Maze", options),)
    write_sft(SftRecipe(evaluations=evaluations, eval_engine="transformers"), tmp_path / "sft")
    checkpoints = tmp_path / "sft/checkpoints"
    shutil.copytree(model, checkpoints / "global_step_3/huggingface")
    (checkpoints / "latest_checkpointed_iteration.txt").write_text("3")
    python = tmp_path / "python"
    python.write_text(f'#!/bin/sh\n[ "$2" = agentgym_gym ] || exit 0\nexec {sys.executable} "$@"\n')
    python.chmod(0o755)
    done = programs.run(
        ["bash", str(tmp_path / "sft/run.sh")],
        env=programs.environment(PYTHON=str(python)),
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    summary = json.loads((tmp_path / "sft/eval/Maze/global_step_3/summary.json").read_text("utf-8"))
    assert (summary["episodes"], summary["scored"]) == (2, 2)
    assert summary["run"]["agent_settings"]["engine"] == "transformers"
