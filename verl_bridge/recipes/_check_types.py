"""Find settings of a wrong type, and the values that the other checks continue with."""

from __future__ import annotations

import contextlib
import functools
import importlib
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

from verl_bridge.recipes._check_files import Settings, lookup
from verl_bridge.recipes._check_trainer import size_errors
from verl_bridge.recipes._filler import scalar
from verl_bridge.recipes._finding import Finding, problem
from verl_bridge.recipes._folder import render
from verl_bridge.recipes._overrides import override_settings
from verl_bridge.recipes._presets import PRESETS
from verl_bridge.recipes._recipe import ALGORITHMS, RlRecipe
from verl_bridge.recipes._sft import SFT_PRESETS, SftRecipe, render_sft

__all__ = ["WrongValue", "check_types", "mend"]

_COUNTS = (
    "data.train_batch_size",
    "data.max_prompt_length",
    "data.max_response_length",
    "actor_rollout_ref.rollout.n",
    "actor_rollout_ref.actor.ppo_mini_batch_size",
    "actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu",
    "actor_rollout_ref.actor.ppo_epochs",
    "actor_rollout_ref.rollout.tensor_model_parallel_size",
    "actor_rollout_ref.rollout.log_prob_micro_batch_size_per_gpu",
    "actor_rollout_ref.rollout.agent.num_workers",
    "trainer.n_gpus_per_node",
    "trainer.nnodes",
    "trainer.total_epochs",
    "trainer.total_training_steps",
)
"""Settings that are integers from 1."""

_SFT_COUNTS = (
    "data.train_batch_size",
    "data.micro_batch_size_per_gpu",
    "data.max_length",
    "data.max_token_len_per_gpu",
    "trainer.n_gpus_per_node",
    "trainer.nnodes",
    "trainer.total_epochs",
    "trainer.total_training_steps",
)

_FREQUENCIES = ("trainer.save_freq", "trainer.test_freq")
"""Settings that are integers from 1, or -1 for never."""

_WORDS = ("after_each_epoch",)  # of the frequencies in verl's trainer for fine-tuning

_NULLABLE = (
    "actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu",
    "actor_rollout_ref.rollout.log_prob_micro_batch_size_per_gpu",
    "trainer.total_training_steps",
)
"""Settings whose default in verl is null."""

_REQUIRED = ("algorithm.adv_estimator", "actor_rollout_ref.rollout.name")
"""Settings that are texts, and never null."""

_LISTS = (
    "data.train_files",
    "data.val_files",
    "actor_rollout_ref.model.target_modules",
    "model.target_modules",
)
"""Settings whose default in verl is a text, and that can also be lists of texts."""

_OURS = ("hydra", "defaults", "folder")
"""Keys of ``config.yaml`` that are no settings."""


class _Type(NamedTuple):
    """The values that a setting can have.

    Attributes:
        name: In words.
        fits: Returns whether a value is one of them.
    """

    name: str
    fits: Callable[[Any], bool]


class WrongValue(NamedTuple):
    """A value that a setting cannot have.

    Attributes:
        key: The dotted key of the setting.
        value: The value.
        type: The type that it should have, in words.
        advice: The remedy.
    """

    key: str
    value: Any
    type: str
    advice: str


def _is_number(value: Any) -> bool:
    try:
        float(value)  # PyYAML reads 1e-6 as text, and verl as a number
    except (TypeError, ValueError):
        return False
    return not isinstance(value, bool)


_COUNT = _Type("an integer from 1", lambda value: type(value) is int and value > 0)
_COUNT_OR_NULL = _COUNT._replace(name="an integer from 1, or null")
_FREQUENCY = _Type("an integer from 1, or -1 for never", lambda value: type(value) is int)
_NUMBER = _Type("a number", lambda value: _is_number(value) or value in _WORDS)
_FLAG = _Type("true or false", lambda value: isinstance(value, bool))
_TEXT = _Type("a text", lambda value: value is not None and not isinstance(value, list | Mapping))
_TEXTS = _Type("a text, or a list of texts", lambda value: not isinstance(value, Mapping))
_GROUP = _Type("a group of settings", lambda value: isinstance(value, Mapping))


def check_types(wrong_values: list[WrongValue]) -> Iterator[Finding]:
    """Report the settings of a wrong type."""
    for wrong in wrong_values:
        shown = "null" if wrong.value is None else repr(wrong.value)
        yield problem("values", f"{wrong.key}={shown:.80} should be {wrong.type}", wrong.advice)


