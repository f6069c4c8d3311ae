"""Check the values of settings: names that verl accepts, integers, and the files of the model."""

from __future__ import annotations

import difflib
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Any

from verl_bridge._estimators import GIGPO
from verl_bridge._loop_arguments import LOOP, RULES, loop_errors, unknown_arguments
from verl_bridge.recipes._compose import external_modules
from verl_bridge.recipes._finding import Finding, ok, problem, skipped, warning
from verl_bridge.recipes._view import View

__all__ = ["check_arguments", "check_model", "check_values", "did_you_mean"]

_OLD_NAMES = {"gym_grpo": "grpo"}

_TOKENIZER_FILES = ("tokenizer.json", "tokenizer_config.json", "tokenizer.model", "vocab.json", "vocab.txt")


def check_values(view: View) -> Iterator[Finding]:
    """Compare the names among the values with those that the installed verl accepts."""
    result = view.result or {}
    external = result.get("external") or {}
    for module, error in external.items():
        if error is not None:
            yield problem(
                "values",
                f"run.sh has verl import {module}, which fails: {error}",
                "install it, start run.sh in its folder, or remove it from VERL_USE_EXTERNAL_MODULES",
            )
    unread = [module for module, error in external.items() if error is None]
    yield from _check_trainer_module(view)
    found = result.get("values") or {}
    for wrong in found.get("wrong", ()):
        if wrong["registered"] and unread:
            text = (
                f"{wrong['key']}={wrong['value']} is no name of verl's; {', '.join(unread)} may register it"
            )
            yield skipped("values", text, f"check again where {', '.join(unread)} can be imported")
        else:
            yield _wrong_value(wrong)
    if found.get("unchecked"):
        yield skipped("values", f"this verl does not list the names of {', '.join(found['unchecked'])}")
    if found and not found["wrong"]:
        partly = found["unchecked"] or any(each["check"] == "values" for each in result["skipped"])
        names = "every other name" if partly else "each name"
        yield ok("values", f"verl accepts {names}: estimator, losses, engines, trainers and loggers")


def _check_trainer_module(view: View) -> Iterator[Finding]:
    """Check whether run.sh has verl import the module that excludes faulted episodes."""
    if not (view.folder / "run.sh").is_file() or view.get("actor_rollout_ref.rollout") is None:
        return
    if "verl_bridge.trainer" in external_modules(view.folder):
        return
    if view.get("algorithm.adv_estimator") == GIGPO or view.arguments().get("turn_rewards") is True:
        text = (
            f"run.sh does not load verl_bridge.trainer, without which verl has no {GIGPO} and no turn_rewards"
        )
        finding = problem
    elif view.arguments().get("horizon") is not None:
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


def _wrong_value(wrong: Mapping[str, Any]) -> Finding:
    key, value, allowed = wrong["key"], wrong["value"], wrong["allowed"]
    near = did_you_mean(value, allowed)
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
        text = f"{key}={value} is none of {names}{hint} It is not used with these settings"
        return warning("values", text, f"set {key}: {near}" if near else f"correct {key}")
    registering = ", or load the module that registers it by VERL_USE_EXTERNAL_MODULES"
    return problem(
        "values",
        f"{key}={value} is none of {names}{hint}",
        f"set {key}: {near}"
        if near
        else f"set {key} to one of them{registering if wrong['registered'] else ''}",
    )


def did_you_mean(value: str, allowed: Collection[str]) -> str:
    """Return the allowed name that is closest to a value, or an empty text if none is close."""
    plain = value.lower().replace("+", "_plus").replace("-", "_")
    by_plain = {name.lower().replace("+", "_plus").replace("-", "_"): name for name in allowed}
    near = difflib.get_close_matches(plain, by_plain, 1, cutoff=0.55)
    return by_plain[near[0]] if near else ""


def check_arguments(entries: list[Mapping[str, Any]]) -> Iterator[Finding]:
    """Check the arguments of our loop in its yaml.

    Args:
        entries: The entries of the yaml.
    """
    for entry in entries:
        if entry.get("_target_") != LOOP:
            continue
        arguments = {key: value for key, value in entry.items() if key not in {"name", "_target_"}}
        errors = [*unknown_arguments(arguments, RULES), *loop_errors(arguments)]
        for error in errors:
            yield problem("loop", f"agent_loop.yaml: {error}", "correct it in agent_loop.yaml")
        if not errors:
            yield ok("loop", f"{entry['name']} accepts its {len(arguments)} arguments")


def check_model(view: View, *keys: str) -> Iterator[Finding]:
    """Check whether each model that is a path has the files of a model.

    Args:
        view: The folder.
        *keys: The settings with a model.
    """
    for key in keys:
        if view.is_null(key):
            yield problem("model", f"{key} is null", f"set {key} to the folder or the name of a model")
    for name in dict.fromkeys(str(view.get(key)) for key in keys if view.get(key) is not None):
        path = view.folder / Path(name).expanduser()
        key = next(key for key in keys if str(view.get(key)) == name)
        default = "" if View(view.folder, view.raw).get(key) is not None else ", verl's default,"
        if "://" in name:
            continue
        if not path.is_dir():
            if name.startswith(("/", "./", "../", "~")) or name.count("/") > 1:
                yield problem(
                    "model",
                    f"{key}={name}{default} does not exist",
                    f"set {key} to the folder or the name of a model",
                )
            continue
        if not (path / "config.json").is_file():
            yield problem("model", f"{key}: {path} has no config.json", "name the folder of a whole model")
        elif not any((path / file).is_file() for file in _TOKENIZER_FILES):
            yield problem(
                "model",
                f"{key}: {path} has no tokenizer",
                "save the tokenizer there too, as save_pretrained does",
            )
        elif not any(path.glob("*.safetensors")) and not any(path.glob("*.bin")):
            yield problem(
                "model",
                f"{key}: {path} has no weights (*.safetensors or *.bin)",
                "name the folder of a whole model; merge a checkpoint of verl first by verl.model_merger",
            )
