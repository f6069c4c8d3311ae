"""Recipes with verl 0.9's asynchronous trainers: what is written, what is refused, and what check finds."""

from __future__ import annotations

import pytest
import yaml

from check_mistakes import asynchronous_trainers, make_folder
from verl_bridge.recipes import RlRecipe, write
from verl_bridge.recipes._check_trainer import check_trainer
from verl_bridge.recipes._folder import render
from verl_bridge.recipes._recipe import TRAINERS
from verl_bridge.recipes._view import View

CRAFT = "agentgym_gym:agentgym/TextCraft-v0"


def settings(**choices):
    return yaml.safe_load(render(RlRecipe(CRAFT, **choices))["config.yaml"])


def test_the_synchronous_trainer_is_the_default_and_sets_nothing():
    assert settings() == settings(trainer="sync")
    assert "v1" not in settings()["trainer"]


@pytest.mark.parametrize("preset", ["test", "train", "full"])
@pytest.mark.parametrize("trainer", TRAINERS[1:])
def test_replies_of_earlier_weights_are_corrected(trainer, preset):
    written = settings(trainer=trainer, preset=preset)
    assert written["trainer"]["v1"]["trainer_mode"] == trainer
    assert written["actor_rollout_ref"]["rollout"]["calculate_log_probs"] is True
    assert written["algorithm"]["rollout_correction"]["rollout_is"] == "token"


@pytest.mark.parametrize(("rollout_gpus", "split"), [(None, (4, 4)), (4, (4, 4)), (6, (2, 6))])
@pytest.mark.parametrize("preset", ["test", "train", "full"])
def test_separate_gpus_are_taken_from_all(preset, rollout_gpus, split):
    written = settings(trainer="separate_async", preset=preset, gpus=8, rollout_gpus=rollout_gpus)
    rollout, actor = written["actor_rollout_ref"]["rollout"], written["actor_rollout_ref"]["actor"]
    assert (written["trainer"]["n_gpus_per_node"], rollout["n_gpus_per_node"]) == split
    assert rollout["checkpoint_engine"]["backend"] == "nccl"
    updates = written["trainer"]["v1"]["separate_async"]["parameter_sync_step"]
    assert written["data"]["train_batch_size"] == updates * actor["ppo_mini_batch_size"]


@pytest.mark.parametrize(("gpus", "rollout_gpus", "engine"), [(6, 2, 2), (5, 1, 1), (8, 4, 4)])
def test_engines_of_one_size_fit_both_kinds_of_gpus(gpus, rollout_gpus, engine):
    choices = {"gpus": gpus, "rollout_gpus": rollout_gpus, "model": "Qwen/Qwen2.5-32B-Instruct"}
    written = settings(trainer="separate_async", preset="train", **choices)
    assert written["actor_rollout_ref"]["rollout"]["tensor_model_parallel_size"] == engine


def test_the_trainer_is_in_the_name_of_the_run():
    names = {RlRecipe(CRAFT, trainer=trainer).name for trainer in TRAINERS}
    assert len(names) == len(TRAINERS)


@pytest.mark.parametrize(
    ("choices", "message"),
    [
        ({"trainer": "async"}, "--trainer='async' is not one of sync, colocate_async, separate_async"),
        (
            {"trainer": "colocate_async", "verl": "0.8"},
            "verl 0.8 has no --trainer='colocate_async': use verl 0.9",
        ),
        ({"trainer": "colocate_async", "algorithm": "remax"}, "only verl's older trainer does ReMax"),
        ({"rollout_gpus": 2}, "rollout-gpus needs --trainer='separate_async', unlike --trainer='sync'"),
        ({"trainer": "separate_async", "gpus": 1}, "divides --gpus=1 into --rollout-gpus=0 and the others"),
        ({"trainer": "separate_async", "gpus": 4, "rollout_gpus": 4}, "both need at least 1"),
        (
            {"trainer": "separate_async", "gpus": 8, "rollout_gpus": 5},
            "--gpus minus --rollout-gpus=3 does not divide the 16 trajectories",
        ),
        ({"trainer": "separate_async", "lora": 8}, "the base model without the adapters"),
    ],
)
def test_what_cannot_be_is_refused_with_the_reason(choices, message):
    with pytest.raises(ValueError, match=message):
        RlRecipe(CRAFT, **choices)


@pytest.fixture
def findings(monkeypatch):
    """Checks the trainer of a folder, without the verl that may be installed."""
    monkeypatch.setattr(View, "_compose", lambda view: None)
    return lambda folder: list(check_trainer(View.of(folder)))


@pytest.mark.parametrize("preset", ["test", "train", "full"])
@pytest.mark.parametrize("trainer", TRAINERS)
def test_nothing_is_wrong_with_what_is_written(findings, tmp_path, trainer, preset):
    write(RlRecipe(CRAFT, trainer=trainer, preset=preset, gpus=8), tmp_path)
    assert [found.status for found in findings(tmp_path)] == ["ok"] * (trainer != "sync")


@pytest.mark.parametrize("mistake", [*asynchronous_trainers()], ids=lambda mistake: mistake.text)
def test_settings_that_contradict_the_trainer_are_found(findings, tmp_path, mistake):
    folder = make_folder(tmp_path / "run", "http://127.0.0.1:1")
    mistake.make(folder)
    (found,) = (found for found in findings(folder) if mistake.finding in found.text)
    assert found.status == mistake.status
    assert found.advice
