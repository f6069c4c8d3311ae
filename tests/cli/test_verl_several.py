"""`agentgym verl init` of several environments, and what check says of its folder."""

from __future__ import annotations

import json
from collections import Counter

import gymnasium
import pytest
import yaml
from pyarrow import parquet

import echo_env
from agentgym_gym import find
from agentgym_gym.data import own_prompt
from echo_env import OWN
from verl_bridge.recipes import write_rows
from verl_bridge.tasks import EnvTask

MAZE, CRAFT = "agentgym/Maze-v0", "agentgym/TextCraft-v0"


@pytest.fixture
def init(run, tmp_path):
    """Writes a folder by preset test, or another; returns what was printed, and the rows."""

    def write(*options):
        preset = () if "--preset" in options else ("--preset", "test")
        result = run("verl", "init", *options, *preset, "--out", tmp_path / "joint")
        assert result.exit_code == 0, result.stderr
        files = {part: tmp_path / f"joint/data/{part}.parquet" for part in ("train", "val")}
        return result.stdout, {part: parquet.read_table(file).to_pylist() for part, file in files.items()}

    return write


@pytest.fixture
def checked(run, tmp_path):
    """Checks the folder; returns the findings."""
    return lambda: json.loads(run("verl", "check", tmp_path / "joint", "--json").stdout)["findings"]


@pytest.fixture
def own(monkeypatch):
    """An environment of another library: its id with its module."""
    return echo_env.register(monkeypatch)


def named(rows):
    return Counter(row["data_source"] for row in rows)


def of(rows, env_id):
    return [row["extra_info"]["interaction_kwargs"] for row in rows if row["data_source"] == env_id]


def kwargs(rows, env_id):
    (only,) = {each["env_kwargs"] for each in of(rows, env_id)}
    return json.loads(only)


def tasks(rows, env_id):
    return Counter(json.loads(each["reset_options"])["task_id"] for each in of(rows, env_id))


def yaml_of(folder, name="agent_loop"):
    return yaml.safe_load((folder / f"{name}.yaml").read_text("utf-8"))


def test_rows_are_shared_by_weights(init, tmp_path):
    said, rows = init("--env", "Maze", "--env", "TextCraft=2")
    assert named(rows["train"]) == {MAZE: 21, CRAFT: 43}
    assert named(rows["val"]) == {MAZE: 8, CRAFT: 8}
    assert set(tasks(rows["train"], MAZE).values()) == {1, 2}
    assert len(tasks(rows["train"], MAZE)) == 12  # all of train that are not for validation
    assert set(tasks(rows["train"], CRAFT).values()) == {1}
    for env_id in (MAZE, CRAFT):
        assert not tasks(rows["train"], env_id).keys() & tasks(rows["val"], env_id).keys()
    assert [row["extra_info"]["index"] for row in rows["train"]] == list(range(64))
    assert named(rows["train"][:32]) == {MAZE: 11, CRAFT: 21}
    for name, env_id in (("Maze", MAZE), ("TextCraft", CRAFT)):
        (prompt,) = {row["prompt"][0]["content"] for row in rows["train"] if row["data_source"] == env_id}
        assert prompt == own_prompt(find(name), {})
    for text in (said, (tmp_path / "joint/README.md").read_text("utf-8")):
        assert "each of 12 tasks 1 or 2 times" in text
        assert "43 of 64 tasks" in text


def test_the_same_options_draw_the_same_tasks(run, tmp_path):
    for name in ("a", "b"):
        options = ["--env", "Maze", "--env", "TextCraft", "--out", tmp_path / name]
        assert run("verl", "init", *options).exit_code == 0
    for part in ("train", "val"):
        first, second = (tmp_path / name / f"data/{part}.parquet" for name in ("a", "b"))
        assert parquet.read_table(first).equals(parquet.read_table(second))


