"""`agentgym data`."""

from __future__ import annotations

import functools
import json
import re
import shlex
from pathlib import Path

import pytest

import agentgym_gym
import needs
from agentgym_gym.data import own_prompt

parquet = pytest.importorskip("pyarrow.parquet", reason=needs.reason("pyarrow.parquet"))

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "data.md").read_text("utf-8")


@pytest.fixture(autouse=True)
def _here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def rl(write_data):
    return functools.partial(write_data, "rl")


def save(name, *item_ids, first=None):
    told = [{"from": "human", "loss": None, "value": first}] if first else None
    Path(name).write_text(json.dumps([{"item_id": each, "conversations": told} for each in item_ids]))
    return name


def tasks(rows):
    return sorted(json.loads(interaction(row)["reset_options"])["task_id"] for row in rows)


def interaction(row):
    return row["extra_info"]["interaction_kwargs"]


def kwargs(row):
    return json.loads(interaction(row)["env_kwargs"])


def test_an_environment_and_a_range(rl):
    rows, told = rl("TextCraft", "--tasks", "10:30", "--val", "5")
    assert tasks(rows["train"] + rows["val"]) == list(range(10, 30))
    assert len(rows["val"]) == 5
    prompt = own_prompt(agentgym_gym.find("TextCraft"), {})
    assert told["prompt_chars"] == {"mean": len(prompt), "max": len(prompt)}
    for row in rows["train"]:
        assert row["prompt"] == [{"role": "system", "content": prompt}]
        assert interaction(row)["env_id"] == "agentgym_gym:agentgym/TextCraft-v0"
        assert kwargs(row) == {"action_format": "react", "parser": "default"}


def test_files_of_several_environments(rl):
    Path("folder").mkdir()
    save("folder/a.json", "maze_1", "textcraft_3", "maze_1")
    save("b.json", "maze_1", "todo_4")
    rows, told = rl("folder", "b.json", "Maze", "--tasks", "2", "--val", "0")
    assert {(row["data_source"], *tasks([row])) for row in rows["train"]} == {
        ("agentgym/Maze-v0", 1),
        ("agentgym/Maze-v0", 2),
        ("agentgym/TextCraft-v0", 3),
        ("agentgym/TODOList-v0", 4),
    }
    assert told["duplicates"] == 2
    assert told["environments"]["agentgym/Maze-v0"]["train"] == 2
    for row in rows["train"]:
        own = own_prompt(agentgym_gym.find(row["data_source"]), {})
        assert row["prompt"][0]["content"] == own
        assert told["environments"][row["data_source"]]["prompt_chars"] == len(own)


def test_options_of_the_environment_are_in_the_rows(rl):
    options = ["--max-turns", "0", "--timeout", "600", "--on-unknown", "refuse", "--split", "test"]
    rows, _ = rl("alfworld", "--num-samples", "4", "--action-format", "tags", *options)
    assert min(tasks(rows["train"])) >= 2420
    row = rows["train"][0]
    wanted = {"action_format": "tags", "parser": "default", "on_unknown": "refuse", "split": "test"}
    assert kwargs(row) == wanted | {"max_turns": None, "timeout": 600.0}
    assert "<action>" in row["prompt"][0]["content"]


def test_servers_by_environment(rl):
    urls = ["--server", "maze=http://a:1,http://b:2", "--server", "TextCraft=http://c:3"]
    rows, _ = rl("Maze", "TextCraft", "Wordle", "--tasks", "0:9", *urls, "--val", "0")
    assert {row["data_source"]: kwargs(row).get("server") for row in rows["train"]} == {
        "agentgym/Maze-v0": "http://a:1,http://b:2",
        "agentgym/TextCraft-v0": "http://c:3",
        "agentgym/Wordle-v0": None,
    }
    rows, _ = rl("Maze", "--server", "http://a:1", "--force")
    assert kwargs(rows["train"][0])["server"] == "http://a:1"


