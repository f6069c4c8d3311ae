"""Folders from which verl trains in a text environment: :func:`write` creates one, :func:`check` checks it.

:func:`write_sft` creates one from which verl fine-tunes on whole games.

A folder contains ``config.yaml`` for verl's ``main_ppo``, ``agent_loop.yaml`` (and ``interaction.yaml`` for
runs with interactions), ``run.sh``, a ``README.md``, and the tasks in ``data/``. Nothing here needs verl,
which is imported only in a separate process.
"""

from __future__ import annotations

from verl_bridge.recipes._check import check
from verl_bridge.recipes._choices import INTEGRATIONS, EnvChoice
from verl_bridge.recipes._env_shares import Share
from verl_bridge.recipes._finding import Finding
from verl_bridge.recipes._folder import write
from verl_bridge.recipes._options import VERSIONS
from verl_bridge.recipes._papers import LIKE, published_by
from verl_bridge.recipes._presets import PRESETS
from verl_bridge.recipes._recipe import ALGORITHMS, RlRecipe
from verl_bridge.recipes._rows import own_prompt, seeded, write_rows
from verl_bridge.recipes._sft import SFT_PRESETS, Evaluation, SftRecipe, write_sft

__all__ = [
    "ALGORITHMS",
    "INTEGRATIONS",
    "LIKE",
    "PRESETS",
    "SFT_PRESETS",
    "VERSIONS",
    "EnvChoice",
    "Evaluation",
    "Finding",
    "RlRecipe",
    "SftRecipe",
    "Share",
    "check",
    "own_prompt",
    "published_by",
    "seeded",
    "write",
    "write_rows",
    "write_sft",
]
