"""A plugin of pytest, while coverage is measured: notes the seconds of each test that passes."""

from __future__ import annotations

import json
import os
from collections import defaultdict
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pytest

seconds: defaultdict[str, float] = defaultdict(float)
failed: set[str] = set()


def pytest_sessionstart(session: pytest.Session) -> None:
    """Have the processes that tests start measured, too."""
    if session.config.getoption("numprocesses", None):
        return  # the workers of pytest-xdist are measured by pytest-cov
    # For the processes that tests start: coverage's own file in site-packages looks for it.
    os.environ["COVERAGE_PROCESS_START"] = os.environ["MUTANTS_COVERAGE"]


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Add up the seconds of a test."""
    seconds[report.nodeid] += report.duration
    if not report.passed:
        failed.add(report.nodeid)


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Write the seconds of the tests that passed."""
    if hasattr(session.config, "workerinput"):
        return
    passed = {test: round(took, 4) for test, took in seconds.items() if test not in failed}
    Path(os.environ["MUTANTS_DURATIONS"]).write_text(json.dumps(passed), encoding="utf-8")
