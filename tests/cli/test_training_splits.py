"""The tasks of a training: of train by default, of other splits by name; and `verl check` of them."""

from __future__ import annotations

import itertools
import json
from dataclasses import replace
from pathlib import Path

import pytest

import agentgym_gym
import needs
from agentgym_gym import catalogue
from agentgym_gym.evaluate import RunFolder
from trajectories import FACTS, episode
from verl_bridge.recipes import ALGORITHMS, LIKE, PRESETS, published_by

parquet = pytest.importorskip("pyarrow.parquet", reason=needs.reason("pyarrow"))


@pytest.fixture(autouse=True)
def _here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def init(run):
    """Writes a training folder; returns the tasks by part, and the printed text."""

    def write(*options, command=("verl", "init")):
        ended = run(*command, *options, "--out", "made", "--force")
        assert ended.exit_code == 0, ended.stderr
        return {part: tasks(part) for part in ("train", "val")}, ended.stdout

    return write


def tasks(part, env=""):
    file = Path("made/data") / f"{part}.parquet"
    rows = parquet.read_table(file if file.exists() else f"made/{part}.parquet").to_pylist()
    rows = [row["extra_info"]["interaction_kwargs"] for row in rows if env in row["data_source"]]
    options = (json.loads(row["reset_options"]) for row in rows)
    return {each["task_id"] for each in options}


def found(run, check="tasks"):
    ended = run("verl", "check", "made", "--json")
    return [each for each in json.loads(ended.stdout)["findings"] if each["check"] == check]


def split(env, name):
    return set(agentgym_gym.find(env).split(name))


def items(name, *tasks):
    Path("items.json").write_text(json.dumps([{"item_id": f"{name}_{task}"} for task in tasks]), "utf-8")
    return "items.json"


@pytest.mark.parametrize(
    ("command", "env"),
    [
        (("verl", "init", "--env"), "SciWorld"),
        pytest.param(("data", "rl"), "SciWorld", marks=pytest.mark.slow),
        pytest.param(("data", "rl"), "SQLGym", marks=pytest.mark.slow),
    ],
)
def test_validation_comes_from_dev(init, command, env):
    made, printed = init(env, command=command)
    assert made["train"] == split(env, "train")
    assert made["val"] < split(env, "dev")
    assert f"{len(made['val']):,} tasks of dev" in printed


@pytest.mark.parametrize("command", [("verl", "init", "--env"), ("data", "rl")])
def test_without_dev_training_tasks_are_kept_out(init, command):
    made, _ = init("BabyAI", command=command)
    assert made["train"] | made["val"] == split("BabyAI", "train")
    assert not made["train"] & made["val"]


@pytest.mark.parametrize(
    "command", [("verl", "init", "--env"), pytest.param(("data", "rl"), marks=pytest.mark.slow)]
)
def test_other_splits_are_taken_by_name(init, command):
    made, printed = init("BabyAI", "--split", "all", command=command)
    assert made["train"] | made["val"] == set(range(900))
    held_out, lost = made["train"] & split("BabyAI", "test"), set(agentgym_gym.find("BabyAI").unwinnable)
    assert f"{len(held_out)} training tasks of BabyAI are for evaluation" in printed
    assert f"{len(made['train'] & lost)} training tasks of BabyAI cannot be won" in printed
    made, _ = init("BabyAI", "--val-split", "test", "--val", "9", command=command)
    assert made["train"] == split("BabyAI", "train")
    assert len(made["val"]) == 9
    assert made["val"] < split("BabyAI", "test")
    made, _ = init("SciWorld", "--split", "all", command=command)
    assert made["train"] | made["val"] == set(range(4639))  # dev cannot be trained on and validated with


def test_an_environment_with_only_tasks_for_evaluation_is_trained_on_by_name(run, init, monkeypatch):
    environment = replace(agentgym_gym.find("Maze"), splits={"test": range(25)}, unwinnable={})
    monkeypatch.setitem(catalogue._known, "Maze", environment)
    assert "split='all'" in run("verl", "init", "--env", "Maze", "--out", "made").stderr
    made, printed = init("--env", "Maze", "--split", "all")
    assert f"{len(made['train'])} training tasks of Maze are for evaluation" in printed


def test_all_selects_every_task_of_an_environment_without_such_a_split(init):
    made, _ = init("--env", "ALFWorld", "--split", "all", "--preset", "test")
    assert made["train"] & split("ALFWorld", "test")


@pytest.mark.parametrize("command", [("verl", "init", "--env"), ("data", "rl")])
def test_ids_of_test_tasks_are_refused(run, command):
    for chosen in ("0:50", "499:600", "0"):
        ended = run(*command, "WebShop", "--tasks", chosen, "--out", "made")
        assert ended.exit_code == 2
        assert "500 to 6909, in the split train" in ended.stderr
        assert "all" in ended.stderr
    assert not Path("made").exists()


def test_a_file_may_name_tasks_of_any_split(init):
    file = items("babyai", *range(100), 750, 751)
    made, printed = init("--env", "BabyAI", "--tasks", file)
    assert {750, 751} < made["train"] | made["val"]
    assert "2 of test" in printed


