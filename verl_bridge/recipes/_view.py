"""A recipe's folder as loaded for the checks."""

from __future__ import annotations

import importlib
import importlib.util
import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from verl_bridge.horizon import Horizon
from verl_bridge.recipes._overrides import override_settings

__all__ = ["INTERACTIONS", "LOOP_PATH", "NotReadable", "View", "load_yaml"]

INTERACTIONS = "actor_rollout_ref.rollout.multi_turn.interaction_config_path"
"""The setting with the yaml of the interactions; null without interactions."""

LOOP_PATH = "actor_rollout_ref.rollout.agent.agent_loop_config_path"
"""The setting with the yaml of the agent loops."""

COMPOSE_SECONDS = 300.0
"""Seconds allowed for verl to be imported and to compose the settings."""


class NotReadable(ValueError):
    """A file of the folder is missing or invalid."""


@dataclass
class View:
    """A folder, with its settings as composed by verl if that is installed.

    Attributes:
        folder: The folder.
        raw: The contents of ``config.yaml``, with the overrides.
        overrides: Further settings, as given to ``run.sh``.
        result: The result of :func:`verl_bridge.recipes._compose.compose`, or None without verl.
        failed: The error of a process without a result, although verl is installed; or empty.
        rows: Rows of the data by ``"train"`` and ``"val"``, once they have been read.
        files: The files of these rows by the same keys, each with its number of rows.
    """

    folder: Path
    raw: Mapping[str, Any]
    overrides: Sequence[str] = ()
    result: Mapping[str, Any] | None = None
    failed: str = ""
    rows: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    files: dict[str, list[tuple[Path, int]]] = field(default_factory=dict)

    @classmethod
    def of(cls, folder: Path, overrides: Sequence[str] = ()) -> View:
        """Load a folder.

        Args:
            folder: The folder.
            overrides: Further settings, as given to ``run.sh``.

        Raises:
            NotReadable: ``config.yaml`` cannot be read.
        """
        folder = folder.resolve()  # as in run.sh; a relative path would be joined to itself
        raw = load_yaml(folder / "config.yaml")
        if not isinstance(raw, Mapping):
            raise NotReadable(f"{folder / 'config.yaml'} should be a mapping of settings")
        if _adds_wandb(folder):
            overrides = ["trainer.logger=[console,wandb]", *overrides]
        view = cls(folder, override_settings(raw, overrides), overrides)
        if importlib.util.find_spec("verl") is not None:
            view._compose()
        return view

    def get(self, key: str, default: Any = None) -> Any:
        """Return a setting, as composed by verl if possible, else as in ``config.yaml``.

        Args:
            key: Its dotted key.
            default: The value if it is not set, or null.
        """
        value: Any = (self.result or {}).get("config") or self.raw
        for part in key.split("."):
            value = value.get(part) if isinstance(value, Mapping) else None
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
        *groups, last = key.split(".")
        group: Any = (self.result or {}).get("config") or self.raw
        for part in groups:
            group = group.get(part) if isinstance(group, Mapping) else None
        return isinstance(group, Mapping) and last in group and group[last] is None

    def load_rows(self, part: str) -> str:
        """Load the rows of ``"train"`` or ``"val"``.

        Returns:
            The error of a file that cannot be read, and then no rows are loaded; else empty.

        Raises:
            ModuleNotFoundError: pyarrow is not installed.
        """
        parquet = importlib.import_module("pyarrow.parquet")
        rows: list[dict[str, Any]] = []
        self.files[part] = []
        for file in self.paths(f"data.{part}_files"):
            if not file.exists():
                return f"cannot read {file}: there is no such file"
            try:
                loaded = parquet.read_table(file).to_pylist()
            except (OSError, ValueError) as error:  # pyarrow's errors are subclasses of these
                return f"cannot read {file}: {' '.join(str(error).split())[:300]}"
            self.files[part].append((file, len(loaded)))
            rows += loaded
        self.rows[part] = rows
        return ""

    def location(self, part: str, index: int) -> str:
        """Return where a row is: its file, and its index there."""
        left = index
        for file, count in self.files.get(part, []):
            if left < count:
                inside = file.relative_to(self.folder) if file.is_relative_to(self.folder) else file
                return f"{inside}, row {left}"
            left -= count
        return f"{part}, row {index}"

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

    @property
    def not_composed(self) -> str:
        """Why verl did not compose the settings, or empty if it did."""
        if self.failed or (self.result or {}).get("error"):
            return "the settings could not be composed"
        if self.result is None:
            return "verl is not installed here"
        if self.result["config"] is None:
            return f"{self.result['skipped'][0]['package']} is not installed here"
        return ""

    def arguments(self) -> Mapping[str, Any]:
        """Return the environment's settings in the yaml of the interaction, or else of the agent loop."""
        for key in (INTERACTIONS, LOOP_PATH):
            file = self.path(key)
            try:
                loaded = load_yaml(file) if file is not None else None
            except NotReadable:
                continue  # the check of the loop reports it
            entries = loaded.get("interaction") if isinstance(loaded, Mapping) else loaded
            for entry in entries if isinstance(entries, list) else []:
                if not isinstance(entry, Mapping):
                    continue
                settings = entry.get("config", entry)
                made_by = str(entry.get("class_name") or entry.get("_target_"))
                # A loop for several environments names none.
                if isinstance(settings, Mapping) and (
                    "env_id" in settings or made_by.startswith("verl_bridge.")
                ):
                    return settings
        return {}

    def turn_limit(self) -> int | None:
        """Return the highest turn limit of the loop; None without one, or if it is invalid."""
        arguments = self.arguments()
        try:
            horizon = Horizon.of(arguments.get("horizon"))
        except (TypeError, ValueError):
            return None
        turns = arguments.get("max_turns") if horizon is None else horizon.longest
        return turns if type(turns) is int and turns > 0 else None

    def _compose(self) -> None:
        command = [sys.executable, "-m", "verl_bridge.recipes._compose", str(self.folder)]
        command += ["--", *self.overrides]
        # `python -m` puts its working directory first; this process may have imported the package from
        # elsewhere.
        environment = os.environ | {"PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
        try:
            ended = subprocess.run(  # noqa: S603 - our own module
                command,
                capture_output=True,
                text=True,
                check=False,
                timeout=COMPOSE_SECONDS,
                env=environment,
            )
            self.result = json.loads(ended.stdout.splitlines()[-1])
        except subprocess.TimeoutExpired:
            self.failed = f"verl could not be imported in {COMPOSE_SECONDS:g} s"
        except (IndexError, ValueError):
            self.failed = (ended.stderr.strip().splitlines() or ["it printed nothing"])[-1][:500]


def _adds_wandb(folder: Path) -> bool:
    """Return whether ``run.sh`` would log to Weights & Biases."""
    if not os.environ.get("WANDB_API_KEY"):
        return False
    try:
        return "WANDB_API_KEY" in (folder / "run.sh").read_text("utf-8")
    except (OSError, UnicodeDecodeError):
        return False


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
