"""Load what the checks of a training folder need, each once."""

from __future__ import annotations

import asyncio
import functools
import inspect
import json
import os
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from importlib import metadata
from pathlib import Path
from typing import Any

from verl_bridge.recipes._absent import is_installed
from verl_bridge.recipes._check_data import RowTask, known_games, known_tasks, read_tasks
from verl_bridge.recipes._check_earlier import find_earlier_run
from verl_bridge.recipes._check_files import (
    Missing,
    NotReadable,
    Rows,
    Settings,
    load_yaml,
    read_loops,
    read_rows,
    turn_limit,
)
from verl_bridge.recipes._check_lengths import Conversations, TriedTemplate, try_template
from verl_bridge.recipes._check_model import find_models, load_tokenizer, read_context
from verl_bridge.recipes._check_played import Played, Players, choose_starts, play, without_tools
from verl_bridge.recipes._check_sft import find_games, measure
from verl_bridge.recipes._check_types import WrongValue, mend
from verl_bridge.recipes._compose import SFT, base_of, external_modules
from verl_bridge.recipes._overrides import override_settings

__all__ = ["Inputs"]

COMPOSE_SECONDS = 300.0
"""Seconds allowed for verl to be imported and to compose the settings."""


class Inputs:
    """The data that the checks of a folder need, by name.

    Args:
        folder: The folder.
        overrides: Further settings, as given to ``run.sh``.
        options: Further data that the caller hands in, by name.

    Raises:
        NotReadable: ``config.yaml`` cannot be read.
        ModuleNotFoundError: PyYAML is not installed.
    """

    def __init__(self, folder: Path, overrides: Sequence[str], **options: Any) -> None:
        folder = folder.resolve()  # as in run.sh; a relative path would be joined to itself
        raw = load_yaml(folder / "config.yaml")
        if not isinstance(raw, Mapping):
            raise NotReadable(f"{folder / 'config.yaml'} should be a mapping of settings")
        overrides = [*(["trainer.logger=[console,wandb]"] if _adds_wandb(folder) else []), *overrides]
        written = override_settings(raw, overrides)
        self.sft = base_of(written) == SFT
        self._loaders = {**_LOADERS, **(_SFT_LOADERS if self.sft else {})}
        self._values: dict[str, Any] = {
            "folder": folder,
            "overrides": overrides,
            "written": written,
            "sft": self.sft,
            "read_yaml": functools.cache(load_yaml),
            **options,
        }

    def __getitem__(self, name: str) -> Any:
        """Return data, which are loaded the first time, or :class:`Missing`."""
        if name not in self._values:
            loader = self._loaders[name]
            arguments = self.bind(loader)
            # The check that needs the missing argument itself reports it.
            self._values[name] = Missing() if isinstance(arguments, Missing) else loader(**arguments)
        return self._values[name]

    def bind(self, function: Callable[..., Any]) -> dict[str, Any] | Missing:
        """Return the arguments of a function, whose parameters are names of data.

        Returns:
            The arguments, or the first that is missing. A parameter with a default may be missing.
        """
        arguments = {}
        for name, parameter in inspect.signature(function).parameters.items():
            value = self[name]
            if isinstance(value, Missing) and parameter.default is parameter.empty:
                return value
            arguments[name] = parameter.default if isinstance(value, Missing) else value
        return arguments


def _adds_wandb(folder: Path) -> bool:
    """Return whether ``run.sh`` would log to Weights & Biases."""
    if not os.environ.get("WANDB_API_KEY"):
        return False
    try:
        return "WANDB_API_KEY" in (folder / "run.sh").read_text("utf-8")
    except (OSError, UnicodeDecodeError):
        return False


def _version_of_verl() -> str:
    """Return the version of verl; empty if it is not installed."""
    try:
        return metadata.version("verl") if is_installed("verl") else ""
    except metadata.PackageNotFoundError:
        return ""


def _answer(folder: Path, overrides: Sequence[str]) -> Mapping[str, Any]:
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


