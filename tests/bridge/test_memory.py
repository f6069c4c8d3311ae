"""The estimates of GPU memory and of tokens: by hand, published limits, and the settings chosen by them."""

from __future__ import annotations

import json
import math
import re
from dataclasses import replace
from pathlib import Path

import pytest

from verl_bridge.recipes import RlRecipe
from verl_bridge.recipes._amount import amount_of, describe
from verl_bridge.recipes._check_episodes import PlayedEpisode
from verl_bridge.recipes._check_lengths import percentile_tokens
from verl_bridge.recipes._gpu_memory import GB, Sizing, choose, estimate
from verl_bridge.recipes._model_size import ModelSize, model_size

PAGE = Path(__file__).resolve().parents[2] / "docs/training/memory.md"
SMALL = ModelSize(1e9, 10, 1_000, 100_000, 250, "a test")
WEBSHOP = "agentgym_gym:agentgym/WebShop-v0"

EPISODE = 391
"""Tokens of a GSM8K episode: the one number fitted to the limits below, their median."""

# Of verl's examples/tuning: model, GPUs, tensor parallel, engine's share, largest micro-batch that ran.
LIMITS = [
    ("Qwen2.5-1.5B", 1, 1, 0.1, 128),
    ("Qwen2.5-3B", 1, 1, 0.1, 62),
    ("Qwen2.5-7B", 1, 1, 0.2, 100),
    ("Qwen2.5-14B", 2, 2, 0.25, 58),
    ("Qwen2.5-32B", 4, 4, 0.3, 44),
    ("Qwen2.5-72B", 8, 8, 0.4, 22),
]


def largest(model, gpus, parallel, share):
    """The largest micro-batch that fits by the estimate."""
    sizing = Sizing(
        gpus, 0, 0, activation_offload=False, tensor_parallel=parallel, utilization=share, lora=32
    )
    size = model_size(model)
    batches = (n for n in range(1, 1_000) if estimate(size, replace(sizing, tokens=n * EPISODE)).fits)
    return max(batches)


@pytest.mark.parametrize(("model", "gpus", "parallel", "share", "published"), LIMITS)
def test_the_page_has_the_error_of_each_published_limit(model, gpus, parallel, share, published):
    estimated = largest(model, gpus, parallel, share)
    (row,) = re.findall(rf"^\| {re.escape(model)} \|.*$", PAGE.read_text("utf-8"), re.MULTILINE)
    error = estimated / published - 1
    assert row.endswith(f"| {published} | {estimated} | {error:+.0%} |"), (row, estimated, f"{error:+.0%}")
    assert -0.35 < error < 0.75


def test_the_parts_match_the_docstring():
    sizing = Sizing(2, 1_000, 500, offload=False, activation_offload=False, utilization=0.5, critic=True)
    made = estimate(SMALL, sizing, memory=40)
    assert made.update == {
        "weights": 2e9,
        "Adam": 4e9,
        "gradients": 2e9,
        "reference": 1e9,
        "critic": 6e9,
        "gathered layers": 4 * 9e8 / 10 + 2e8,
        "activations": 1_000 * 1_000 * (2 * 10 + 34),
        "logits": 8e8,
        "other": 6 * GB,
    }
    assert (made.forward["logits"], made.forward["gradients"]) == (3e8, 0)
    assert made.generation["engine"] == 20 * GB
    assert made.cached == 2 * int((20 * GB - 2e9) / (4 * 10 * 250))
    assert made.host == 0
    offloaded = estimate(SMALL, replace(sizing, offload=True), memory=40)
    assert offloaded.host == 2 * 13e9
    assert set(offloaded.generation) == {"engine", "other"}
    adapters = estimate(SMALL, replace(sizing, lora=8))
    assert adapters.update["gradients"] == 4 * 18 * 1_000 * 10 * 8 / 2
    assert adapters.update["reference"] == 0


@pytest.mark.parametrize(
    ("model", "billions"),
    [("Qwen/Qwen3-4B-Instruct-2507", 4), ("a/b-0.6b", 0.6), ("x/llama-8b-v3.1", 8), ("x/Qwen2.5-VL-72B", 72)],
)
def test_a_size_is_read_from_a_name(model, billions):
    assert model_size(model).parameters == billions * 1e9


