"""Check how verl divides a training step: sizes, and the settings of verl 0.9's asynchronous trainers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from verl_bridge.recipes._absent import is_installed
from verl_bridge.recipes._finding import Finding, ok, problem, skipped, warning
from verl_bridge.recipes._recipe import NO_SEPARATE_ADAPTERS

if TYPE_CHECKING:
    from verl_bridge.recipes._check_files import Settings

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


class _Sizes(NamedTuple):
    """The sizes of a step; verl's defaults where they are not set."""

    batch: int
    samples: int
    gpus: int
    mini: int
    micro: int

    @classmethod
    def of(cls, settings: Settings) -> _Sizes:
        return cls(
            settings.number("data.train_batch_size", 1024),
            settings.number(f"{_ROLLOUT}.n", 1),
            settings.number("trainer.n_gpus_per_node", 8) * settings.number("trainer.nnodes", 1),
            settings.number("actor_rollout_ref.actor.ppo_mini_batch_size", 256),
            settings.number("actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu", 1),
        )


def check_sizes(typed_settings: Settings, verl: str) -> Iterator[Finding]:
    """Check whether the sizes divide each other as verl requires."""
    wrong = size_errors(typed_settings, verl)
    for text, advice in wrong:
        yield problem("sizes", text, advice)
    if not wrong:
        batch, samples, gpus, _, micro = _Sizes.of(typed_settings)
        yield ok("sizes", f"{batch} prompts x {samples} samples on {gpus} GPUs, {micro} at a time")


def size_errors(settings: Settings, verl: str) -> list[_Wrong]:
    """Return the sizes that do not divide each other as verl requires.

    Args:
        settings: The settings.
        verl: The version of verl, or empty if it is not installed.
    """
    batch, samples, gpus, mini, micro = _Sizes.of(settings)
    tensor = settings.number(f"{_ROLLOUT}.tensor_model_parallel_size", 2)
    estimator = settings.get("algorithm.adv_estimator", "gae")
    wrong = []
    if batch * samples % gpus:
        text = f"{batch} prompts x {samples} samples cannot be divided among {gpus} GPUs"
        wrong.append(_Wrong(text, "change train_batch_size"))
    uneven = mini * samples // gpus % micro or mini * samples < gpus
    if mini > batch:
        text = f"ppo_mini_batch_size={mini} is more than train_batch_size={batch}"
        wrong.append(_Wrong(text, "change ppo_mini_batch_size"))
    elif uneven:
        text = f"{mini} prompts x {samples} on {gpus} GPUs cannot be divided into micro-batches of {micro}"
        wrong.append(_Wrong(text, "change ppo_micro_batch_size_per_gpu"))
    if gpus % tensor:
        text = f"{gpus} GPUs cannot be divided into groups of {tensor} each"
        wrong.append(_Wrong(text, "change tensor_model_parallel_size"))
    workers = settings.number(f"{_ROLLOUT}.agent.num_workers", 8)
    if batch * samples % workers and verl.startswith("0.7."):
        text = f"{batch} x {samples} episodes cannot be divided among {workers} workers"
        wrong.append(_Wrong(text, "change agent.num_workers"))
    if str(estimator) in {"grpo", "rloo", "gym_gigpo"} and samples < 2:  # noqa: PLR2004
        text = f"{estimator} compares the samples of a prompt, but n={samples}"
        wrong.append(_Wrong(text, "change rollout.n"))
    return wrong


def check_trainer(settings: Settings, arguments: Mapping[str, Any], verl: str) -> Iterator[Finding]:
    """Check what an asynchronous trainer needs; yield nothing for the synchronous one."""
    mode = settings.get(_MODE, "sync")
    if mode not in {"colocate_async", "separate_async"}:
        return
    if settings.get("trainer.use_v1", True) is False:
        yield warning(
            "trainer", f"{_MODE}={mode} is ignored with trainer.use_v1=False", "delete one of the two"
        )
        return
    separate = mode == "separate_async"
    wrong = [*_staleness(settings, mode), *(_separate(settings) if separate else ())]
    for text, advice in wrong:
        yield problem("trainer", text, advice)
    if separate and verl and settings.get(_BACKEND) == "nccl" and not is_installed("cupy"):
        text = f"cupy is not installed here: whether {_BACKEND}=nccl can send weights was not checked"
        yield skipped("trainer", text, "install cupy for your CUDA where the training runs")
    yield from _warnings(settings, arguments)
    if not wrong:
        yield ok("trainer", f"{mode}: {_described(settings, mode)}")


