"""Exclude faulted episodes from verl's advantages, give credit by turn, add metrics; verl loads this module.

``VERL_USE_EXTERNAL_MODULES=verl_bridge.trainer`` makes verl import this in each of its processes. verl has no
hooks for either, so these functions of its trainer are wrapped when their module is imported (in
``verl.trainer.ppo``, except for ``PPOTrainer`` in ``v1.trainer_base``, ``ReplayBuffer`` in
``v1.replay_buffer``, ``AgentLoopWorker`` in ``verl.experimental.agent_loop.agent_loop``, and
``LLMServerManager`` in ``verl.workers.rollout.llm_server``):

=====================================================  ==============  =====================================
function                                               verl            what is added
=====================================================  ==============  =====================================
``metric_utils.compute_data_metrics``                  0.7.1 to 0.9.1  metrics of a training step; faulted
                                                                       episodes are excluded from
                                                                       ``critic/score`` and
                                                                       ``critic/rewards``
``metric_utils.process_validation_metrics``            0.7.1 to 0.9.1  ``val-core`` excludes faulted
                                                                       episodes
``ray_trainer.compute_advantage``                      0.7.1 to 0.9.1  faulted episodes are left out of
                                                                       their groups, and rewards are
                                                                       placed at their turns:
                                                                       ``verl_bridge._credit.advantage``
``ray_trainer.apply_kl_penalty``                       0.7.1 to 0.9.1  rows without a trained token, such as
                                                                       faulted episodes, are left out of its
                                                                       mean: ``verl_bridge._run.masked_rows``
``rollout_corr_helper.compute_offpolicy_metrics``      0.7.1 to 0.9.1  the same
``rollout_corr_helper``                                0.7.1 to 0.9.1  the same; a micro-batch of such rows is
``.compute_rollout_correction_and_rejection_mask``                     no error
``v1.utils.compute_advantage_for_multi_trajectories``  0.9.1           which episodes faulted; their turns;
                                                                       rows of an episode are joined
``PPOTrainer._compute_advantage``                      0.9.1           the weight of episodes with a row for
                                                                       each turn
``reward.extract_reward``                              0.7.1, 0.8.0    an error if all episodes faulted
``ray_trainer.RayPPOTrainer._val_metrics_update``      0.7.1, 0.8.0    metrics of a validation
``PPOTrainer._val_metrics_update``                     0.9.1           metrics of a validation
``PPOTrainer._balance_batch``                          0.9.1           an error if all episodes faulted
``PPOTrainer._compute_metrics``                        0.9.1           finds the records of a step
``PPOTrainer._dump_generations``                       0.9.1           the records in the dump of a step
``PPOTrainer.fit``                                     0.9.1           finds the rollout workers, and closes
                                                                       their environments at the end
``ReplayBuffer._wait_for_next_poll``                   0.9.1           an error if a rollout worker has died
``ReplayBuffer._evict_terminal_groups``                0.9.1           an error if all groups fail; the
                                                                       number of groups that the filter drops
``ReplayBuffer._dapo_filtered_keys``                   0.9.1           faulted episodes are no members of
                                                                       groups that the filter looks at
``AgentLoopWorker._run_agent_loop``                    0.7.1 to 0.9.1  passes the training step to the agent
                                                                       loop
``LLMServerManager._initialize_llm_servers``           0.9.1           the engine's share of GPUs that only
                                                                       generate
=====================================================  ==============  =====================================

After the import of ``core_algos``, the estimators ``gym_gigpo`` and ``gym_turn_gae`` are registered.

The originals are called with verl's arguments. A function with an unexpected signature is not wrapped, and a
warning is logged. If an addition fails, a warning is logged and the training continues.
"""

from __future__ import annotations

import atexit
import functools
import importlib
import importlib.abc
import importlib.machinery
import inspect
import sys
from collections.abc import Callable, Mapping, Sequence
from contextvars import ContextVar
from types import ModuleType
from typing import Any, NamedTuple

