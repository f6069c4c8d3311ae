"""Steps, updates and episodes of a run, names of runs, and how reasoning is treated."""

from __future__ import annotations

import itertools

import pytest

import command_line
from verl_bridge.recipes import LIKE, PRESETS, RlRecipe

CRAFT = "agentgym_gym:agentgym/TextCraft-v0"


@pytest.mark.parametrize(
    ("options", "lines"),
    [
        (
            ["--preset", "train"],
            [
                "Training: 300 steps, 1,200 updates of 64 episodes",
                "76,800 episodes\n",
                "Validation: 13 times 396 episodes",
                "Checkpoints: 12 kept",
            ],
        ),
        (["--preset", "train", "--tasks", "0:40", "--val", "8"], ["Training: 300 steps, "]),  # an epoch each
        (
            ["--preset", "full"],
            [
                "Training: 45 steps, 45 updates of 512 episodes",
                "23,040 episodes\n",
                "Validation: 6 times 44 episodes",
                "Few updates for learning: preset full makes 45 at 5e-07, and preset train makes 1,200",
                "Checkpoints: 2 kept",
            ],
        ),
        (["--preset", "train", "--like", "agentgym-rl"], ["Training: 360 steps, 2,880 updates"]),
        (["--preset", "train", "--algorithm", "remax"], [f"{300 * 2 * 256:,} episodes\n"]),
    ],
)
def test_init_prints_the_amount_of_the_run(tmp_path, options, lines):
    """Epochs have whole batches, and steps are the limit."""
    ended = command_line.run("verl", "init", "--env", "TextCraft", *options, "--out", tmp_path)
    assert ended.exit_code == 0
    assert [line for line in lines if line not in ended.output] == [], ended.output


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
    assert RlRecipe(CRAFT, model=model).thinks.mode == mode
    assert RlRecipe(CRAFT, model=model, thinking="keep").thinks.mode == "keep"


def test_invalid_reasoning_is_an_error():
    with pytest.raises(ValueError, match="has no switch for reasoning"):
        RlRecipe(CRAFT, model="Qwen/QwQ-32B", thinking="off")
    with pytest.raises(ValueError, match="thinking='hide' needs"):
        RlRecipe(CRAFT, verl="0.7", integration="interaction", thinking="hide")
    with pytest.raises(ValueError, match="thinking='loud'"):
        RlRecipe(CRAFT, thinking="loud")
    plain, hidden = RlRecipe(CRAFT).lengths, RlRecipe(CRAFT, thinking="hide").lengths
    assert (plain.reply, hidden.reply) == (512, 2_048)
    assert hidden.response == plain.response + 20 * (2_048 - 512) // 2


def test_a_prompt_has_room_for_a_summary():
    def lengths(history):
        return RlRecipe(CRAFT, rows="turn", history=history).lengths

    plain, summarized = lengths("turns:2"), lengths("turns:2,summary")
    assert (summarized.prompt - plain.prompt, summarized.response) == (512, plain.response)
    assert lengths("tokens:1500,summary") == lengths("tokens:1500")
