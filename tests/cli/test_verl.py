"""`agentgym verl`: what init writes, and that check finds each mistake; what verl says is in tests/verl."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import shlex
import shutil
import sys
from collections import Counter
from pathlib import Path

import gymnasium
import pytest
import yaml
from pyarrow import parquet

import command_line
import fresh
import needs
from verl_bridge.recipes import ALGORITHMS, PRESETS, VERSIONS, seeded, write_rows

TEXTCRAFT = "agentgym_gym:agentgym/TextCraft-v0"
# What this folder cannot be told off for: the loop is written in a module that may not be there yet.
NO_LOOP = importlib.util.find_spec("verl_bridge.agent_loop") is None


@pytest.fixture(scope="module")
def written(tmp_path_factory, textcraft_url):
    """Folders in which nothing is wrong, by integration, on a server that is running; tests copy them."""
    folders = {}
    for integration, version in (("agent-loop", VERSIONS[-1]), ("interaction", "0.7")):
        place = folders[integration] = tmp_path_factory.mktemp("written") / "recipe"
        options = ["--integration", integration, "--verl", version]
        options += ["--preset", "test", "--server", textcraft_url, "--out", place]
        assert command_line.run("verl", "init", "--env", "TextCraft", *options).exit_code == 0
        write_rows(place / "data/train.parquet", seeded(TEXTCRAFT, range(8), "Craft it."))
        write_rows(place / "data/val.parquet", seeded(TEXTCRAFT, range(8, 10), "Craft it."))
    return folders


@pytest.fixture
def folder(written, tmp_path):
    """A folder in which nothing is wrong."""
    return Path(shutil.copytree(written["agent-loop"], tmp_path / "recipe"))


@pytest.fixture
def interaction(written, tmp_path):
    """The same by interactions."""
    return Path(shutil.copytree(written["interaction"], tmp_path / "recipe"))


@pytest.fixture
def checked(run):
    """Checks a folder; returns the exit status, and the findings that are problems."""

    def check(place):
        result = run("verl", "check", place, "--json")
        found = json.loads(result.stdout)
        assert found["ok"] is (result.exit_code == 0)
        wrong = [f for f in found["findings"] if f["status"] == "problem"]
        return [f for f in wrong if not (NO_LOOP and "no module for verl_bridge.agent_loop" in f["text"])]

    return check


def edit(file, old, new):
    text = file.read_text("utf-8")
    assert old in text
    file.write_text(text.replace(old, new), "utf-8")


# init


@pytest.mark.parametrize(
    ("algorithm", "version", "integration"), [("gigpo", "0.9", "agent-loop"), ("ppo", "0.7", "interaction")]
)
def test_init_writes_what_is_chosen(run, tmp_path, algorithm, version, integration):
    options = ["--algorithm", algorithm, "--preset", "test", "--verl", version, "--integration", integration]
    assert run("verl", "init", "--env", "WebShop", "--out", tmp_path, *options).exit_code == 0
    names = {"config.yaml", "agent_loop.yaml", "run.sh", "README.md", "data"}
    names |= {"interaction.yaml"} if integration == "interaction" else set()
    assert {path.name for path in tmp_path.iterdir()} == names
    config = yaml.safe_load((tmp_path / "config.yaml").read_text())
    assert config["algorithm"]["adv_estimator"] == ALGORITHMS[algorithm]
    assert config["data"]["train_batch_size"] == PRESETS["test"].batch
    if integration == "interaction":
        (entry,) = yaml.safe_load((tmp_path / "interaction.yaml").read_text())["interaction"]
        played = entry["config"]
    else:
        (played,) = yaml.safe_load((tmp_path / "agent_loop.yaml").read_text())
    assert (played["max_turns"], played["env_kwargs"]["max_turns"]) == (25, 25)
    assert played["env_id"] == "agentgym_gym:agentgym/WebShop-v0"


def test_init_replaces_nothing_unasked(run, folder):
    before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    options = ["--env", "WebShop", "--preset", "test", "--out", folder]
    result = run("verl", "init", *options)
    assert result.exit_code == 2
    assert "config.yaml" in result.stderr
    assert "--force" in result.stderr
    assert {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()} == before
    assert run("verl", "init", *options, "--force").exit_code == 0
    assert "WebShop" in (folder / "agent_loop.yaml").read_text()


def test_init_writes_native_tool_calls(run, tmp_path, textcraft_url, checked):
    options = ["--server", textcraft_url, "--tools", "native", "--tasks", "0:20"]
    assert run("verl", "init", "--env", "TextCraft", "--out", tmp_path, *options).exit_code == 0
    (loop,) = yaml.safe_load((tmp_path / "agent_loop.yaml").read_text())
    assert loop["tool_calls"] is True
    assert loop["env_kwargs"]["action_format"] == "tool_calls"
    config = yaml.safe_load((tmp_path / "config.yaml").read_text())
    assert config["data"]["max_prompt_length"] == 4096
    assert config["trainer"]["experiment_name"].endswith("-tools")
    rows = parquet.read_table(tmp_path / "data/train.parquet").to_pylist()
    assert "Call exactly one function" in rows[0]["prompt"][0]["content"]
    assert checked(tmp_path) == []
    edit(tmp_path / "agent_loop.yaml", "tool_calls: true", "tool_calls: false")
    (wrong,) = checked(tmp_path)
    assert "the model gets no tools" in wrong["text"]


@pytest.mark.slow  # a server of WebShop is started
def test_init_writes_a_turn_limit_that_grows(run, tmp_path):
    options = ["--turns", "10,20,30", "--turns-every", "50", "--tasks", "500:560"]
    assert run("verl", "init", "--env", "WebShop", "--out", tmp_path, *options).exit_code == 0
    (loop,) = yaml.safe_load((tmp_path / "agent_loop.yaml").read_text())
    assert loop["horizon"] == {"turns": [10, 20, 30], "every": 50}
    assert "max_turns" not in loop
    assert loop["env_kwargs"]["max_turns"] == 30  # the environment's own limit is not lower
    config = yaml.safe_load((tmp_path / "config.yaml").read_text())
    assert config["data"]["max_response_length"] == 14_336 * 30 // 25
    loop["horizon"] = {"turns": [10, 20]}
    (tmp_path / "agent_loop.yaml").write_text(yaml.safe_dump([loop]))
    assert "several turn limits require every" in run("verl", "check", tmp_path).stdout.replace("\n", " ")


def test_init_writes_the_tasks_of_agentgym(run, tmp_path):
    pytest.importorskip("pyarrow", reason=needs.reason("pyarrow"))
    assert run("verl", "init", "--env", "TextCraft", "--preset", "test", "--out", tmp_path).exit_code == 0
    rows = {
        part: parquet.read_table(tmp_path / f"data/{part}.parquet").to_pylist() for part in ("train", "val")
    }
    assert {part: len(those) for part, those in rows.items()} == {"train": 64, "val": 8}
    assert rows["train"][0]["prompt"][0]["content"] == gymnasium.make(TEXTCRAFT).unwrapped.system_prompt


class Echo(gymnasium.Env):
    """Another library's environment: pays for the word it says."""

    observation_space = action_space = gymnasium.spaces.Text(100)

    def __init__(self, size=1, says=0):
        self.system_prompt = "Echo!" * (size - 1)
        self.says = says

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        return f"Say {seed}." + "!" * self.says, {}

    def step(self, action):
        return "No.", 0.0, False, False, {}


