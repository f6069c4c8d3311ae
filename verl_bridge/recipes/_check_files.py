"""The files of a training folder, as the checks read them: settings, rows, and the yaml of the loop."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from verl_bridge.horizon import Horizon

__all__ = [
    "INTERACTIONS",
    "LOOP_PATH",
    "Loops",
    "Missing",
    "NotReadable",
    "Rows",
    "Settings",
    "load_yaml",
    "lookup",
    "read_loops",
    "read_rows",
    "turn_limit",
]

INTERACTIONS = "actor_rollout_ref.rollout.multi_turn.interaction_config_path"
"""The setting with the yaml of the interactions; null without interactions."""

LOOP_PATH = "actor_rollout_ref.rollout.agent.agent_loop_config_path"
"""The setting with the yaml of the agent loops."""


class NotReadable(ValueError):
    """A file of the folder is missing or invalid."""


@dataclass(frozen=True)
class Missing:
    """Data that a check needs and that could not be loaded.

    Attributes:
        reason: The reason; empty if another check reports it, or if there is nothing to report.
        advice: The remedy, or empty.
    """

    reason: str = ""
    advice: str = ""


def lookup(settings: Any, key: str) -> Any:
    """Return the value of a dotted key in nested mappings, or None if it is not set."""
    for part in key.split("."):
        settings = settings.get(part) if isinstance(settings, Mapping) else None
    return settings


@dataclass(frozen=True)
class Settings:
    """The settings of a folder.

    Attributes:
        folder: The folder.
        values: All settings if verl composed them, otherwise those of ``config.yaml`` and the overrides.
    """

    folder: Path
    values: Mapping[str, Any]

    def get(self, key: str, default: Any = None) -> Any:
        """Return a setting.

        Args:
            key: Its dotted key.
            default: The value if it is not set, or null.
        """
        value = lookup(self.values, key)
        if isinstance(value, str) and value.startswith("${") and value.endswith("}"):
            return self.get(value[2:-1], default)  # an interpolation, which only verl resolves in full
        if isinstance(value, str):
            value = value.replace("${folder}", str(self.folder))
        return default if value is None else value

    def number(self, key: str, default: int) -> int:
        """Return an integer setting, or the default for any other value, which another check reports."""
        value = self.get(key, default)
        return value if type(value) is int else default

    def is_null(self, key: str) -> bool:
        """Return whether a setting is there, and null."""
        group, _, last = key.rpartition(".")
        within = lookup(self.values, group) if group else self.values
        return isinstance(within, Mapping) and last in within and within[last] is None

    def path(self, key: str) -> Path | None:
        """Return a setting that is the path of a file, resolved as in run.sh."""
        value = self.get(key)
        return None if value is None else self.folder / Path(str(value)).expanduser()

    def paths(self, key: str) -> list[Path]:
        """Return a setting that is one path or several."""
        value = self.get(key)
        several = value if isinstance(value, list) else [value]
        return [
            self.folder / Path(str(each).replace("${folder}", str(self.folder))).expanduser()
            for each in several
            if each is not None
        ]

    @property
    def has_interactions(self) -> bool:
        """Whether verl plays through interactions."""
        return self.get(INTERACTIONS) is not None


def load_yaml(file: Path) -> Any:
    """Return the contents of a YAML file.

    Raises:
        NotReadable: It does not exist, or is not YAML.
        ModuleNotFoundError: PyYAML is not installed.
    """
    yaml = importlib.import_module("yaml")
    try:
        return yaml.safe_load(file.read_text("utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise NotReadable(f"cannot read {file}: {error}") from None
    except yaml.YAMLError as error:
        raise NotReadable(f"{file} is not YAML: {' '.join(str(error).split())}") from None


@dataclass(frozen=True)
class Rows:
    """The rows of the data.

    Attributes:
        folder: The training folder.
        parts: The rows of ``"train"`` and ``"val"``, if all files of the part could be read.
        errors: The error of each other part; a part without files is in neither.
        files: The files of each part, each with its number of rows.
    """

    folder: Path
    parts: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    errors: dict[str, str] = field(default_factory=dict)
    files: dict[str, list[tuple[Path, int]]] = field(default_factory=dict)

    def location(self, part: str, index: int) -> str:
        """Return where a row is: its file, and its index there."""
        left = index
        for file, count in self.files[part]:
            if left < count:
                inside = file.relative_to(self.folder) if file.is_relative_to(self.folder) else file
                return f"{inside}, row {left}"
            left -= count
        return f"{part}, row {index}"


def read_rows(settings: Settings) -> Rows | Missing:
    """Read the data files."""
    try:
        parquet = importlib.import_module("pyarrow.parquet")
    except ModuleNotFoundError:
        return Missing("pyarrow is not installed here", "pip install 'pyarrow>=14'")
    rows = Rows(settings.folder)
    for part in ("train", "val"):
        files = settings.paths(f"data.{part}_files")
        if not files:
            continue
        try:
            tables = [(file, _read_table(file, parquet)) for file in files]
        except NotReadable as error:
            rows.errors[part] = str(error)
        else:
            rows.files[part] = [(file, len(table)) for file, table in tables]
            rows.parts[part] = [row for _, table in tables for row in table]
    return rows


def _read_table(file: Path, parquet: Any) -> list[dict[str, Any]]:
    if not file.exists():
        raise NotReadable(f"cannot read {file}: there is no such file")
    try:
        table: list[dict[str, Any]] = parquet.read_table(file).to_pylist()
    except (OSError, ValueError) as error:  # pyarrow's errors are subclasses of these
        raise NotReadable(f"cannot read {file}: {' '.join(str(error).split())[:300]}") from None
    return table


@dataclass(frozen=True)
class Loops:
    """The definitions of what plays the environment.

    Attributes:
        entries: The entries of the yaml of the agent loops.
        interactions: The entries of the yaml of the interactions.
        errors: A text and an advice for each file that cannot be read or has another form.
        arguments: The arguments of the interaction, or otherwise of the agent loop, of this library.
    """

    entries: list[Mapping[str, Any]] = field(default_factory=list)
    interactions: list[Mapping[str, Any]] = field(default_factory=list)
    errors: list[tuple[str, str]] = field(default_factory=list)
    arguments: Mapping[str, Any] = field(default_factory=dict)


def read_loops(settings: Settings, read_yaml: Callable[[Path], Any]) -> Loops:
    """Read the yaml files that define what plays the environment.

    Args:
        settings: The settings.
        read_yaml: Returns the contents of a YAML file, or raises :class:`NotReadable`.
    """
    found: dict[str, list[Mapping[str, Any]]] = {LOOP_PATH: [], INTERACTIONS: []}
    arguments: Mapping[str, Any] = {}
    errors = []
    for key, made_by in ((LOOP_PATH, "_target_"), (INTERACTIONS, "class_name")):
        file = settings.path(key)
        if file is None:
            continue
        try:
            loaded = read_yaml(file)
        except NotReadable as error:
            errors.append((str(error), f"write it, or correct {key}"))
            continue
        grouped = isinstance(loaded, Mapping)
        entries = loaded.get("interaction") if grouped else loaded
        entries = entries if isinstance(entries, list) else None
        arguments = _own_arguments(entries or ()) or arguments
        fits = [isinstance(entry, Mapping) and {"name", made_by} <= set(entry) for entry in entries or ()]
        if entries is not None and all(fits) and grouped == (key == INTERACTIONS):
            found[key] = entries
        else:
            within = " under interaction:" if key == INTERACTIONS else ""
            text = f"{file} should hold a list of entries with name and {made_by}{within}"
            errors.append((text, "see docs/training/recipes.md"))
    return Loops(found[LOOP_PATH], found[INTERACTIONS], errors, arguments)


def _own_arguments(entries: Iterable[Any]) -> Mapping[str, Any]:
    """Return the arguments of the first entry of this library, or an empty mapping."""
    for entry in entries:
        settings = entry.get("config", entry) if isinstance(entry, Mapping) else None
        if not isinstance(settings, Mapping):
            continue
        # A loop for several environments names none.
        if "env_id" in settings or str(entry.get("class_name") or entry.get("_target_")).startswith(
            "verl_bridge."
        ):
            return settings
    return {}


def turn_limit(arguments: Mapping[str, Any]) -> int | None:
    """Return the highest turn limit in the arguments of the loop; None without one, or if it is invalid."""
    try:
        horizon = Horizon.of(arguments.get("horizon"))
    except (TypeError, ValueError):
        return None
    turns = arguments.get("max_turns") if horizon is None else horizon.longest
    return turns if type(turns) is int and turns > 0 else None
