"""The amount of a training run: steps, updates, episodes, tokens and checkpoints."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from verl_bridge.recipes._fused_kernels import problem_of
from verl_bridge.recipes._gpu_memory import GB, Estimate, estimate
from verl_bridge.recipes._presets import PRESETS

if TYPE_CHECKING:
    from verl_bridge.recipes._recipe import RlRecipe

__all__ = ["Amount", "amount_of", "describe"]

_STATE = {
    False: 12,
    True: 4,
}  # bytes of a parameter in a checkpoint: fp32, with Adam's moments if it is trained


@dataclass(frozen=True)
class Amount:
    """The amount of a run.

    Attributes:
        steps: Training steps.
        updates: Updates of the policy; with a row for each turn, the most.
        episodes: Training episodes.
        tokens: The most tokens of their rows.
        validations: Validations, the one before the training included.
        val_episodes: Episodes of each validation.
        checkpoints: Checkpoints that are kept.
    """

    steps: int
    updates: int
    episodes: int
    tokens: int
    validations: int
    val_episodes: int
    checkpoints: int


def amount_of(recipe: RlRecipe, rows: int, val_rows: int) -> Amount:
    """Return the amount of a run.

    Args:
        recipe: The recipe.
        rows: Rows of ``train.parquet``; verl leaves out the last ones if they do not fill a batch.
        val_rows: Rows of ``val.parquet``.
    """
    size = recipe.size
    steps = rows // size.batch * size.epochs
    steps = steps if size.steps is None else min(steps, size.steps)
    greedy = size.batch if recipe.algorithm == "remax" else 0
    episodes = steps * (recipe.trajectories + greedy)
    saved = math.ceil(steps / size.save_freq) if size.save_freq > 0 else 0  # verl also saves the last step
    return Amount(
        steps=steps,
        updates=steps * math.ceil(size.batch * recipe.rows_each / recipe.mini_batch) * recipe.passes,
        episodes=episodes,
        tokens=episodes * recipe.rows_each * recipe.lengths.episode,
        validations=1 + math.ceil(steps / size.test_freq) if size.test_freq > 0 else 0,
        val_episodes=val_rows * (recipe.val_samples or 1),
        checkpoints=saved if size.keep is None else min(saved, size.keep),
    )


def describe(recipe: RlRecipe, amount: Amount) -> Iterator[str]:
    """Yield lines about the amount of a run and its memory."""
    size, row = recipe.size, recipe.lengths.episode
    one, several = ("a turn", "turns") if recipe.rows == "turn" else ("an episode", "episodes")
    most = "at most " if recipe.rows == "turn" else ""
    yield (
        f"Training: {amount.steps:,} steps, {most}{amount.updates:,} updates of "
        f"{recipe.mini_batch * recipe.samples:,} {several} at learning rate {recipe.rate:g}, "
        f"{amount.episodes:,} episodes"
    )
    paper = recipe.published
    if paper is not None and paper.get("agent_loop.rows", recipe.rows) != recipe.rows:
        yield f"Rows are whole episodes, and turns in {recipe.like}, which verl supports from 0.9 on"
    if recipe.filter_groups:
        yield "Groups that the filter replaces are additional episodes and tokens"
    yield (
        f"Tokens: at most {_short(amount.tokens)} ({row:,} {one}); about "
        f"{_short(amount.tokens / 2)} if episodes use half of their limit"
    )
    if amount.validations:
        interval = 0.98 / math.sqrt(amount.val_episodes)
        yield (
            f"Validation: {amount.validations:,} times {amount.val_episodes:,} episodes; 95 % interval of a "
            f"success rate of 0.5: ± {interval:.2f}"
        )
    if recipe.preset == "full" and recipe.like is None:
        usual = PRESETS["train"]
        yield (
            f"Few updates for learning: preset full makes {amount.updates:,} at {size.rate:g}, and preset "
            f"train makes {(usual.steps or 0) * usual.batch // (usual.mini_batch or 1):,} at {usual.rate:g}"
        )
    model = recipe.model_size
    if model is None:
        yield (
            f"Memory: unknown, since {recipe.model} has no config.json here and no size in its name; "
            "the settings need the least memory"
        )
        return
    if amount.checkpoints:
        disk = amount.checkpoints * _STATE[bool(recipe.lora)] * model.parameters / GB
        yield f"Checkpoints: {amount.checkpoints:,} kept, about {disk:,.0f} GB of disk"
    yield from _memory(recipe, estimate(model, recipe.sizing, recipe.gpu_memory))


def _memory(recipe: RlRecipe, made: Estimate) -> Iterator[str]:
    """Yield the estimate by part."""
    model, sizing = recipe.model_size, recipe.sizing
    assert model is not None  # noqa: S101 - checked by the caller
    yield (
        f"Memory of each GPU by an estimate, in GB of {recipe.gpu_memory:g} "
        f"({model.parameters / 1e9:.1f}B parameters, from {model.source}):"
    )
    phases = {"update": made.update, "log-probabilities": made.forward, "generation": made.generation}
    for when, parts in phases.items():
        listed = ", ".join(f"{name} {value / GB:.1f}" for name, value in parts.items() if value >= 0.05 * GB)
        yield f"  {when}: {sum(parts.values()) / GB:.0f} = {listed}"
    if made.separate:
        listed = ", ".join(f"{name} {value / GB:.1f}" for name, value in made.separate.items())
        yield f"  generation on the other GPUs: {sum(made.separate.values()) / GB:.0f} = {listed}"
    yield f"  logits: {_about_logits(recipe)}"
    cached = made.cached // recipe.lengths.episode
    longest = "turns" if recipe.rows == "turn" else "episodes"
    yield f"  the engines' KV caches hold {cached:,} of the longest {longest} at once"
    if made.host:
        yield f"  offloaded to main memory: {made.host / GB:.0f} GB"
    if not made.fits:
        advice = ["more --gpus", "--lora 32", "fewer --turns"]
        more = 2 * recipe.sequence_parallel
        advice += [] if recipe.training_gpus % more else [f"--sequence-parallel {more}"]
        advice += [] if sizing.offload else ["--offload"]
        yield f"  warning: it does not fit by this estimate; use {', '.join(advice)}, or a smaller model"


def _about_logits(recipe: RlRecipe) -> str:
    """Return whether the logits of all tokens are in memory, and why."""
    fused = recipe.sizing.fused
    kind = "in chunks by verl's fused kernels" if fused else "of all tokens of a micro-batch"
    if recipe.fused_kernels is not None:
        return f"{kind}: {'--fused-kernels' if fused else '--no-fused-kernels'}"
    if fused:
        return f"{kind}: whole ones would need offload, or micro-batches below two episodes"
    if not recipe.size.sized:
        return f"{kind}: verl's default"
    if recipe.can_fuse:
        return f"{kind}: two episodes fit"
    if problem_of(recipe.verl):
        return f"{kind}: verl {recipe.verl} has no exact fused kernels"
    return f"{kind}: verl's fused kernels are not known to fit {recipe.model}; --fused-kernels uses them"


def _short(number: float) -> str:
    for size, unit in ((1e9, "billion"), (1e6, "million")):
        if number >= size:
            return f"{number / size:.3g} {unit}"
    return f"{number:,.0f}"
