"""Check with the installed verl: ``python -m verl_bridge.recipes._compose FOLDER...`` prints JSON for each.

It runs in a separate process, because importing verl takes ten seconds, starts threads, and may fail.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

__all__ = ["SFT", "base_of", "compose", "unknown_keys"]

SFT = "sft_trainer_engine"
"""verl's configuration of its trainer for fine-tuning."""

TRIED = 16
"""Number of rows with which the dataset is tried."""


def compose(folder: Path) -> dict[str, Any]:
    """Return the result of composing a folder with verl.

    Returns:
        ``config``: all settings, or None with the reason in ``error``; ``unknown``: settings that verl does
        not have; ``refused``: the error of verl's own check, or None; ``classes``: by its description, the
        error of each class that the yamls and the reward name, or None.
    """
    hydra = importlib.import_module("hydra")
    conf = importlib.import_module("omegaconf").OmegaConf
    place = str(folder.resolve())
    result: dict[str, Any] = {"config": None, "error": None, "unknown": [], "refused": None, "classes": {}}
    try:
        raw = conf.to_container(conf.load(f"{place}/config.yaml"), resolve=False)
        with hydra.initialize_config_dir(config_dir=place, version_base=None):
            config = hydra.compose("config", overrides=[f"folder='{place}'"] if "folder" in raw else [])
        with hydra.initialize_config_module(config_module="verl.trainer.config", version_base=None):
            base = conf.to_container(hydra.compose(base_of(raw)), resolve=False)
        result["config"] = conf.to_container(config, resolve=True)
    except Exception as error:  # noqa: BLE001 - hydra raises many kinds
        return result | {"error": _error_text(error)}
    own = {key: value for key, value in raw.items() if key not in {"hydra", "defaults", "folder"}}
    result["unknown"] = list(unknown_keys(own, base))
    sft = base_of(raw) == SFT
    result["refused"] = _sft_error(config) if sft else _ppo_error(config)
    result["classes"] = dict(_try_dataset(config) if sft else _try_classes(result["config"], folder))
    return result


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
            yield name
        elif isinstance(value, dict) and isinstance(known[key], dict) and known[key]:
            yield from unknown_keys(value, known[key], name)


def _ppo_error(config: Any) -> str | None:
    """Return the error of verl's ``validate_config``; skip the critic if that would download a model."""
    utils = importlib.import_module("verl.trainer.ppo.utils")
    critic = utils.need_critic(config)
    if critic and not Path(str(config.critic.model.path)).expanduser().is_dir():
        critic = False  # verl 0.7 would load the model
    try:
        importlib.import_module("verl.utils.config").validate_config(
            config=config, use_reference_policy=utils.need_reference_policy(config), use_critic=critic
        )
    except Exception as error:  # noqa: BLE001 - asserts, and any error of its dataclasses
        return _error_text(error)
    return None


def _sft_error(config: Any) -> str | None:
    """Return the error of verl's settings classes; skip the model's, which reads its files."""
    convert = importlib.import_module("verl.utils.config").omega_conf_to_dataclass
    try:
        for group in ("engine", "optim", "checkpoint", "profiler"):
            convert(config[group])
    except Exception as error:  # noqa: BLE001 - asserts, and any error of its dataclasses
        return _error_text(error)
    return None


def _try_dataset(config: Any) -> Iterator[tuple[str, str | None]]:
    """Load the dataset, and try it with the first rows if they and the tokenizer are local."""
    data = config.data
    path, name = data.custom_cls.path, data.custom_cls.name
    if path:
        label = f"{name} of {path}"
        try:
            importlib.import_module("verl.utils.import_utils").load_extern_object(path, name)
        except Exception as error:  # noqa: BLE001 - a module may fail in any way
            yield label, _error_text(error)
            return
        yield label, None
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
        yield label, _error_text(error)
    else:
        yield f"the first {TRIED} rows of train", None


def _try_classes(config: Mapping[str, Any], folder: Path) -> Iterator[tuple[str, str | None]]:
    rollout = config["actor_rollout_ref"]["rollout"]
    conf = importlib.import_module("omegaconf").OmegaConf
    loops = rollout["agent"]["agent_loop_config_path"]
    if loops and (folder / loops).is_file():
        for entry in conf.to_container(conf.load(folder / loops)):
            yield f"agent loop {entry['name']}", _loop_error(entry)
    interactions = rollout["multi_turn"].get("interaction_config_path")
    if interactions and (folder / interactions).is_file():
        for entry in conf.to_container(conf.load(folder / interactions))["interaction"]:
            yield f"interaction {entry['name']}", _interaction_error(entry)
    reward = config["reward"]["custom_reward_function"]
    if reward["path"]:
        yield f"reward {reward['path']}", _reward_error(reward["path"], reward["name"])


def _loop_error(entry: Mapping[str, Any]) -> str | None:
    try:
        importlib.import_module("hydra.utils").get_class(entry["_target_"])
    except Exception as error:  # noqa: BLE001 - a module may fail in any way
        return _error_text(error)
    registry = importlib.import_module("verl.experimental.agent_loop.agent_loop")._agent_loop_registry  # noqa: SLF001
    if entry["name"] in registry:
        return (
            f"a module registers {entry['name']!r} by @register too, which replaces this entry and its "
            "arguments after the first episode; choose another name"
        )
    return None


def _interaction_error(entry: Mapping[str, Any]) -> str | None:
    module, _, name = entry["class_name"].rpartition(".")
    try:
        getattr(importlib.import_module(module), name)(dict(entry.get("config") or {}, name=entry["name"]))
    except Exception as error:  # noqa: BLE001
        return _error_text(error)
    return None


def _reward_error(path: str, name: str) -> str | None:
    load = importlib.import_module("verl.utils.import_utils").load_extern_object
    try:
        load(path, name)
    except Exception as error:  # noqa: BLE001
        return _error_text(error)
    return None


def _error_text(error: BaseException) -> str:
    cause = error.__cause__ or error
    return " ".join(f"{type(cause).__name__}: {cause}".split())[:1_000]


if __name__ == "__main__":
    for argument in sys.argv[1:]:
        with contextlib.redirect_stdout(sys.stderr):  # verl prints
            output = compose(Path(argument))
        print(json.dumps(output, default=str), flush=True)  # noqa: T201
