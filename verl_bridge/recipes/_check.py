"""Check a training folder before renting a GPU, as far as possible without one.

Two tables have everything: the data, which are loaded once each, and the checks. The parameters of a function
in either of them are the names of the data that it needs.
"""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from verl_bridge.recipes import (
    _check_credit,
    _check_data,
    _check_earlier,
    _check_episodes,
    _check_groups,
    _check_lengths,
    _check_loop,
    _check_model,
    _check_numbers,
    _check_settings,
    _check_sft,
    _check_template,
    _check_trainer,
    _setting_types,
)
from verl_bridge.recipes._compose import NOT_COMPOSED, SFT, base_of
from verl_bridge.recipes._finding import Finding, Missing, problem, skipped
from verl_bridge.recipes._folder_name import name_problem
from verl_bridge.recipes._overrides import override_settings
from verl_bridge.recipes._rl_rules import RL_RULES
from verl_bridge.recipes._sft_rules import SFT_RULES
from verl_bridge.recipes._verl_settings import (
    NotReadable,
    RlSettings,
    SftSettings,
    load_yaml,
    read_settings,
)

if TYPE_CHECKING:
    from verl_bridge.recipes._check_data import FindTask
    from verl_bridge.recipes._check_episodes import Players
    from verl_bridge.tasks import EnvTask

__all__ = ["check"]


@dataclass(frozen=True)
class Check:
    """A check.

    Attributes:
        name: The name in the finding that it was skipped.
        run: Returns its findings; its parameters are the names of the data that it needs.
        left_out: The part of the check that is skipped if one of these is missing; if it is empty, another
            check reports it.
    """

    name: str
    run: Callable[..., Iterable[Finding]]
    left_out: str = ""


_DATA: Mapping[str, Callable[..., Any]] = {
    "verl": _check_settings.verl_version,
    "answer": _check_settings.compose_settings,
    "attempt": _check_settings.answer_of,
    "composed": _check_settings.composed_of,
    "not_composed": _check_settings.why_not_composed,
    "mended": _setting_types.mend,
    "all_settings": lambda mended: mended[0],
    "wrong_values": lambda mended: mended[1],
    "settings": lambda all_settings: read_settings(RlSettings, all_settings),
    "script_modules": _check_settings.script_modules,
    "models": _check_model.find_models,
    "context": _check_model.read_context,
    "size": _check_model.read_size,
    "tokenizer": _check_model.load_tokenizer,
    "loops": _check_loop.read_loops,
    "arguments": lambda loops: loops.arguments,
    "turn_limit": lambda loops: loops.turn_limit,
    "numbers": _check_numbers.read_numbers,
    "rules": lambda: RL_RULES,
    "earlier_run": _check_earlier.find_earlier_run,
    "rows": _check_data.read_rows,
    "row_errors": _check_data.row_errors,
    "tasks": _check_data.read_tasks,
    "known_tasks": _check_data.find_known_tasks,
    "played": _check_episodes.play_environments,
    "started": _check_episodes.start_environments,
    "tried_template": _check_template.try_template,
    "counted": _check_template.count_tokens,
}
"""Functions that load the data of a folder, by their names; the parameters are the names of other data."""

_SFT_DATA: Mapping[str, Callable[..., Any]] = {
    **_DATA,
    "settings": lambda all_settings: read_settings(SftSettings, all_settings),
    "arguments": lambda settings: {},  # noqa: ARG005 - no loop plays
    "numbers": _check_numbers.read_sft_numbers,
    "rules": lambda: SFT_RULES,
    "row_errors": _check_sft.game_errors,
    "tasks": _check_data.read_games,
    "games": _check_sft.find_games,
    "measured": _check_sft.measure,
}
"""The same for a folder for fine-tuning."""

_SETTINGS = (
    Check("settings", _check_settings.check_composition, NOT_COMPOSED),
    Check("settings", _check_settings.check_keys, "names among the values were not compared with verl's"),
    Check("settings", _check_settings.check_absent_packages),
    Check("settings", _check_settings.check_group_names),
    Check("values", _check_settings.check_types),
    Check("values", _check_settings.check_external_modules),
)

_RL = (
    *_SETTINGS,
    Check("values", _check_settings.check_trainer_module),
    Check("values", _check_settings.check_names),
    Check("sizes", _check_trainer.check_sizes),
    Check("trainer", _check_trainer.check_trainer),
    Check("numbers", _check_numbers.check_numbers),
    Check("model", _check_model.check_models),
    Check("data", _check_data.check_rows, "not read"),
    Check("loop", _check_loop.check_loop),
    Check("import", _check_loop.check_classes),
    Check("import", _check_loop.check_modules),
    Check("reward", _check_loop.check_reward),
    Check("credit", _check_credit.check_credit),
    Check("groups", _check_groups.check_groups),
    Check("checkpoints", _check_earlier.check_earlier_run),
    Check("validation", _check_data.check_split_leakage),
    Check("tasks", _check_data.check_catalogue),
    Check("shares", _check_data.check_shares),
    Check("environment", _check_episodes.check_tasks),
    Check("environment", _check_episodes.check_episodes),
    Check("model", _check_lengths.check_context, "its context length was not checked"),
    Check("lengths", _check_lengths.check_thinking, _check_lengths.ESTIMATED),
    Check("tool calls", _check_template.check_tools),
    Check("history", _check_template.check_summaries),
    Check("chat template", _check_template.check_template),
    Check("lengths", _check_lengths.check_prompts, "prompts were not measured"),
    Check("response length", _check_lengths.check_responses),
)
"""The checks of a folder for reinforcement learning."""

