"""Check a training folder before renting a GPU, as far as possible without one."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from verl_bridge.recipes import (
    _check_catalogue,
    _check_credit,
    _check_earlier,
    _check_lengths,
    _check_settings,
    _check_sft,
    _check_tasks,
    _check_trainer,
    _check_types,
    _check_values,
)
from verl_bridge.recipes._compose import SFT, base_of
from verl_bridge.recipes._finding import Finding, problem
from verl_bridge.recipes._view import NotReadable, View

if TYPE_CHECKING:
    from verl_bridge.recipes._check_catalogue import FindTask
    from verl_bridge.recipes._check_played import ReplySource

__all__ = ["check"]


def check(
    folder: Path,
    *,
    overrides: Sequence[str] = (),
    timeout: float = 60.0,
    players: Callable[[str], Sequence[Callable[[], ReplySource]]] | None = None,
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
        The findings, and the loaded folder, or None if it could not be read.

    Raises:
        ModuleNotFoundError: PyYAML is not installed.
    """
    try:
        view = View.of(folder, overrides)
    except NotReadable as error:
        return [
            problem("settings", str(error), "write a folder with agentgym verl init or agentgym verl sft")
        ], None
    sft = base_of(view.raw) == SFT
    wrong, mended = _check_types.check_types(view, sft=sft)
    findings = [*_check_settings.check_composition(view, wrong_types=bool(wrong)), *wrong]
    if sft:
        return [*findings, *_check_sft_folder(mended, find_task)], view
    findings += [
        *_check_values.check_values(mended),
        *(() if wrong else _check_settings.check_sizes(mended)),
        *_check_trainer.check_trainer(mended),
        *_check_values.check_model(mended, "actor_rollout_ref.model.path", *_critic(mended)),
        *_check_tasks.read_rows(mended),
        *_check_settings.check_loop(mended),
        *_check_settings.check_reward(mended),
        *_check_credit.check_credit(mended),
        *_check_earlier.check_earlier_run(mended),
        *_check_tasks.check_split_leakage(mended),
        *_check_catalogue.check_rl_tasks(mended, find_task),
        *_check_tasks.check_shares(mended),
    ]
    played, starts = _check_tasks.play_first_turns(mended, timeout, players)
    return [*findings, *played, *_check_lengths.check_lengths(mended, starts)], mended


def _critic(view: View) -> list[str]:
    return ["critic.model.path"] if view.get("algorithm.adv_estimator", "gae") == "gae" else []


def _check_sft_folder(view: View, find_task: FindTask | None) -> Iterator[Finding]:
    yield from _check_values.check_values(view)
    yield from _check_values.check_model(view, "model.path")
    yield from _check_earlier.check_earlier_run(view)
    yield from _check_sft.check_sft(view)
    yield from _check_catalogue.check_sft_tasks(view, find_task)