@pytest.mark.parametrize("model", ["gpt2", "a/4bit", "x/beta", "my-4b2", "x/0B"])
def test_a_name_without_a_size_is_unknown(model):
    assert model_size(model) is None
    text = " ".join(describe(made := RlRecipe(WEBSHOP, model=model, preset="train"), amount_of(made, 99, 9)))
    assert f"Memory: unknown, since {model} has no config.json here and no size in its name" in text


def test_a_size_is_read_from_config_json(tmp_path):
    config = {
        "hidden_size": 64,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "vocab_size": 1_000,
        "intermediate_size": 128,
        "model_type": "llama",
    }
    (tmp_path / "config.json").write_text(json.dumps(config))
    layer = 2 * 64 * 64 + 2 * 64 * 32 + 3 * 64 * 128
    assert model_size(str(tmp_path)) == ModelSize(
        2 * layer + 2 * 64_000, 2, 64, 1_000, 32, "its config.json", heads=(4, 2), type="llama"
    )
    (tmp_path / "config.json").write_text("{")
    assert model_size(str(tmp_path)) is None


@pytest.mark.parametrize(
    ("model", "gpus", "memory", "episode", "offload", "parallel"),
    [
        ("x/4B", 8, 80, 16_384, False, 1),
        ("x/8B", 8, 80, 16_384, False, 1),
        ("x/8B", 4, 80, 16_384, False, 1),
        ("x/32B", 16, 80, 16_384, False, 4),
        ("x/8B", 4, 64, 8_192, True, 1),
        ("x/14B", 8, 64, 8_192, True, 2),
    ],
)
def test_settings_fit_and_have_room_for_one_episode(model, gpus, memory, episode, offload, parallel):
    size = model_size(model)
    chosen = choose(size, episode, Sizing(gpus, episode, episode), memory=memory)
    assert (chosen.offload, chosen.tensor_parallel) == (offload, parallel)
    assert estimate(size, chosen, memory).fits
    assert episode <= chosen.tokens <= chosen.forward_tokens
    assert 0.5 <= chosen.utilization <= 0.7


def test_settings_that_do_not_fit_are_a_warning_and_the_smallest_ones():
    made = RlRecipe(WEBSHOP, model="x/7B", gpus=1, preset="train")
    assert (made.sizing.offload, made.sizing.activation_offload, made.sizing.tokens) == (True, True, 16_384)
    assert "does not fit by this estimate; use more --gpus, --lora 32" in " ".join(
        describe(made, amount_of(made, 96, 96))
    )


def test_options_override_the_estimate():
    made = RlRecipe(WEBSHOP, model="x/4B", gpus=8, preset="train")
    assert made.sizing.offload is False
    assert replace(made, offload=True).sizing.offload is True
    assert replace(made, gpu_memory=24.0).sizing.offload is True
    assert RlRecipe(WEBSHOP).sizing.offload is True  # as in the preset test


def tokens(*episodes, turns=math.inf, reply=0, reply_limit=None, observation_limit=10**6):
    limits = {"reply": reply, "reply_limit": reply_limit, "observation_limit": observation_limit}
    return percentile_tokens(episodes, len, turns=turns, **limits)


def test_the_tokens_of_an_episode_are_estimated_from_played_ones():
    """A character is a token here."""
    short = PlayedEpisode("oracle", ["ab"] * 2, ["o" * 8] * 2)
    long = PlayedEpisode("random", ["a"] * 4, ["o" * 29] * 4)
    assert tokens(short) == 2 * (2 + 8)
    assert tokens(short, turns=10) == 10 * (2 + 8)  # as if it had gone on
    assert tokens(short, long) == 20 + 0.9 * (4 * 30 - 20)
    assert tokens(short, reply=5) == 2 * (5 + 8)
    assert tokens(short, reply=5, reply_limit=3) == 2 * (3 + 8)
    assert tokens(long, observation_limit=9) == 4 * (1 + 9)
    assert tokens(long, turns=2) == 4 * 30  # more than the limit were played
