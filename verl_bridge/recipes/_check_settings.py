"""Check a recipe's settings: verl must have each one, and accept its value."""

from __future__ import annotations

import difflib
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from verl_bridge._credit.estimators import GIGPO
from verl_bridge.recipes._check_files import lookup
from verl_bridge.recipes._finding import Finding, ok, problem, skipped, warning

if TYPE_CHECKING:
    from verl_bridge.recipes._check_files import Settings
    from verl_bridge.recipes._check_types import WrongValue

__all__ = [
    "check_absent_packages",
    "check_composition",
    "check_external_modules",
    "check_group_names",
    "check_keys",
    "check_names",
    "check_trainer_module",
]

_OLD_GROUPS = ("custom_reward_function", "reward_model", "sandbox_fusion")
_OLD_NAMES = {"gym_grpo": "grpo"}


def check_composition(attempt: Mapping[str, Any], overrides: Sequence[str]) -> Iterator[Finding]:
    """Check whether the installed verl composes the settings."""
    if attempt.get("failed"):
        text = f"verl did not compose them: {attempt['failed']}"
        yield problem("settings", text, "repair the installation of verl")
    elif attempt["error"]:
        yield problem("settings", f"verl cannot compose them: {attempt['error']}", _repair(overrides))


def check_keys(
    composed: Mapping[str, Any], wrong_values: Sequence[WrongValue], verl: str, overrides: Sequence[str]
) -> Iterator[Finding]:
    """Check whether verl has each setting, and does not reject its value.

    Args:
        composed: The result of composing the settings.
        wrong_values: The values of a wrong type, which cause obscure errors in verl.
        verl: The version of verl.
        overrides: Further settings, as given to ``run.sh``.
    """
    for key in composed["unknown"]:
        advice = "delete it, or correct its name"
        near = _nearest(key, composed["defaults"])
        if near:
            advice = f"did you mean {near}?"
        if key.endswith("interaction_config_path"):
            advice = "verl 0.8 deleted interactions: write the folder again, with --integration agent-loop"
        yield problem(
            "settings",
            f"verl {verl} has no setting {key}, and ignores most unknown settings silently",
            advice,
        )
    if composed["refused"] and wrong_values:
        yield skipped("settings", f"verl {verl} does not finish its own check with the values below")
    elif composed["refused"]:
        yield problem("settings", f"verl {verl} rejects them: {composed['refused']}", _repair(overrides))
    if not composed["unknown"] and not composed["refused"]:
        yield ok("settings", f"verl {verl} composes them and has each one")


def _repair(overrides: Sequence[str]) -> str:
    return "repair config.yaml, or the settings after the folder" if overrides else "repair config.yaml"


def _nearest(key: str, defaults: Any) -> str:
    """Return the setting of verl's with the most similar name in the same group, or an empty text."""
    group, _, last = key.rpartition(".")
    known = lookup(defaults, group) if group else defaults
    near = _did_you_mean(last, list(map(str, known))) if isinstance(known, Mapping) else ""
    return f"{group}.{near}".lstrip(".") if near else ""


def check_absent_packages(answer: Mapping[str, Any]) -> Iterator[Finding]:
    """Report the checks in verl's process that need a package which is not installed."""
    for each in answer.get("skipped", ()):
        text = f"{each['package']} is not installed here: {each['text']}"
        yield skipped(each["check"], text, f"check again where {each['package']} is installed")


def check_group_names(written: Mapping[str, Any], verl: str) -> Iterator[Finding]:
    """Check for groups of settings that verl 0.8 renamed."""
    for group in _OLD_GROUPS:
        made = written.get(group)
        if isinstance(made, Mapping) and any(value is not None for value in made.values()):
            name = "reward.reward_model" if group == "reward_model" else f"reward.{group}"
            finding = warning if verl.startswith("0.7.") else problem
            yield finding(
                "settings", f"{group} is an old name, which verl 0.9 ignores silently", f"rename it to {name}"
            )


