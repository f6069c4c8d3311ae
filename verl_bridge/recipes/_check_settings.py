"""Check the settings: verl must compose them, have each one, and accept the names among the values."""

from __future__ import annotations

import difflib
import json
import os
import subprocess
import sys
from collections.abc import Collection, Iterator, Mapping, Sequence
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any

from verl_bridge._credit.estimators import BY_TURN
from verl_bridge._run.loop_arguments import turn_credit
from verl_bridge.recipes._absent import is_installed
from verl_bridge.recipes._compose import external_modules
from verl_bridge.recipes._finding import Finding, Missing, ok, problem, skipped, warning
from verl_bridge.recipes._verl_settings import lookup

if TYPE_CHECKING:
    from verl_bridge.recipes._setting_types import WrongValue
    from verl_bridge.recipes._verl_settings import RlSettings

__all__ = [
    "answer_of",
    "check_absent_packages",
    "check_composition",
    "check_external_modules",
    "check_group_names",
    "check_keys",
    "check_names",
    "check_trainer_module",
    "check_types",
    "compose_settings",
    "composed_of",
    "script_modules",
    "verl_version",
    "why_not_composed",
]

_OLD_GROUPS = ("custom_reward_function", "reward_model", "sandbox_fusion")
_OLD_NAMES = {"gym_grpo": "grpo"}

COMPOSE_SECONDS = 300.0
"""Seconds allowed for verl to be imported and to compose the settings."""


def verl_version() -> str:
    """Return the version of verl; empty if it is not installed."""
    try:
        return metadata.version("verl") if is_installed("verl") else ""
    except metadata.PackageNotFoundError:
        return ""


def compose_settings(folder: Path, overrides: Sequence[str]) -> Mapping[str, Any]:
    """Return the result of composing the settings with verl; empty if it is not installed."""
    return compose_apart(folder, overrides) if is_installed("verl") else {}


def compose_apart(folder: Path, overrides: Sequence[str]) -> Mapping[str, Any]:
    """Compose the settings with verl in a separate process.

    Returns:
        The result of :func:`verl_bridge.recipes._compose.compose`, or the error of a process without a result
        in ``failed``.
    """
    command = [sys.executable, "-m", "verl_bridge.recipes._compose", str(folder), "--", *overrides]
    # `python -m` puts its working directory first; this process may have imported the package from elsewhere.
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    try:
        ended = subprocess.run(  # noqa: S603 - our own module
            command, capture_output=True, text=True, check=False, timeout=COMPOSE_SECONDS, env=environment
        )
        answer: Mapping[str, Any] = json.loads(ended.stdout.splitlines()[-1])
    except subprocess.TimeoutExpired:
        return {"failed": f"verl could not be imported in {COMPOSE_SECONDS:g} s"}
    except (IndexError, ValueError):
        return {"failed": (ended.stderr.strip().splitlines() or ["it printed nothing"])[-1][:500]}
    return answer


def answer_of(answer: Mapping[str, Any]) -> Mapping[str, Any] | Missing:
    """Return verl's answer, also if it rejected the settings."""
    return answer or Missing("verl is not installed here", "check again where the training runs")


def why_not_composed(attempt: Mapping[str, Any] | None = None) -> str | Missing:
    """Return why verl did not compose the settings."""
    if attempt is None:
        return "verl is not installed here"
    if attempt.get("failed") or attempt["error"]:
        return "the settings could not be composed"
    if attempt["config"] is None:
        return f"{attempt['skipped'][0]['package']} is not installed here"
    return Missing()


def composed_of(attempt: Mapping[str, Any]) -> Mapping[str, Any] | Missing:
    """Return verl's answer if it composed the settings."""
    if attempt.get("failed") or attempt["error"]:
        return Missing("the settings could not be composed")
    return attempt if attempt["config"] is not None else Missing()  # the package is reported by itself


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


def check_types(wrong_values: Sequence[WrongValue]) -> Iterator[Finding]:
    """Report the settings of a wrong type."""
    for wrong in wrong_values:
        shown = "null" if wrong.value is None else repr(wrong.value)
        yield problem("values", f"{wrong.key}={shown:.80} should be {wrong.type}", wrong.advice)


def check_external_modules(answer: Mapping[str, Any]) -> Iterator[Finding]:
    """Report the modules of ``run.sh`` that verl cannot import."""
    for module, error in answer.get("external", {}).items():
        if error is not None:
            yield problem(
                "values",
                f"run.sh has verl import {module}, which fails: {error}",
                "install it, start run.sh in its folder, or remove it from VERL_USE_EXTERNAL_MODULES",
            )


def script_modules(folder: Path) -> Sequence[str] | Missing:
    """Return the modules that verl imports if ``run.sh`` starts it."""
    return external_modules(folder) if (folder / "run.sh").is_file() else Missing()


def check_trainer_module(
    script_modules: Collection[str], settings: RlSettings, arguments: Mapping[str, Any]
) -> Iterator[Finding]:
    """Check whether run.sh has verl import the module that excludes faulted episodes."""
    if "verl_bridge.trainer" in script_modules:
        return
    needed = [*({settings.estimator} & BY_TURN), *turn_credit(arguments)]
    if needed:
        text = (
            f"run.sh does not load verl_bridge.trainer, without which verl has no {' and no '.join(needed)}"
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
    """Check whether the installed verl accepts the names among the values."""
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
