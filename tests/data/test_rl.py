"""Rows, written and read back."""

from __future__ import annotations

import json
import sys

import gymnasium
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import agentgym_gym
import forked
import needs
from agentgym_gym import data
from agentgym_gym.data import Item, Recipe, Seeds, items_of, own_prompt, rows, schema, write
from agentgym_gym.errors import BadOption, MissingExtra
from verl_bridge.recipes import seeded

MAZE, TEXTCRAFT = map(agentgym_gym.find, ("Maze", "TextCraft"))
VALUES = st.none() | st.booleans() | st.integers() | st.text() | st.lists(st.text(), max_size=3)


@pytest.fixture
def parquet():
    return pytest.importorskip("pyarrow.parquet", reason=needs.reason("pyarrow.parquet"))


def test_a_row():
    kwargs = {"action_format": "bare", "max_turns": None}
    (row,) = rows([Item(MAZE, 7)], {"Maze": Recipe(kwargs, "Walk.")})
    assert row == {
        "data_source": "agentgym/Maze-v0",
        "prompt": [{"role": "system", "content": "Walk."}],
        "ability": "agent",
        "reward_model": {"style": "rule", "ground_truth": ""},
        "agent_name": "gym_env",
        "extra_info": {
            "index": 0,
            "interaction_kwargs": {
                "name": "gym_env",
                "env_id": "agentgym_gym:agentgym/Maze-v0",
                "env_kwargs": '{"action_format": "bare", "max_turns": null}',
                "reset_options": '{"task_id": 7}',
                "seed": None,
            },
        },
    }


def test_a_row_of_a_seed_equals_the_row_of_a_recipe():
    """An environment without numbered tasks has the same row in both commands, except for its index."""
    kwargs = {"render_mode": None}
    made = rows([Item(Seeds("CartPole-v1"), 7)], {"CartPole-v1": Recipe(kwargs, None, "gymnasium")})
    (row,), (seed_row,) = list(made), seeded("gymnasium:CartPole-v1", [7], None, kwargs)
    assert row["extra_info"].pop("index") == 0
    assert seed_row["extra_info"].pop("index") == 7
    assert row == seed_row
    assert row["extra_info"]["interaction_kwargs"] == {
        "name": "gym_env",
        "env_id": "gymnasium:CartPole-v1",
        "env_kwargs": '{"render_mode": null}',
        "reset_options": "{}",
        "seed": 7,
    }
    (bare,) = rows([Item(Seeds("CartPole-v1"), 7)], {"CartPole-v1": Recipe({}, None, "")})
    assert bare["extra_info"]["interaction_kwargs"]["env_id"] == "CartPole-v1"


@settings(max_examples=30)
@given(st.dictionaries(st.text(), VALUES, max_size=5), st.lists(st.sampled_from(range(25)), unique=True))
def test_json_values_come_back(kwargs, tasks):
    recipes = {"Maze": Recipe(kwargs, "x")}
    made = [row["extra_info"] for row in rows([Item(MAZE, task) for task in tasks], recipes)]
    assert [row["index"] for row in made] == list(range(len(tasks)))
    read = [row["interaction_kwargs"] for row in made]
    assert [json.loads(each["env_kwargs"]) for each in read] == [kwargs] * len(tasks)
    assert [json.loads(each["reset_options"]) for each in read] == [{"task_id": task} for task in tasks]


def test_the_environment_of_a_row_plays_its_task(textcraft_url):
    kwargs = {"action_format": "tags", "server": textcraft_url, "max_turns": 2}
    prompt = own_prompt(TEXTCRAFT, kwargs)
    (row,) = rows([Item(TEXTCRAFT, 3)], {"TextCraft": Recipe(kwargs, prompt)})
    settings = row["extra_info"]["interaction_kwargs"]
    env = gymnasium.make(settings["env_id"], disable_env_checker=True, **json.loads(settings["env_kwargs"]))
    _, info = env.reset(options=json.loads(settings["reset_options"]))
    assert info["task_id"] == 3
    assert env.unwrapped.system_prompt == row["prompt"][0]["content"]
    assert "<action>" in prompt
    env.close()


def test_the_prompt_is_of_the_format():
    react, bare = (own_prompt(MAZE, {"action_format": written}) for written in ("react", "bare"))
    assert "Thought:" in react
    assert "Thought:" not in bare
    with pytest.raises(BadOption, match="action_format='xml'"):
        own_prompt(MAZE, {"action_format": "xml"})


# files


def files(recipes, **parts):
    return {part: list(rows(items, recipes)) for part, items in parts.items()}


