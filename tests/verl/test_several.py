"""Two environments of one folder of `agentgym verl init`, in verl's own worker and its own trainer."""

from __future__ import annotations

import importlib
import json
import sys
from collections import Counter

import pytest
import yaml

import needs

pytest.importorskip("verl", reason=needs.reason("verl"))

from pyarrow import parquet

import command_line
from agentgym_gym import AgentGymEnv
from agentgym_gym.evaluate import read_training
from verl_bridge.cpu.overrides import cpu_overrides
from verl_bridge.cpu.tiny import make_tiny
from verl_bridge.recipes import check as check_folder
from verl_functions import METRICS, wrapped
from verl_run import Run, measured
from verl_worker import ScriptedModel

try:
    interactions = importlib.import_module("verl.interactions")
except ImportError:
    interactions = None

COUNT, CRAFT = "bridge/Count-v0", "agentgym/TextCraft-v0"
SAMPLES = 2  # of each task in a step


@pytest.fixture
def folder(tmp_path, textcraft_url, monkeypatch):
    """Writes a folder for both, in which TextCraft has 3 turns and counting to 9 has 2."""

    def write(*options):
        arguments = [
            *("verl", "init", "--preset", "test", "--env", "TextCraft", "--env", f"counting_env:{COUNT}"),
            *("--server", f"TextCraft={textcraft_url}", "--env-kwargs", 'TextCraft={"max_turns": 3}'),
            *("--env-kwargs", f'{COUNT}={{"goal": 9, "max_episode_steps": 2}}'),
            *("--out", str(tmp_path / "joint"), *options),
        ]
        written = command_line.run(*arguments)
        assert written.exit_code == 0, written.output
        return tmp_path / "joint"

    return write


def batch_of(folder):
    """Return the tasks of the first rows, some of each environment, and what they are told."""
    rows = parquet.read_table(folder / "data/train.parquet").to_pylist()[:6]
    tasks = [row["extra_info"]["interaction_kwargs"] for row in rows]
    return [{**task, "name": "gym_env"} for task in tasks], [row["prompt"][0]["content"] for row in rows]


def plays(tokenizer):
    """A model that counts, and looks at what it has."""

    def reply(told):
        if "Count from" in told:
            return str(told.count("<|im_start|>assistant"))
        return "Thought: I look.\nAction: inventory"

    return ScriptedModel(tokenizer, reply)


def check(monkeypatch, played, tasks):
    """Each environment has its own numbers, and its own turn limit."""
    count = sum(task["env_id"].endswith(COUNT) for task in tasks)
    assert 0 < count < len(tasks)
    module = wrapped(monkeypatch, METRICS, compute_data_metrics=lambda batch: {})
    found = module.compute_data_metrics(played.batch)
    of = {
        env_id: [
            found[f"env/{env_id}/{name}"] for name in ("episodes", "turns", "score", "success", "faults")
        ]
        for env_id in (COUNT, CRAFT)
    }
    assert of == {COUNT: [count, 2, 2, 0, 0], CRAFT: [len(tasks) - count, 3, 0, 0, 0]}


def test_each_environment_of_a_batch_has_its_own_metrics_and_limit(play, folder, monkeypatch):
    place = folder()
    tasks, told = batch_of(place)
    (loop,) = yaml.safe_load((place / "agent_loop.yaml").read_text("utf-8"))
    options = {name: loop[name] for name in set(loop) - {"name", "_target_", "episodes_dir"}}
    assert options["max_turns"] == 3
    played = play(plays, tasks, system=told, prompt_length=4_096, response_length=2_048, **options)
    check(monkeypatch, played, tasks)


@pytest.mark.skipif(interactions is None, reason="this verl has no interactions")
def test_so_it_is_by_the_interaction(play, folder, monkeypatch):
    place = folder("--verl", "0.7", "--integration", "interaction")
    tasks, told = batch_of(place)
    (entry,) = yaml.safe_load((place / "interaction.yaml").read_text("utf-8"))["interaction"]
    played = play(
        plays,
        tasks,
        system=told,
        prompt_length=4_096,
        response_length=2_048,
        integration="interaction",
        turns=4,
        **entry["config"],
    )
    check(monkeypatch, played, tasks)


@pytest.mark.slow  # minutes of training: `make trainings`
def test_an_epoch_draws_each_row_once(folder, tmp_path, textcraft_url):
    """By the script of the folder: the tasks of all steps are the rows, each with its samples."""
    with AgentGymEnv("TextCraft", server=textcraft_url) as env:
        texts = [env.system_prompt, *(env.reset(options={"task_id": number})[0] for number in range(12))]
    make_tiny(tmp_path / "tiny", [*texts, "Count from 0 to 9.", "is no number."] * 9, context=16_384)
    place = folder(
        *("--model", str(tmp_path / "tiny"), "--gpus", "1"),
        *("--tasks", "TextCraft=0:12", "--val", "TextCraft=2"),
        *("--tasks", f"{COUNT}=0:8", "--val", f"{COUNT}=2"),
    )
    yaml_file = place / "agent_loop.yaml"
    yaml_file.write_text(yaml_file.read_text().replace("max_tokens_per_turn: 512", "max_tokens_per_turn: 4"))
    rows = parquet.read_table(place / "data/train.parquet").to_pylist()
    shares = Counter(row["data_source"] for row in rows)
    assert shares == {COUNT: 8, CRAFT: 8}
    findings, _ = check_folder(place)
    assert [found for found in findings if found.status == "problem"] == []
    assert [found.status for found in findings if found.check == "prompt length"] == ["ok", "ok"]
    script = ["-c", "import os, sys; os.execvp('bash', ['bash', *sys.argv[1:]])", str(place / "run.sh")]
    settings = [
        *cpu_overrides(),
        "data.max_response_length=512",
        "trainer.val_before_train=True",
        f"trainer.rollout_data_dir={tmp_path}/rollouts",
    ]
    variables = {"VERL_USE_EXTERNAL_MODULES": "verl_bridge.cpu", "PYTHON": sys.executable}
    run = Run([*script, *settings], variables, tmp_path)
    assert run.code == 0, run.text[-6_000:]
    assert not run.left
    played = {step: episodes(tmp_path / f"rollouts/{step}.jsonl") for step in (1, 2)}
    drawn = Counter(task for each in played.values() for task in each)
    assert drawn == Counter(map(task_of, rows * SAMPLES))
    limits = {CRAFT: 3, COUNT: 2}
    for step, tasks in played.items():
        logged = measured(run, step)
        for env_id, limit in limits.items():
            count = sum(of == env_id for of, _ in tasks)
            assert logged[f"env/{env_id}/episodes"] == count
            assert logged[f"env/{env_id}/turns"] == limit
    for env_id, limit in limits.items():
        found = measured(run, 0)
        assert (found[f"val-env/{env_id}/episodes"], found[f"val-env/{env_id}/turns"]) == (2, limit)
    written = {(each.facts["env_id"], each.facts["phase"]) for each in read_training(place / "episodes")}
    assert written == {(env_id, phase) for env_id in limits for phase in ("training", "validation")}


def episodes(file):
    """Return the environment and the task of each episode of a step."""
    lines = map(json.loads, file.read_text("utf-8").splitlines())
    return [(line["env_id"], line["env_task"]) for line in lines]


def task_of(row):
    """Return the same of a row, as dumps write it."""
    asked = row["extra_info"]["interaction_kwargs"]
    options = json.loads(asked["reset_options"])
    return row["data_source"], json.dumps(
        options if asked["seed"] is None else {**options, "seed": asked["seed"]}
    )
