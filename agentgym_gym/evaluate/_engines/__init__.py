"""Inference engines as local servers: sglang, vLLM and transformers."""

from __future__ import annotations

from agentgym_gym.evaluate._engines.checkpoints import checkpoints
from agentgym_gym.evaluate._engines.engine import Engine

__all__ = ["Engine", "checkpoints"]
