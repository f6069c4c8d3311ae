"""Reading AgentGym's files."""

import json
import re

import pytest

import agentgym_gym
import needs
from agentgym_gym.data import items_of, read_items
from agentgym_gym.errors import BadOption
from command_line import run

SAME = [
    "WebShop",
    "TextCraft",
    "BabyAI",
    "SciWorld",
    "ALFWorld",
    "Weather",
    "Movie",
    "Academia",
    "Sheet",
    "Maze",
]
SAME += ["SQLGym", "Wordle", "WebArena", "SearchQA"]
PREFIXES = {name.lower(): name for name in SAME} | {
    "todo": "TODOList",
    "bird": "SQLGym",
    "WebShop": "WebShop",
    "lmrlgym_maze": "Maze",
    "lmrlgym_wordle": "Wordle",
    "tool_academia": "Academia",
    "tool_sheet": "Sheet",
}


@pytest.fixture
def saved(tmp_path):
    """Writes a JSON value into a file."""

    def save(value, name="items.json"):
        file = tmp_path / name
        file.write_text(value if isinstance(value, str) else json.dumps(value), "utf-8")
        return file

    return save


def ids(*item_ids):
    return [{"item_id": item_id, "conversations": None} for item_id in item_ids]


def trajectory(item_id, first):
    turns = [{"from": "human", "loss": None, "value": first}, {"from": "gpt", "loss": False, "value": "Ok."}]
    return {"item_id": item_id, "conversations": turns}


def test_every_environment_has_a_prefix():
    known = {each.name for each in agentgym_gym.environments() if each.of_agentgym}
    assert set(PREFIXES.values()) == known


@pytest.mark.parametrize("prefix", PREFIXES)
def test_a_prefix_names_the_environment(saved, prefix):
    name = PREFIXES[prefix]
    environment = agentgym_gym.find(name)
    for split in environment.splits.values():
        found = read_items(saved(ids(f"{prefix}_{min(split)}", f"{prefix}_{max(split)}")))
        assert [item.key for item in found] == [(name, min(split)), (name, max(split))]


def test_the_order_and_the_repetitions_match_the_file(saved):
    found = read_items(saved(ids("maze_3", "textcraft_12", "maze_3")))
    assert [item.key for item in found] == [("Maze", 3), ("TextCraft", 12), ("Maze", 3)]


def test_a_folder_is_its_json_files(saved, tmp_path):
    saved(ids("maze_2"), "b.json")
    saved(ids("maze_1"), "a.json")
    saved("not read", "readme.txt")
    saved("not read", ".hidden.json")
    (tmp_path / "deeper").mkdir()
    (tmp_path / "deeper" / "c.json").write_text("not read")
    assert [item.task_id for item in read_items(tmp_path)] == [1, 2]


def test_a_file_with_an_entry_in_each_line(saved):
    lines = "".join(f"{json.dumps(entry)}\n\n" for entry in ids("maze_2", "maze_1"))
    assert [item.task_id for item in read_items(saved(lines, "played.jsonl"))] == [2, 1]


def test_items_of_an_environment():
    maze = agentgym_gym.find("maze")
    assert [item.task_id for item in items_of(maze, "3:5")] == [3, 4]
    assert len(items_of(maze)) == 20  # of the split train
    assert len(items_of(maze, "all", "all")) == 25
    searchqa = agentgym_gym.find("searchqa")
    assert [item.task_id for item in items_of(searchqa, "7,60000")] == [7, 60000]  # of any split
    assert items_of(searchqa, "all", "test")[0].task_id == 0
    assert items_of(agentgym_gym.find("alfworld"), "2420:", "test")[0].task_id == 2420


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (ids("webshop_6910"), "'webshop_6910': WebShop has no task 6910"),
        (ids("maze_1", "alfworld_9999"), "0 to 2419, 2420 to 2619"),
        (ids("minecraft_1"), "'minecraft_1' names an unknown"),
        (ids("webshop"), "'webshop' should name"),
        (ids("webshop_-1"), "'webshop_-1' should name"),
        (ids("webshop_٣"), "'webshop_٣' should name"),
        (ids("webshop_" + "9" * 30), "should name"),
        (ids(2420), "item 2420 should name"),
        ([{"id": "webshop_1"}], 'no item_id: {"id": "webshop_1"}'),
        (["webshop_1"], "entry 0 has no item_id"),
        ([], "a JSON list"),
        ({"item_id": "webshop_1"}, "a JSON list"),
        ("[{", "is not JSON"),
        ("[" * 100_000, "is not JSON"),
    ],
)
def test_an_invalid_item_is_an_error_with_its_file(saved, value, message):
    file = saved(value)
    with pytest.raises(BadOption, match=re.escape(message)) as caught:
        read_items(file)
    assert str(file) in str(caught.value)


