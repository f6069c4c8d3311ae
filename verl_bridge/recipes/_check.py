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
    if base_of(view.raw) == SFT:
        return [*_check_sft_folder(view, find_task)], view
    findings = [
        *_check_settings.check_composition(view),
        *_check_values.check_values(view),
        *_check_sizes(view),
        *_check_trainer.check_trainer(view),
        *_check_values.check_model(view, "actor_rollout_ref.model.path", *_critic(view)),
        *_check_tasks.read_rows(view),
        *_check_settings.check_loop(view),
        *_check_settings.check_reward(view),
        *_check_credit.check_credit(view),
        *_check_earlier.check_earlier_run(view),
        *_check_tasks.check_split_leakage(view),
        *_check_catalogue.check_rl_tasks(view, find_task),
        *_check_tasks.check_shares(view),
    ]
    played, starts = _check_tasks.play_first_turns(view, timeout, players)
    return [*findings, *played, *_check_lengths.check_lengths(view, starts)], view


def _check_sizes(view: View) -> Iterator[Finding]:
    wrong = list(_check_values.check_integers(view))
    yield from wrong or _check_settings.check_sizes(view)


def _critic(view: View) -> list[str]:
    return ["critic.model.path"] if view.get("algorithm.adv_estimator", "gae") == "gae" else []


def _check_sft_folder(view: View, find_task: FindTask | None) -> Iterator[Finding]:
    yield from _check_settings.check_composition(view)
    yield from _check_values.check_values(view)
    wrong = list(_check_values.check_integers(view, sft=True))
    yield from wrong
    yield from _check_values.check_model(view, "model.path")
    yield from _check_earlier.check_earlier_run(view)
    yield from _check_sft.check_sft(view, sizes=not wrong)
    yield from _check_catalogue.check_sft_tasks(view, find_task)