_SFT = (
    *_SETTINGS,
    Check("values", _check_settings.check_names),
    Check("model", _check_model.check_models),
    Check("checkpoints", _check_earlier.check_earlier_run),
    Check("sizes", _check_sft.check_game_sizes),
    Check("numbers", _check_numbers.check_numbers),
    Check("data", _check_data.check_rows, "not read"),
    Check("validation", _check_data.check_split_leakage),
    Check("dataset", _check_sft.check_dataset),
    Check("lengths", _check_sft.check_tokenizer, _check_lengths.ESTIMATED),
    Check("lengths", _check_sft.check_game_lengths),
    Check("model", _check_sft.check_game_context, "its context length was not checked"),
    Check("tasks", _check_data.check_catalogue),
)
"""The checks of a folder for fine-tuning."""


def check(
    folder: Path,
    *,
    overrides: Sequence[str] = (),
    timeout: float = 60.0,
    players: Players | None = None,
    find_task: FindTask | None = None,
) -> tuple[list[Finding], list[EnvTask]]:
    """Check a folder.

    Each check covers as much as the installed packages allow, and reports the parts that it skipped.

    Args:
        folder: A folder made by :func:`verl_bridge.recipes.write` or :func:`verl_bridge.recipes.write_sft`.
        overrides: Further settings, as given to ``run.sh``.
        timeout: Seconds allowed for making an environment, for each reset and for each step, and for the
            whole episodes of each environment.
        players: Returns the makers of players for whole episodes of an environment by its id; without it,
            lengths are estimated from the responses to empty replies.
        find_task: Returns the catalogue's facts about a task, by the id of its environment and its number, or
            None if its environment is in no catalogue; without it, splits are not checked.

    Returns:
        The findings, and the tasks of the rows that the loop can play.

    Raises:
        ModuleNotFoundError: PyYAML is not installed.
    """
    folder = folder.resolve()  # as in run.sh; a relative path would be joined to itself
    unusable = name_problem(folder)
    if unusable:
        return [problem("settings", unusable, "move the folder to another path")], []
    try:
        raw = load_yaml(folder / "config.yaml")
        if not isinstance(raw, Mapping):
            raise NotReadable(f"{folder / 'config.yaml'} should be a mapping of settings")
    except NotReadable as error:
        advice = "write a folder with agentgym verl init or agentgym verl sft"
        return [problem("settings", str(error), advice)], []
    overrides = [*(["trainer.logger=[console,wandb]"] if _adds_wandb(folder) else []), *overrides]
    written = override_settings(raw, overrides)
    no_players: Players = lambda _: ()  # noqa: E731
    given = {
        "folder": folder,
        "overrides": overrides,
        "written": written,
        "sft": base_of(written) == SFT,
        "timeout": timeout,
        "players": players or no_players,
        "find_task": find_task or Missing(),
    }
    inputs = _Inputs(given, _SFT_DATA if given["sft"] else _DATA)
    findings: list[Finding] = []
    for each in _SFT if given["sft"] else _RL:
        arguments = inputs.bind(each.run)
        if not isinstance(arguments, Missing):
            findings += each.run(**arguments)
        elif arguments.reason and each.left_out:
            text = f"{arguments.reason}: {each.left_out}"
            findings.append(skipped(each.name, text, arguments.advice))
    tasks = inputs["tasks"]
    of_parts = [] if isinstance(tasks, Missing) else tasks.values()
    return findings, [each.task for of_part in of_parts for each in of_part if each.task is not None]


def _adds_wandb(folder: Path) -> bool:
    """Return whether ``run.sh`` would log to Weights & Biases."""
    if not os.environ.get("WANDB_API_KEY"):
        return False
    try:
        return "WANDB_API_KEY" in (folder / "run.sh").read_text("utf-8")
    except (OSError, UnicodeDecodeError):
        return False


class _Inputs:
    """The data of a folder, by name.

    Args:
        given: Data that the caller has.
        loaders: Functions that load the others.
    """

    def __init__(self, given: Mapping[str, Any], loaders: Mapping[str, Callable[..., Any]]) -> None:
        self._values = dict(given)
        self._loaders = loaders

    def __getitem__(self, name: str) -> Any:
        """Return data, which are loaded the first time, or :class:`Missing`."""
        if name not in self._values:
            load = self._loaders[name]
            arguments = self.bind(load)
            # The check that needs the missing argument itself reports it.
            self._values[name] = Missing() if isinstance(arguments, Missing) else load(**arguments)
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