from verl_bridge._credit.estimators import EPISODE_WEIGHT
from verl_bridge._credit.sessions import ROW_PER_TURN, last_rows
from verl_bridge._credit.turn_rewards import COLUMN
from verl_bridge._run import masked_rows, run_checks
from verl_bridge._run.engine_share import start_engines
from verl_bridge._run.group_filter import filter_of
from verl_bridge._run.metrics import (
    by_environment,
    extras_of_queue,
    failure_message,
    record_in,
    records_of,
    records_of_batch,
    without_faulted,
)
from verl_bridge._run.run_checks import log as _log
from verl_bridge._run.run_checks import warned as _warned
from verl_bridge._run.timing import server_warnings
from verl_bridge.horizon import Moment, now

__all__ = ["NothingPlayed", "install"]

_LOST_GROUPS = "env/lost_groups"
"""The metric with the number of groups that teach nothing, because fewer than two episodes were played."""

Records = list[dict[str, Any]]
Arguments = Mapping[str, Any]

_of_step: ContextVar[Mapping[int, dict[str, Any]] | None] = ContextVar("_of_step", default=None)
"""The record of each episode of the step whose metrics verl 0.9's trainer computes, by its last row.

The batch has no records at that point."""

_by_key: ContextVar[Mapping[str, Mapping[str, Any]] | None] = ContextVar("_by_key", default=None)
"""The ``extra_fields`` of the update that verl 0.9's trainer prepares, by the keys of its episodes."""

_lost_groups: ContextVar[int] = ContextVar("_lost_groups", default=0)
"""Groups of this step that faults left with fewer than two episodes to compare."""

_loss_agg_mode: ContextVar[str | None] = ContextVar("_loss_agg_mode", default=None)
"""verl's aggregation of the loss, if each episode is to have the same weight in it."""

_ESTIMATORS = "verl.trainer.ppo.core_algos"
"""The module with verl's registry of estimators."""

_FAULTED = "verl_bridge_faulted"
"""The column of a batch with whether each episode faulted."""


class NothingPlayed(RuntimeError):
    """All episodes of a training step faulted, so the step has no training data.

    The process that started the run receives a copy, and prints its message again at its very end.
    """

    def __reduce__(self) -> tuple[Any, ...]:
        return _unpickled, (str(self),)


def _unpickled(message: str) -> NothingPlayed:
    ray = sys.modules.get("ray")
    if ray is not None and ray.is_initialized() and ray.get_runtime_context().get_actor_id() is None:
        atexit.unregister(_print_at_exit)
        atexit.register(_print_at_exit, message)
    return NothingPlayed(message)


def _print_at_exit(message: str) -> None:
    """Print a message after all output that Ray forwards from other processes."""
    sys.modules["ray"].shutdown()
    print(f"\n{message}", file=sys.stderr, flush=True)  # noqa: T201 - users look for it on the console


class _Wrap(NamedTuple):
    """A function of verl, and its wrapper.

    Attributes:
        name: Its name in the module, with its class.
        parameters: Parameters that it must have.
        wrapper: Called with the original, its arguments by name, and a function that calls it with them.
    """

    name: str
    parameters: tuple[str, ...]
    wrapper: Callable[[Callable[..., Any], Arguments, Callable[[], Any]], Any]


def _data_metrics(original: Callable[..., Any], arguments: Arguments, call: Callable[[], Any]) -> Any:
    metrics = call()
    with _warned("the metrics of a step"):
        batch = arguments["batch"]
        rows = dict(enumerate(records_of_batch(batch))) or _of_step.get() or {}
        if rows and max(rows) < len(batch):
            records = list(rows.values())
            metrics = {**metrics, **by_environment(records), _LOST_GROUPS: float(_lost_groups.get())}
            _lost_groups.set(0)
            for line in server_warnings(records):
                _log.warning(line)
            played = [row for row, record in rows.items() if not record.get("fault")]
            if 0 < len(played) < len(batch):
                # verl computes them itself, so that they have the same meaning as without faults.
                among = original(**{**arguments, "batch": batch.select_idxs(played)})
                metrics |= {
                    name: value
                    for name, value in among.items()
                    if name.startswith(("critic/score/", "critic/rewards/"))
                }
    return metrics


def _validation_metrics(original: Callable[..., Any], arguments: Arguments, call: Callable[[], Any]) -> Any:
    metrics = None
    with _warned("a validation without its faulted episodes"):
        metrics = without_faulted(original, **arguments)
    return call() if metrics is None else metrics


