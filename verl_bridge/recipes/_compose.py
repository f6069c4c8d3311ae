"""Check with the installed verl: ``python -m verl_bridge.recipes._compose FOLDER...`` prints JSON for each.

Arguments after ``--`` are overrides of the settings, as ``run.sh`` passes them to verl.

It runs in a separate process, because importing verl takes ten seconds, starts threads, and may fail.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import inspect
import json
import os
import re
import sys
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from verl_bridge._credit.estimators import EPISODE_WEIGHT, OMEGA
from verl_bridge._run.engine_share import SEPARATE_SHARE
from verl_bridge._run.loop_arguments import ARGUMENTS, LOOP, loop_errors, unknown_arguments
from verl_bridge.recipes._absent import absent_package
from verl_bridge.recipes._compose_values import wrong_values
from verl_bridge.recipes._folder_name import hydra_text

__all__ = ["SFT", "base_of", "compose", "external_modules", "unknown_keys"]

SFT = "sft_trainer_engine"
"""verl's configuration of its trainer for fine-tuning."""

NOT_COMPOSED = "the settings were not composed, and names among the values not compared with verl's"
"""The checks that need the composed settings."""

TRIED = 16
"""Number of rows with which the dataset is tried."""

EXTERNAL = "VERL_USE_EXTERNAL_MODULES"
"""The variable with the modules that verl imports in each of its processes."""

_OWN_KEYS = (
    f"algorithm.{OMEGA}",
    f"algorithm.{EPISODE_WEIGHT}",
    f"actor_rollout_ref.rollout.{SEPARATE_SHARE}",
)
"""Settings of this library in verl's configuration."""

_ASSIGNED = re.compile(rf"^[^#\n]*\b{EXTERNAL}=(?P<mark>[\"']?)(?P<names>.*?)(?P=mark)\s*$", re.MULTILINE)
_EXPANSION = re.compile(r"\$\{[^}]*\}|\$\w+")


class _Attempt(NamedTuple):
    """Something of the folder that verl would load.

    Attributes:
        label: Its description.
        error: The error, or None.
        named: The module that the folder names.
    """

    label: str
    error: Exception | str | None
    named: str = ""


def external_modules(folder: Path) -> list[str]:
    """Return the modules that verl imports if ``run.sh`` starts it from this environment."""
    try:
        script = (folder / "run.sh").read_text("utf-8")
    except (OSError, UnicodeDecodeError):
        script = ""
    texts = [_EXPANSION.sub("", match["names"]) for match in _ASSIGNED.finditer(script)]
    names = ",".join([*texts, os.environ.get(EXTERNAL, "")]).split(",")
    return list(dict.fromkeys(name.strip() for name in names if name.strip()))


def import_modules(names: Collection[str]) -> dict[str, Exception]:
    """Import external modules as verl does, and return the errors by module."""
    os.environ.pop(EXTERNAL, None)  # the import of verl would fail as a whole
    importlib.import_module("verl")
    os.environ[EXTERNAL] = ",".join(names)  # modules may read it
    errors = {}
    for name in names:
        try:
            importlib.import_module(name)
        except Exception as error:  # noqa: BLE001 - a module may fail in any way
            errors[name] = error
    return errors


def compose(folder: Path, overrides: Sequence[str] = ()) -> dict[str, Any]:
    """Return the result of composing a folder with verl.

    Args:
        folder: The folder.
        overrides: Further settings, in hydra's syntax.

    Returns:
        ``config``: all settings, or None with the reason in ``error`` or ``skipped``; ``defaults``: verl's
        own; ``unknown``: settings that verl does not have; ``refused``: the error of verl's own check, or
        None; ``classes``: by its description, the error of each class that the yamls and the reward name, or
        None; ``values``: the result of :func:`verl_bridge.recipes._compose_values.wrong_values`; ``loops``:
        the errors of arguments in the yaml of the loop; ``skipped``: the ``check``, the ``package`` that is
        not installed, and the ``text`` of each check that needs it.
    """
    result = _nothing()
    place = str(folder.resolve())
    try:
        hydra = importlib.import_module("hydra")
        conf = importlib.import_module("omegaconf").OmegaConf
        raw = conf.to_container(conf.load(f"{place}/config.yaml"), resolve=False)
        result["defaults"] = _own_settings(base_of(raw))
        with hydra.initialize_config_dir(config_dir=place, version_base=None):
            own_folder = [f"folder={hydra_text(place)}"] if "folder" in raw else []
            config = hydra.compose("config", overrides=[*own_folder, *overrides])
        result["config"] = conf.to_container(config, resolve=True)
    except Exception as error:  # noqa: BLE001 - hydra raises many kinds
        result["error"] = _unless_absent(result, "settings", NOT_COMPOSED, error)
        return result
    try:
        _inspect(result, raw, config, folder)
    except Exception as error:  # noqa: BLE001 - such as a number for a group of settings
        result["refused"] = result["refused"] or _error_text(error)
    return result


