"""An estimate of the GPU memory of a training run, and the settings that follow from it.

Bytes on each of G GPUs, for P parameters, T of them trained (all, or LoRA's adapters):

=====================  =====================================  ==========================================
part                   bytes                                  source
=====================  =====================================  ==========================================
weights                4 P / G                                verl trains in fp32 and shards over all GPUs
                                                              (workers/engine/fsdp/transformer_impl.py)
gradients              4 T / G                                fp32, sharded (``reduce_dtype`` fp32, there)
Adam                   8 T / G                                two fp32 moments of each trained parameter
reference              2 P / G; 0 if offloaded, or with LoRA  bf16, as ``forward_only`` (there); with LoRA
                                                              it is the model without its adapters
critic (PPO)           12 P / G; 0 if offloaded               as the actor, without gradients
gathered layers        2 x 2 (P - V h) / L + 2 V h            FSDP gathers a layer in bf16, and the next
                                                              one ahead; embeddings are a unit of their own
activations            2 h L n + 34 h n                       with recomputation: the bf16 input of each
                                                              layer, and all of one layer
                                                              (arXiv 2205.05198: 34 h a token)
activations, stored    34 h L n                               without recomputation
logits                 8 V n, without gradients 6 V n         bf16: the logits, their gradients, and the
                                                              softmax and product of the entropy
                                                              (utils/torch_functional.py)
logits, fused kernels  20 V c + 2 V h, without gradients      fp32, of a chunk of c = 512 tokens, and a
                       12 V c                                 chunk's gradient of the output layer
                                                              (``verl_bridge.recipes._fused_kernels``)
other                  6 GB                                   CUDA, NCCL, and what a sleeping engine keeps:
                                                              our own choice
engine's weights       2 P / tensor_model_parallel_size       bf16
KV cache               4 L k a token                          bf16 keys and values of width k
=====================  =====================================  ==========================================

h is the hidden size, L the number of layers, V the vocabulary, and n the tokens of a micro-batch on each GPU:
with sequence parallelism, a GPU has its part of each sequence. Adapters of rank r on all linear layers have
about 18 h L r parameters.

Training and generation take turns: with offload, the actor's weights and Adam's moments are in main memory
while the engine generates, and the engine is asleep while the model trains. 5 % of the memory is left free.
GPUs that only generate have the engine and nothing of the trainer.

The estimate was compared with published configurations (docs/training/memory.md); it was not run on a GPU.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from verl_bridge.recipes._fused_kernels import CHUNK
from verl_bridge.recipes._model_size import ModelSize  # noqa: TC001 - of public signatures

__all__ = ["GB", "GPU_MEMORY", "Estimate", "Sizing", "choose", "estimate"]

GB = 2**30

GPU_MEMORY = 80.0
"""Default memory of a GPU, in GB."""

_FREE = 0.05
_OTHER = 6 * GB
_LAYER = 34
_FILLED = 0.85  # of the memory, at most, by micro-batches of more than one episode: our own choice
_STEP = 1_024  # token limits are multiples of it
_SHARES = (0.5, 0.7)  # of the engine: verl's docs/perf/perf_tuning.rst
_SEPARATE_SHARE = 0.9  # of an engine on GPUs of its own, at most: vLLM's default
_ENGINE_WEIGHTS = 0.35  # of the memory of a GPU, at most: our own choice


@dataclass(frozen=True)
class Sizing:
    """The settings that decide the memory.

    Attributes:
        gpus: Number of GPUs that train.
        tokens: Tokens of a micro-batch of an update, on each GPU.
        forward_tokens: Tokens of a micro-batch without gradients, on each GPU.
        offload: Whether weights and Adam's moments go to main memory.
        activation_offload: Whether stored activations go to main memory.
        checkpointing: Whether activations are recomputed.
        tensor_parallel: GPUs for each copy of the model in the engine.
        utilization: The engine's share of the memory; None for verl's default, 0.5.
        reference: Whether there is a reference policy.
        critic: Whether there is a critic.
        lora: Rank of the adapters, 0 for none.
        separate_gpus: Number of further GPUs that only generate.
        separate_utilization: The engine's share of these.
        engine_gpus: GPUs that the copies of the model in the engine divide: of one node, of either kind; None
            for all.
        fused: Whether verl's fused kernels replace the logits.
    """

    gpus: int
    tokens: int
    forward_tokens: int
    offload: bool = True
    activation_offload: bool = True
    checkpointing: bool = True
    tensor_parallel: int = 1
    utilization: float | None = None
    reference: bool = True
    critic: bool = False
    lora: int = 0
    separate_gpus: int = 0
    separate_utilization: float | None = None
    engine_gpus: int | None = None
    fused: bool = False


@dataclass(frozen=True)
class Estimate:
    """Bytes on each GPU, by part.

    Attributes:
        update: While the model trains.
        forward: While it computes log-probabilities.
        generation: While the engine generates.
        host: Main memory of the machine for offloaded state.
        separate: The same on a GPU that only generates.
        cached: Tokens that fit into the KV caches of all engines: with GPUs that only generate, of theirs.
        limit: Bytes that may be used.
    """

    update: Mapping[str, float]
    forward: Mapping[str, float]
    generation: Mapping[str, float]
    host: float
    separate: Mapping[str, float]
    cached: int
    limit: float

    @property
    def peak(self) -> float:
        """The largest of the sums."""
        return max(sum(parts.values()) for parts in (self.update, self.forward, self.generation))

    @property
    def fits(self) -> bool:
        """Whether it fits, with an engine that can hold its weights."""
        return self.peak <= self.limit and self.cached > 0


def estimate(size: ModelSize, sizing: Sizing, memory: float = GPU_MEMORY) -> Estimate:
    """Return the estimated memory of a run.

    Args:
        size: Of the model.
        sizing: The settings.
        memory: Of a GPU, in GB.
    """
    whole, shard = memory * GB, size.parameters / sizing.gpus
    adapters = 18 * size.hidden * size.layers * sizing.lora
    trained = (adapters or size.parameters) / sizing.gpus
    state = {"weights": 4 * shard, "Adam": 8 * trained}
    others = {
        "reference": 2 * shard if sizing.reference and not sizing.lora else 0,
        "critic": 12 * shard if sizing.critic else 0,
    }
    embeddings = size.vocabulary * size.hidden
    gathered = 4 * max(0, size.parameters - embeddings) / size.layers + 2 * embeddings
    resident = {} if sizing.offload else others
    update = {
        **state,
        "gradients": 4 * trained,
        **resident,
        "gathered layers": gathered,
        "activations": _activations(size, sizing) * sizing.tokens,
        "logits": _logits(size, sizing),
        "other": _OTHER,
    }
    chunks = 12 * size.vocabulary * CHUNK
    forward = update | {
        "gradients": 0,
        "activations": _LAYER * size.hidden * sizing.forward_tokens,
        "logits": chunks if sizing.fused else 6 * size.vocabulary * sizing.forward_tokens,
    }
    engine = _engine(sizing.utilization, whole)
    generation = {"engine": engine, **({} if sizing.offload else state | others), "other": _OTHER}
    separate = {"engine": _engine(sizing.separate_utilization, whole), "other": _OTHER}
    playing = separate["engine"] if sizing.separate_gpus else engine
    room = playing - 2 * size.parameters / sizing.tensor_parallel
    copies = (sizing.separate_gpus or sizing.gpus) // sizing.tensor_parallel
    cached = room * sizing.tensor_parallel / (4 * size.layers * size.key_width)
    return Estimate(
        update,
        forward,
        generation,
        sum((*state.values(), *others.values())) * sizing.gpus if sizing.offload else 0,
        separate if sizing.separate_gpus else {},
        max(0, int(cached) * copies),
        (1 - _FREE) * whole,
    )


def _engine(share: float | None, memory: float) -> float:
    """Return the bytes of an engine."""
    return (0.5 if share is None else share) * memory


def _logits(size: ModelSize, sizing: Sizing) -> float:
    """Return the bytes of the logits in an update."""
    if sizing.fused:
        return 20 * size.vocabulary * CHUNK + 2 * size.vocabulary * size.hidden
    return 8 * size.vocabulary * sizing.tokens


def _activations(size: ModelSize, sizing: Sizing) -> float:
    """Return the bytes of a token's activations in an update."""
    if not sizing.checkpointing:
        return _LAYER * size.hidden * size.layers
    stored = 2 if sizing.activation_offload else size.layers
    return 2 * size.hidden * stored + _LAYER * size.hidden