def test_any_text_environment(run, checked, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "echo_module", sys.modules[__name__])
    monkeypatch.setitem(
        gymnasium.registry, "own/Echo-v0", gymnasium.envs.registration.EnvSpec("own/Echo-v0", Echo)
    )
    env_id = "echo_module:own/Echo-v0"
    result = run("verl", "init", "--env", env_id, "--out", tmp_path, "--tasks", "0:20", "--val", 4)
    assert result.exit_code == 0
    rows = {
        part: parquet.read_table(tmp_path / f"data/{part}.parquet").to_pylist() for part in ("train", "val")
    }
    # verl makes no step of less than a batch.
    assert {part: len(those) for part, those in rows.items()} == {"train": 32, "val": 4}
    assert rows["train"][0]["prompt"] == [{"role": "system", "content": ""}]
    assert checked(tmp_path) == []


@pytest.mark.parametrize("integration", ["agent-loop", pytest.param("interaction", marks=pytest.mark.slow)])
def test_the_yaml_says_where_an_environment_runs(run, tmp_path, integration):
    options = ["--isolate", "process", "--success-at", "1.5", "--tasks", "0:20", "--val", "4"]
    options += ["--verl", "0.7", "--integration", integration]
    env = "nasty_envs:nasty/Nasty-v0"
    result = run("verl", "init", "--env", env, *options, "--out", tmp_path)
    assert result.exit_code == 0, result.stderr
    if integration == "interaction":
        (entry,) = yaml.safe_load((tmp_path / "interaction.yaml").read_text())["interaction"]
        played = entry["config"]
    else:
        (played,) = yaml.safe_load((tmp_path / "agent_loop.yaml").read_text())
    assert (played["env_id"], played["isolate"], played["success_at"]) == (env, "process", 1.5)