def _inspect(result: dict[str, Any], raw: Mapping[str, Any], config: Any, folder: Path) -> None:
    """Add the findings about composed settings to the result."""
    own = {key: value for key, value in raw.items() if key not in {"hydra", "defaults", "folder"}}
    result["unknown"] = list(unknown_keys(own, result["defaults"]))
    sft = base_of(raw) == SFT
    refused = _sft_error(config) if sft else _ppo_error(config)
    result["refused"] = _unless_absent(
        result, "settings", "verl's own check of the settings did not finish", refused
    )
    result["values"] = wrong_values(result["config"], critic=not sft and _need_critic(config), sft=sft)
    result["skipped"] += result["values"].pop("skipped")
    check, left_out = ("dataset", "was not read") if sft else ("import", "was not imported")
    for each in _try_dataset(config) if sft else _try_classes(result["config"], folder):
        error_text = _unless_absent(result, check, f"{each.label} {left_out}", each.error, each.named)
        if error_text is not None or each.error is None:
            result["classes"][each.label] = error_text
    result["loops"] = [] if sft else list(_argument_errors(result["config"], folder))


def _nothing() -> dict[str, Any]:
    return {
        "config": None,
        "defaults": {},
        "error": None,
        "unknown": [],
        "refused": None,
        "classes": {},
        "values": {},
        "loops": [],
        "skipped": [],
    }


def _unless_absent(
    result: dict[str, Any], check: str, text: str, error: Exception | str | None, named: str = ""
) -> str | None:
    """Return the text of an error, or None if a package is not installed, which is then added to ``skipped``.

    Args:
        result: The result.
        check: The name of the check.
        text: The part of the check that was left out.
        error: The error, or None.
        named: The module that the folder names.
    """
    package = absent_package(error, named=named) if isinstance(error, Exception) else None
    if package is not None:
        result["skipped"].append({"check": check, "package": package, "text": text})
        return None
    return _error_text(error) if isinstance(error, Exception) else error


@functools.cache
def _own_settings(name: str) -> Any:
    """Return a configuration of verl's own, unresolved."""
    hydra = importlib.import_module("hydra")
    with hydra.initialize_config_module(config_module="verl.trainer.config", version_base=None):
        composed = hydra.compose(name)
    return importlib.import_module("omegaconf").OmegaConf.to_container(composed, resolve=False)


def _need_critic(config: Any) -> bool:
    try:
        return bool(importlib.import_module("verl.trainer.ppo.utils").need_critic(config))
    except Exception:  # noqa: BLE001 - verl's own check reports it
        return False


def base_of(raw: Mapping[str, Any]) -> str:
    """Return the name of the verl configuration that a recipe's own extends."""
    defaults = raw.get("defaults")
    return SFT if isinstance(defaults, list) and SFT in defaults else "ppo_trainer"


def unknown_keys(own: Mapping[str, Any], known: Mapping[str, Any], at: str = "") -> Iterator[str]:
    """Yield the settings that a configuration does not have, as dotted keys.

    Args:
        own: The settings.
        known: The configuration. An empty mapping in it accepts anything.
        at: The dotted key of both in the whole.
    """
    for key, value in own.items():
        name = f"{at}.{key}" if at else str(key)
        if key not in known:
            if name not in _OWN_KEYS:
                yield name
        elif isinstance(value, dict) and isinstance(known[key], dict) and known[key]:
            yield from unknown_keys(value, known[key], name)


