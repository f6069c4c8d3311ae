"""Compare settings whose value is a name with the names that the installed verl accepts.

verl reads most of these names only after it has loaded the model, or in the first training step. Where it has
a registry, the registry is read; where it raises an error for an unknown name, its own function is called
with tiny tensors.
"""

from __future__ import annotations

import functools
import importlib
import importlib.util
from collections.abc import Callable, Iterable, Iterator, Mapping
from types import SimpleNamespace
from typing import Any, NamedTuple

from verl_bridge.recipes._absent import absent_package, is_installed

__all__ = ["wrong_values"]

_ACTOR = "actor_rollout_ref.actor"
_ROLLOUT = "actor_rollout_ref.rollout"
_CORRECTION = "algorithm.rollout_correction"
_CORE = "verl.trainer.ppo.core_algos"
_ENGINES = "verl.workers.engine"

_AGGREGATIONS = (
    "token-mean",
    "token-sum",
    "seq-mean-token-sum",
    "seq-mean-token-sum-norm",
    "seq-mean-token-mean",
)
_PENALTIES = ("kl", "k1", "abs", "mse", "k2", "low_var_kl", "k3", "k1+", "k3+", "low_var_kl+")
_LOGGER_MODULES = {
    "wandb": "wandb",
    "mlflow": "mlflow",
    "swanlab": "swanlab",
    "clearml": "clearml",
    "trackio": "trackio",
    "tensorboard": "tensorboard",
}


class _Choice(NamedTuple):
    """A setting whose value is a name.

    Attributes:
        key: The dotted key.
        names: Returns the accepted names.
        used: Whether the training reads the value.
        registered: Whether an external module can register a name.
        package: The package of verl with a module for each name that needs another package; empty for none.
    """

    key: str
    names: Callable[[], Iterable[str]]
    used: bool = True
    registered: bool = False
    package: str = ""


def wrong_values(config: Mapping[str, Any], *, critic: bool, sft: bool = False) -> dict[str, list[Any]]:
    """Compare the settings of a training with the names that verl accepts.

    Args:
        config: All settings, as composed.
        critic: Whether the algorithm trains a critic.
        sft: Whether this is a fine-tuning.

    Returns:
        ``wrong``: for each unaccepted value its ``key``, ``value``, the ``allowed`` names, whether it is
        ``used``, and whether an external module could have ``registered`` it; ``unchecked``: the keys whose
        names this version of verl does not provide; ``skipped``: as in
        :func:`verl_bridge.recipes._compose.compose`.
    """
    found: dict[str, list[Any]] = {"wrong": [], "unchecked": [], "skipped": []}
    for choice in [*_common(config), *(() if sft else _of_ppo(config, critic=critic))]:
        values = _names_in(_lookup(config, choice.key), separated=choice.key.endswith("rollout_rs"))
        if values:
            _compare(choice, values, found)
    for name in _names_in(_lookup(config, "trainer.logger")):
        if name in _LOGGER_MODULES and not is_installed(_LOGGER_MODULES[name]):
            text = f"trainer.logger={name}, which needs it, was not tried"
            found["skipped"].append(_skipped(_LOGGER_MODULES[name], text))
    return found


def _compare(choice: _Choice, values: list[str], found: dict[str, list[Any]]) -> None:
    try:
        allowed = sorted(choice.names())
    except (ImportError, AttributeError) as error:
        package = absent_package(error)
        if package is None:  # a version that moved it
            found["unchecked"].append(choice.key)
        else:
            text = f"{choice.key}={', '.join(values)} was not compared with verl's names"
            found["skipped"].append(_skipped(package, text))
        return
    for value in values:
        if value in allowed:
            continue
        package = _needed(f"{choice.package}.{value}") if choice.package else None
        if package is not None:
            text = f"{choice.key}={value}, which needs it, was not compared with verl's names"
            found["skipped"].append(_skipped(package, text))
            continue
        wrong = {"key": choice.key, "value": value, "allowed": allowed, "used": choice.used}
        found["wrong"].append(wrong | {"registered": choice.registered})


def _skipped(package: str, text: str) -> dict[str, str]:
    return {"check": "values", "package": package, "text": text}


def _needed(module: str) -> str | None:
    """Return the package that is not installed, and without which a module of verl cannot be imported."""
    try:
        _load(module)
    except Exception as error:  # noqa: BLE001 - a module may fail in any way
        return absent_package(error)
    return None


def _common(config: Mapping[str, Any]) -> Iterator[_Choice]:
    """Yield the choices of both trainers."""
    yield _Choice("trainer.logger", lambda: _load("verl.utils.tracking").Tracking.supported_backend)
    yield _Choice("trainer.resume_mode", lambda: ("auto", "disable", "resume_path"))
    for optimizer in ("optim", f"{_ACTOR}.optim"):
        module = _lookup(config, f"{optimizer}.optimizer_impl")
        if isinstance(module, str):
            if _is_misspelt(module):
                yield _Choice(f"{optimizer}.optimizer_impl", lambda: ["torch.optim"])
            else:
                yield _Choice(f"{optimizer}.optimizer", functools.partial(_classes, module))


