"""A run whose groups of episodes all fail ends; one in which some fail goes on."""

from __future__ import annotations

import pytest

from verl_bridge._failed_groups import MOST_FAILED, EpisodesFailed, FailedGroups


def test_too_many_failed_groups_in_a_row_end_the_run():
    groups = FailedGroups()
    for number in range(MOST_FAILED):
        groups.add({str(number)}, finished=())
    with pytest.raises(EpisodesFailed, match=f"{MOST_FAILED + 1} groups of episodes in a row ended with an"):
        groups.add({"one more"}, finished=())


def test_a_finished_group_between_them_goes_on():
    groups = FailedGroups()
    for number in range(3 * MOST_FAILED):
        groups.add({str(number)}, finished={f"fine {number}"} if number % 50 == 0 else ())


def test_groups_that_finished_before_do_not_hide_the_failures():
    groups = FailedGroups()
    for number in range(MOST_FAILED + 1):
        groups.add({str(number)}, finished={"of the step before"})
    with pytest.raises(EpisodesFailed):
        groups.add({"one more"}, finished={"of the step before"})