def choose(
    size: ModelSize | None,
    episode: int,
    least: Sizing,
    *,
    memory: float = GPU_MEMORY,
    offload: bool | None = None,
    fused: Sequence[bool] = (False,),
) -> Sizing:
    """Return the fastest settings that fit, or the ones with the least memory if none fit.

    Args:
        size: Of the model; None if it is unknown, which leaves `least` as it is.
        episode: Tokens of the longest episode on each GPU, the least of a micro-batch.
        least: The settings that need the least memory.
        memory: Of a GPU, in GB.
        offload: The choice of the user; None to choose.
        fused: Whether to use fused kernels; with both, the first unless the run would then need offload, or
            micro-batches below two episodes.
    """
    forced = replace(least, offload=least.offload if offload is None else offload)
    if size is None:
        return replace(forced, fused=fused[0])
    forced = replace(forced, tensor_parallel=_tensor_parallel(size, forced, memory))
    if forced.separate_gpus:
        # Engines of the same size run on both kinds of GPUs.
        forced = replace(forced, separate_utilization=_separate_utilization(memory))
    tried = [_fitting(size, episode, replace(forced, fused=kernels), memory, offload) for kernels in fused]
    return next((made for made in tried if _has_room(size, made, episode, memory, offload)), tried[-1])


def _has_room(size: ModelSize, sizing: Sizing, episode: int, memory: float, offload: bool | None) -> bool:
    """Return whether settings fit with two episodes in a micro-batch, and offload nothing unasked."""
    spills = sizing.activation_offload or (sizing.offload and offload is None)
    whole = sizing.tokens >= 2 * episode // _STEP * _STEP
    return whole and not spills and estimate(size, sizing, memory).fits


