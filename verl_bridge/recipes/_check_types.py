"""Check the types of settings, and advise values that fit the other settings."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import importlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from verl_bridge.recipes._check_settings import check_sizes
from verl_bridge.recipes._filler import scalar
from verl_bridge.recipes._finding import Finding, problem
from verl_bridge.recipes._folder import render
from verl_bridge.recipes._overrides import override_settings
from verl_bridge.recipes._recipe import ALGORITHMS, PRESETS, RlRecipe
from verl_bridge.recipes._sft import SFT_PRESETS, SftRecipe
from verl_bridge.recipes._sft_folder import render_sft

if TYPE_CHECKING:
    from verl_bridge.recipes._view import View

__all__ = ["check_types"]

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


class _Wrong(NamedTuple):
    """A value that a setting cannot have."""

    key: str
    value: Any
    type: _Type


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


def check_types(view: View, *, sft: bool = False) -> tuple[list[Finding], View]:
    """Check the types of the folder's own settings.

    Args:
        view: The folder.
        sft: Whether it is for fine-tuning.

    Returns:
        The findings, and the folder with usual values instead of the wrong ones, for the other checks.
    """
    written, defaults = _written(view, sft=sft), (view.result or {}).get("defaults") or {}
    own = {key: value for key, value in view.raw.items() if key not in _OURS}
    found = {wrong.key: wrong for wrong in _wrong_types(view, own, defaults or written[0])}
    found |= {wrong.key: wrong for wrong in _wrong_integers(view, sft=sft)}
    if not found:
        return [], view
    meant = {key: value for key, wrong in found.items() if (value := _meant(wrong)) is not None}
    usual = _usual_values(view, found, meant, written, sft=sft)
    command, findings, values = "sft" if sft else "init", [], {}
    for key, wrong in found.items():
        values[key] = _lookup(defaults, key)
        if key in meant:
            values[key], source = meant[key], ""
        elif key in usual:
            values[key], source = usual[key], f", as agentgym verl {command} writes it"
        else:
            source = ", verl's default"
        advice = f"set {key}: {scalar(values[key])}{source}"
        if values[key] is None or isinstance(values[key], Mapping):
            advice = f"set {key} to {wrong.type.name}"
        shown = "null" if wrong.value is None else repr(wrong.value)
        findings.append(problem("values", f"{key}={shown:.80} should be {wrong.type.name}", advice))
    return findings, _replaced(view, values)


def _wrong_types(
    view: View, own: Mapping[str, Any], expected: Mapping[str, Any], at: str = ""
) -> Iterator[_Wrong]:
    """Yield the settings of another type than verl's default, or than the value that is usually written."""
    for name, value in own.items():
        key = f"{at}.{name}" if at else str(name)
        usual = expected.get(name)
        if isinstance(usual, Mapping) and usual and isinstance(value, Mapping):
            yield from _wrong_types(view, value, usual, key)
            continue
        type_, composed = _type_of(key, usual), view.get(key, value)
        nullable = key not in _REQUIRED and (type_ is not _GROUP or not usual)
        unknown = (composed is None and nullable) or (isinstance(composed, str) and "${" in composed)
        if type_ is not None and not unknown and not type_.fits(composed):
            yield _Wrong(key, composed, type_)


def _type_of(key: str, usual: Any) -> _Type | None:
    """Return the type of a setting by its usual value, or None if that can be of any type."""
    if isinstance(usual, bool):
        return _FLAG
    if isinstance(usual, int | float):
        return _NUMBER
    if isinstance(usual, str):
        return None if "${" in usual and key not in _LISTS else _TEXTS if key in _LISTS else _TEXT
    return _GROUP if isinstance(usual, Mapping) else None


def _wrong_integers(view: View, *, sft: bool) -> Iterator[_Wrong]:
    types = dict.fromkeys(_SFT_COUNTS if sft else _COUNTS, _COUNT) | dict.fromkeys(_FREQUENCIES, _FREQUENCY)
    types |= dict.fromkeys(_NULLABLE, _COUNT_OR_NULL)
    for key, type_ in types.items():
        value = view.get(key)
        if value is None and (key in _NULLABLE or not view.is_null(key)):
            continue
        if not type_.fits(value) and not (sft and value in _WORDS):
            yield _Wrong(key, value, type_)


def _meant(wrong: _Wrong) -> Any:
    """Return the value that a quoted one, or a list of one, is meant to be; None if it is unclear."""
    value = wrong.value[0] if isinstance(wrong.value, list) and len(wrong.value) == 1 else wrong.value
    if isinstance(value, str) and wrong.type is not _TEXT:
        yaml = importlib.import_module("yaml")
        with contextlib.suppress(yaml.YAMLError):
            value = yaml.safe_load(value)
    if isinstance(value, float) and value.is_integer() and wrong.type is not _NUMBER:
        value = int(value)
    return value if value is not wrong.value and wrong.type.fits(value) else None


def _usual_values(
    view: View,
    found: Iterable[str],
    meant: dict[str, Any],
    written: Sequence[Mapping[str, Any]],
    *,
    sft: bool,
) -> dict[str, Any]:
    """Return the values that ``agentgym verl`` writes for wrong settings, if they fit the other settings."""
    for settings in written:
        values = {key: value for key in found if (value := _lookup(settings, key)) is not None}
        mended = _replaced(view, dict.fromkeys(found) | values | meant)
        if sft or not any(finding.status == "problem" for finding in check_sizes(mended)):
            return values
    return {}


def _replaced(view: View, values: Mapping[str, Any]) -> View:
    """Return the folder with other values."""
    overrides = [f"~{key}" if value is None else f"{key}={scalar(value)}" for key, value in values.items()]
    result = dict(view.result) if view.result is not None else None
    if result is not None and result["config"] is not None:
        result["config"] = override_settings(result["config"], overrides)
    return dataclasses.replace(view, raw=override_settings(view.raw, overrides), result=result)


def _written(view: View, *, sft: bool) -> list[Mapping[str, Any]]:
    """Return the settings that ``agentgym verl`` writes, those of the most similar preset first."""
    if sft:
        texts = [
            render_sft(SftRecipe(preset=preset, validation=True))["config.yaml"] for preset in SFT_PRESETS
        ]
    else:
        texts = list(_rendered(view))
    load = importlib.import_module("yaml").safe_load
    keys = (*(_SFT_COUNTS if sft else _COUNTS), *_FREQUENCIES)

    def differences(settings: Mapping[str, Any]) -> int:
        return sum(_lookup(settings, key) != view.get(key) for key in keys)

    return sorted(map(load, texts), key=differences)


def _rendered(view: View) -> Iterator[str]:
    """Yield ``config.yaml`` of each preset, for the environment, the algorithm and the GPUs of a folder."""
    estimator = view.get("algorithm.adv_estimator", "" if view.is_null("algorithm.adv_estimator") else "gae")
    algorithm = next((name for name, value in ALGORITHMS.items() if value == estimator), "grpo")
    env_id = view.arguments().get("env_id")
    recipe = functools.partial(
        RlRecipe, env_id if isinstance(env_id, str) else "any/Env-v0", algorithm=algorithm
    )
    for preset in PRESETS:
        try:
            yield render(recipe(preset=preset, gpus=view.number("trainer.n_gpus_per_node", 4)))["config.yaml"]
        except ValueError:  # an id or a number of GPUs that init refuses
            yield render(RlRecipe("any/Env-v0", preset=preset))["config.yaml"]


def _lookup(settings: Any, key: str) -> Any:
    for part in filter(None, key.split(".")):
        settings = settings.get(part) if isinstance(settings, Mapping) else None
    return settings
