"""The end of a run: the episodes that the workers still play, in real actors of Ray."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

import needs
import programs

pytest.importorskip("verl", reason=needs.reason("verl"))

SUPPORT = Path(__file__).resolve().parents[1] / "support"


def test_environments_are_closed_before_the_run_ends(tmp_path):
    """Of a worker that has died too, if only by passing it over."""
    ended = subprocess.run(
        [sys.executable, SUPPORT / "ends_run.py", tmp_path],
        capture_output=True,
        text=True,
        check=True,
        timeout=300,
        env=programs.environment(),
    )
    assert json.loads(ended.stdout.splitlines()[-1]) == {
        "cancelled": 3,
        "closed": ["a", "b", "c"],
        "again": 0,
    }
