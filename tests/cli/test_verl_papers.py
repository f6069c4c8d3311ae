"""`agentgym verl init --like`: the settings that papers published, and what goes before them."""

from __future__ import annotations

import pytest
import yaml

from agentgym_gym import find
from verl_bridge.recipes import LIKE, VERSIONS, published_by

CHOICES = [(like, env) for like in LIKE for env in published_by(like)]


def made(run, folder, env, *options):
    first = find(env).split("train")[0]
    tasks = f"{first}:{first + 300}"
    ended = run("verl", "init", "--env", env, "--tasks", tasks, "--out", folder, *options)
    assert ended.exit_code == 0, ended.stderr
    config = yaml.safe_load((folder / "config.yaml").read_text())
    (loop,) = yaml.safe_load((folder / "agent_loop.yaml").read_text())
    return config, loop


def value_at(config, key):
    """The setting of a key in dots."""
    for part in key.split("."):
        config = config[part]
    return config


def comments(file):
    """The comments of a file in one line."""
    return " ".join(
        line.strip(" #") for line in file.read_text().splitlines() if line.lstrip().startswith("#")
    )


@pytest.mark.parametrize(("like", "env"), CHOICES, ids=lambda value: value.rpartition("/")[2])
def test_each_published_value_has_its_source(run, tmp_path, like, env):
    paper = published_by(like)[env]
    config, loop = made(run, tmp_path, env.rpartition("/")[2][:-3], "--like", like, "--preset", "full")
    said = comments(tmp_path / "config.yaml") + " " + comments(tmp_path / "agent_loop.yaml")
    arxiv = {"gigpo": "2505.10978"}.get(like, "2509.08755")
    assert f"arXiv {arxiv}, examples/" in said
    expected = {
        "data.train_batch_size": config["data"]["train_batch_size"],
        "actor_rollout_ref.rollout.n": config["actor_rollout_ref"]["rollout"]["n"],
        "actor_rollout_ref.actor.optim.lr": config["actor_rollout_ref"]["actor"]["optim"]["lr"],
        "actor_rollout_ref.actor.kl_loss_coef": config["actor_rollout_ref"]["actor"]["kl_loss_coef"],
        "actor_rollout_ref.model.path": config["actor_rollout_ref"]["model"]["path"],
        "agent_loop.max_tokens_per_turn": loop["max_tokens_per_turn"],
    }
    for key, value in expected.items():
        assert value == paper.settings[key]
        assert f"{paper.source}: {paper.named[key]} is {value}." in said
    assert loop["env_kwargs"]["max_turns"] == max(paper.turns)
    if len(paper.turns) > 1:
        assert loop["horizon"] == {"turns": [*paper.turns], "every": paper.settings["agent_loop.every"]}
        assert f"{paper.named['agent_loop.every']} is {paper.settings['agent_loop.every']}." in said
    else:
        assert loop["max_turns"] == paper.turns[0]
    assert f"{paper.named['agent_loop.turns']} is {[*paper.turns]}." in said
    own = {key: value for key, value in paper.settings.items() if not key.startswith("agent_loop.")}
    for key, value in own.items():
        if key != "data.max_prompt_length":  # the first observation needs more
            assert value_at(config, key) == value
            assert f"{paper.source}: {paper.named[key]} is {value}." in said
    readme = (tmp_path / "README.md").read_text()
    assert f"The settings are those of {paper.source}" in readme
    assert ("GiGPO's advantages are those of this library" in readme) is (like == "gigpo")
    assert config["algorithm"]["adv_estimator"] == ("gym_gigpo" if like == "gigpo" else "grpo")


def test_one_passes_over_a_small_batch_by_the_preset_that_tests(run, tmp_path):
    config, loop = made(run, tmp_path, "WebArena", "--like", "scalinginter-rl", "--preset", "test")
    assert config["data"]["train_batch_size"] == 8
    assert config["actor_rollout_ref"]["actor"]["ppo_mini_batch_size"] == 4
    assert config["actor_rollout_ref"]["actor"]["ppo_epochs"] == 2
    assert loop["horizon"] == {"turns": [8, 12, 15], "every": 80}
    assert "train_batch_size is" not in comments(tmp_path / "config.yaml")


def test_options_override_the_settings_of_a_paper(run, tmp_path):
    options = ["--model", "a/b", "--turns", "7", "--kl-coef", "0.5", "--algorithm", "rloo", "--verl", "0.8"]
    config, loop = made(run, tmp_path, "BabyAI", "--like", "scalinginter-rl", *options)
    assert config["actor_rollout_ref"]["model"]["path"] == "a/b"
    assert config["actor_rollout_ref"]["actor"]["kl_loss_coef"] == 0.5
    assert config["algorithm"]["adv_estimator"] == "rloo"
    assert (loop["max_turns"], "horizon" in loop) == (7, False)
    said = comments(tmp_path / "config.yaml") + comments(tmp_path / "agent_loop.yaml")
    assert not [name for name in ("pure_agent_model_name", "kl_loss_coef", "rounds") if name in said]
    assert "policy_learning_rate is 1e-06" in said


def test_a_discount_of_turns_is_not_one_of_tokens(run, tmp_path):
    """The paper's gamma counts turns, and PPO's counts tokens."""
    config, _ = made(run, tmp_path, "WebShop", "--like", "gigpo", "--algorithm", "ppo")
    assert "gamma" not in config["algorithm"]


@pytest.mark.parametrize("version", VERSIONS)
def test_without_kl_there_is_no_reference(run, tmp_path, version):
    config, _ = made(run, tmp_path, "TextCraft", "--kl-coef", "0", "--verl", version)
    assert config["actor_rollout_ref"]["actor"]["use_kl_loss"] is False
    assert "ref" not in config["actor_rollout_ref"]
