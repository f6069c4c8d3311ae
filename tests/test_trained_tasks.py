"""No page and no example evaluates on tasks that it trains on."""

from __future__ import annotations

import importlib
import json
import re
import sys
from dataclasses import replace
from pathlib import Path

import gymnasium
import pytest

import needs

pytest.importorskip("pyarrow", reason=needs.reason("pyarrow"))

from agentgym_gym import find
from agentgym_gym.errors import UnknownEnvironment
from page_commands import Line, Replay, in_words, lines_of, script_of, tasks_in

ROOT = Path(__file__).resolve().parents[1]
EXAMPLES = ROOT / "examples"
PAGES = [
    page for page in (ROOT / "README.md", *sorted(ROOT.glob("docs/**/*.md"))) if "eval" in script_of(page)
]


@pytest.fixture(autouse=True)
def _environments_of_a_page(tmp_path):
    """Forget the environments that a page registers."""
    modules, path, registered = set(sys.modules), list(sys.path), set(gymnasium.registry)
    yield
    sys.path[:] = path
    for name in set(gymnasium.registry) - registered:
        del gymnasium.registry[name]
    for name in set(sys.modules) - modules:
        if str(getattr(sys.modules[name], "__file__", "")).startswith(str(tmp_path)):
            del sys.modules[name]


def overlaps(page, folder):
    """Replay the commands of a page; return the tasks that are trained and evaluated, by the evaluation.

    A model is evaluated on no task of the split ``train`` either, on which others train it by default.
    """
    script = folder / "page.sh"
    script.write_text(script_of(page), "utf-8")
    (folder / "here").mkdir()
    lines = lines_of(script, folder / "here")
    # The examples of a page on a command are alternatives, and no steps that follow one another.
    trains = ROOT / "docs" / "cli" not in page.parents and any(line.writes for line in lines)
    replayed = Replay()
    for line in lines:
        if (line.evaluates and (trains or line.of_model)) or (line.writes and trains):
            replayed.run(line)
    assert bool(replayed.trained) is trains
    found = {}
    for command, tasks in replayed.played.items():
        of_model = re.search(r" --(model|launch)", command)
        both = {task for task in tasks if task in replayed.trained or (of_model and is_for_training(*task))}
        if both:
            found[command] = in_words(both)
    return found


def is_for_training(env_id, task_id):
    try:
        return task_id in find(env_id).splits.get("train", ())
    except UnknownEnvironment:
        return False


@pytest.mark.slow
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_page_evaluates_on_tasks_that_it_does_not_train(page, tmp_path):
    assert overlaps(page, tmp_path) == {}


RL = "agentgym verl init --env Maze --preset test --out runs/rl"
GAMES = "agentgym eval TextCraft --agent oracle --split train --limit 16 --out runs/games"
SFT = "agentgym verl sft runs/games --out runs/sft"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("commands", "found"),
    [
        ((RL, "agentgym eval Maze --agent random --tasks 15:25"), "agentgym/Maze-v0"),
        (("cd runs; agentgym eval Maze --agent random --tasks 15:25; cd ..", RL), "agentgym/Maze-v0"),
        ((GAMES, SFT, "agentgym eval TextCraft --agent oracle --tasks 15:30"), "1 tasks"),
        ((GAMES, f"{SFT} \\\n  --eval TextCraft --eval-tasks 12:20"), "agentgym/TextCraft-v0"),
        (
            (
                GAMES,
                "agentgym data sft runs/games --out data",
                "agentgym eval TextCraft --tasks 3 --agent random",
            ),
            "3)",
        ),
        (("agentgym eval TextCraft --launch vllm --model-path 'ckpts/*' --tasks 0:20",), "20 tasks"),
        ((RL, "agentgym eval Maze --agent random"), None),
        ((GAMES, f"{SFT} --eval TextCraft"), None),
    ],
)
def test_an_overlap_is_found(commands, found, tmp_path):
    page = tmp_path / "page.md"
    page.write_text(
        "\n".join(f"text\n\n```sh\nmkdir -p runs\n{command}\n```\n" for command in commands), "utf-8"
    )
    problems = overlaps(page, tmp_path)
    assert (found is None) is (problems == {})
    assert found is None or all(found in problem for problem in problems.values())


@pytest.fixture
def module(monkeypatch):
    """Imports a module of an example, without verl."""

    def load(example, name):
        monkeypatch.syspath_prepend(EXAMPLES / example)
        loaded = importlib.import_module(name)
        if hasattr(loaded, "cpu_overrides"):
            monkeypatch.setattr(loaded, "cpu_overrides", list)
        return loaded

    return load