def test_the_loop_names_no_environment_and_has_the_highest_limit(init, tmp_path):
    _, rows = init("--env", "WebShop", "--env", "TextCraft", "--env-kwargs", 'TextCraft={"timeout": 9}')
    (loop,) = yaml_of(tmp_path / "joint")
    assert not {"env_id", "env_kwargs"} & set(loop)
    assert loop["max_turns"] == 25
    assert kwargs(rows["train"], "agentgym/WebShop-v0") == {"max_turns": 25}
    assert kwargs(rows["val"], CRAFT) == {"timeout": 9, "max_turns": 20}
    data = yaml_of(tmp_path / "joint", "config")["data"]
    assert (data["max_prompt_length"], data["max_response_length"]) == (2_048, 14_336)


def test_an_interaction_names_none_either(init, tmp_path):
    options = ["--verl", "0.7", "--integration", "interaction"]
    init("--env", "WebShop", "--env", "TextCraft", *options)
    (entry,) = yaml_of(tmp_path / "joint", "interaction")["interaction"]
    assert set(entry["config"]) == {"max_turns", "fault_budget"}
    multi_turn = yaml_of(tmp_path / "joint", "config")["actor_rollout_ref"]["rollout"]["multi_turn"]
    assert (multi_turn["max_assistant_turns"], multi_turn["max_user_turns"]) == (26, 25)


def test_a_limit_that_grows_is_the_same_for_all(init, tmp_path):
    _, rows = init("--env", "WebShop", "--env", "TextCraft", "--turns", "10,20,30", "--turns-every", "5")
    (loop,) = yaml_of(tmp_path / "joint")
    assert loop["horizon"] == {"turns": [10, 20, 30], "every": 5}
    assert kwargs(rows["train"], CRAFT) == kwargs(rows["train"], "agentgym/WebShop-v0") == {"max_turns": 30}


@pytest.mark.slow
def test_an_environment_of_another_library_with_ours(init, own, checked, tmp_path):
    _, rows = init("--env", "WebShop", "--env", own, "--tasks", f"{OWN}=0:40", "--val", f"{OWN}=4")
    assert named(rows["val"]) == {"agentgym/WebShop-v0": 8, OWN: 4}
    assert [each["seed"] for each in of(rows["val"], OWN)] == [0, 1, 2, 3]
    assert {each["env_id"] for each in of(rows["train"], OWN)} == {own}
    assert kwargs(rows["train"], OWN) == {"max_episode_steps": 20}  # the loop's is that of WebShop
    (length,) = (
        found["text"]
        for found in checked()
        if found["check"] == "response length" and found["text"].startswith(own)
    )
    assert "up to 20 turns" in length


def test_the_rows_of_one_environment_contain_its_isolation(init, tmp_path):
    other = "nasty/Nasty-v0"
    options = ("--tasks", f"{other}=0:20", "--isolate", f"{other}=process", "--success-at", f"{other}=2")
    _, rows = init("--env", "Maze", "--env", f"nasty_envs:{other}", *options)
    tasks = [EnvTask.of(row) for row in rows["train"]]
    assert {(task.env_id, task.isolate, task.success_at) for task in tasks} == {
        (f"agentgym_gym:{MAZE}", None, None),
        (f"nasty_envs:{other}", "process", 2.0),
    }
    (loop,) = yaml.safe_load((tmp_path / "joint/agent_loop.yaml").read_text())
    assert not {"isolate", "success_at"} & set(loop)


def test_a_lower_limit_that_is_registered_stays(init, own):
    gymnasium.registry[OWN].max_episode_steps = 6
    _, rows = init("--env", "WebShop", "--env", own, "--tasks", f"{OWN}=0:40")
    assert kwargs(rows["train"], OWN) == {"max_episode_steps": 6}


