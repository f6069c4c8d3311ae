"""The choices of recipes that tests write, and the versions of verl that have them."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from typing import Any

from verl_bridge.recipes import ALGORITHMS, INTEGRATIONS, PRESETS, VERSIONS, EnvChoice

MAZE, TEXTCRAFT, WEBSHOP = (f"agentgym_gym:agentgym/{name}-v0" for name in ("Maze", "TextCraft", "WebShop"))
ENGINES = ("sglang", "vllm")
GROUPED = {"grpo", "rloo", "gigpo"}
NO_INTERACTION = {"remax", "gigpo", "turn_ppo"}
THINKING = "Qwen/Qwen3-4B"

OF_ALGORITHMS: list[dict[str, Any]] = [
    {"algorithm": algorithm, "integration": integration}
    for algorithm, integration in itertools.product(ALGORITHMS, INTEGRATIONS)
    if integration == "agent-loop" or algorithm not in NO_INTERACTION
]
OPTIONS: list[dict[str, Any]] = [
    {"algorithm": "ppo", "kl_coef": 0.0},
    {"algorithm": "gigpo", "seed": 4},
    {"algorithm": "turn_ppo", "invalid_action_penalty": 0.1, "format_penalty": 0.1},
    {"lora": 8, "engine": "vllm", "offload": False},
    {"lora": 16},
    {"lora": 16, "engine": "vllm", "algorithm": "ppo"},
    {"offload": True, "checkpointing": False, "gpus": 8},
    {"rollout_correction": True, "turns": (5, 10)},
    {"model": THINKING, "thinking": "hide"},
    {"model": THINKING, "thinking": "keep"},
    {"model": THINKING, "turns": (5, 10)},
    {"model": "Qwen/Qwen3-8B", "thinking": "hide", "lora": 32, "engine": "vllm", "seed": 3, "gpu_memory": 48},
    {"tool_calls": True, "engine": "vllm"},
    {"env_id": "", "envs": (EnvChoice(TEXTCRAFT), EnvChoice(MAZE, isolate="thread"))},
    {"trainer": "colocate_async"},
    {"trainer": "colocate_async", "engine": "vllm", "lora": 8, "gpus": 8},
    {"trainer": "separate_async"},
    {"trainer": "separate_async", "engine": "vllm", "gpus": 8},
    {"filter_groups": True, "algorithm": "gigpo"},
    {"filter_groups": True, "trainer": "colocate_async"},
    {"filter_groups": True, "trainer": "separate_async"},
    {"policy_loss": "clip-higher"},
    {"policy_loss": "gspo", "engine": "vllm"},
    {"policy_loss": "cispo", "algorithm": "rloo"},
    {"policy_loss": "gspo", "rows": "turn"},
    {"sequence_parallel": 2},
    {"sequence_parallel": 4, "algorithm": "ppo", "gpus": 8},
    {"fused_kernels": True, "engine": "vllm"},
    {"fused_kernels": False, "gpu_memory": 24},
    {"nodes": 2, "gpus": 8},
    {"nodes": 4, "trainer": "separate_async"},
]
PUBLISHED: list[dict[str, Any]] = [
    {"like": "agentgym-rl"},
    {"like": "scalinginter-rl"},
    {"like": "gigpo", "env_id": WEBSHOP},
    {"like": "gigpo", "env_id": "agentgym_gym:agentgym/ALFWorld-v0"},
    {"like": "gigpo", "env_id": WEBSHOP, "algorithm": "turn_ppo"},
]
CHOICES = [*OF_ALGORITHMS, *OPTIONS, *PUBLISHED]


def versions(choices: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the versions of verl for which there is such a recipe, the newest last."""
    if choices.get("integration") == "interaction":
        return VERSIONS[:1]
    if {"trainer", "filter_groups", "rows"} & {*choices}:
        return VERSIONS[-1:]
    if choices.get("fused_kernels"):
        return VERSIONS[1:]
    adapters = "lora" in choices and choices.get("engine") != "vllm"
    return VERSIONS[1:] if adapters or choices.get("algorithm") == "remax" else VERSIONS


def of_verl(version: str) -> Iterator[dict[str, Any]]:
    """Yield recipes that a version of verl composes, each in a second, with their preset.

    They are each algorithm with each preset and each engine, and each option once.
    """
    number = 0
    for choices in [*OF_ALGORITHMS, *OPTIONS]:
        if version not in versions(choices):
            continue
        if choices in OPTIONS:
            yield choices | {"preset": "train"}
            continue
        # The preset does not change how an interaction is named.
        presets = [*PRESETS] if choices["integration"] == "agent-loop" else ["test"]
        for preset in presets:
            number += 1
            more = {"engine": ENGINES[number % 2], "offload": number % 3 > 0, "checkpointing": number % 3 > 0}
            yield choices | more | {"preset": preset}