def test_rows_come_back_from_parquet(parquet, tmp_path):
    recipes = {"Maze": Recipe({"parser": "agentgym"}, "Walk.\n\n思考 🧭"), "TextCraft": Recipe({}, "Craft.")}
    expected = files(
        recipes, train=items_of(MAZE, "0:5") + items_of(TEXTCRAFT, "2:4"), val=items_of(MAZE, "7")
    )
    paths = write(tmp_path / "deep" / "er", expected, schema())
    assert {name: parquet.read_table(path).to_pylist() for name, path in paths.items()} == expected
    assert parquet.read_schema(paths["val"]).equals(schema())
    assert [path.name for path in sorted((tmp_path / "deep" / "er").iterdir())] == [
        "train.parquet",
        "val.parquet",
    ]


@pytest.mark.slow
def test_many_rows_are_written_in_parts(parquet, tmp_path):
    searchqa = agentgym_gym.find("SearchQA")
    recipes = {"SearchQA": Recipe({}, "Ask.")}
    items = [Item(searchqa, task) for task in range(25_000)]
    path = write(tmp_path, {"train": rows(items, recipes)}, schema())["train"]
    indices = [row["index"] for row in parquet.read_table(path)["extra_info"].to_pylist()]
    assert indices == list(range(25_000))
    assert path.stat().st_size < 1_000_000  # the prompt is there once in each part


def test_the_same_rows_are_the_same_bytes(parquet, tmp_path):
    expected = files({"Maze": Recipe({}, "x")}, train=items_of(MAZE))
    one, other = (write(tmp_path / name, expected, schema())["train"].read_bytes() for name in "ab")
    assert one == other


def test_existing_files_are_not_overwritten(parquet, tmp_path):
    expected = files({"Maze": Recipe({}, "x")}, train=items_of(MAZE, "1:4"))
    (tmp_path / "val.parquet").write_text("old")
    with pytest.raises(BadOption, match=r"val\.parquet exists"):
        write(tmp_path, expected, schema())
    assert [path.name for path in tmp_path.iterdir()] == ["val.parquet"]


def test_force_leaves_no_old_file_alongside_a_new_one(parquet, tmp_path):
    (tmp_path / "train.parquet").write_text("old")
    (tmp_path / "val.parquet").write_text("old, and holds what is trained on now")
    expected = files({"Maze": Recipe({}, "x")}, train=items_of(MAZE, "1:4"))
    write(tmp_path, expected, schema(), force=True)
    assert [path.name for path in tmp_path.iterdir()] == ["train.parquet"]
    assert parquet.read_table(tmp_path / "train.parquet").num_rows == 3


def test_a_failure_halfway_changes_nothing(parquet, tmp_path):
    def broken():
        yield from rows([Item(MAZE, 1)], {"Maze": Recipe({}, "x")})
        raise KeyboardInterrupt

    (tmp_path / "train.parquet").write_text("old")
    expected = {"train": rows([Item(MAZE, 2)], {"Maze": Recipe({}, "x")}), "val": broken()}
    with pytest.raises(KeyboardInterrupt):
        write(tmp_path, expected, schema(), force=True)
    assert [path.name for path in tmp_path.iterdir()] == ["train.parquet"]
    assert (tmp_path / "train.parquet").read_text() == "old"


def test_an_unwritable_folder_is_an_error(parquet, tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(BadOption, match="cannot write to"):
        write(tmp_path / "file", {"train": []}, schema())


def test_other_files_are_not_written(tmp_path):
    with pytest.raises(BadOption, match="not \\['test'\\]"):
        write(tmp_path, {"test": []}, None)


# without pyarrow


def test_only_writing_needs_pyarrow_and_names_the_extra():
    program = """
        import sys
        import agentgym_gym
        from agentgym_gym import data, errors
        maze = agentgym_gym.find("Maze")
        items = data.divide(data.items_of(maze)).train
        print(len(list(data.rows(items, {"Maze": data.Recipe({}, data.own_prompt(maze, {}))}))))
        print("pyarrow" in sys.modules)

        class Hides:
            def find_spec(self, name, path=None, target=None):
                if name == "pyarrow":
                    raise ModuleNotFoundError(f"No module named {name!r}", name=name)

        sys.meta_path.insert(0, Hides())
        try:
            data.schema()
        except errors.MissingExtra as error:
            print(error)
    """
    lines = forked.run(program).stdout.splitlines()
    assert lines[:2] == ["20", "False"]
    assert "needs the package 'pyarrow'" in lines[2]
    assert "pip install '.[data]'" in lines[2]


def test_a_package_that_pyarrow_lacks_is_not_taken_for_pyarrow(monkeypatch):
    pytest.importorskip("pyarrow", reason=needs.reason("pyarrow"))
    monkeypatch.setitem(sys.modules, "pyarrow.parquet", None)
    with pytest.raises(ModuleNotFoundError) as caught:
        data.schema()
    assert not isinstance(caught.value, MissingExtra)
