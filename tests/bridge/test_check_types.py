"""The types of settings: those of `init` and `sft` are right, and a wrong one gets advice that fits."""

from __future__ import annotations

import pytest
import yaml

from check_mistakes import config, make_folder
from verl_bridge.recipes import PRESETS, SFT_PRESETS, VERSIONS, RlRecipe, SftRecipe, check
from verl_bridge.recipes._check_types import check_types
from verl_bridge.recipes._folder import render
from verl_bridge.recipes._sft_folder import render_sft
from verl_bridge.recipes._view import View

TEXTCRAFT, WEBSHOP = (f"agentgym_gym:agentgym/{name}-v0" for name in ("TextCraft", "WebShop"))

CHOICES = [
    {},
    {"algorithm": "ppo", "kl_coef": 0.0},
    {"algorithm": "gigpo", "seed": 4},
    {"lora": 8, "engine": "vllm", "offload": False},
    {"offload": True, "checkpointing": False, "gpus": 8},
    {"rollout_correction": True, "turns": (5, 10)},
    {"model": "Qwen/Qwen3-4B", "thinking": "hide"},
    {"tool_calls": True},
    {"trainer": "colocate_async"},
    {"trainer": "separate_async"},
    {"integration": "interaction"},
    {"like": "agentgym-rl"},
    {"like": "scalinginter-rl"},
    {"like": "gigpo", "env_id": WEBSHOP},
]


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("choices", CHOICES, ids=str)
def test_the_settings_of_init_have_the_right_types(tmp_path, version, choices):
    for preset in PRESETS:
        try:
            recipe = RlRecipe(verl=version, preset=preset, **{"env_id": TEXTCRAFT, **choices})
        except ValueError:  # of another version
            assert version != "0.9" or choices.get("integration") == "interaction"
            continue
        view = View(tmp_path, yaml.safe_load(render(recipe)["config.yaml"]))
        assert check_types(view) == ([], view)


@pytest.mark.parametrize("preset", SFT_PRESETS)
def test_the_settings_of_sft_have_the_right_types(tmp_path, preset):
    recipe = SftRecipe(preset=preset, validation=True, offload=True, max_length=20_000)
    view = View(tmp_path, yaml.safe_load(render_sft(recipe)["config.yaml"]))
    assert check_types(view, sft=True) == ([], view)


@pytest.mark.parametrize(
    ("key", "value", "text", "advice"),
    [
        ("actor_rollout_ref.actor.ppo_epochs", "many", "an integer from 1", "to an integer from 1"),
        ("actor_rollout_ref.actor.ppo_epochs", [3], "an integer from 1", "ppo_epochs: 3"),
        ("data.train_batch_size", "many", "an integer from 1", "train_batch_size: 8, as agentgym verl init"),
        ("data.train_batch_size", "8", "an integer from 1", "train_batch_size: 8"),
        ("data.max_response_length", None, "an integer from 1", "max_response_length: 6144, as agentgym"),
        ("actor_rollout_ref.rollout.n", 0, "an integer from 1", "rollout.n: 2, as agentgym verl init"),
        ("trainer.nnodes", 0, "an integer from 1", "to an integer from 1"),
        ("trainer.save_freq", "never", "or -1 for never", "save_freq: -1, as agentgym verl init"),
        ("actor_rollout_ref.actor.optim.lr", "fast", "a number", "lr: 5.0e-07, as agentgym verl init"),
        ("actor_rollout_ref.actor.use_kl_loss", "true", "true or false", "use_kl_loss: true"),
        ("actor_rollout_ref.rollout.name", ["vllm"], "a text", 'name: "vllm"'),
        ("algorithm", 5, "a group of settings", "to a group of settings"),
    ],
)
def test_the_advice_for_a_wrong_type_fits_the_setting(
    tmp_path, textcraft_url, monkeypatch, key, value, text, advice
):
    monkeypatch.setattr("verl_bridge.recipes._check_tasks.play_first_turns", lambda *_: ([], []))
    folder = make_folder(tmp_path, textcraft_url)
    config({key: value})(folder)
    (found,) = (each for each in check(folder)[0] if each.status == "problem")
    assert found.text.startswith(f"{key}=")
    assert text in found.text
    assert advice in found.advice
