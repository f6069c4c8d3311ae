"""Check how verl divides a training step: sizes, and the settings of verl 0.9's asynchronous trainers."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from verl_bridge._credit.estimators import GIGPO
from verl_bridge.recipes._absent import is_installed
from verl_bridge.recipes._finding import Finding, ok, problem, skipped, warning
from verl_bridge.recipes._recipe import NO_SEPARATE_ADAPTERS

if TYPE_CHECKING:
    from verl_bridge.recipes._verl_settings import RlSettings

__all__ = ["check_sizes", "check_trainer", "size_errors"]

_MODE = "trainer.v1.trainer_mode"
_ROLLOUT = "actor_rollout_ref.rollout"
_BACKEND = f"{_ROLLOUT}.checkpoint_engine.backend"
_SAMPLER = "trainer.v1.sampler"
_CORRECTION = "algorithm.rollout_correction"


class _Wrong(NamedTuple):
    """A mistake, and the advice against it."""

    text: str
    advice: str


def check_sizes(settings: RlSettings, wrong_values: Collection[object], verl: str) -> Iterator[Finding]:
    """Check whether the sizes divide each other as verl requires; the advice for a wrong value fits them."""
    if wrong_values:
        return
    wrong = size_errors(settings, verl)
    for text, advice in wrong:
        yield problem("sizes", text, advice)
    if not wrong:
        sizes = f"{settings.batch} prompts x {settings.samples} samples on {settings.all_gpus} GPUs"
        yield ok("sizes", f"{sizes}, {settings.micro} at a time")


def size_errors(settings: RlSettings, verl: str) -> list[_Wrong]:
    """Return the sizes that do not divide each other as verl requires.

    Args:
        settings: The settings.
        verl: The version of verl, or empty if it is not installed.
    """
    batch, samples, gpus = settings.batch, settings.samples, settings.all_gpus
    mini, micro, tensor = settings.mini, settings.micro, settings.tensor_parallel
    groups = max(1, gpus // max(1, settings.sequence_parallel))  # GPUs that share a sequence count as one
    wrong = []
    if batch * samples % gpus:
        text = f"{batch} prompts x {samples} samples cannot be divided among {gpus} GPUs"
        wrong.append(_Wrong(text, "change train_batch_size"))
    uneven = mini * samples // groups % micro or mini * samples < groups
    if mini > batch and not settings.by_tokens:  # then verl does not compare them
        text = f"ppo_mini_batch_size={mini} is more than train_batch_size={batch}"
        wrong.append(_Wrong(text, "change ppo_mini_batch_size"))
    elif uneven:
        text = f"{mini} prompts x {samples} on {gpus} GPUs cannot be divided into micro-batches of {micro}"
        wrong.append(_Wrong(text, "change ppo_micro_batch_size_per_gpu"))
    if gpus % tensor:
        text = f"{gpus} GPUs cannot be divided into groups of {tensor} each"
        wrong.append(_Wrong(text, "change tensor_model_parallel_size"))
    if batch * samples % settings.workers and verl.startswith("0.7."):
        text = f"{batch} x {samples} episodes cannot be divided among {settings.workers} workers"
        wrong.append(_Wrong(text, "change agent.num_workers"))
    if str(settings.estimator) in {"grpo", "rloo", GIGPO} and samples < 2:  # noqa: PLR2004
        text = f"{settings.estimator} compares the samples of a prompt, but n={samples}"
        wrong.append(_Wrong(text, "change rollout.n"))
    return wrong


def check_trainer(settings: RlSettings, arguments: Mapping[str, Any], verl: str) -> Iterator[Finding]:
    """Check what an asynchronous trainer needs; yield nothing for the synchronous one."""
    mode = settings.mode
    if mode not in {"colocate_async", "separate_async"}:
        return
    if settings.use_v1 is False:
        yield warning(
            "trainer", f"{_MODE}={mode} is ignored with trainer.use_v1=False", "delete one of the two"
        )
        return
    separate = mode == "separate_async"
    wrong = [*_staleness(settings), *(_separate(settings) if separate else ())]
    for text, advice in wrong:
        yield problem("trainer", text, advice)
    if separate and verl and settings.backend == "nccl" and not is_installed("cupy"):
        text = f"cupy is not installed here: whether {_BACKEND}=nccl can send weights was not checked"
        yield skipped("trainer", text, "install cupy for your CUDA where the training runs")
    yield from _warnings(settings, arguments)
    if not wrong:
        yield ok("trainer", f"{mode}: {_described(settings)}")


def _described(settings: RlSettings) -> str:
    if settings.mode == "colocate_async":
        return f"{settings.all_gpus} GPUs generate and train in turns"
    return f"{settings.all_gpus} GPUs train, {settings.separate_gpus} only generate"


def _staleness(settings: RlSettings) -> Iterator[_Wrong]:
    threshold, strategy = settings.stale_after, settings.stale_strategy
    warmup = settings.colocate_warmup if settings.mode == "colocate_async" else settings.separate_warmup
    if strategy not in {"drop", "wait"}:
        yield _Wrong(f"{_SAMPLER}.max_off_policy_strategy={strategy} is neither drop nor wait", "correct it")
    if threshold is None:
        return
    if type(threshold) is not int or threshold < 1:
        yield _Wrong(
            f"{_SAMPLER}.max_off_policy_threshold={threshold!r} should be an integer from 1, or null",
            "correct it: it is a number of training steps",
        )
    elif strategy == "drop" and threshold <= warmup:
        yield _Wrong(
            f"max_off_policy_threshold={threshold} drops every episode that waits, as num_warmup_batches="
            f"{warmup} has them do",
            f"set {_SAMPLER}.max_off_policy_threshold above trainer.v1.{settings.mode}.num_warmup_batches",
        )


def _separate(settings: RlSettings) -> Iterator[_Wrong]:
    batch, mini, updates = settings.batch, settings.mini, settings.sync_every
    if batch != updates * mini:
        yield _Wrong(
            f"train_batch_size={batch} is not parameter_sync_step={updates} x ppo_mini_batch_size={mini}, as "
            "verl requires",
            "change trainer.v1.separate_async.parameter_sync_step",
        )
    gpus, tensor = settings.separate_gpus, settings.tensor_parallel
    if gpus < 1:
        yield _Wrong(
            f"{_ROLLOUT}.nnodes and n_gpus_per_node leave no GPU that only generates",
            f"set {_ROLLOUT}.nnodes=1 and {_ROLLOUT}.n_gpus_per_node",
        )
    elif gpus % tensor:
        yield _Wrong(
            f"the {gpus} GPUs that only generate cannot be divided into groups of {tensor} each",
            "change tensor_model_parallel_size",
        )
    if settings.backend == "naive":
        yield _Wrong(f"{_BACKEND}=naive cannot send weights to other GPUs", f"set {_BACKEND}=nccl")
    rank = settings.lora_rank or settings.megatron_rank
    if rank and not settings.merges_adapters:
        yield _Wrong(
            f"actor_rollout_ref.model.lora_rank={rank}: {NO_SEPARATE_ADAPTERS}",
            f"set {_MODE}=colocate_async, or train without adapters",
        )


def _warnings(settings: RlSettings, arguments: Mapping[str, Any]) -> Iterator[Finding]:
    if not settings.keeps_log_probs or not (settings.bypass or settings.weighted_by):
        yield warning(
            "trainer",
            "replies of earlier weights are trained with as if the current ones had drawn them",
            f"set {_ROLLOUT}.calculate_log_probs=true and {_CORRECTION}.rollout_is=token",
        )
    budget = arguments.get("fault_budget")
    if settings.stale_strategy == "wait" and isinstance(budget, int | float) and budget:
        yield warning(
            "trainer",
            "max_off_policy_strategy=wait waits for late episodes, and a faulted one is retried for "
            f"{budget:g} s",
            "lower fault_budget in agent_loop.yaml, or set max_off_policy_strategy=drop",
        )
