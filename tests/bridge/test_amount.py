"""Steps, updates and episodes of a run, names of runs, and how reasoning is treated."""

from __future__ import annotations

import itertools

import pytest

from verl_bridge.recipes import LIKE, PRESETS, RlRecipe
from verl_bridge.recipes._amount import amount_of, describe
from verl_bridge.recipes._thinking import thinking_of

CRAFT = "agentgym_gym:agentgym/TextCraft-v0"


def test_an_epoch_has_whole_batches_and_steps_are_the_limit():
    train = amount_of(made := RlRecipe(CRAFT, preset="train", val_tasks=54), rows=490, val_rows=54)
    assert (train.steps, train.updates, train.episodes) == (300, 1_200, 300 * 32 * 8)
    assert (train.validations, train.val_episodes, train.checkpoints) == (13, 54 * 8, 12)
    assert amount_of(made, rows=32, val_rows=54).steps == 300  # one step an epoch, so 300 epochs
    full = amount_of(made := RlRecipe(CRAFT, preset="full"), rows=490, val_rows=54)
    assert (full.steps, full.updates, full.episodes, full.checkpoints) == (45, 45, 45 * 128 * 4, 2)
    assert (
        "Few updates for learning: preset full makes 45 at 5e-07, and preset train makes 1,200"
        in " ".join(describe(made, full))
    )
    like = amount_of(RlRecipe(CRAFT, preset="train", like="agentgym-rl"), rows=490, val_rows=54)
    assert (like.steps, like.updates) == (450, 3_600)  # as published
    remax = amount_of(RlRecipe(CRAFT, preset="train", algorithm="remax"), rows=490, val_rows=54)
    assert remax.episodes == 300 * 2 * 256


@pytest.mark.parametrize("tasks", [1, 2, 54, 100, 384, 385, 691])
def test_a_validation_has_enough_episodes(tasks):
    samples = RlRecipe(CRAFT, preset="train", val_tasks=tasks).val_samples
    assert tasks * samples >= 385
    assert tasks * (samples - 1) < 385
    assert RlRecipe(CRAFT, preset="full", val_tasks=tasks).val_samples is None


def test_no_two_runs_have_one_name():
    envs = [CRAFT, "agentgym_gym:agentgym/WebArena-v0", "mine:own/TextCraft-v0", "mine:own:TextCraft-v0"]
    models = ["Qwen/Qwen3-4B", "other/Qwen3-4B", "/a/merged", "/b/merged"]
    choices = [
        {"env_id": env, "algorithm": algorithm, "preset": preset, "model": model, "seed": seed}
        for env, algorithm, preset, model, seed in itertools.product(
            envs, ("grpo", "rloo", "gigpo"), PRESETS, models, (None, 0, 1)
        )
    ]
    choices += [{"env_id": CRAFT, "like": like} for like in LIKE if like != "gigpo"]
    choices += [{"env_id": CRAFT, "lora": 8}, {"env_id": CRAFT, "rollout_correction": True}]
    names = [RlRecipe(**choice).name for choice in choices]
    assert len(set(names)) == len(names)
    assert not [name for name in names if "/" in name or ":" in name]


@pytest.mark.parametrize(
    ("model", "mode"),
    [
        ("Qwen/Qwen3-4B", "off"),
        ("Qwen/Qwen3-30B-A3B", "off"),
        ("Qwen/Qwen3-4B-Instruct-2507", None),
        ("Qwen/Qwen3-4B-Thinking-2507", "hide"),
        ("deepseek-ai/DeepSeek-R1-Distill-Qwen-7B", "hide"),
        ("Qwen/Qwen2.5-7B-Instruct", None),
    ],
)
def test_reasoning_follows_the_name(model, mode):
    assert thinking_of(model, None).mode == mode
    assert thinking_of(model, "keep").mode == "keep"


def test_reasoning_that_cannot_be_is_refused():
    with pytest.raises(ValueError, match="has no switch for reasoning; use 'hide'"):
        RlRecipe(CRAFT, model="Qwen/QwQ-32B", thinking="off")
    with pytest.raises(ValueError, match="needs this library's agent loop"):
        RlRecipe(CRAFT, verl="0.7", integration="interaction", thinking="hide")
    with pytest.raises(ValueError, match="thinking='loud' is not one of off, hide, keep"):
        RlRecipe(CRAFT, thinking="loud")
    plain, hidden = RlRecipe(CRAFT).lengths, RlRecipe(CRAFT, thinking="hide").lengths
    assert (plain.reply, hidden.reply) == (512, 2_048)
    assert hidden.response == plain.response + 20 * (2_048 - 512) // 2
