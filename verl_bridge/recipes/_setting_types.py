"""Find settings of a wrong type, and the values that the other checks continue with."""

from __future__ import annotations

import contextlib
import functools
import importlib
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from verl_bridge.recipes._check_loop import read_loops
from verl_bridge.recipes._check_trainer import size_errors
from verl_bridge.recipes._filler import scalar
from verl_bridge.recipes._folder import render
from verl_bridge.recipes._overrides import override_settings
from verl_bridge.recipes._presets import PRESETS
from verl_bridge.recipes._recipe import ALGORITHMS, RlRecipe
from verl_bridge.recipes._sft import SFT_PRESETS, SftRecipe, render_sft
from verl_bridge.recipes._verl_settings import (
    RlSettings,
    Settings,
    SftSettings,
    counts,
    lookup,
    read_settings,
)

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["WrongValue", "mend"]

_FREQUENCIES = ("trainer.save_freq", "trainer.test_freq")
"""Settings that are integers from 1, or -1 for never."""

_WORDS = ("after_each_epoch",)  # of the frequencies in verl's trainer for fine-tuning

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


def mend(
    folder: Path, written: Mapping[str, Any], answer: Mapping[str, Any], verl: str, sft: bool
) -> tuple[Settings, list[WrongValue]]:
    """Replace the values of a wrong type, so that one mistake has one finding.

    Args:
        folder: The training folder.
        written: The contents of ``config.yaml``, with the overrides.
        answer: The result of composing them with verl; empty if it is not installed.
        verl: The version of verl, or empty.
        sft: Whether the folder is for fine-tuning.

    Returns:
        The settings with usual values instead of the wrong ones, and the wrong ones.
    """
    settings = Settings(folder, answer.get("config") or written)
    defaults: Mapping[str, Any] = answer.get("defaults") or {}
    presets = [] if defaults else _presets(settings, sft=sft)
    own = {key: value for key, value in written.items() if key not in _OURS}
    found = dict(_wrong_types(settings, own, defaults or presets[0]))
    found |= dict(_wrong_integers(settings, sft=sft))
    if not found:
        return settings, []
    values = {key: settings.get(key) for key in found}
    meant = {key: value for key, type_ in found.items() if (value := _meant(values[key], type_)) is not None}
    presets = presets or _presets(settings, sft=sft)
    usual = _usual_values(settings, found, meant, presets, verl=verl, sft=sft)
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


def _usual_values(
    settings: Settings,
    found: Collection[str],
    meant: Mapping[str, Any],
    presets: Sequence[Mapping[str, Any]],
    *,
    verl: str,
    sft: bool,
) -> dict[str, Any]:
    """Return the values that the nearest preset has in place of wrong ones, if the sizes then fit."""
    for preset in presets:
        usual = {key: value for key in found if (value := lookup(preset, key)) is not None}
        mended = _replaced(settings, {**dict.fromkeys(found), **usual, **meant})
        if sft or not size_errors(read_settings(RlSettings, mended), verl):
            return usual
    return {}


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
    for key, nullable in counts(SftSettings if sft else RlSettings).items():
        value, type_ = settings.get(key), _COUNT_OR_NULL if nullable else _COUNT
        if value is None and (nullable or not settings.is_null(key)):
            continue
        if not type_.fits(value):
            yield key, type_
    for key in _FREQUENCIES:
        value = settings.get(key)
        if value is None and not settings.is_null(key):
            continue
        if not _FREQUENCY.fits(value) and not (sft and value in _WORDS):
            yield key, _FREQUENCY


def _meant(wrong: Any, type_: _Type) -> Any:
    """Return the value that a quoted one, or a list of one, is meant to be; None if it is unclear."""
    value = wrong[0] if isinstance(wrong, list) and len(wrong) == 1 else wrong
    if isinstance(value, str) and type_ is not _TEXT:
        yaml = importlib.import_module("yaml")
        with contextlib.suppress(yaml.YAMLError, RecursionError):
            value = yaml.safe_load(value)
    if isinstance(value, float) and value.is_integer() and type_ is not _NUMBER:
        value = int(value)
    return value if value is not wrong and type_.fits(value) else None


def _replaced(settings: Settings, values: Mapping[str, Any]) -> Settings:
    """Return the settings with other values."""
    overrides = [f"~{key}" if value is None else f"{key}={scalar(value)}" for key, value in values.items()]
    return Settings(settings.folder, override_settings(settings.values, overrides))


def _presets(settings: Settings, *, sft: bool) -> list[Mapping[str, Any]]:
    """Return the settings of each preset, as ``sft`` or ``init`` writes them, the nearest first."""
    load = importlib.import_module("yaml").safe_load
    files = _sft_presets() if sft else _rl_presets(settings)
    presets = [load(each["config.yaml"]) for each in files]
    keys = (*counts(SftSettings if sft else RlSettings), *_FREQUENCIES)
    return sorted(presets, key=lambda preset: sum(lookup(preset, key) != settings.get(key) for key in keys))


def _sft_presets() -> list[dict[str, str]]:
    return [render_sft(SftRecipe(preset=preset, validation=True)) for preset in SFT_PRESETS]


def _rl_presets(settings: Settings) -> list[dict[str, str]]:
    """Return the files of each preset for the folder's environment and algorithm."""
    env_id = read_loops(read_settings(RlSettings, settings)).arguments.get("env_id")
    default = "" if settings.is_null("algorithm.adv_estimator") else "gae"
    estimator = settings.get("algorithm.adv_estimator", default)
    algorithm = next((name for name, value in ALGORITHMS.items() if value == estimator), None)
    gpus = settings.get("trainer.n_gpus_per_node")
    recipe = functools.partial(
        RlRecipe,
        env_id if isinstance(env_id, str) else "any/Env-v0",
        algorithm=algorithm,
        gpus=gpus if type(gpus) is int else 4,
    )
    written = []
    for preset in PRESETS:
        try:
            files = render(recipe(preset=preset))
        except ValueError:  # an id or a number of GPUs that init refuses
            files = render(RlRecipe("any/Env-v0", preset=preset))
        written.append(files)
    return written