def mend(
    written: Mapping[str, Any],
    settings: Settings,
    defaults: Mapping[str, Any],
    *,
    verl: str,
    env_id: Any,
    sft: bool,
) -> tuple[Settings, list[WrongValue]]:
    """Replace the values of a wrong type, so that one mistake has one finding.

    Args:
        written: The contents of ``config.yaml``, with the overrides.
        settings: The settings.
        defaults: verl's own settings; empty if verl did not compose them.
        verl: The version of verl, or empty.
        env_id: The environment of the loop, if it names one.
        sft: Whether the folder is for fine-tuning.

    Returns:
        The settings with usual values instead of the wrong ones, and the wrong ones.
    """
    presets = _sft_presets() if sft else _rl_presets(settings, env_id)
    keys = (*(_SFT_COUNTS if sft else _COUNTS), *_FREQUENCIES)
    presets.sort(key=lambda preset: sum(lookup(preset, key) != settings.get(key) for key in keys))
    own = {key: value for key, value in written.items() if key not in _OURS}
    found = dict(_wrong_types(settings, own, defaults or presets[0]))
    found |= dict(_wrong_integers(settings, sft=sft))
    if not found:
        return settings, []
    values = {key: settings.get(key) for key in found}
    meant = {key: value for key, type_ in found.items() if (value := _meant(values[key], type_)) is not None}
    usual: Mapping[str, Any] = {}
    for preset in presets:
        usual = {key: value for key in found if (value := lookup(preset, key)) is not None}
        mended = _replaced(settings, {**dict.fromkeys(found), **usual, **meant})
        if sft or not size_errors(mended, verl):
            break
        usual = {}
    command = "sft" if sft else "init"
    instead, wrong = {}, []
    for key, type_ in found.items():
        instead[key], source = lookup(defaults, key), ", verl's default"
        if key in meant:
            instead[key], source = meant[key], ""
        elif key in usual:
            instead[key], source = usual[key], f", as agentgym verl {command} writes it"
        advice = f"set {key}: {scalar(instead[key])}{source}"
        if instead[key] is None or isinstance(instead[key], Mapping):
            advice = f"set {key} to {type_.name}"
        wrong.append(WrongValue(key, values[key], type_.name, advice))
    return _replaced(settings, instead), wrong


def _wrong_types(
    settings: Settings, own: Mapping[str, Any], expected: Mapping[str, Any], at: str = ""
) -> Iterator[tuple[str, _Type]]:
    """Yield the settings of another type than verl's default, or than the value that is usually written."""
    for name, value in own.items():
        key = f"{at}.{name}" if at else str(name)
        usual = expected.get(name)
        if isinstance(usual, Mapping) and usual and isinstance(value, Mapping):
            yield from _wrong_types(settings, value, usual, key)
            continue
        type_, composed = _type_of(key, usual), settings.get(key, value)
        nullable = key not in _REQUIRED and (type_ is not _GROUP or not usual)
        unknown = (composed is None and nullable) or (isinstance(composed, str) and "${" in composed)
        if type_ is not None and not unknown and not type_.fits(composed):
            yield key, type_


def _type_of(key: str, usual: Any) -> _Type | None:
    """Return the type of a setting by its usual value, or None if that can be of any type."""
    if isinstance(usual, bool):
        return _FLAG
    if isinstance(usual, int | float):
        return _NUMBER
    if isinstance(usual, str):
        return None if "${" in usual and key not in _LISTS else _TEXTS if key in _LISTS else _TEXT
    return _GROUP if isinstance(usual, Mapping) else None


def _wrong_integers(settings: Settings, *, sft: bool) -> Iterator[tuple[str, _Type]]:
    types = dict.fromkeys(_SFT_COUNTS if sft else _COUNTS, _COUNT) | dict.fromkeys(_FREQUENCIES, _FREQUENCY)
    types |= dict.fromkeys(_NULLABLE, _COUNT_OR_NULL)
    for key, type_ in types.items():
        value = settings.get(key)
        if value is None and (key in _NULLABLE or not settings.is_null(key)):
            continue
        if not type_.fits(value) and not (sft and value in _WORDS):
            yield key, type_


def _meant(wrong: Any, type_: _Type) -> Any:
    """Return the value that a quoted one, or a list of one, is meant to be; None if it is unclear."""
    value = wrong[0] if isinstance(wrong, list) and len(wrong) == 1 else wrong
    if isinstance(value, str) and type_ is not _TEXT:
        yaml = importlib.import_module("yaml")
        with contextlib.suppress(yaml.YAMLError):
            value = yaml.safe_load(value)
    if isinstance(value, float) and value.is_integer() and type_ is not _NUMBER:
        value = int(value)
    return value if value is not wrong and type_.fits(value) else None


def _replaced(settings: Settings, values: Mapping[str, Any]) -> Settings:
    """Return the settings with other values."""
    overrides = [f"~{key}" if value is None else f"{key}={scalar(value)}" for key, value in values.items()]
    return Settings(settings.folder, override_settings(settings.values, overrides))


def _sft_presets() -> list[Mapping[str, Any]]:
    """Return the settings of each preset, as ``agentgym verl sft`` writes them."""
    load = importlib.import_module("yaml").safe_load
    recipes = (SftRecipe(preset=preset, validation=True) for preset in SFT_PRESETS)
    return [load(render_sft(recipe)["config.yaml"]) for recipe in recipes]


def _rl_presets(settings: Settings, env_id: Any) -> list[Mapping[str, Any]]:
    """Return the settings of each preset as ``init`` writes them for a folder's environment and algorithm."""
    load = importlib.import_module("yaml").safe_load
    default = "" if settings.is_null("algorithm.adv_estimator") else "gae"
    estimator = settings.get("algorithm.adv_estimator", default)
    algorithm = next((name for name, value in ALGORITHMS.items() if value == estimator), None)
    recipe = functools.partial(
        RlRecipe,
        env_id if isinstance(env_id, str) else "any/Env-v0",
        algorithm=algorithm,
        gpus=settings.number("trainer.n_gpus_per_node", 4),
    )
    written = []
    for preset in PRESETS:
        try:
            files = render(recipe(preset=preset))
        except ValueError:  # an id or a number of GPUs that init refuses
            files = render(RlRecipe("any/Env-v0", preset=preset))
        written.append(load(files["config.yaml"]))
    return written
