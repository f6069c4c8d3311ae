"""Check the settings of verl 0.9's asynchronous trainers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from verl_bridge.recipes._absent import is_installed
from verl_bridge.recipes._finding import Finding, ok, problem, skipped, warning
from verl_bridge.recipes._trainers import NO_SEPARATE_ADAPTERS

if TYPE_CHECKING:
    from verl_bridge.recipes._view import View

__all__ = ["check_trainer"]

_MODE = "trainer.v1.trainer_mode"
_ROLLOUT = "actor_rollout_ref.rollout"
_BACKEND = f"{_ROLLOUT}.checkpoint_engine.backend"
_SAMPLER = "trainer.v1.sampler"
_CORRECTION = "algorithm.rollout_correction"


class _Wrong(NamedTuple):
    """A mistake, and the advice against it."""

    text: str
    advice: str


def check_trainer(view: View) -> Iterator[Finding]:
    """Check what an asynchronous trainer needs; yield nothing for the synchronous one."""
    mode = view.get(_MODE, "sync")
    if mode not in {"colocate_async", "separate_async"}:
        return
    if view.get("trainer.use_v1", True) is False:
        yield warning(
            "trainer", f"{_MODE}={mode} is ignored with trainer.use_v1=False", "delete one of the two"
        )
        return
    wrong = [*_staleness(view, mode), *(_separate(view) if mode == "separate_async" else ())]
    for text, advice in wrong:
        yield problem("trainer", text, advice)
    yield from _warnings(view)
    if not wrong:
        yield ok("trainer", f"{mode}: {_described(view, mode)}")


def _described(view: View, mode: str) -> str:
    shared = view.number("trainer.n_gpus_per_node", 8) * view.number("trainer.nnodes", 1)
    if mode == "colocate_async":
        return f"{shared} GPUs generate and train in turns"
    return f"{shared} GPUs train, {_separate_gpus(view)} only generate"


def _separate_gpus(view: View) -> int:
    return view.number(f"{_ROLLOUT}.n_gpus_per_node", 8) * view.number(f"{_ROLLOUT}.nnodes", 0)


def _staleness(view: View, mode: str) -> Iterator[_Wrong]:
    threshold = view.get(f"{_SAMPLER}.max_off_policy_threshold")
    strategy = view.get(f"{_SAMPLER}.max_off_policy_strategy", "drop")
    warmup = view.get(f"trainer.v1.{mode}.num_warmup_batches", 1)
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


def _separate(view: View) -> Iterator[_Wrong]:
    batch = view.number("data.train_batch_size", 1024)
    mini = view.number("actor_rollout_ref.actor.ppo_mini_batch_size", 256)
    updates = view.number("trainer.v1.separate_async.parameter_sync_step", 4)
    if batch != updates * mini:
        yield _Wrong(
            f"train_batch_size={batch} is not parameter_sync_step={updates} x ppo_mini_batch_size={mini}, as "
            "verl requires",
            "change trainer.v1.separate_async.parameter_sync_step",
        )
    gpus, tensor = _separate_gpus(view), view.number(f"{_ROLLOUT}.tensor_model_parallel_size", 2)
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
    backend = view.get(_BACKEND, "naive")
    if backend == "naive":
        yield _Wrong(f"{_BACKEND}=naive cannot send weights to other GPUs", f"set {_BACKEND}=nccl")
    model = "actor_rollout_ref.model"
    rank = view.number(f"{model}.lora_rank", 0) or view.number(f"{model}.lora.rank", 0)
    if rank and not view.get(f"{model}.lora.merge", False):
        yield _Wrong(
            f"{model}.lora_rank={rank}: {NO_SEPARATE_ADAPTERS}",
            f"set {_MODE}=colocate_async, or train without adapters",
        )


def _warnings(view: View) -> Iterator[Finding]:
    separate, backend = view.get(_MODE) == "separate_async", view.get(_BACKEND)
    if separate and backend == "nccl" and view.result is not None and not is_installed("cupy"):
        text = f"cupy is not installed here: whether {_BACKEND}=nccl can send weights was not checked"
        yield skipped("trainer", text, "install cupy for your CUDA where the training runs")
    bypass = view.get(f"{_CORRECTION}.bypass_mode", False)
    known = view.get(f"{_ROLLOUT}.calculate_log_probs", False)
    if not known or not (bypass or view.get(f"{_CORRECTION}.rollout_is")):
        yield warning(
            "trainer",
            "replies of earlier weights are trained with as if the current ones had drawn them",
            f"set {_ROLLOUT}.calculate_log_probs=true and {_CORRECTION}.rollout_is=token",
        )
    strategy = view.get(f"{_SAMPLER}.max_off_policy_strategy", "drop")
    budget = view.arguments().get("fault_budget")
    if strategy == "wait" and isinstance(budget, int | float) and budget:
        yield warning(
            "trainer",
            "max_off_policy_strategy=wait waits for late episodes, and a faulted one is retried for "
            f"{budget:g} s",
            "lower fault_budget in agent_loop.yaml, or set max_off_policy_strategy=drop",
        )