def _validation_update(_: Callable[..., Any], arguments: Arguments, call: Callable[[], Any]) -> Any:
    ours: dict[str, float] = {}
    with _warned("the metrics of a validation"):
        ours = by_environment(records_of(arguments["reward_extra_infos_dict"]), "val-env")
    return {**call(), **ours}


def _advantage(original: Callable[..., Any], arguments: Arguments, call: Callable[[], Any]) -> Any:
    faulted: Sequence[bool] = ()
    with _warned("which episodes faulted"):
        data = arguments["data"]
        marked = data.non_tensor_batch.pop(_FAULTED, None)
        faulted = (
            [bool(record.get("fault")) for record in records_of_batch(data)] if marked is None else marked
        )
    if not len(faulted):  # these episodes are from other agent loops
        return call()
    # Imported here, because this module is also loaded where PyTorch is not needed.
    advantage = importlib.import_module("verl_bridge._credit.advantage")
    result, lost = advantage.compute_without_faults(original, arguments, faulted)
    _lost_groups.set(_lost_groups.get() + lost)
    return result


def _advantage_of_sessions(
    original: Callable[..., Any], arguments: Arguments, call: Callable[[], Any]
) -> Any:
    keys, in_rows = arguments["batch_keys"], False
    with _warned("which episodes faulted"):
        extras, numpy = _by_key.get() or {}, importlib.import_module("numpy")
        own = [extras.get(key, {}) for key in keys]  # padding has none
        in_rows = any(extra.get(ROW_PER_TURN) for extra in extras.values())
        turns = numpy.empty(len(own), dtype=object)
        turns[:] = [extra.get(COLUMN) for extra in own]
        if extras:
            faulted = numpy.array([bool(record_in(extra).get("fault")) for extra in own])
            arguments["data"].non_tensor_batch |= {_FAULTED: faulted, COLUMN: turns}
    if not in_rows:
        return call()  # one row for each episode, or rows of another agent loop
    rows = importlib.import_module("verl_bridge._credit.joined_rows")
    joined = rows.JoinedRows(arguments["data"], keys)
    others = {name: value for name, value in arguments.items() if name not in {"data", "batch_keys"}}
    joined.data = _compute_advantage(original)(joined.data, **others)
    data = joined.split()
    if (mode := _loss_agg_mode.get()) is not None:
        rows.weigh(data, keys, mode)
    return data


def _compute_advantage(original: Callable[..., Any]) -> Callable[..., Any]:
    """Return verl's function for one row each, as its module has it: with the additions made here."""
    function: Callable[..., Any] = sys.modules[original.__module__].compute_advantage
    return function


def _advantage_step(_: Callable[..., Any], arguments: Arguments, call: Callable[[], Any]) -> Any:
    config = arguments["self"].config
    equal = config.algorithm.get(EPISODE_WEIGHT, "equal") == "equal"
    token = _loss_agg_mode.set(config.actor_rollout_ref.actor.loss_agg_mode if equal else None)
    try:
        return call()
    finally:
        _loss_agg_mode.reset(token)


def _raise_if_all_failed(records: Records) -> None:
    message = failure_message(records)
    if message:
        raise NothingPlayed(message)


def _reward(_: Callable[..., Any], arguments: Arguments, call: Callable[[], Any]) -> Any:
    records: Records = []
    with _warned("the number of played episodes"):
        if not arguments["batch"].meta_info.get("validate"):
            records = records_of_batch(arguments["batch"])
    _raise_if_all_failed(records)
    return call()


def _balance(_: Callable[..., Any], arguments: Arguments, call: Callable[[], Any]) -> Any:
    records: Records = []
    with _warned("the number of played episodes"):
        extras = extras_of_queue(arguments["batch"])
        _by_key.set(extras)
        in_order = list(extras.values())
        records = [record_in(in_order[row]) for row in last_rows(list(extras))]
    _raise_if_all_failed(records)
    return call()