def _fitting(size: ModelSize, episode: int, least: Sizing, memory: float, offload: bool | None) -> Sizing:
    """Return the fastest settings that fit, as :func:`choose` does."""
    offloads = (False, True) if offload is None else (offload,)
    spills = (False, True) if least.activation_offload else (False,)
    for state, activations in ((state, spill) for state in offloads for spill in spills):
        tried = replace(least, offload=state, activation_offload=activations)
        tried = replace(tried, utilization=_utilization(size, tried, memory))
        if estimate(size, tried, memory).fits and (tried.utilization or 0) >= _SHARES[0]:
            return _with_tokens(size, tried, episode, memory)
    return replace(least, utilization=max(0.1, min(_SHARES[0], _utilization(size, least, memory))))


def _separate_utilization(memory: float) -> float:
    """Return the engine's share of a GPU that only generates, in steps of 0.05."""
    left = 1 - _FREE - _OTHER / (memory * GB)
    return min(_SEPARATE_SHARE, max(0.1, math.floor(left * 20) / 20))


def _tensor_parallel(size: ModelSize, sizing: Sizing, memory: float) -> int:
    """Return the least number of GPUs for a copy of the model that leaves room for the KV cache."""
    gpus = sizing.engine_gpus or math.gcd(sizing.gpus, sizing.separate_gpus)
    divisors = [number for number in (1, 2, 4, 8, 16, 32, 64) if gpus % number == 0]
    most = _ENGINE_WEIGHTS * memory * GB
    return next((each for each in divisors if 2 * size.parameters / each <= most), divisors[-1])


def _utilization(size: ModelSize, sizing: Sizing, memory: float) -> float:
    """Return the largest engine share that leaves room for resident state, in steps of 0.05."""
    without = estimate(size, replace(sizing, utilization=0.0), memory)
    left = (without.limit - sum(without.generation.values())) / (memory * GB)
    return min(_SHARES[1], max(0.0, math.floor(left * 20) / 20))


def _with_tokens(size: ModelSize, sizing: Sizing, episode: int, memory: float) -> Sizing:
    """Return the settings with micro-batches of up to two of the longest episodes, if they fit."""

    def fits(tokens: int, forward: int) -> bool:
        tried = replace(sizing, tokens=tokens, forward_tokens=forward)
        return estimate(size, tried, memory).peak <= max(_FILLED * memory * GB, at_least)

    at_least = sum(estimate(size, sizing, memory).generation.values())
    choices = range(2 * episode // _STEP * _STEP, episode, -_STEP)
    tokens = next((each for each in choices if fits(each, episode)), episode)
    more = range(2 * tokens, tokens, -_STEP)
    return replace(
        sizing,
        tokens=tokens,
        forward_tokens=next((each for each in more if fits(tokens, each)), tokens),
    )
