"""The training examples reject folders that they cannot use, and `make smollm` resumes its stages."""

from __future__ import annotations

import importlib
import re
import shutil
import sys
from pathlib import Path

import pytest

import command_line
from agentgym_gym import AgentGymEnv

EXAMPLES = Path(__file__).resolve().parents[1] / "examples"


@pytest.fixture
def module(monkeypatch):
    """Imports a module of an example."""

    def load(example, name):
        monkeypatch.syspath_prepend(EXAMPLES / example)
        return importlib.import_module(name)

    return load


@pytest.fixture
def pipeline(module, monkeypatch, tmp_path):
    """Runs the pipeline with a command line, without its steps."""
    example, runs = module("pipeline", "pipeline"), []
    monkeypatch.setattr(example.Seed, "run", lambda seed: runs.append(seed.seed))
    monkeypatch.setattr(example, "print_outcomes", lambda _: None)

    def run(*arguments):
        monkeypatch.setattr(sys, "argv", ["pipeline.py", f"--out={tmp_path}", *arguments])
        example.main()
        return runs

    return run


def test_a_seed_that_is_given_twice_runs_once(pipeline):
    assert pipeline("--seed=1", "--seed=0", "--seed=1") == [1, 0]


@pytest.mark.parametrize(("example", "name"), [("pipeline", "pipeline"), ("maze_training", "train")])
def test_a_folder_that_exists_is_found_before_the_first_seed(module, monkeypatch, tmp_path, example, name):
    (tmp_path / "seed_1").mkdir()
    monkeypatch.setattr(sys, "argv", [name, f"--out={tmp_path}", "--seed=0", "--seed=1"])
    with pytest.raises(SystemExit, match="seed_1 exists already"):
        module(example, name).main()
    assert not (tmp_path / "seed_0").exists()


def test_runs_of_another_recipe_are_not_mixed(pipeline):
    pipeline("--quick")
    with pytest.raises(SystemExit, match="sft_steps=4, not 75: choose"):
        pipeline("--seed=1")


@pytest.mark.parametrize(
    ("example", "name", "hint"),
    [
        ("pipeline", "seed_results", "give the --out of pipeline.py"),
        ("maze_training", "report", "give the --out of train.py"),
        ("pretrained", "smollm_report", "give the --out of smollm.py"),
    ],
)
def test_a_report_of_a_folder_without_results_is_an_error(module, monkeypatch, tmp_path, example, name, hint):
    folders = [str(tmp_path)] * (1 if name == "seed_results" else 2)
    monkeypatch.setattr(sys, "argv", [name, *folders])
    with pytest.raises(SystemExit, match=hint):
        module(example, name).main()


@pytest.fixture
def stages(module, monkeypatch, tmp_path, request):
    """The stages of ``make smollm``, with two games, without programs that need PyTorch or verl."""

    def agentgym(*words, **_):
        monkeypatch.setenv("AGENTGYM_TEXTCRAFT_URL", request.getfixturevalue("textcraft_url"))
        ended = command_line.run(*words)
        assert ended.exit_code == 0, ended.output

    smollm = module("pretrained", "smollm")
    monkeypatch.setattr(smollm, "cpu_overrides", list)
    stages = smollm.Stages(tmp_path / "out", smollm.SmolLM(games=(("TextCraft", 2),)))
    stages.started = []
    monkeypatch.chdir(smollm.HERE)
    monkeypatch.setattr(stages, "agentgym", agentgym)
    monkeypatch.setattr(stages, "python", lambda *arguments, **_: stages.started.append(arguments))
    return stages


def test_a_stage_names_the_stage_that_it_needs(stages):
    with pytest.raises(SystemExit, match="--stage grpo-5 needs"):
        stages.run([5], "grpo-5")


def test_no_game_of_a_recipe_is_of_a_task_that_is_evaluated(module):
    from agentgym_gym.catalogue import find

    smollm = module("pretrained", "smollm")
    for recipe in smollm.RECIPES.values():
        assert {env for env, _ in recipe.games} == {each.env for each in recipe.evaluations}
        for each in recipe.evaluations:
            tasks = smollm.tasks_of(each, recipe)
            assert len(set(tasks)) == each.count
            assert each.kept_out or not set(tasks) & set(find(each.env).splits["train"])
            assert (smollm.HERE / "prompts" / f"{each.env}.txt").is_file()


