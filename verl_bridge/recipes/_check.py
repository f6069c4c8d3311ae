"""Check a training folder before renting a GPU, as far as possible without one.

A check is a function of the data that it needs, and a row of a table below. The function's parameters are the
names of these data, each of which :class:`Inputs` loads once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from verl_bridge.recipes import (
    _check_credit,
    _check_data,
    _check_earlier,
    _check_episodes,
    _check_lengths,
    _check_loop,
    _check_model,
    _check_settings,
    _check_sft,
    _check_trainer,
    _check_types,
)
from verl_bridge.recipes._check_files import Missing, NotReadable
from verl_bridge.recipes._check_inputs import Inputs
from verl_bridge.recipes._compose import NOT_COMPOSED
from verl_bridge.recipes._finding import Finding, problem, skipped

if TYPE_CHECKING:
    from verl_bridge.recipes._check_data import FindTask
    from verl_bridge.recipes._check_played import Players

__all__ = ["View", "check"]


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

    def findings(self, inputs: Inputs) -> Iterable[Finding]:
        """Return the findings about a folder, or that the check was skipped."""
        arguments = inputs.bind(self.run)
        if not isinstance(arguments, Missing):
            return self.run(**arguments)
        if not arguments.reason or not self.left_out:
            return ()
        return [skipped(self.name, f"{arguments.reason}: {self.left_out}", arguments.advice)]


def _without_findings(games: Any, tokenizer: Any) -> Iterable[Finding]:  # noqa: ARG001 - if one is missing
    return ()


_SETTINGS = (
    Check("settings", _check_settings.check_composition, NOT_COMPOSED),
    Check("settings", _check_settings.check_keys, "names among the values were not compared with verl's"),
    Check("settings", _check_settings.check_absent_packages),
    Check("settings", _check_settings.check_group_names),
    Check("values", _check_types.check_types),
    Check("values", _check_settings.check_external_modules),
    Check("values", _check_settings.check_trainer_module),
    Check("values", _check_settings.check_names),
)

_RL = (
    *_SETTINGS,
    Check("sizes", _check_trainer.check_sizes),
    Check("trainer", _check_trainer.check_trainer),
    Check("model", _check_model.check_models),
    Check("data", _check_data.check_rows, "not read"),
    Check("loop", _check_loop.check_loop),
    Check("import", _check_loop.check_classes),
    Check("import", _check_loop.check_modules),
    Check("reward", _check_loop.check_reward),
    Check("credit", _check_credit.check_credit),
    Check("checkpoints", _check_earlier.check_earlier_run),
    Check("validation", _check_data.check_split_leakage),
    Check("tasks", _check_data.check_catalogue),
    Check("shares", _check_data.check_shares),
    Check("environment", _check_episodes.check_tasks),
    Check("environment", _check_episodes.check_episodes),
    Check("model", _check_model.check_context, "its context length was not checked"),
    Check("lengths", _check_model.check_thinking, _check_lengths.ESTIMATED),
    Check("tool calls", _check_lengths.check_tools),
    Check("chat template", _check_lengths.check_template),
    Check("lengths", _check_lengths.check_prompts, "prompts were not measured"),
    Check("response length", _check_lengths.check_responses),
)
"""The checks of a folder for reinforcement learning."""

_SFT = (
    *_SETTINGS,
    Check("model", _check_model.check_models),
    Check("checkpoints", _check_earlier.check_earlier_run),
    Check("sizes", _check_sft.check_game_sizes),
    Check("data", _check_sft.check_game_rows, "not read"),
    Check("validation", _check_sft.check_game_splits),
    Check("dataset", _check_sft.check_dataset),
    Check("lengths", _without_findings, _check_lengths.ESTIMATED),
    Check("lengths", _check_sft.check_game_lengths),
    Check("model", _check_sft.check_game_context, "its context length was not checked"),
    Check("tasks", _check_data.check_catalogue),
)
"""The checks of a folder for fine-tuning."""


@dataclass(frozen=True)
class View:
    """A checked folder, for further checks by the caller.

    Attributes:
        rows: The rows of the data by ``"train"`` and ``"val"``, of parts that could be read.
        loop: The arguments of this library's loop.
    """

    rows: Mapping[str, list[dict[str, Any]]]
    loop: Mapping[str, Any]

    def arguments(self) -> Mapping[str, Any]:
        """Return the arguments of this library's loop."""
        return self.loop


def check(
    folder: Path,
    *,
    overrides: Sequence[str] = (),
    timeout: float = 60.0,
    players: Players | None = None,
    find_task: FindTask | None = None,
) -> tuple[list[Finding], View | None]:
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
        The findings, and the checked folder, or None if it could not be read.

    Raises:
        ModuleNotFoundError: PyYAML is not installed.
    """
    no_players: Players = lambda _: ()  # noqa: E731
    try:
        inputs = Inputs(
            folder,
            overrides,
            timeout=timeout,
            players=players or no_players,
            find_task=find_task or Missing(),
        )
    except NotReadable as error:
        advice = "write a folder with agentgym verl init or agentgym verl sft"
        return [problem("settings", str(error), advice)], None
    findings = [finding for each in (_SFT if inputs.sft else _RL) for finding in each.findings(inputs)]
    rows = inputs["rows"]
    return findings, View({} if isinstance(rows, Missing) else rows.parts, inputs["arguments"])