def test_the_prompt_is_read_where_the_environment_runs(run, tmp_path):
    env = "nasty_envs:nasty/Somewhere-v0"
    result = run(
        *("verl", "init", "--env", env, "--isolate", "process", "--tasks", "0:20", "--val", 4),
        *("--out", tmp_path),
    )
    assert result.exit_code == 0, result.stderr
    (prompt,) = parquet.read_table(tmp_path / "data/train.parquet").to_pylist()[0]["prompt"]
    assert re.fullmatch(r"You are in \d+\.", prompt["content"])
    assert str(os.getpid()) not in prompt["content"]


# check


@pytest.fixture
def several(run, tmp_path, monkeypatch):
    """A folder of one environment whose rows have other arguments, and so other lengths."""
    monkeypatch.setitem(sys.modules, "echo_module", sys.modules[__name__])
    monkeypatch.setitem(
        gymnasium.registry, "own/Echo-v0", gymnasium.envs.registration.EnvSpec("own/Echo-v0", Echo)
    )
    env_id = "echo_module:own/Echo-v0"
    options = ["--preset", "test", "--tasks", "0:20", "--val", 4]
    assert run("verl", "init", "--env", env_id, "--out", tmp_path, *options).exit_code == 0
    rows = seeded(env_id, range(16), "Say it.")
    for row in rows[5:]:
        row["extra_info"]["interaction_kwargs"]["env_kwargs"] = '{"size": 2}'
    return tmp_path, rows


def checks_of(run, place, name):
    findings = json.loads(run("verl", "check", place, "--json").stdout)["findings"]
    return [found for found in findings if found["check"] == name]


@pytest.mark.parametrize("at", [3, 11])
@pytest.mark.parametrize("by", ["first observation", "system prompt"])
def test_check_measures_every_prompt(run, several, at, by):
    """The longest counts, whichever row has it, also where a later row makes the same environment."""
    place, rows = several
    if by == "system prompt":
        rows[at]["prompt"][0]["content"] = "Say it. " * 1250
    else:
        rows[at]["extra_info"]["interaction_kwargs"]["env_kwargs"] = '{"says": 10000}'
    write_rows(place / "data/train.parquet", rows)
    (found,) = checks_of(run, place, "prompt length")
    assert found["status"] == "warning"
    assert f"data/train.parquet, row {at}: the system prompt and the first observation of" in found["text"]
    assert "have 28" in found["text"]  # hundred tokens, of 3.5 characters


def test_check_says_which_row_s_environment_failed(run, several):
    place, rows = several
    rows[9]["extra_info"]["interaction_kwargs"]["env_kwargs"] = '{"nonsense": 1}'
    write_rows(place / "data/more.parquet", rows[8:])
    write_rows(place / "data/train.parquet", rows[:8])
    edit(
        place / "config.yaml",
        '"${folder}/data/train.parquet"',
        '["${folder}/data/train.parquet", "${folder}/data/more.parquet"]',
    )
    wrong = [each for each in checks_of(run, place, "environment") if each["status"] == "problem"]
    (found,) = wrong
    assert found["text"].startswith(
        "data/more.parquet, row 1: echo_module:own/Echo-v0 failed: WrongArguments"
    )


def test_check_finds_nothing_wrong(run, folder, checked):
    assert checked(folder) == []
    said = run("verl", "check", folder).stdout
    assert "ok       environment: agentgym_gym:agentgym/TextCraft-v0 begins and answers" in said
    assert "ok       server: http://127.0.0.1" in said
    assert "ok       validation" in said
    assert "ok       reward" in said


def test_check_says_what_it_could_not_look_at(run, folder):
    if importlib.util.find_spec("verl") is None:
        assert (
            "skipped  settings: verl is not installed here: the settings were not composed"
            in run("verl", "check", folder).stdout
        )
    assert "its context length was not checked" in run("verl", "check", folder).stdout


def test_check_finds_nothing_wrong_with_an_interaction(interaction, checked):
    if importlib.util.find_spec("verl") is not None:
        pytest.skip("what verl says of it is in tests/verl")
    assert checked(interaction) == []