def _described(settings: Settings, mode: str) -> str:
    shared = _Sizes.of(settings).gpus
    if mode == "colocate_async":
        return f"{shared} GPUs generate and train in turns"
    return f"{shared} GPUs train, {_separate_gpus(settings)} only generate"


def _separate_gpus(settings: Settings) -> int:
    return settings.number(f"{_ROLLOUT}.n_gpus_per_node", 8) * settings.number(f"{_ROLLOUT}.nnodes", 0)


def _staleness(settings: Settings, mode: str) -> Iterator[_Wrong]:
    threshold = settings.get(f"{_SAMPLER}.max_off_policy_threshold")
    strategy = settings.get(f"{_SAMPLER}.max_off_policy_strategy", "drop")
    warmup = settings.get(f"trainer.v1.{mode}.num_warmup_batches", 1)
    if strategy not in {"drop", "wait"}:
        yield _Wrong(f"{_SAMPLER}.max_off_policy_strategy={strategy} is neither drop nor wait", "correct it")
    if threshold is None:
        return
    if type(threshold) is not int or threshold < 1:
        yield _Wrong(
            f"{_SAMPLER}.max_off_policy_threshold={threshold!r} should be an integer from 1, or null",
            "correct it: it is a number of training steps",
        )
    elif strategy == "drop" and isinstance(warmup, int | float) and threshold <= warmup:
        yield _Wrong(
            f"max_off_policy_threshold={threshold} drops every episode that waits, as num_warmup_batches="
            f"{warmup} has them do",
            f"set {_SAMPLER}.max_off_policy_threshold above trainer.v1.{mode}.num_warmup_batches",
        )


def _separate(settings: Settings) -> Iterator[_Wrong]:
    batch, mini = _Sizes.of(settings).batch, _Sizes.of(settings).mini
    updates = settings.number("trainer.v1.separate_async.parameter_sync_step", 4)
    if batch != updates * mini:
        yield _Wrong(
            f"train_batch_size={batch} is not parameter_sync_step={updates} x ppo_mini_batch_size={mini}, as "
            "verl requires",
            "change trainer.v1.separate_async.parameter_sync_step",
        )
    gpus, tensor = _separate_gpus(settings), settings.number(f"{_ROLLOUT}.tensor_model_parallel_size", 2)
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
    if settings.get(_BACKEND, "naive") == "naive":
        yield _Wrong(f"{_BACKEND}=naive cannot send weights to other GPUs", f"set {_BACKEND}=nccl")
    model = "actor_rollout_ref.model"
    rank = settings.number(f"{model}.lora_rank", 0) or settings.number(f"{model}.lora.rank", 0)
    if rank and not settings.get(f"{model}.lora.merge", False):
        yield _Wrong(
            f"{model}.lora_rank={rank}: {NO_SEPARATE_ADAPTERS}",
            f"set {_MODE}=colocate_async, or train without adapters",
        )


def _warnings(settings: Settings, arguments: Mapping[str, Any]) -> Iterator[Finding]:
    bypass = settings.get(f"{_CORRECTION}.bypass_mode", False)
    known = settings.get(f"{_ROLLOUT}.calculate_log_probs", False)
    if not known or not (bypass or settings.get(f"{_CORRECTION}.rollout_is")):
        yield warning(
            "trainer",
            "replies of earlier weights are trained with as if the current ones had drawn them",
            f"set {_ROLLOUT}.calculate_log_probs=true and {_CORRECTION}.rollout_is=token",
        )
    strategy = settings.get(f"{_SAMPLER}.max_off_policy_strategy", "drop")
    budget = arguments.get("fault_budget")
    if strategy == "wait" and isinstance(budget, int | float) and budget:
        yield warning(
            "trainer",
            "max_off_policy_strategy=wait waits for late episodes, and a faulted one is retried for "
            f"{budget:g} s",
            "lower fault_budget in agent_loop.yaml, or set max_off_policy_strategy=drop",
        )
