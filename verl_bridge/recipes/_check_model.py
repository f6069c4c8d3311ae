"""Check the model of a folder: its files, its context, and its replies if it thinks."""

from __future__ import annotations

import importlib
import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from verl_bridge._tokens.reasoning import MARKS
from verl_bridge.recipes._check_files import Missing, lookup
from verl_bridge.recipes._finding import Finding, ok, problem, warning

if TYPE_CHECKING:
    from verl_bridge.recipes._check_files import Settings

__all__ = [
    "Model",
    "check_context",
    "check_models",
    "check_thinking",
    "find_models",
    "load_tokenizer",
    "read_context",
]

THINKING_REPLY = 2_048
"""Tokens that a reply of a thinking model may need at least."""

_TOKENIZER_FILES = ("tokenizer.json", "tokenizer_config.json", "tokenizer.model", "vocab.json", "vocab.txt")
_WEIGHTS = (".safetensors", ".bin")


class Model(NamedTuple):
    """A model of the settings.

    Attributes:
        key: The setting with its name.
        name: Its name, or the path of its folder; None if the setting is null.
        is_default: Whether ``config.yaml`` does not have the setting.
        folder: Its folder, which may not exist.
        files: The names of the files in the folder; None if it does not exist.
    """

    key: str
    name: str | None
    is_default: bool
    folder: Path
    files: Collection[str] | None


def find_models(settings: Settings, written: Mapping[str, Any], sft: bool) -> list[Model]:
    """Return the models that a training loads, each once.

    Args:
        settings: The settings.
        written: The contents of ``config.yaml``, with the overrides.
        sft: Whether the folder is for fine-tuning.
    """
    keys = [f"{_group(sft=sft)}.path"]
    if not sft and settings.get("algorithm.adv_estimator", "gae") == "gae":
        keys.append("critic.model.path")
    models: dict[str, Model] = {}
    for key in keys:
        value, folder = settings.get(key), settings.path(key) or settings.folder
        if value is None and not settings.is_null(key):
            continue
        files = [file.name for file in folder.iterdir()] if value is not None and folder.is_dir() else None
        model = Model(key, None if value is None else str(value), lookup(written, key) is None, folder, files)
        models.setdefault(model.name or key, model)
    return list(models.values())


def _group(*, sft: bool) -> str:
    return "model" if sft else "actor_rollout_ref.model"


def check_models(models: Sequence[Model]) -> Iterator[Finding]:
    """Check whether each model that is a path has the files of a model."""
    named = "to the folder or the name of a model"
    for key, name, is_default, folder, files in models:
        default = ", verl's default," if is_default else ""
        if name is None:
            yield problem("model", f"{key} is null", f"set {key} {named}")
        elif "://" in name:
            continue
        elif files is None:
            if name.startswith(("/", "./", "../", "~")) or name.count("/") > 1:
                yield problem("model", f"{key}={name}{default} does not exist", f"set {key} {named}")
        elif "config.json" not in files:
            yield problem("model", f"{key}: {folder} has no config.json", "name the folder of a whole model")
        elif not set(_TOKENIZER_FILES) & set(files):
            yield problem(
                "model",
                f"{key}: {folder} has no tokenizer",
                "save the tokenizer there too, as save_pretrained does",
            )
        elif not any(file.endswith(_WEIGHTS) for file in files):
            yield problem(
                "model",
                f"{key}: {folder} has no weights (*.safetensors or *.bin)",
                "name the folder of a whole model; merge a checkpoint of verl first by verl.model_merger",
            )


def read_context(settings: Settings, sft: bool) -> int | Missing | None:
    """Return the context length of the model by its settings; None if they do not have it."""
    model = _local(settings, str(settings.get(f"{_group(sft=sft)}.path", "")))
    try:
        limit = json.loads((model / "config.json").read_text("utf-8")).get("max_position_embeddings")
    except (OSError, ValueError, AttributeError):
        return Missing(f"{model} is not a folder with a model")
    return limit if isinstance(limit, int) else None


def load_tokenizer(settings: Settings, sft: bool) -> Any:
    """Return the tokenizer of the model, or :class:`Missing`; nothing is downloaded."""
    group, advice = _group(sft=sft), "check again when it is available"
    path = settings.get(f"{group}.path", "")
    name = _local(settings, str(settings.get(f"{group}.tokenizer_path") or path))
    try:
        transformers = importlib.import_module("transformers")
    except ModuleNotFoundError:
        return Missing("transformers is not installed here", advice)
    try:
        tokenizer = transformers.AutoTokenizer.from_pretrained(str(name), local_files_only=True)
        if not tokenizer.chat_template:
            return Missing(f"the tokenizer of {name} has no chat template", advice)
    except Exception as error:  # noqa: BLE001 - the error depends on which files of the model exist
        return Missing(f"the tokenizer of {name} cannot be loaded here ({type(error).__name__})", advice)
    return tokenizer


def _local(settings: Settings, name: str) -> Path:
    """Return the folder of a model, from the training folder as in run.sh, or its name on the hub."""
    path = Path(name).expanduser()
    return settings.folder / path if name and (settings.folder / path).is_dir() else path


def check_context(context: int | None, settings: Settings) -> Iterator[Finding]:
    """Check whether prompts and responses fit in the context of the model."""
    needed = settings.number("data.max_prompt_length", 512) + settings.number("data.max_response_length", 512)
    if context is not None and context < needed:
        yield problem(
            "model",
            f"its context has {context} tokens, and prompt and response may have {needed}",
            "set a smaller data.max_response_length, or use a model with a longer context",
        )
    else:
        yield ok("model", f"prompt and response of {needed} tokens fit in its context, {context}")


def check_thinking(tokenizer: Any, settings: Settings, arguments: Mapping[str, Any]) -> Iterator[Finding]:
    """Warn if a model thinks, and its replies are too short for it."""
    template = str(tokenizer.chat_template)
    if "enable_thinking" not in template and not any(begin in template for begin, _ in MARKS):
        return
    options = settings.get("data.apply_chat_template_kwargs") or {}
    if options.get("enable_thinking") is False:
        return
    reply = arguments.get("max_tokens_per_turn")
    limit = settings.number("data.max_response_length", 512)
    allowed = min(reply, limit) if type(reply) is int else limit
    if allowed < THINKING_REPLY:
        off = "set data.apply_chat_template_kwargs.enable_thinking: false, or "
        yield warning(
            "thinking",
            f"the model's chat template supports thinking, and a reply may have only {allowed} tokens: "
            "a thought that is cut off has no action",
            f"{off if 'enable_thinking' in template else ''}set max_tokens_per_turn to {THINKING_REPLY} or "
            "more in the yaml of the loop",
        )
