"""A run of an asynchronous trainer whose groups of episodes all fail ends; one in which some fail goes on."""

from __future__ import annotations

from collections import defaultdict
from types import SimpleNamespace

import pytest

from verl_functions import wrapped

MOST = 64
"""Groups that may fail in a row, as docs/training/asynchronous.md has it."""


class ReplayBuffer:
    def __init__(self):
        self.finished_keys = defaultdict(list)

    def _wait_for_next_poll(self):
        """Has verl's name."""

    def _evict_terminal_groups(self, partition_id, eviction_reasons):
        """Has verl's name."""


class PPOTrainer:
    def __init__(self, polls):
        self.polls = polls

    def fit(self, agent_loop_manager):
        """Find a group that failed, and groups that wait for training, in each poll."""
        buffer = ReplayBuffer()
        for number, finished in enumerate(self.polls):
            buffer.finished_keys["train"] = finished
            buffer._evict_terminal_groups("train", ({}, {}, {str(number): "an error"}))


@pytest.fixture
def run(monkeypatch):
    """Makes a run that finds in each poll one more group that failed and these finished ones."""
    wrapped(monkeypatch, "verl.trainer.ppo.v1.replay_buffer", ReplayBuffer=ReplayBuffer)
    wrapped(monkeypatch, "verl.trainer.ppo.v1.trainer_base", PPOTrainer=PPOTrainer)
    return lambda polls: PPOTrainer(polls).fit(SimpleNamespace(agent_loop_workers=[]))


@pytest.mark.parametrize(("waiting", "first"), [([], 0), (["of the step before"], 1)])
def test_too_many_failed_groups_in_a_row_end_the_run(run, waiting, first):
    """Also while finished ones wait for more of them."""
    run([waiting] * (first + MOST))
    with pytest.raises(RuntimeError, match=f"{MOST + 1} groups of episodes in a row"):
        run([waiting] * (first + MOST + 1))


def test_a_finished_group_between_them_continues(run):
    run([[f"fine {number}"] if number % 50 == 0 else [] for number in range(3 * MOST)])