def test_a_prompt_from_a_file(rl):
    Path("prompt.txt").write_text("You walk.\n思考\n\n", "utf-8")
    rows, _ = rl("maze", "--system-prompt", "prompt.txt")
    assert rows["train"][0]["prompt"] == [{"role": "system", "content": "You walk.\n思考\n"}]
    rows, _ = rl("maze", "wordle", "--tasks", "0:9", "--system-prompt", "maze=prompt.txt", "--force")
    told = {row["data_source"]: row["prompt"][0]["content"] for row in rows["train"]}
    assert told["agentgym/Maze-v0"] == "You walk.\n思考\n"
    assert told["agentgym/Wordle-v0"] == own_prompt(agentgym_gym.find("wordle"), {})


def test_a_prompt_from_trajectories(rl):
    save("traj.json", "maze_1", "maze_2", first="Walk, said AgentGym.\n")
    options = ["--system-prompt-from-traj", "traj.json", "--parser", "agentgym"]
    rows, _ = rl("traj.json", "--val", "50%", *options)
    assert tasks(rows["train"] + rows["val"]) == [1, 2]
    assert rows["train"][0]["prompt"][0]["content"] == "Walk, said AgentGym.\n"
    assert kwargs(rows["train"][0])["parser"] == "agentgym"


def test_the_seed_makes_the_same_files_again(rl):
    drawn = [rl("maze", "--num-samples", "8", "--seed", seed, "--force")[0] for seed in (1, 1, 2)]
    assert drawn[0] == drawn[1]
    assert tasks(drawn[0]["train"]) != tasks(drawn[2]["train"])


def test_the_printed_output(run):
    save("items.json", "textcraft_1", "maze_1", "maze_1", "textcraft_2")
    result = run("data", "rl", "items.json", "--out", "out", "--val", "0")
    assert re.search(r"agentgym/TextCraft-v0 +2 +0 +[\d,]+ *\n", result.stdout)
    assert re.search(
        r"3 rows for training and 0 for validation; .* [\d,.]+ characters on average", result.stdout
    )
    assert "Duplicates left out: 1." in result.stdout
    assert "Written to out/train.parquet." in result.stdout


def test_nothing_is_overwritten_by_default(run):
    assert run("data", "rl", "maze", "--out", "out").exit_code == 0
    before = Path("out/train.parquet").read_bytes()
    result = run("data", "rl", "maze", "--out", "out", "--seed", 1)
    assert result.exit_code == 2
    assert "--force" in result.stderr
    assert Path("out/train.parquet").read_bytes() == before
    assert run("data", "rl", "maze", "--out", "out", "--seed", 1, "--val", 0, "--force").exit_code == 0
    assert [path.name for path in Path("out").iterdir()] == ["train.parquet"]


def test_the_commands_on_the_page_can_be_run(run):
    (items,) = re.findall(r"^```json\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)
    Path("webshop_train.json").write_text(items)
    commands = "".join(re.findall(r"^```console\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)).splitlines()
    printed = [run(*shlex.split(command)[1:]) for command in commands]
    assert [result.exit_code for result in printed] == [0, 0, 0]
    assert "80 rows for training and 20 for validation" in printed[0].stdout
    assert "3 rows for training" in printed[1].stdout
    row = parquet.read_table("data/textcraft/val.parquet").to_pylist()[0]
    assert {name for name in row if f"`{name}`" in PAGE} == set(row)
    assert {name for name in interaction(row) if f"| `{name}` |" in PAGE} == set(interaction(row))


def test_the_page_explains_how_to_use_the_prompts_of_agentgym(run):
    (command,) = re.findall(r"^```bash\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)
    Path("AgentTraj").mkdir()
    save("webshop_train.json", "webshop_1", "webshop_2")
    save("AgentTraj/webshop_train.json", "webshop_6", first="You are web shopping.")
    assert run(*shlex.split(command.replace("\\\n", " "))[1:]).exit_code == 0
    (row,) = parquet.read_table("data/webshop/train.parquet").to_pylist()
    assert row["prompt"][0]["content"] == "You are web shopping."