def _ppo_error(config: Any) -> Exception | None:
    """Return the error of verl's ``validate_config``; skip the critic if that would download a model."""
    try:
        utils = importlib.import_module("verl.trainer.ppo.utils")
        critic = utils.need_critic(config)
        if critic and not Path(str(config.critic.model.path)).expanduser().is_dir():
            critic = False  # verl 0.7 would load the model
        importlib.import_module("verl.utils.config").validate_config(
            config=config, use_reference_policy=utils.need_reference_policy(config), use_critic=critic
        )
    except Exception as error:  # noqa: BLE001 - asserts, and any error of its dataclasses
        return error
    return None


def _sft_error(config: Any) -> Exception | None:
    """Return the error of verl's settings classes; skip the model's, which reads its files."""
    try:
        convert = importlib.import_module("verl.utils.config").omega_conf_to_dataclass
        for group in ("engine", "optim", "checkpoint", "profiler"):
            convert(config[group])
    except Exception as error:  # noqa: BLE001 - asserts, and any error of its dataclasses
        return error
    return None


def _try_dataset(config: Any) -> Iterator[_Attempt]:
    """Load the dataset, and try it with the first rows if they and the tokenizer are local."""
    data = config.data
    path, name = data.custom_cls.path, data.custom_cls.name
    if path:
        error = _load_error(path, name)
        yield _Attempt(f"{name} of {path}", error, _module_of(path))
        if error is not None:
            return
    model = Path(str(config.model.tokenizer_path or config.model.path)).expanduser()
    if not model.is_dir() or not Path(str(data.train_files)).is_file():
        return
    label = f"the first {TRIED} rows of train"
    try:
        data.truncation = "right"  # another check counts the rows that are too long
        tokenizer = importlib.import_module("verl.utils").hf_tokenizer(str(model))
        create = importlib.import_module("verl.trainer.sft_trainer").create_sft_dataset
        rows = create(str(data.train_files), data, tokenizer, None)
        for at in range(min(len(rows), TRIED)):
            label = f"row {at} of train"
            rows[at]
    except Exception as error:  # noqa: BLE001 - a template may raise anything
        yield _Attempt(label, error)
    else:
        yield _Attempt(f"the first {TRIED} rows of train", None)


def _try_classes(config: Mapping[str, Any], folder: Path) -> Iterator[_Attempt]:
    rollout = config["actor_rollout_ref"]["rollout"]
    conf = importlib.import_module("omegaconf").OmegaConf
    for entry in _loops(config, folder):
        yield _Attempt(f"agent loop {entry['name']}", _loop_error(entry), str(entry["_target_"]))
    interactions = rollout["multi_turn"].get("interaction_config_path")
    if isinstance(interactions, str) and (folder / interactions).is_file():
        for entry in conf.to_container(conf.load(folder / interactions))["interaction"]:
            yield _Attempt(f"interaction {entry['name']}", _interaction_error(entry), entry["class_name"])
    reward = config["reward"]["custom_reward_function"]
    if reward["path"]:
        error = _load_error(reward["path"], reward["name"])
        yield _Attempt(f"reward {reward['path']}", error, _module_of(reward["path"]))


def _loops(config: Mapping[str, Any], folder: Path) -> list[Mapping[str, Any]]:
    """Return the entries of the loop's yaml; another check reports entries of a wrong form."""
    conf = importlib.import_module("omegaconf").OmegaConf
    file = config["actor_rollout_ref"]["rollout"]["agent"]["agent_loop_config_path"]
    if not isinstance(file, str) or not (folder / file).is_file():
        return []
    try:
        entries = conf.to_container(conf.load(folder / file))
    except Exception:  # noqa: BLE001 - omegaconf raises many kinds
        return []
    return [entry for entry in entries if isinstance(entry, dict) and {"name", "_target_"} <= set(entry)]


