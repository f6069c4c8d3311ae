"""Folders from which verl trains in a text environment: :func:`write` creates one, :func:`check` checks it.

:func:`write_sft` creates one from which verl fine-tunes on whole games.

A folder contains ``config.yaml`` for verl's ``main_ppo``, ``agent_loop.yaml`` (and ``interaction.yaml`` for
runs with interactions), ``run.sh``, a ``README.md``, and the tasks in ``data/``. Nothing here needs verl,
which is imported only in a separate process.
"""

from __future__ import annotations

from verl_bridge.recipes._check import check
from verl_bridge.recipes._finding import Finding, ok, problem
from verl_bridge.recipes._folder import write
from verl_bridge.recipes._papers import LIKE, Published, published_by
from verl_bridge.recipes._recipe import (
    ALGORITHMS,
    ENGINES,
    INTEGRATIONS,
    PRESETS,
    VERSIONS,
    EnvChoice,
    RlRecipe,
)
from verl_bridge.recipes._rows import own_prompt, seeded, write_rows
from verl_bridge.recipes._sft import EVAL_ENGINES, SFT_PRESETS, Evaluation, SftRecipe
from verl_bridge.recipes._sft_folder import write_sft
from verl_bridge.recipes._shares import Share, apportion, drawn, mixed
from verl_bridge.recipes._view import View

__all__ = [
    "ALGORITHMS",
    "ENGINES",
    "EVAL_ENGINES",
    "INTEGRATIONS",
    "LIKE",
    "PRESETS",
    "SFT_PRESETS",
    "VERSIONS",
    "EnvChoice",
    "Evaluation",
    "Finding",
    "Published",
    "RlRecipe",
    "SftRecipe",
    "Share",
    "View",
    "apportion",
    "check",
    "drawn",
    "mixed",
    "ok",
    "own_prompt",
    "problem",
    "published_by",
    "seeded",
    "write",
    "write_rows",
    "write_sft",
]
