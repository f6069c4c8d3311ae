"""The settings that are written are YAML, and their templates are too."""

from __future__ import annotations

from importlib import resources

import pytest
import yaml

from verl_bridge.recipes import LIKE, VERSIONS, RlRecipe, published_by, write

CRAFT = "agentgym_gym:agentgym/TextCraft-v0"
TEMPLATES = resources.files("verl_bridge.recipes") / "templates"


def written(folder, **choices):
    write(RlRecipe(CRAFT, **choices), folder)
    text = (folder / "config.yaml").read_text()
    return text, yaml.safe_load(text)


def test_values_are_read_unchanged(tmp_path):
    model = 'own/"4B": <model> #é'
    text, config = written(tmp_path, model=model, preset="train", lora=8, kl_coef=1e-7)
    assert config["actor_rollout_ref"]["model"]["path"] == model
    actor = config["actor_rollout_ref"]["actor"]
    assert (actor["kl_loss_coef"], actor["optim"]["lr"]) == (1e-7, 3e-5)
    assert "  # For adapters, from verl's" in text  # a value in a comment


@pytest.mark.parametrize(("seed", "values"), [(None, {}), (0, {"seed": 0})])
def test_zero_is_a_value(tmp_path, seed, values):
    _, config = written(tmp_path, seed=seed)
    assert {name: value for name, value in config["data"].items() if name == "seed"} == values


@pytest.mark.parametrize("name", [*(f"verl-{version}" for version in VERSIONS), "sft", "interaction"])
def test_a_template_can_be_read_before_it_is_filled(name):
    assert yaml.safe_load((TEMPLATES / f"{name}.yaml").read_text("utf-8"))


def test_every_overlay_has_a_name_and_every_name_an_overlay():
    assert {file.name for file in (TEMPLATES / "papers").iterdir()} == {f"{like}.yaml" for like in LIKE}


@pytest.mark.parametrize("like", LIKE)
def test_each_setting_of_an_overlay_has_its_name_in_the_source(like):
    for paper in published_by(like).values():
        assert set(paper.settings) <= set(paper.named)