def check_external_modules(answer: Mapping[str, Any]) -> Iterator[Finding]:
    """Report the modules of ``run.sh`` that verl cannot import."""
    for module, error in answer.get("external", {}).items():
        if error is not None:
            yield problem(
                "values",
                f"run.sh has verl import {module}, which fails: {error}",
                "install it, start run.sh in its folder, or remove it from VERL_USE_EXTERNAL_MODULES",
            )


def check_trainer_module(
    script_modules: Collection[str], settings: Settings, arguments: Mapping[str, Any]
) -> Iterator[Finding]:
    """Check whether run.sh has verl import the module that excludes faulted episodes."""
    if settings.get("actor_rollout_ref.rollout") is None or "verl_bridge.trainer" in script_modules:
        return
    if settings.get("algorithm.adv_estimator") == GIGPO or arguments.get("turn_rewards") is True:
        text = (
            f"run.sh does not load verl_bridge.trainer, without which verl has no {GIGPO} and no turn_rewards"
        )
        finding = problem
    elif arguments.get("horizon") is not None:
        text = "run.sh does not load verl_bridge.trainer, without which the horizon has no training step"
        finding = problem
    else:
        text = "run.sh does not load verl_bridge.trainer: faulted episodes count as scores of 0"
        finding = warning
    yield finding(
        "values",
        text,
        "add verl_bridge.trainer to VERL_USE_EXTERNAL_MODULES in run.sh, as agentgym verl init",
    )


def check_names(composed: Mapping[str, Any]) -> Iterator[Finding]:
    """Compare the names among the values with those that the installed verl accepts."""
    values = composed["values"]
    if not values:
        return
    external = composed["external"]  # the error is None if it is a package that is not installed
    unread = ", ".join(module for module, error in external.items() if error is None)
    for wrong in values["wrong"]:
        if wrong["registered"] and unread:
            text = f"{wrong['key']}={wrong['value']} is no name of verl's; {unread} may register it"
            yield skipped("values", text, f"check again where {unread} can be imported")
        else:
            yield _wrong_name(wrong)
    if values["unchecked"]:
        yield skipped("values", f"this verl does not list the names of {', '.join(values['unchecked'])}")
    if not values["wrong"]:
        partly = values["unchecked"] or any(each["check"] == "values" for each in composed["skipped"])
        names = "every other name" if partly else "each name"
        yield ok("values", f"verl accepts {names}: estimator, losses, engines, trainers and loggers")


def _wrong_name(wrong: Mapping[str, Any]) -> Finding:
    key, value, allowed = wrong["key"], wrong["value"], wrong["allowed"]
    near = _did_you_mean(value, allowed)
    if value in _OLD_NAMES and _OLD_NAMES[value] in allowed:
        near = _OLD_NAMES[value]
        return problem(
            "values",
            f"{key}={value} is an old name, which verl does not know; did you mean {near}?",
            f"set {key}: {near}, which leaves out faulted episodes itself",
        )
    hint = f"; did you mean {near}?" if near else ""
    names = ", ".join(allowed)
    if not wrong["used"]:
        text = f"{key}={value} is none of {names}{hint or '.'} It is not used with these settings"
        return warning("values", text, f"set {key}: {near}" if near else f"correct {key}")
    registering = ", or load the module that registers it by VERL_USE_EXTERNAL_MODULES"
    return problem(
        "values",
        f"{key}={value} is none of {names}{hint}",
        f"set {key}: {near}"
        if near
        else f"set {key} to one of them{registering if wrong['registered'] else ''}",
    )


def _did_you_mean(value: str, allowed: Collection[str]) -> str:
    """Return the allowed name that is closest to a value, or an empty text if none is close."""
    plain = value.lower().replace("+", "_plus").replace("-", "_")
    by_plain = {name.lower().replace("+", "_plus").replace("-", "_"): name for name in allowed}
    near = difflib.get_close_matches(plain, by_plain, 1, cutoff=0.55)
    return by_plain[near[0]] if near else ""