@pytest.fixture
def replayed(module, monkeypatch):
    """Replays an example's commands of agentgym; of its trainings, only the files are read."""
    commands, replay = module("maze_training", "commands"), Replay()

    def rows(here, text):
        files = (here / name for name in re.findall(r"[^\s\[\],]+\.parquet", text))
        return tasks_in(file for file in files if file.exists())

    def agentgym(self, *words, **_):
        line = Line(self._here, words)
        if line.evaluates or line.writes:
            replay.run(line)

    def python(self, *words, log=None):
        settings = dict(word.split("=", 1) for word in words if "=" in word)
        named = [word for word in words if word.endswith(".parquet") and "=" not in word]
        replay.trained |= rows(self._here, " ".join([*named, settings.get("data.train_files", "")]))
        if settings.get("trainer.test_freq", "-1") != "-1":
            replay.played[f"validation of {log}"] = rows(self._here, settings["data.val_files"])
        if "trainer.default_local_dir" in settings:
            out = self._here / settings["trainer.default_local_dir"]
            out.mkdir(parents=True, exist_ok=True)
            (out / "latest_checkpointed_iteration.txt").write_text("1")
        if words[0] == "measure.py":
            measured = {"model": words[-1], "success": 1.0, "invalid": 0.0}
            (self.path / f"{log}.log").write_text(json.dumps(measured) + "\n")
            replay.played[log] = {("agentgym/Maze-v0", int(start)) for start in words[5].split(",")}

    monkeypatch.setattr(commands.Commands, "agentgym", agentgym)
    monkeypatch.setattr(commands.Commands, "python", python)
    return replay


def test_the_maze_is_measured_on_starts_that_are_not_trained(module, replayed, monkeypatch, tmp_path):
    train = module("maze_training", "train")
    monkeypatch.setattr(train, "make_tiny", lambda *_, **__: None)
    monkeypatch.setattr(train, "curve", lambda _: [])
    monkeypatch.setattr(train.Seed, "game", lambda *_: [{"role": "user", "content": "a maze"}])
    monkeypatch.setattr(train.Seed, "advice", lambda _: [])
    train.Seed(0, tmp_path / "seed_0", "http://maze.test", train.FULL).run()
    maze = find("Maze")
    assert replayed.trained == {(maze.id, start) for start in maze.splits["train"]}
    assert replayed.played.pop("choice") <= replayed.trained
    assert replayed.played.keys() == {"before-episode", "grpo/after", "validation of grpo/train"}
    for tasks in replayed.played.values():
        assert tasks == {(maze.id, start) for start in maze.splits["test"]}


@pytest.mark.slow
def test_the_pipeline_names_what_it_trains(module, replayed, tmp_path):
    pipeline, results = module("pipeline", "pipeline"), module("pipeline", "seed_results")
    seed = pipeline.Seed(0, tmp_path / "seed_0", pipeline.FULL)
    seed.run()
    runs = results.runs_by_tasks(seed.path / "after")
    assert json.loads((seed.path / "result.json").read_text())["environments"].keys() == runs.keys()
    tasks = {name: {(each.env_id, each.task_id) for each in run.records} for name, run in runs.items()}
    for environment in ("Maze", "TextCraft"):
        env_id = find(environment).id
        assert tasks[f"{environment}, trained"] == {task for task in replayed.trained if task[0] == env_id}
        assert tasks[f"{environment}, held out"]
        assert not tasks[f"{environment}, held out"] & replayed.trained
    assert not {task for task in replayed.trained if find(task[0]).held_out(task[1])}


@pytest.mark.slow
@pytest.mark.parametrize("name", ["smollm", "smollm-families", "smollm-alfworld", "smollm-sqlgym"])
def test_the_pretrained_model_is_evaluated_on_tasks_that_are_not_trained(module, replayed, tmp_path, name):
    smollm = module("pretrained", "smollm")
    recipe = replace(smollm.RECIPES[name], least_turns=1)  # the games that are replayed have one turn
    smollm.Stages(tmp_path / "out", recipe).run([0], None)
    assert {env_id for env_id, _ in replayed.trained} == {find(env).id for env, _ in recipe.games}
    assert len(replayed.played) > len(recipe.evaluations)
    for command, tasks in replayed.played.items():
        assert not tasks & replayed.trained, command


def test_each_example_that_trains_is_tested():
    assert {path.name for path in EXAMPLES.iterdir() if path.is_dir() and any(path.glob("*.py"))} == {
        "maze_training",
        "pipeline",
        "pretrained",
    }
