"""Each game is played by one process: its tests compare with the same episodes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from xdist.scheduler import LoadScopeScheduling

if TYPE_CHECKING:
    import pytest
    from xdist.remote import Producer


class _ByCase(LoadScopeScheduling):
    """Schedules together the tests whose parameters are the same."""

    def _split_scope(self, nodeid: str) -> str:
        return nodeid.partition("[")[2] or nodeid


def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> LoadScopeScheduling:
    # Not by the marker `xdist_group`: pytest-xdist 3.8 cannot rename a test of pytest 9.2.
    return _ByCase(config, log)
