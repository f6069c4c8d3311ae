"""`agentgym verl init --like`: the settings that papers published, and what goes before them."""

from __future__ import annotations

import pyarrow.parquet as pq
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


ROWS = {"ALFWorld": (32, 256, 128), "WebShop": (8, 64, 256), "SearchQA": (100, 512, 385)}
"""Prompts in an update, published rows in an update, and episodes of a validation."""


@pytest.mark.parametrize("env", ROWS)
def test_gigpo_has_a_row_for_each_turn(run, tmp_path, env):
    config, loop = made(run, tmp_path, env, "--like", "gigpo", "--preset", "train")
    prompts, rows, episodes = ROWS[env]
    actor, rollout = config["actor_rollout_ref"]["actor"], config["actor_rollout_ref"]["rollout"]
    assert (loop["rows"], loop["history"]) == ("turn", "turns:4" if env == "SearchQA" else "turns:2")
    assert loop["invalid_action_penalty"] == (0.01 if env == "SearchQA" else 0.1)
    assert actor["ppo_mini_batch_size"] == prompts
    readme, said = (tmp_path / "README.md").read_text(), comments(tmp_path / "config.yaml")
    if env == "SearchQA":
        assert f"An update has 500 rows, and {rows} there" in readme
    else:
        assert f"ppo_mini_batch_size, of turns, is {rows}." in said
        assert "An update has" not in readme
    assert actor["use_dynamic_bsz"] is True  # otherwise verl allows no more prompts than in a batch
    assert config["algorithm"]["norm_adv_by_std_in_grpo"] is (env != "WebShop")
    assert ("a tenth of the published ones" in readme) is (env == "WebShop")
    assert "As there, a row is a turn" in readme
    assert "a row for each turn needs verl 0.9" not in readme
    tasks = pq.read_metadata(tmp_path / "data/val.parquet").num_rows
    assert tasks * rollout["val_kwargs"]["n"] >= episodes > tasks * (rollout["val_kwargs"]["n"] - 1)
    assert config["data"]["max_response_length"] == loop["max_tokens_per_turn"] == 512


@pytest.mark.parametrize("options", [["--verl", "0.8"], ["--rows", "episode"]])
def test_gigpo_keeps_rows_of_episodes_where_turns_are_not_possible(run, tmp_path, options):
    config, loop = made(run, tmp_path, "WebShop", "--like", "gigpo", *options)
    assert "rows" not in loop
    assert loop["invalid_action_penalty"] == 0.1
    assert config["actor_rollout_ref"]["actor"]["ppo_mini_batch_size"] == 16
    readme = (tmp_path / "README.md").read_text()
    assert "A row is a whole episode: a row for each turn needs verl 0.9." in readme
    assert "As there, a row is a turn" not in readme
    again = run("verl", "init", "--env", "WebShop", "--like", "gigpo", *options, "--force", "--out", tmp_path)
    assert "Rows are whole episodes, and turns in gigpo" in again.output


def test_a_penalty_on_the_command_line_replaces_the_published_one(run, tmp_path):
    options = ["--invalid-action-penalty", "0", "--format-penalty", "0.2"]
    _, loop = made(run, tmp_path, "WebShop", "--like", "gigpo", *options)
    assert "invalid_action_penalty" not in loop
    assert loop["format_penalty"] == 0.2
    assert "- No penalty for an invalid action." in (tmp_path / "README.md").read_text()


def test_turn_ppo_has_a_critic_and_rewards_by_turn(run, tmp_path):
    config, loop = made(run, tmp_path, "WebShop", "--algorithm", "turn_ppo", "--rows", "turn")
    assert config["algorithm"]["adv_estimator"] == "gym_turn_gae"
    assert (config["algorithm"]["gamma"], config["algorithm"]["lam"]) == (0.99, 0.9)
    assert config["critic"]["enable"] is True
    assert (loop["turn_rewards"], loop["rows"]) == (True, "turn")


def test_a_discount_of_turns_is_not_one_of_tokens(run, tmp_path):
    """The paper's gamma counts turns, and PPO's counts tokens."""
    config, _ = made(run, tmp_path, "WebShop", "--like", "gigpo", "--algorithm", "ppo")
    assert "gamma" not in config["algorithm"]


@pytest.mark.parametrize("version", VERSIONS)
def test_without_kl_there_is_no_reference(run, tmp_path, version):
    config, _ = made(run, tmp_path, "TextCraft", "--kl-coef", "0", "--verl", version)
    assert config["actor_rollout_ref"]["actor"]["use_kl_loss"] is False
    assert "ref" not in config["actor_rollout_ref"]