def test_options_are_of_the_environment_that_they_name(init, tmp_path):
    (tmp_path / "told.txt").write_text("Walk.\n")
    _, rows = init(
        *("--env", "Maze", "--env", "TextCraft", "--system-prompt", f"Maze={tmp_path / 'told.txt'}"),
        *("--tasks", "TextCraft=0:12", "--val", "TextCraft=2", "--split", "Maze=train"),
        *("--server", "Maze=http://10.0.0.1:1", "--server", "Maze=http://10.0.0.2:1"),
    )
    assert kwargs(rows["train"], MAZE)["server"] == ["http://10.0.0.1:1", "http://10.0.0.2:1"]
    assert "server" not in kwargs(rows["train"], CRAFT)
    prompts = {row["data_source"]: row["prompt"][0]["content"] for row in rows["train"]}
    assert prompts[MAZE] == "Walk."
    assert prompts[CRAFT] == own_prompt(find("TextCraft"), {})
    every = tasks(rows["train"], CRAFT) + tasks(rows["val"], CRAFT)
    assert set(every) <= set(range(12))
    assert len(tasks(rows["val"], CRAFT)) == 2
    assert set(tasks(rows["train"], MAZE)) <= set(find("Maze").split("train"))
    assert sum(named(rows["train"]).values()) == 16  # of 22 tasks, whole batches of 8


def test_a_full_run_has_as_many_rows_as_tasks(init):
    """Whole batches of 128; Maze trains on 18 of 20 tasks, and TextCraft on 396 of 440."""
    said, rows = init("--env", "Maze", "--env", "TextCraft=9", "--preset", "full")
    assert named(rows["train"]) == {MAZE: 38, CRAFT: 346}
    assert named(rows["val"]) == {MAZE: 2, CRAFT: 44}
    assert set(tasks(rows["train"], MAZE).values()) == {2, 3}
    assert "346 of 396 tasks" in said


def test_check_reports_each_environment(init, checked, textcraft_url):
    init("--env", "Maze", "--env", "TextCraft=2", "--server", f"TextCraft={textcraft_url}")
    findings = checked()
    assert [found for found in findings if found["status"] == "problem"] == []
    train, val = (found["text"] for found in findings if found["check"] == "shares")
    assert f"agentgym_gym:{MAZE} 32.8% (21 rows of 12 tasks)" in train
    assert f"agentgym_gym:{CRAFT} 67.2% (43 rows)" in train
    assert f"agentgym_gym:{MAZE} 50.0% (8 rows)" in val
    for check in ("environment", "prompt length", "response length"):
        texts = [found["text"] for found in findings if found["check"] == check]
        assert len(texts) == 2
        assert all(any(env_id in text for text in texts) for env_id in (MAZE, CRAFT))


def test_check_names_the_missing_server_of_each_environment(init, checked, monkeypatch):
    """Neither has a local server: one needs Java, the other a browser."""
    monkeypatch.setenv("JAVA_HOME", "/nowhere")
    monkeypatch.setenv("AGENTGYM_CHROMIUM", "/nowhere/chromium")
    init("--env", "SciWorld", "--env", "WebArena")
    wrong = [found["text"] for found in checked() if found["check"] == "environment"]
    assert len(wrong) == 2
    for name in ("SCIWORLD", "WEBARENA"):
        assert any(f"AGENTGYM_{name}_URL" in text for text in wrong)


def test_check_misses_an_environment_in_val(init, checked, tmp_path):
    _, rows = init("--env", "Maze", "--env", "TextCraft")
    only = [row for row in rows["val"] if row["data_source"] == MAZE]
    write_rows(tmp_path / "joint/data/val.parquet", only)
    (found,) = (found for found in checked() if found["status"] == "warning" and found["check"] == "shares")
    assert f"val has no task of agentgym_gym:{CRAFT}" in found["text"]


def test_check_begins_each_environment_though_one_has_many_arguments(init, checked, own, tmp_path):
    """Of at most 16 that are begun."""
    _, rows = init("--env", own, "--env", "Maze", "--tasks", f"{OWN}=0:40")
    ours = [row for row in rows["train"] if row["data_source"] == MAZE]
    others = [row for row in rows["train"] if row["data_source"] == OWN]
    for number, row in enumerate(others[:20]):
        row["extra_info"]["interaction_kwargs"]["env_kwargs"] = json.dumps({"max_episode_steps": number + 1})
    write_rows(tmp_path / "joint/data/train.parquet", others + ours)
    findings = checked()
    begun = [
        found["text"] for found in findings if found["check"] == "environment" and found["status"] == "ok"
    ]
    assert any(MAZE in text for text in begun)
    assert any("were not started" in found["text"] for found in findings)
