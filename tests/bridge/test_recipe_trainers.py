"""Recipes with verl 0.9's asynchronous trainers: what is written, and what is refused."""

from __future__ import annotations

import pytest
import yaml

from verl_bridge.recipes import RlRecipe, write

CRAFT = "agentgym_gym:agentgym/TextCraft-v0"
TRAINERS = ("sync", "colocate_async", "separate_async")


@pytest.fixture
def settings(tmp_path):
    """Returns the settings that are written for choices."""

    def written(**choices):
        write(RlRecipe(CRAFT, **choices), tmp_path, force=True)
        return yaml.safe_load((tmp_path / "config.yaml").read_text())

    return written


def test_the_synchronous_trainer_is_the_default_and_sets_nothing(settings):
    assert settings() == settings(trainer="sync")
    assert "v1" not in settings()["trainer"]


@pytest.mark.parametrize("preset", ["test", "train", "full"])
@pytest.mark.parametrize("trainer", TRAINERS[1:])
def test_replies_of_earlier_weights_are_corrected(settings, trainer, preset):
    written = settings(trainer=trainer, preset=preset)
    assert written["trainer"]["v1"]["trainer_mode"] == trainer
    assert written["actor_rollout_ref"]["rollout"]["calculate_log_probs"] is True
    assert written["algorithm"]["rollout_correction"]["rollout_is"] == "token"


@pytest.mark.parametrize(("rollout_gpus", "split"), [(None, (4, 4)), (4, (4, 4)), (6, (2, 6))])
@pytest.mark.parametrize("preset", ["test", "train", "full"])
def test_separate_gpus_are_taken_from_all(settings, preset, rollout_gpus, split):
    written = settings(trainer="separate_async", preset=preset, gpus=8, rollout_gpus=rollout_gpus)
    rollout, actor = written["actor_rollout_ref"]["rollout"], written["actor_rollout_ref"]["actor"]
    assert (written["trainer"]["n_gpus_per_node"], rollout["n_gpus_per_node"]) == split
    assert rollout["checkpoint_engine"]["backend"] == "nccl"
    updates = written["trainer"]["v1"]["separate_async"]["parameter_sync_step"]
    assert written["data"]["train_batch_size"] == updates * actor["ppo_mini_batch_size"]


@pytest.mark.parametrize(("gpus", "rollout_gpus", "engine"), [(6, 2, 2), (5, 1, 1), (8, 4, 4)])
def test_engines_of_one_size_fit_both_kinds_of_gpus(settings, gpus, rollout_gpus, engine):
    choices = {"gpus": gpus, "rollout_gpus": rollout_gpus, "model": "Qwen/Qwen2.5-32B-Instruct"}
    written = settings(trainer="separate_async", preset="train", **choices)
    assert written["actor_rollout_ref"]["rollout"]["tensor_model_parallel_size"] == engine


def test_the_trainer_is_in_the_name_of_the_run():
    names = {RlRecipe(CRAFT, trainer=trainer).name for trainer in TRAINERS}
    assert len(names) == len(TRAINERS)


@pytest.mark.parametrize(
    ("choices", "message"),
    [
        ({"trainer": "async"}, "trainer='async' should be one of sync, colocate_async, separate_async"),
        ({"trainer": "colocate_async", "verl": "0.8"}, "verl 0.8 has no trainer="),
        ({"trainer": "colocate_async", "algorithm": "remax"}, "older trainer does ReMax"),
        ({"lora": 16, "verl": "0.7"}, "use engine='vllm'"),
        ({"rollout_gpus": 2}, "rollout_gpus needs trainer="),
        ({"trainer": "separate_async", "gpus": 1}, "gpus=1 into rollout_gpus=0"),
        ({"trainer": "separate_async", "gpus": 4, "rollout_gpus": 4}, "both need at least 1"),
        ({"trainer": "separate_async", "gpus": 8, "rollout_gpus": 5}, "=3 does not divide"),
        ({"trainer": "separate_async", "lora": 8}, "without the adapters"),
    ],
)
def test_contradicting_choices_are_errors(choices, message):
    with pytest.raises(ValueError, match=message):
        RlRecipe(CRAFT, **choices)
