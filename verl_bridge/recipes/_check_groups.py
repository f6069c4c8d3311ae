"""Check the filter that replaces groups without signal, ``algorithm.filter_groups``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from verl_bridge.numbers import numbers_of_unplayed
from verl_bridge.recipes._finding import Finding, ok, problem, warning

if TYPE_CHECKING:
    from verl_bridge.recipes._verl_settings import RlSettings

__all__ = ["check_groups"]

_FILTER = "algorithm.filter_groups"
_SCORE = "reward"
"""verl's name for the score of an episode."""


def check_groups(settings: RlSettings, arguments: Mapping[str, Any], verl: str) -> Iterator[Finding]:
    """Check whether verl can filter groups by the metric, and whether there is anything to compare."""
    if settings.filters_groups is not True:
        return
    if verl.startswith(("0.7.", "0.8.")) or settings.use_v1 is False:
        yield warning(
            "groups",
            f"{_FILTER}.enable is ignored: only verl 0.9's newer trainer replaces groups",
            f"delete {_FILTER}, or use verl 0.9 without trainer.use_v1: false",
        )
        return
    metric, problems = settings.filter_metric, False
    known = [_SCORE, *numbers_of_unplayed()]
    if not metric:
        problems = True
        yield problem(
            "groups", f"{_FILTER} has no metric, and verl stops at its start", f"set metric: {_SCORE}"
        )
    elif arguments and metric not in known:  # the numbers of other agent loops are unknown
        problems = True
        yield problem(
            "groups",
            f"{_FILTER}.metric={metric} is no number of an episode",
            f"set metric: {_SCORE}, or one of {', '.join(known[1:])}",
        )
    if settings.mode == "sync" and settings.filter_inflight < 1:
        problems = True
        yield problem(
            "groups",
            f"{_FILTER}.max_inflight_gen_batches={settings.filter_inflight} should be an integer from 1",
            "set max_inflight_gen_batches: 1, verl's default",
        )
    if settings.samples == 1:
        yield warning(
            "groups",
            f"{_FILTER} compares the samples of a prompt, but n=1",
            f"delete {_FILTER}, or change rollout.n",
        )
    if settings.filter_batches > 0:
        yield warning(
            "groups",
            f"{_FILTER}.max_num_gen_batches is ignored by verl 0.9: it replaces groups until a batch is full",
            "delete it",
        )
    if not problems:
        yield ok("groups", f"groups whose played episodes have the same {metric} are replaced")