@pytest.fixture
def textcraft(textcraft_url, monkeypatch):
    """An environment whose server is running, so that `check` starts none."""
    monkeypatch.setenv("AGENTGYM_TEXTCRAFT_URL", textcraft_url)
    return "TextCraft"


@pytest.mark.slow
def test_check_names_training_rows_for_evaluation(init, run, textcraft):
    init("--env", textcraft, "--split", "all")
    problem, warning, *_ = found(run)
    held_out = tasks("train") & split(textcraft, "test")
    assert problem["status"] == "problem"
    assert f"{len(held_out)} of " in problem["text"]
    assert "in test of" in problem["text"]
    assert warning["status"] == "warning"
    assert "cannot be won" in warning["text"]


def test_check_finds_nothing_in_a_default_folder(init, run, textcraft):
    init("--env", textcraft)
    assert [each["status"] for each in found(run)] == ["ok"]


def test_an_item_file_counts_as_the_tasks_of_the_paper(init, run, textcraft):
    file = items("textcraft", *range(440, 544))
    _, printed = init("--env", textcraft, "--like", "agentgym-rl", "--tasks", file)
    assert "count as the tasks of agentgym-rl" in printed
    assert "count as the tasks of agentgym-rl" in Path("made/README.md").read_text("utf-8")
    statuses = {each["status"] for each in found(run)}
    assert statuses == {"warning"}
    _, printed = init("--env", textcraft, "--like", "agentgym-rl")
    assert "AgentItemId" in printed
    assert "AgentItemId" in Path("made/README.md").read_text("utf-8")


@pytest.mark.slow
def test_environments_together_train_on_train(init):
    init("--env", "SciWorld", "--env", "BabyAI", "--env", "Maze", "--split", "Maze=test")
    expected = {"SciWorld": ("train", "dev"), "BabyAI": ("train", "train"), "Maze": ("test", "test")}
    for at, part in enumerate(("train", "val")):
        for env, splits in expected.items():
            assert tasks(part, env) <= split(env, splits[at])
            assert tasks(part, env)


def played(*task_ids):
    with RunFolder(Path("run"), FACTS) as folder:
        for task in task_ids:
            folder.add(episode(task))


@pytest.mark.parametrize(
    ("split_options", "kept"),
    [((), [*range(20)]), (("--split", "test"), [20, 21]), (("--split", "all"), [*range(22)])],
)
def test_fine_tuning_leaves_out_tasks_for_evaluation(run, split_options, kept):
    played(*range(22))
    ended = run("data", "sft", "run", "--val", "0", "--out", "rows", *split_options)
    assert ended.exit_code == 0, ended.stderr
    rows = parquet.read_table("rows/train.parquet").to_pylist()
    assert sorted(row["task_id"] for row in rows) == kept
    if len(kept) < 22:
        assert "Left out" in ended.stdout
    ended = run("data", "agenttraj", "run", "--out", "traj.json", *split_options)
    assert ended.exit_code == 0, ended.stderr
    assert len(json.loads(Path("traj.json").read_text("utf-8"))) == len(kept)


def test_fine_tuning_on_test_is_a_problem(run):
    played(*range(25))
    options = ["--out", "made", "--gpus", "1", "--val", "0", "--force"]
    assert run("verl", "sft", "run", *options).exit_code == 0
    assert [each["status"] for each in found(run)] == ["ok"]
    assert run("verl", "sft", "run", *options, "--split", "all").exit_code == 0
    (problem,) = found(run)
    assert problem["status"] == "problem"
    assert "5 of 25 rows" in problem["text"]


def test_a_run_of_test_tasks_only_cannot_be_learned(run):
    played(20, 21)
    ended = run("verl", "sft", "run", "--out", "made")
    assert ended.exit_code == 2
    assert "of the split test" in ended.stderr
    assert "--split" in ended.stderr


# every recipe

PAPERS = [(None, each.name) for each in agentgym_gym.environments()] + [
    (like, env_id) for like in LIKE for env_id in published_by(like)
]


FIRST = {next(iter(published_by(like))) for like in LIKE}


def marks(like, env):
    """Each environment and each paper once is quick, but the 170,000 tasks of SearchQA take seconds."""
    if "SearchQA" in env:
        return pytest.mark.exhaustive if like else pytest.mark.slow
    return [] if like is None or env in FIRST else pytest.mark.slow


@pytest.mark.parametrize(("like", "env"), [pytest.param(*each, marks=marks(*each)) for each in PAPERS])
def test_each_recipe_trains_on_train(init, like, env):
    check(init, like, env, "test", "grpo")


@pytest.mark.exhaustive
@pytest.mark.parametrize(("like", "env"), PAPERS)
def test_every_recipe_trains_on_train(init, like, env):
    for preset, algorithm in itertools.product(PRESETS, ALGORITHMS):
        check(init, like, env, preset, algorithm)


def check(init, like, env, preset, algorithm):
    paper = ["--like", like] if like else []
    made, _ = init("--env", env, *paper, "--preset", preset, "--algorithm", algorithm)
    environment = agentgym_gym.find(env)
    train = set(environment.splits["train"])
    assert made["train"] <= train
    assert not made["train"] & made["val"]
    assert made["val"] <= set(environment.splits.get("dev", train))
    assert not environment.unwinnable.keys() & made["train"]