@pytest.mark.parametrize(("name", "shown", "alike"), [("smollm", 54, 60), ("smollm-families", 0, 0)])
def test_no_training_prompt_shows_a_family_of_a_goal_that_is_kept_out(
    module, monkeypatch, textcraft_url, name, shown, alike
):
    """Counts the goals with a recipe in a training prompt, and with a recipe of its quantities in one."""
    monkeypatch.setenv("AGENTGYM_TEXTCRAFT_URL", textcraft_url)
    smollm = module("pretrained", "smollm")
    recipe = smollm.RECIPES[name]
    kept_out = smollm.tasks_of(recipe.evaluations[0], recipe)
    trained = smollm.training_tasks("TextCraft", recipe)
    with AgentGymEnv("TextCraft") as env:
        prompts = {task: env.reset(options={"task_id": task})[0] for task in (*kept_out, *trained)}
    lines = {task: set(re.findall(r"^craft .+$", text, re.MULTILINE)) for task, text in prompts.items()}
    goals = {task: re.search(r"^Goal: craft (.+)\.$", prompts[task], re.MULTILINE)[1] for task in kept_out}
    makes = {
        task: {line for line in lines[task] if re.match(rf"craft \d+ {goal} using ", line)}
        for task, goal in goals.items()
    }

    def quantities(recipes):
        numbers = (re.findall(r"\d+", line) for line in recipes)
        return {(first, *sorted(others)) for first, *others in numbers}

    in_training = set().union(*(lines[task] for task in trained))
    assert len(kept_out) == 60
    assert all(makes.values())
    assert sum(not in_training.isdisjoint(own) for own in makes.values()) == shown
    alike_in_training = quantities(in_training)
    assert sum(not alike_in_training.isdisjoint(quantities(own)) for own in makes.values()) == alike


@pytest.mark.slow
@pytest.mark.parametrize("in_a_game", [True, False])
def test_games_are_resumed(stages, tmp_path, in_a_game):
    """In the middle of a game, or after the rows were written."""
    games = tmp_path / "out" / "games"
    episodes = games / "TextCraft" / "episodes.jsonl"
    stages.play_games()
    if in_a_game:
        shutil.rmtree(games / "rows")
        lines = episodes.read_text().splitlines(keepends=True)
        episodes.write_text(lines[0] + lines[1][:100])
    stages.play_games()
    assert len(episodes.read_text().splitlines()) == 2
    assert (games / "rows" / "TextCraft" / "train.parquet").is_file()


def test_fine_tuning_ends_again_after_its_link_was_made(stages, tmp_path):
    folder = tmp_path / "out" / "sft"
    folder.mkdir()
    for steps in ("140", "262"):
        (folder / "latest_checkpointed_iteration.txt").write_text(steps)
        stages.fine_tune()
        assert (folder / "huggingface").readlink() == Path(f"global_step_{steps}/huggingface")


@pytest.mark.slow
def test_a_complete_checkpoint_is_kept_until_the_next_one_is(stages, tmp_path, monkeypatch):
    (tmp_path / "out" / "sft").mkdir()
    (tmp_path / "out" / "sft" / "latest_checkpointed_iteration.txt").write_text("1")
    stages.play_games()
    stages.fine_tune()
    monkeypatch.setattr(stages, "agentgym", lambda *_, **__: None)
    stages.learn(0, "TextCraft")
    _, fine_tuning, learning = stages.started
    assert "trainer.max_ckpt_to_keep=2" in fine_tuning
    assert "trainer.max_actor_ckpt_to_keep=2" in learning


def test_a_seed_for_a_recipe_without_grpo_is_refused(module, monkeypatch, tmp_path, capsys):
    smollm = module("pretrained", "smollm")
    command = ["smollm.py", f"--out={tmp_path}", "--recipe=smollm-alfworld", "--seed=1"]
    monkeypatch.setattr(sys, "argv", command)
    with pytest.raises(SystemExit):
        smollm.main()
    assert "--seed is the seed of GRPO, which --recipe smollm-alfworld does not" in capsys.readouterr().err