def _step_metrics(_: Callable[..., Any], arguments: Arguments, call: Callable[[], Any]) -> Any:
    records: dict[str, dict[str, Any]] = {}
    lasts: list[int] = []
    with _warned("the records of a step"):
        records = {key: record_in(extra) for key, extra in extras_of_queue(arguments["batch"]).items()}
        lasts = last_rows(list(records))
    arguments["self"].verl_bridge_records = records
    in_order = list(records.values())
    token = _of_step.set({row: in_order[row] for row in lasts})
    try:
        result = call()
    finally:
        _of_step.reset(token)
    with _warned("the number of dropped groups"):
        groups, metrics = filter_of(arguments["self"].replay_buffer), arguments["metrics"]
        if groups is not None:
            of_filter, lost = groups.take()
            metrics |= of_filter
            metrics[_LOST_GROUPS] = metrics.get(_LOST_GROUPS, 0.0) + lost
    return result


def _filter(_: Callable[..., Any], arguments: Arguments, call: Callable[[], Any]) -> Any:
    groups, partition, rows = filter_of(arguments["self"]), arguments["partition_id"], None
    if groups is None or partition == "val":
        return call()
    with _warned("the played episodes of groups"):
        rows = groups.played_rows(partition)
    _raise_if_all_failed(groups.unplayed)
    return call() if rows is None else groups.compare(partition, rows, call)


def _evict(original: Callable[..., Any], arguments: Arguments, call: Callable[[], Any]) -> Any:
    with _warned("the number of dropped groups"):
        groups = filter_of(arguments["self"])
        if groups is not None:
            _, dropped, _, scores = arguments["eviction_reasons"]
            groups.drop(dropped, scores)
    return run_checks.evict(original, arguments, call)


def _dump(_: Callable[..., Any], arguments: Arguments, call: Callable[[], Any]) -> Any:
    with _warned("the records in a dump"):
        columns = arguments["reward_extra_infos_dict"]
        records = getattr(arguments["self"], "verl_bridge_records", {})
        rows = [records.get(key, {}) for key in columns.get("uid", ())]
        for name in dict.fromkeys(name for row in rows for name in row if name not in columns):
            columns[name] = [row.get(name) for row in rows]
    return call()


def _without_masked_rows(
    compute: Callable[[Callable[..., Any], Arguments], Any],
) -> Callable[[Callable[..., Any], Arguments, Callable[[], Any]], Any]:
    """Return the wrapper for a function of `masked_rows`."""

    def wrapper(original: Callable[..., Any], arguments: Arguments, call: Callable[[], Any]) -> Any:
        result = None
        with _warned("metrics without faulted episodes"):
            result = compute(original, arguments)
        return call() if result is None else result

    return wrapper


def _run_agent_loop(_: Callable[..., Any], arguments: Arguments, call: Callable[[], Any]) -> Any:
    """Return a coroutine whose own context has the training step."""
    moment = None
    with _warned("the training step of an episode"):
        step = int(arguments["trajectory"]["step"])
        if step >= 0:  # verl passes -1 for an unknown step
            moment = Moment(step, bool(arguments["trajectory"]["validate"]))
    return _at(moment, call)


async def _at(moment: Moment | None, call: Callable[[], Any]) -> Any:
    now.set(moment)
    return await call()


