"""The errors of recipes are data: the argument, its value and what it should be."""

from __future__ import annotations

import pytest

from agentgym_gym.errors import BadOption
from verl_bridge.recipes import EnvChoice, RlRecipe, SftRecipe

CRAFT = "agentgym_gym:agentgym/TextCraft-v0"


@pytest.mark.parametrize(
    ("choices", "argument", "value", "expected"),
    [
        ({"engine": "hf"}, "engine", "'hf'", "one of sglang, vllm"),
        ({"lora": -1}, "lora", "-1", "a whole number, 0 or more"),
        ({"turns": (10, 0)}, "turns", "0", "at least 1"),
        ({"turns_every": 0}, "turns_every", "0", "a whole number, 1 or more"),
        ({"kl_coef": float("inf")}, "kl_coef", "inf", "a finite number, 0 or more"),
        ({"isolate": "moon"}, "isolate", "'moon'", "one of loop, thread, process"),
        ({"gpus": 3}, "gpus", "3", ""),
        ({"model": ""}, "model", "''", ""),
        ({"like": "gigpo", "envs": [EnvChoice(CRAFT), EnvChoice("a/B-v0")]}, "like", "'gigpo'", ""),
    ],
)
def test_of_reinforcement_learning(choices, argument, value, expected):
    with pytest.raises(BadOption) as caught:
        RlRecipe(**{"env_id": "" if "envs" in choices else CRAFT, **choices})
    assert (caught.value.argument, caught.value.value, caught.value.expected) == (argument, value, expected)
    assert str(caught.value).startswith(f"{argument}={value} ")


@pytest.mark.parametrize(
    ("choices", "argument", "message"),
    [
        ({"learning_rate": 2}, "learning_rate", "learning_rate=2 should be above 0 and below 1"),
        ({"gpus": 3}, "gpus", "gpus=3 does not divide the batch of 8 games, as verl requires"),
        (
            {"eval_engine": "hf"},
            "eval_engine",
            "eval_engine='hf' should be one of sglang, vllm, transformers",
        ),
    ],
)
def test_of_fine_tuning(choices, argument, message):
    with pytest.raises(BadOption) as caught:
        SftRecipe(**choices)
    assert caught.value.as_dict()["argument"] == argument
    assert str(caught.value) == message


def test_of_two_choices_have_the_names_of_both():
    with pytest.raises(BadOption) as caught:
        RlRecipe(CRAFT, verl="0.7", integration="interaction", algorithm="gigpo")
    renamed = caught.value.renamed({"algorithm": "--algorithm", "integration": "--integration"})
    assert str(renamed).startswith("--algorithm='gigpo' needs the turns of each episode")
    assert str(renamed).endswith("use --integration='agent-loop'")