def test_a_task_of_another_split_is_an_error(saved):
    file = saved(ids("alfworld_2420", "alfworld_7"))
    assert len(read_items(file)) == 2
    with pytest.raises(BadOption, match=r"no task 7 .*2420 to 2619"):
        read_items(file, "test")
    with pytest.raises(BadOption, match="split='dev'"):
        read_items(file, "dev")


def test_an_unreadable_file_is_an_error(tmp_path):
    with pytest.raises(BadOption, match=r"cannot read .*none\.json"):
        read_items(tmp_path / "none.json")
    with pytest.raises(BadOption, match=r"no \.json file"):
        read_items(tmp_path)
    (tmp_path / "image.json").write_bytes(b"\x89PNG\r\n")
    with pytest.raises(BadOption, match="is not JSON"):
        read_items(tmp_path)


# prompts


@pytest.fixture
def prompted(tmp_path):
    """Writes rows of environments with the prompts of a file; returns the result and the prompts."""
    parquet = pytest.importorskip("pyarrow.parquet", reason=needs.reason("pyarrow.parquet"))

    def prompted(file, *names):
        options = ("--system-prompt-from-traj", file, "--val", "0", "--out", tmp_path / "rows")
        result = run("data", "rl", *names, "--tasks", "0", *options)
        written = list((tmp_path / "rows").glob("*"))
        rows = [row for path in written for row in parquet.read_table(path).to_pylist()]
        return result, {row["data_source"]: row["prompt"][0]["content"] for row in rows}

    return prompted


def test_the_prompts_are_the_first_messages(saved, prompted):
    file = saved(
        [
            trajectory("maze_1", "Walk."),
            trajectory("textcraft_1", "Craft.\n"),
            trajectory("maze_2", "Walk."),
            *ids("wordle_1"),
        ]
    )
    _, prompts = prompted(file, "Maze", "TextCraft")
    assert prompts == {"agentgym/Maze-v0": "Walk.", "agentgym/TextCraft-v0": "Craft.\n"}
    assert len(read_items(file)) == 4


def test_different_prompts_of_one_environment_are_an_error(saved, prompted):
    file = saved(
        [trajectory("maze_1", "Walk."), trajectory("wordle_1", "Guess."), trajectory("maze_2", "Run.")]
    )
    result, prompts = prompted(file, "Wordle")
    assert (result.exit_code, prompts) == (2, {})
    assert "'maze_1' and 'maze_2' differ" in result.stderr


@pytest.mark.parametrize(
    "conversations",
    [
        *([], {}, "text", ["text"], [{}], [{"from": "human"}], [{"from": "human", "value": " "}]),
        [{"from": "gpt", "value": "Ok."}],
        [{"from": "human", "value": "half \ud800 a character"}],
    ],
)
def test_a_trajectory_with_another_beginning_is_an_error(saved, prompted, conversations):
    file = saved([{"item_id": "maze_1", "conversations": conversations}])
    result, prompts = prompted(file, "Maze")
    assert (result.exit_code, prompts) == (2, {})
    assert "'maze_1' should begin with" in result.stderr
