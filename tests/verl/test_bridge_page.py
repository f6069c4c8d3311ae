"""What docs/training/bridge.md shows is what the bridge reads."""

from __future__ import annotations

import ast
import importlib.util
import inspect
import re
from pathlib import Path

import pytest

import needs

pytest.importorskip("verl", reason=needs.reason("verl"))

from verl_bridge.agent_loop import GymAgentLoop
from verl_bridge.interaction import GymInteraction
from verl_bridge.tasks import EnvTask
from verl_worker import compose, initialize_config_module

HAS_INTERACTIONS = importlib.util.find_spec("verl.interactions") is not None
PAGE = (Path(__file__).parents[2] / "docs" / "training" / "bridge.md").read_text("utf-8")


def blocks(language):
    return re.findall(rf"^```{language}\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)


def test_the_row():
    (text,) = blocks("python")
    task = EnvTask.of(ast.literal_eval(re.sub(r"#.*", "", text.removeprefix("row = "))))
    assert task == EnvTask("agentgym_gym:agentgym/Maze-v0", {}, {"task_id": 7})


def test_the_yaml():
    from omegaconf import OmegaConf

    *loops, interactions = map(OmegaConf.create, blocks("yaml"))
    assert loops
    for (loop,) in loops:
        assert loop.pop("_target_") == f"{GymAgentLoop.__module__}.{GymAgentLoop.__name__}"
        assert set(loop) - {"name"} <= set(inspect.signature(GymAgentLoop.__init__).parameters)
    (interaction,) = interactions.interaction
    assert interaction.class_name == f"{GymInteraction.__module__}.{GymInteraction.__name__}"
    if HAS_INTERACTIONS:
        GymInteraction(OmegaConf.to_container(interaction.config))


@pytest.mark.skipif(not HAS_INTERACTIONS, reason="this verl has no interactions")
def test_the_settings():
    (text,) = blocks("text")
    with initialize_config_module("verl.trainer.config", version_base=None):
        settings = compose("ppo_trainer", overrides=text.split())
    assert settings.reward.custom_reward_function.name == "compute_score"