def set_in(name, old, new):
    return lambda folder: edit(folder / name, old, new)


def change_rows(part, change):
    def mistake(folder):
        file = folder / f"data/{part}.parquet"
        rows = parquet.read_table(file).to_pylist()
        change(rows)
        write_rows(file, rows)

    return mistake


def kwargs_of(row):
    return row["extra_info"]["interaction_kwargs"]


# Others, such as sizes that do not fit, are in `check_mistakes`.
MISTAKES = {
    "no config": (lambda folder: (folder / "config.yaml").unlink(), "settings", "cannot read"),
    "no yaml": (set_in("config.yaml", "data:\n", "data: [\n"), "settings", "is not YAML"),
    "old name": (
        set_in("config.yaml", "algorithm:\n", "custom_reward_function: {path: mine.py}\nalgorithm:\n"),
        "settings",
        "custom_reward_function is an old name",
    ),
    "loop not there": (lambda folder: (folder / "agent_loop.yaml").unlink(), "loop", "cannot read"),
    "loop of another form": (set_in("agent_loop.yaml", "_target_", "target"), "loop", "should hold a list"),
    "loop of another name": (
        set_in("agent_loop.yaml", "name: gym_env", "name: mine"),
        "loop",
        "selects 'gym_env'",
    ),
    "loop not selected": (
        lambda folder: [
            edit(folder / "config.yaml", 'default_agent_loop: "gym_env"', "# none"),
            change_rows("train", lambda rows: [row.update(agent_name="single_turn_agent") for row in rows])(
                folder
            ),
        ],
        "loop",
        "plays no environment",
    ),
    "tools without interaction": (
        change_rows("train", lambda rows: rows[0].update(agent_name="tool_agent")),
        "loop",
        "no interaction is set",
    ),
    "no data": (lambda folder: (folder / "data/train.parquet").unlink(), "data", "cannot read"),
    "not parquet": (lambda folder: (folder / "data/val.parquet").write_text("x"), "data", "cannot read"),
    "too few rows": (change_rows("train", lambda rows: rows.pop()), "data", "train has 7 rows"),
    "no val": (
        change_rows("val", lambda rows: [row.pop("agent_name") for row in rows]),
        "data",
        "no agent_name",
    ),
    "prompt is text": (
        change_rows("train", lambda rows: [row.update(prompt="Craft it.") for row in rows]),
        "data",
        "data/train.parquet, row 0: prompt should be a list",
    ),
    "no interaction_kwargs": (
        change_rows("train", lambda rows: [row["extra_info"].pop("interaction_kwargs") for row in rows]),
        "data",
        "should hold interaction_kwargs",
    ),
    "no ground truth": (
        change_rows("train", lambda rows: [row["reward_model"].pop("ground_truth") for row in rows]),
        "data",
        "ground_truth",
    ),
    "unknown environment": (
        change_rows("val", lambda rows: kwargs_of(rows[0]).update(env_id="agentgym/Nope-v0")),
        "environment",
        "'agentgym/Nope-v0' is not registered",
    ),
    "wrong option": (
        change_rows("val", lambda rows: kwargs_of(rows[0]).update(env_kwargs='{"max_turns": -1}')),
        "environment",
        "max_turns=-1",
    ),
    "not JSON": (
        change_rows("train", lambda rows: kwargs_of(rows[4]).update(reset_options="{")),
        "environment",
        "data/train.parquet, row 4: reset_options='{' is not JSON",
    ),
    "server down": (
        change_rows(
            "val", lambda rows: kwargs_of(rows[0]).update(env_kwargs='{"server": "http://127.0.0.1:9"}')
        ),
        "server",
        "could not connect",
    ),
    "wrong server": (
        change_rows("val", lambda rows: kwargs_of(rows[0]).update(env_id="agentgym_gym:agentgym/BabyAI-v0")),
        "environment",
        "BabyAI",
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("mistake", MISTAKES)
def test_check_finds_a_mistake(folder, checked, textcraft_url, monkeypatch, mistake):
    monkeypatch.setenv("AGENTGYM_BABYAI_URL", textcraft_url)
    make, check, text = MISTAKES[mistake]
    make(folder)
    found = checked(folder)
    assert any(f["check"] == check and text in f["text"] for f in found), found
    assert all(f["advice"] for f in found)


INTERACTION_MISTAKES = {
    "no turn left": (
        set_in("config.yaml", "max_assistant_turns: 21", "max_assistant_turns: 1"),
        "loop",
        "leaves no turn",
    ),
    "no reward": (
        set_in("config.yaml", 'path: "pkg://verl_bridge.reward"', "path: null"),
        "reward",
        "no scorer",
    ),
    "other name": (
        set_in("interaction.yaml", "name: gym_env", "name: mine"),
        "loop",
        "select the interaction 'gym_env'",
    ),
    "other form": (
        set_in("interaction.yaml", "class_name", "_target_"),
        "loop",
        "name and class_name under interaction",
    ),
}


@pytest.mark.parametrize(
    "mistake",
    [
        pytest.param(each, marks=[] if each == "no turn left" else [pytest.mark.slow])
        for each in INTERACTION_MISTAKES
    ],
)
def test_check_finds_a_mistake_with_an_interaction(interaction, checked, mistake):
    make, check, text = INTERACTION_MISTAKES[mistake]
    make(interaction)
    found = checked(interaction)
    assert any(f["check"] == check and text in f["text"] for f in found), found


@pytest.mark.parametrize(
    ("mistake", "text"),
    [
        (set_in("config.yaml", "max_prompt_length: 2048", "max_prompt_length: 20"), "and 20 are allowed"),
        (
            set_in("config.yaml", "max_response_length: 6144", "max_response_length: 600"),
            "and 600 are allowed",
        ),
    ],
)
def test_check_warns_of_lengths_it_can_only_guess(run, folder, mistake, text):
    mistake(folder)
    findings = json.loads(run("verl", "check", folder, "--json").stdout)["findings"]
    (found,) = (f for f in findings if text in f["text"])
    assert found["status"] == "warning"


@pytest.mark.slow  # in a process of its own
@pytest.mark.parametrize(("module", "extra"), [("yaml", "cli"), ("pyarrow", "data")])
def test_what_is_not_installed_is_said(folder, module, extra):
    code = (
        f"import sys; sys.modules[{module!r}] = None; sys.modules[{module!r} + '.parquet'] = None\n"
        f"from agentgym_gym.__main__ import main; sys.argv = ['agentgym', 'verl', 'check', {str(folder)!r}]\n"
        "main()"
    )
    result = fresh.run(code)
    if module == "yaml":
        assert result.returncode == 2
        assert f"pip install '.[{extra}]'" in result.stderr
    else:
        assert "pyarrow is not installed here: not read" in result.stdout


def test_the_commands_of_the_document_run(run, checked, tmp_path, monkeypatch, textcraft_url):
    """But for the training itself, which needs a GPU; `my_package` is a name to be replaced."""
    monkeypatch.setenv("AGENTGYM_TEXTCRAFT_URL", textcraft_url)
    page = Path(__file__).resolve().parents[2] / "docs/training/recipes.md"
    blocks = re.findall(r"^```console\n(.*?)^```", page.read_text("utf-8"), re.DOTALL | re.MULTILINE)
    commands = [shlex.split(line) for block in blocks for line in block.splitlines()]
    assert [words[2] if words[0] == "agentgym" else words[0] for words in commands] == [
        "init",
        "check",
        "bash",
        "init",
        "init",
    ]
    monkeypatch.chdir(tmp_path)
    assert run(*commands[0][1:]).exit_code == 0
    write_rows(tmp_path / "runs/craft/data/train.parquet", seeded(TEXTCRAFT, range(32), "Craft it."))
    write_rows(tmp_path / "runs/craft/data/val.parquet", seeded(TEXTCRAFT, range(32, 34), "Craft it."))
    assert commands[1][1:] == ["verl", "check", "runs/craft"]
    assert checked("runs/craft") == []
    assert Path(commands[2][1]).is_file()
    monkeypatch.setitem(sys.modules, "my_package", sys.modules[__name__])
    own = gymnasium.envs.registration.EnvSpec("my/Env-v0", Echo)
    monkeypatch.setitem(gymnasium.registry, "my/Env-v0", own)
    assert run(*commands[3][1:]).exit_code == 0
    rows = parquet.read_table(tmp_path / "runs/mine/data/train.parquet").to_pylist()
    assert (len(rows), rows[0]["prompt"][0]["content"]) == (450, "Echo!" * 4)
    assert run(*commands[4][1:]).exit_code == 0
    rows = parquet.read_table(tmp_path / "runs/joint/data/train.parquet").to_pylist()
    assert Counter(row["data_source"] for row in rows) == {
        "agentgym/Maze-v0": 128,
        "agentgym/TextCraft-v0": 256,
    }
