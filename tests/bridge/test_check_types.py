"""`check` finds no value of a wrong type in the settings that `init` and `sft` write."""

from __future__ import annotations

import pytest
import yaml

from verl_bridge.recipes import PRESETS, SFT_PRESETS, VERSIONS, RlRecipe, SftRecipe
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
