"""Check the model of a folder: its files, its context, and its tokenizer."""

from __future__ import annotations

import importlib
import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from verl_bridge._credit.estimators import WITH_CRITIC
from verl_bridge.recipes._finding import Finding, Missing, problem
from verl_bridge.recipes._model_size import ModelSize, model_size
from verl_bridge.recipes._verl_settings import RlSettings, lookup

if TYPE_CHECKING:
    from verl_bridge.recipes._verl_settings import SftSettings

__all__ = [
    "Model",
    "check_models",
    "find_models",
    "load_tokenizer",
    "read_context",
    "read_size",
]

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


def find_models(folder: Path, settings: RlSettings | SftSettings, written: Mapping[str, Any]) -> list[Model]:
    """Return the models that a training loads, each once.

    Args:
        folder: The training folder.
        settings: Its settings.
        written: The contents of ``config.yaml``, with the overrides.
    """
    names = {"model.path": settings.model}
    if isinstance(settings, RlSettings):
        names = {"actor_rollout_ref.model.path": settings.model}
        if settings.estimator in WITH_CRITIC:
            names["critic.model.path"] = settings.critic
    models: dict[str, Model] = {}
    for key, name in names.items():
        if name == "":
            continue
        of_model = folder / Path(name or "").expanduser()
        files = [file.name for file in of_model.iterdir()] if name and of_model.is_dir() else None
        model = Model(key, name, lookup(written, key) is None, of_model, files)
        models.setdefault(name or key, model)
    return list(models.values())


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


def read_context(folder: Path, settings: RlSettings | SftSettings) -> int | Missing | None:
    """Return the context length of the model by its settings; None if they do not have it."""
    model = _local(folder, settings.model)
    try:
        limit = json.loads((model / "config.json").read_text("utf-8")).get("max_position_embeddings")
    except (OSError, ValueError, AttributeError, RecursionError):
        return Missing(f"{model} is not a folder with a model")
    return limit if isinstance(limit, int) else None


def read_size(folder: Path, settings: RlSettings | SftSettings) -> ModelSize | None:
    """Return the size of the model; None if neither its settings nor its name have it."""
    return model_size(str(_local(folder, settings.model)))


def load_tokenizer(folder: Path, settings: RlSettings | SftSettings) -> Any:
    """Return the tokenizer of the model, or :class:`Missing`; nothing is downloaded."""
    advice, name = "check again when it is available", _local(folder, settings.tokenizer or settings.model)
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


def _local(folder: Path, model: str | None) -> Path:
    """Return the folder of a model, from the training folder as in run.sh, or its name on the hub."""
    path = Path(model or "").expanduser()
    return folder / path if model and (folder / path).is_dir() else path