def _argument_errors(config: Mapping[str, Any], folder: Path) -> Iterator[str]:
    """Yield the errors of the arguments of loops that are not ours; ours needs no verl to be checked."""
    for entry in _loops(config, folder):
        if entry["_target_"] == LOOP:
            continue
        try:
            loop = importlib.import_module("hydra.utils").get_class(entry["_target_"])
        except Exception:  # noqa: BLE001, S112 - reported with the classes
            continue
        arguments = {key: value for key, value in entry.items() if key not in {"name", "_target_"}}
        known = _argument_names(loop)
        yield from unknown_arguments(arguments, known, str(entry["_target_"]))
        if any(f"{each.__module__}.{each.__qualname__}" == LOOP for each in loop.__mro__):
            own = set(inspect.signature(loop).parameters)
            yield from loop_errors({k: v for k, v in arguments.items() if k in ARGUMENTS and k not in own})


def _argument_names(loop: type) -> set[str]:
    """Return the names that a class and its bases accept as keyword arguments."""
    names: set[str] = set()
    for each in loop.__mro__:
        if "__init__" not in vars(each) or each is object:
            continue
        parameters = inspect.signature(each.__init__).parameters.values()  # type: ignore[misc]
        names |= {one.name for one in parameters if one.kind not in {one.VAR_POSITIONAL, one.VAR_KEYWORD}}
        if not any(one.kind is one.VAR_KEYWORD for one in parameters):
            break  # it passes nothing on
    return names - {"self"}


def _loop_error(entry: Mapping[str, Any]) -> Exception | str | None:
    try:
        importlib.import_module("hydra.utils").get_class(entry["_target_"])
        registry = importlib.import_module("verl.experimental.agent_loop.agent_loop")._agent_loop_registry  # noqa: SLF001
    except Exception as error:  # noqa: BLE001 - a module may fail in any way
        return error
    if entry["name"] in registry:
        return (
            f"a module registers {entry['name']!r} by @register too, which replaces this entry and its "
            "arguments after the first episode; choose another name"
        )
    return None


def _interaction_error(entry: Mapping[str, Any]) -> Exception | None:
    module, _, name = entry["class_name"].rpartition(".")
    try:
        getattr(importlib.import_module(module), name)(dict(entry.get("config") or {}, name=entry["name"]))
    except Exception as error:  # noqa: BLE001
        return error
    return None


def _load_error(path: str, name: str) -> Exception | None:
    """Return the error of loading a function or class from a file or a module, or None."""
    try:
        importlib.import_module("verl.utils.import_utils").load_extern_object(path, name)
    except Exception as error:  # noqa: BLE001 - a module may fail in any way
        return error
    return None


def _module_of(path: str) -> str:
    """Return the module in a path of verl's; empty for a file."""
    return path.removeprefix("pkg://") if path.startswith("pkg://") else ""


def _error_text(error: BaseException) -> str:
    cause = error.__cause__ or error
    return " ".join(f"{type(cause).__name__}: {cause}".split())[:1_000]


def _main(arguments: Sequence[str]) -> None:
    at = arguments.index("--") if "--" in arguments else len(arguments)
    folders, overrides = [Path(each) for each in arguments[:at]], arguments[at + 1 :]
    names = dict.fromkeys(name for folder in folders for name in external_modules(folder))
    for output in _outputs(folders, overrides, names):
        print(json.dumps(output, default=str), flush=True)  # noqa: T201


def _outputs(
    folders: Sequence[Path], overrides: Sequence[str], names: Collection[str]
) -> Iterator[dict[str, Any]]:
    """Yield the result of each folder, with the errors of the external modules in ``external``."""
    try:
        with contextlib.redirect_stdout(sys.stderr):  # verl prints
            errors = import_modules(names)
    except ImportError as error:
        result = _nothing()
        if _unless_absent(result, "settings", NOT_COMPOSED, error, "verl") is not None:
            raise
        yield from [result | {"external": {}}] * len(folders)
        return
    for folder in folders:
        with contextlib.redirect_stdout(sys.stderr):
            result = compose(folder, overrides)
        external = {
            name: _unless_absent(
                result, "values", f"{name}, which run.sh loads, was not imported", error, name
            )
            for name, error in errors.items()
        }
        yield result | {"external": external}


if __name__ == "__main__":
    _main(sys.argv[1:])
