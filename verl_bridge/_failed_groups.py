"""End a run of verl 0.9's asynchronous trainers in which every group of episodes fails.

An error that leaves an agent loop, such as a row without an environment, fails the whole group of its prompt.
These trainers replace a failed group by one of another prompt, so with a wrong setting they would do so for
ever, and never make a step.
"""

from __future__ import annotations

from collections.abc import Collection

__all__ = ["MOST_FAILED", "EpisodesFailed", "FailedGroups"]

MOST_FAILED = 64
"""Groups that may fail in a row, without one that finishes."""


class EpisodesFailed(RuntimeError):
    """Too many groups of episodes failed in a row."""


class FailedGroups:
    """Counts the groups that failed in a row."""

    def __init__(self) -> None:
        self._count = 0
        self._waiting: frozenset[str] = frozenset()

    def add(self, failed: Collection[str], finished: Collection[str]) -> None:
        """Count the groups that a poll of the replay buffer found.

        Args:
            failed: The ids of the groups that failed since the last poll.
            finished: The ids of the groups that wait to be trained with.

        Raises:
            EpisodesFailed: More than `MOST_FAILED` failed, and none finished meanwhile.
        """
        # Those that finished before the first failure may wait for ever: a batch needs more of them.
        waiting = frozenset(finished)
        self._count = 0 if waiting - self._waiting else self._count + len(failed)
        self._waiting = waiting
        if self._count > MOST_FAILED:
            raise EpisodesFailed(
                f"{self._count} groups of episodes in a row ended with an error, and none finished, so verl "
                "would replace them for ever: correct the error that the log shows after 'Error in "
                "_run_prompt'; agentgym verl check finds most of them"
            )