_WRAPS: Mapping[str, Sequence[_Wrap]] = {
    "verl.experimental.agent_loop.agent_loop": (
        _Wrap("AgentLoopWorker._run_agent_loop", ("trajectory",), _run_agent_loop),
    ),
    "verl.workers.rollout.llm_server": (
        _Wrap("LLMServerManager._initialize_llm_servers", ("self",), start_engines),
    ),
    "verl.trainer.ppo.metric_utils": (
        _Wrap("compute_data_metrics", ("batch",), _data_metrics),
        _Wrap(
            "process_validation_metrics",
            ("data_sources", "sample_uids", "infos_dict"),
            _validation_metrics,
        ),
    ),
    _ESTIMATORS: (),
    "verl.trainer.ppo.reward": (_Wrap("extract_reward", ("batch",), _reward),),
    "verl.trainer.ppo.ray_trainer": (
        _Wrap("compute_advantage", ("data", "adv_estimator"), _advantage),
        _Wrap("apply_kl_penalty", ("data",), _without_masked_rows(masked_rows.penalize_kl)),
        _Wrap("RayPPOTrainer._val_metrics_update", ("self", "reward_extra_infos_dict"), _validation_update),
    ),
    "verl.trainer.ppo.rollout_corr_helper": (
        _Wrap(
            "compute_offpolicy_metrics",
            ("old_log_prob", "rollout_log_prob", "response_mask"),
            _without_masked_rows(masked_rows.diagnose),
        ),
        _Wrap(
            "compute_rollout_correction_and_rejection_mask",
            ("old_log_prob", "rollout_log_prob", "response_mask"),
            _without_masked_rows(masked_rows.correct),
        ),
    ),
    "verl.trainer.ppo.v1.utils": (
        _Wrap("compute_advantage_for_multi_trajectories", ("data", "batch_keys"), _advantage_of_sessions),
    ),
    "verl.trainer.ppo.v1.trainer_base": (
        _Wrap("PPOTrainer._val_metrics_update", ("self", "reward_extra_infos_dict"), _validation_update),
        _Wrap("PPOTrainer._balance_batch", ("self", "batch"), _balance),
        _Wrap("PPOTrainer._compute_advantage", ("self", "batch"), _advantage_step),
        _Wrap("PPOTrainer._compute_metrics", ("self", "batch", "metrics"), _step_metrics),
        _Wrap("PPOTrainer._dump_generations", ("self", "reward_extra_infos_dict"), _dump),
        _Wrap("PPOTrainer.fit", ("self", "agent_loop_manager"), run_checks.fit),
    ),
    "verl.trainer.ppo.v1.replay_buffer": (
        _Wrap("ReplayBuffer._wait_for_next_poll", ("self",), run_checks.poll),
        _Wrap(
            "ReplayBuffer._evict_terminal_groups",
            ("self", "partition_id", "eviction_reasons"),
            _evict,
        ),
        _Wrap("ReplayBuffer._dapo_filtered_keys", ("self", "partition_id"), _filter),
    ),
}


def install() -> None:
    """Wrap verl's functions, now or when their modules are imported. May be called again."""
    for name in _WRAPS:
        module = sys.modules.get(name)
        if module is not None and not getattr(module.__spec__, "_initializing", False):
            _try_to_wrap(module)
    if not any(isinstance(finder, _Finder) for finder in sys.meta_path):
        sys.meta_path.insert(0, _Finder())


def wrap(module: ModuleType) -> None:
    """Wrap the functions of a module of verl; skip unexpected ones with a warning."""
    if module.__name__ == _ESTIMATORS:
        importlib.import_module("verl_bridge._credit.gigpo_estimator")
        importlib.import_module("verl_bridge._credit.turn_gae_estimator")
    for target in _WRAPS[module.__name__]:
        path, _, name = target.name.rpartition(".")
        owner: Any = getattr(module, path, None) if path else module
        original = getattr(owner, name, None)
        if getattr(original, "wrapped_by_verl_bridge", False):
            continue
        signature = inspect.signature(original) if callable(original) else inspect.Signature()
        missing = [needed for needed in target.parameters if needed not in signature.parameters]
        if original is None or missing:
            _log.warning(
                "%s.%s of this verl is not as expected (%s): it is not wrapped, so what verl_bridge.trainer "
                "adds there is missing",
                module.__name__,
                target.name,
                "it does not exist" if original is None else f"it has no parameter {', '.join(missing)}",
            )
            continue
        setattr(owner, name, _wrapped(original, signature, target))


def _wrapped(original: Callable[..., Any], signature: inspect.Signature, target: _Wrap) -> Callable[..., Any]:
    @functools.wraps(original)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        arguments = signature.bind(*args, **kwargs).arguments
        return target.wrapper(original, arguments, functools.partial(original, *args, **kwargs))

    wrapper.wrapped_by_verl_bridge = True  # type: ignore[attr-defined]
    return wrapper


class _Finder(importlib.abc.MetaPathFinder):
    """Finds modules with the other finders, and wraps the functions of each module after its import."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if fullname not in _WRAPS:
            return None
        for finder in sys.meta_path:
            spec = None if finder is self else finder.find_spec(fullname, path, target)
            if spec is not None and spec.loader is not None:
                execute = spec.loader.exec_module
                spec.loader.exec_module = functools.partial(_execute, execute)  # type: ignore[method-assign]
                return spec
        return None


def _execute(execute: Callable[[ModuleType], None], module: ModuleType) -> None:
    execute(module)
    _try_to_wrap(module)


def _try_to_wrap(module: ModuleType) -> None:
    with _warned(f"the additions to {module.__name__}"):
        wrap(module)


install()