def _attempt(answer: Mapping[str, Any]) -> Mapping[str, Any] | Missing:
    """Return verl's answer, also if it rejected the settings."""
    return answer or Missing("verl is not installed here", "check again where the training runs")


def _not_composed(attempt: Mapping[str, Any] | None = None) -> str | Missing:
    """Return why verl did not compose the settings."""
    if attempt is None:
        return "verl is not installed here"
    if attempt.get("failed") or attempt["error"]:
        return "the settings could not be composed"
    if attempt["config"] is None:
        return f"{attempt['skipped'][0]['package']} is not installed here"
    return Missing()


def _composed(attempt: Mapping[str, Any]) -> Mapping[str, Any] | Missing:
    """Return verl's answer if it composed the settings."""
    if attempt.get("failed") or attempt["error"]:
        return Missing("the settings could not be composed")
    return attempt if attempt["config"] is not None else Missing()  # the package is reported by itself


def _mended(
    folder: Path,
    written: Mapping[str, Any],
    answer: Mapping[str, Any],
    verl: str,
    sft: bool,
    read_yaml: Callable[[Path], Any],
) -> tuple[Settings, list[WrongValue]]:
    settings = Settings(folder, answer.get("config") or written)
    env_id = read_loops(settings, read_yaml).arguments.get("env_id")
    return mend(written, settings, answer.get("defaults") or {}, verl=verl, env_id=env_id, sft=sft)


def _typed_settings(settings: Settings, wrong_values: Sequence[WrongValue]) -> Settings | Missing:
    """Return the settings if none has a wrong type."""
    return Missing() if wrong_values else settings


def _script_modules(folder: Path) -> Sequence[str] | Missing:
    return external_modules(folder) if (folder / "run.sh").is_file() else Missing()


def _all_rows(rows: Rows | None = None) -> list[dict[str, Any]]:
    return [] if rows is None else [row for part in rows.parts.values() for row in part]


def _played(
    tasks: Mapping[str, Sequence[RowTask]], timeout: float, players: Players, turn_limit: int | None
) -> list[Played]:
    starts = choose_starts(tasks)
    if starts:
        asyncio.run(play(starts, timeout, players, turn_limit))
    return starts


def _started(arguments: Mapping[str, Any], played: Sequence[Played] = ()) -> list[Played] | Missing:
    """Return the environments with a first observation, with tools if the loop lets the model call them."""
    started = [each for each in played if each.single.observations]
    if not started:
        return Missing("no episode could be started")
    return started if arguments.get("tool_calls") is True else [*map(without_tools, started)]


def _conversations(tried_template: TriedTemplate | None = None) -> Conversations | Missing:
    """Return the conversations that count tokens; none without a tokenizer."""
    if tried_template is None:
        return {}
    return Missing() if tried_template.error else tried_template.conversations


_LOADERS: Mapping[str, Callable[..., Any]] = {
    "verl": _version_of_verl,
    "answer": _answer,
    "attempt": _attempt,
    "composed": _composed,
    "not_composed": _not_composed,
    "mended": _mended,
    "settings": lambda mended: mended[0],
    "wrong_values": lambda mended: mended[1],
    "typed_settings": _typed_settings,
    "script_modules": _script_modules,
    "models": find_models,
    "context": read_context,
    "tokenizer": load_tokenizer,
    "loops": read_loops,
    "arguments": lambda loops: loops.arguments,
    "turn_limit": turn_limit,
    "earlier_run": find_earlier_run,
    "rows": read_rows,
    "all_rows": _all_rows,
    "tasks": read_tasks,
    "known_tasks": known_tasks,
    "played": _played,
    "started": _started,
    "tried_template": try_template,
    "conversations": _conversations,
}
"""Functions that load data by their names; the parameters are the names of other data."""

_SFT_LOADERS: Mapping[str, Callable[..., Any]] = {
    "known_tasks": known_games,
    "games": find_games,
    "measured": measure,
}