def _of_ppo(config: Mapping[str, Any], *, critic: bool) -> Iterator[_Choice]:
    penalized = bool(_lookup(config, "algorithm.use_kl_in_reward"))
    kl_loss = bool(_lookup(config, f"{_ACTOR}.use_kl_loss"))
    yield _Choice("algorithm.adv_estimator", lambda: _load(_CORE).ADV_ESTIMATOR_REGISTRY, registered=True)
    losses = f"{_ACTOR}.policy_loss.loss_mode"
    yield _Choice(losses, lambda: _load(_CORE).POLICY_LOSS_REGISTRY, registered=True)
    yield _Choice(f"{_ACTOR}.loss_agg_mode", lambda: _accepted(_aggregate, _AGGREGATIONS))
    yield _Choice("critic.loss_agg_mode", lambda: _accepted(_aggregate, _AGGREGATIONS), critic)
    yield _Choice(f"{_ACTOR}.kl_loss_type", lambda: _accepted(_penalize, _PENALTIES), kl_loss)
    yield _Choice("algorithm.kl_penalty", lambda: _accepted(_penalize, _PENALTIES), penalized)
    yield _Choice("algorithm.kl_ctrl.type", lambda: _accepted(_control, ("fixed", "adaptive")), penalized)
    yield _Choice(f"{_ROLLOUT}.name", _engines_of_rollout, registered=True)
    yield _Choice(f"{_ROLLOUT}.mode", lambda: {mode for _, mode in _rollouts()})
    policies, critics = lambda: _trainers("language_model"), lambda: _trainers("value_model")
    yield _Choice(f"{_ACTOR}.strategy", policies, registered=True, package=_ENGINES)
    yield _Choice("critic.strategy", critics, critic, registered=True, package=_ENGINES)
    yield _Choice(f"{_ACTOR}.fsdp_config.model_dtype", _precisions)
    if _lookup(config, "trainer.use_v1") is not None:
        v1 = bool(_lookup(config, "trainer.use_v1"))
        yield _Choice("trainer.v1.trainer_mode", _v1_trainers, v1, registered=True)
    if _lookup(config, "trainer.use_legacy_worker_impl") is not None:
        yield _Choice("trainer.use_legacy_worker_impl", lambda: ("auto", "enable", "disable"))
    if _lookup(config, "reward.reward_manager.source") == "register":
        yield _Choice("reward.reward_manager.name", _reward_managers, registered=True)
    yield _Choice(f"{_CORRECTION}.rollout_is", lambda: _accepted(_weigh, ("token", "sequence", "geometric")))
    yield _Choice(f"{_CORRECTION}.rollout_rs", lambda: _corrections().SUPPORTED_ROLLOUT_RS_OPTIONS)


def _lookup(config: Mapping[str, Any], key: str) -> Any:
    value: Any = config
    for part in key.split("."):
        value = value.get(part) if isinstance(value, Mapping) else None
    return value


def _names_in(value: Any, *, separated: bool = False) -> list[str]:
    """Return the names in a value: one or several; none for null.

    Args:
        value: The value.
        separated: Whether a text may have several names with commas between them.
    """
    if value is None:
        return []
    if isinstance(value, list):
        return [str(each) for each in value]
    return [name.strip() for name in str(value).split(",")] if separated else [str(value)]


def _is_misspelt(module: str) -> bool:
    """Return whether a package is installed, and has no such module."""
    return is_installed(module.partition(".")[0]) and not is_installed(module)


def _classes(module: str) -> list[str]:
    base = _load("torch").optim.Optimizer
    values = vars(_load(module)).items()
    return [name for name, value in values if isinstance(value, type) and value is not base]


def _load(module: str) -> Any:
    return importlib.import_module(module)


def _accepted(call: Callable[[str], Any], names: Iterable[str]) -> list[str]:
    """Return the names with which a function of verl raises no error."""
    accepted = []
    for name in names:
        try:
            call(name)
        except (ValueError, NotImplementedError):
            continue
        accepted.append(name)
    return accepted


def _aggregate(name: str) -> None:
    one = _load("torch").ones(1, 1)
    _load(_CORE).agg_loss(loss_mat=one, loss_mask=one, loss_agg_mode=name)


def _penalize(name: str) -> None:
    zero = _load("torch").zeros(1, 1)
    _load(_CORE).kl_penalty(zero, zero, name)


def _control(name: str) -> None:
    _load(_CORE).get_kl_controller(SimpleNamespace(type=name, kl_coef=0.1, target_kl=0.1, horizon=1))


def _weigh(name: str) -> None:
    torch = _load("torch")
    _corrections().compute_rollout_correction_weights(
        torch.zeros(1, 1), torch.ones(1, 1), rollout_is=name, rollout_is_threshold=2.0
    )


def _corrections() -> Any:
    return _load("verl.trainer.ppo.rollout_corr_helper")


def _rollouts() -> Iterable[tuple[str, str]]:
    registry: Mapping[tuple[str, str], str] = _load("verl.workers.rollout.base")._ROLLOUT_REGISTRY  # noqa: SLF001
    return registry


def _engines_of_rollout() -> set[str]:
    """Return the engines that have both a server and a sender of weights."""
    servers = _load("verl.workers.rollout.replica").RolloutReplicaRegistry._registry  # noqa: SLF001
    return {name for name, _ in _rollouts()} & set(servers)


def _trainers(model_type: str) -> Iterable[str]:
    engines: Mapping[str, Any] = _load(_ENGINES).EngineRegistry._engines[model_type]  # noqa: SLF001
    return engines


def _v1_trainers() -> Iterable[str]:
    _load("verl.trainer.ppo.v1")  # registers them
    registry: Mapping[str, Any] = _load("verl.trainer.ppo.v1.trainer_base").TRAINER_REGISTRY
    return registry


def _reward_managers() -> Iterable[str]:
    _load("verl.experimental.reward_loop.reward_manager")  # registers them
    registry: Mapping[str, Any] = _load(
        "verl.experimental.reward_loop.reward_manager.registry"
    ).REWARD_MANAGER
    return registry


def _precisions() -> set[str]:
    types = _load("verl.utils.torch_dtypes")
    return {str(name) for names in (types.HALF_LIST, types.FLOAT_LIST, types.BFLOAT_LIST) for name in names}
