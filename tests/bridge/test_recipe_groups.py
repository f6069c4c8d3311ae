"""Recipes that replace groups without signal: what is written, and what is refused."""

from __future__ import annotations

import pytest
import yaml

from verl_bridge.recipes import RlRecipe, check, write

CRAFT = "agentgym_gym:agentgym/TextCraft-v0"
TRAINERS = ("sync", "colocate_async", "separate_async")


def written(folder, **choices):
    write(RlRecipe(CRAFT, **choices), folder)
    return yaml.safe_load((folder / "config.yaml").read_text())


@pytest.mark.parametrize("algorithm", ["grpo", "rloo", "gigpo"])
@pytest.mark.parametrize("preset", ["test", "train", "full"])
@pytest.mark.parametrize("trainer", TRAINERS)
def test_every_trainer_compares_scores(tmp_path, algorithm, preset, trainer):
    settings = written(tmp_path, algorithm=algorithm, preset=preset, trainer=trainer, filter_groups=True)
    assert settings["algorithm"]["filter_groups"] == {"enable": True, "metric": "reward"}


def test_without_the_choice_nothing_is_written(tmp_path):
    assert "filter_groups" not in written(tmp_path)["algorithm"]


@pytest.mark.parametrize("like", ["agentgym-rl", "scalinginter-rl"])
def test_published_settings_can_be_filtered(tmp_path, like):
    settings = written(tmp_path, like=like, filter_groups=True)
    assert settings["algorithm"]["filter_groups"]["enable"] is True


@pytest.mark.parametrize("trainer", TRAINERS)
def test_check_accepts_the_folder(tmp_path, trainer):
    written(tmp_path, trainer=trainer, filter_groups=True)
    findings, _ = check(tmp_path)
    (found,) = (each for each in findings if each.check == "groups")
    assert (found.status, found.text) == (
        "ok",
        "groups whose played episodes have the same reward are replaced",
    )
    assert {each.check for each in findings if each.status == "problem"} <= {"data"}


def test_check_is_silent_without_the_filter(tmp_path):
    written(tmp_path)
    findings, _ = check(tmp_path)
    assert not [each for each in findings if each.check == "groups"]


def test_the_filter_is_in_the_name_of_the_run():
    assert RlRecipe(CRAFT, filter_groups=True).name != RlRecipe(CRAFT).name


@pytest.mark.parametrize(
    ("choices", "message"),
    [
        ({"verl": "0.8"}, "verl 0.8 does not replace groups, as filter_groups requires: use verl 0.9"),
        ({"verl": "0.7", "integration": "interaction"}, "verl 0.7 does not replace groups"),
        ({"algorithm": "ppo"}, "algorithm='ppo' does not compare .*: use one of gigpo, grpo, rloo"),
        ({"algorithm": "remax"}, "algorithm='remax' does not compare"),
        ({"algorithm": "reinforce_plus_plus"}, "does not compare the samples of a prompt"),
    ],
)
def test_contradicting_choices_are_errors(choices, message):
    with pytest.raises(ValueError, match=message):
        RlRecipe(CRAFT, filter_groups=True, **choices)
