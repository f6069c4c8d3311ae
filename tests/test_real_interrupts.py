"""A program that gets Ctrl-C at random points leaves nothing open, and plays on rightly.

``make interrupts`` sends a thousand to each operation, ``make test`` some.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

import programs
from agentgym_gym.testing import FaultyProxy
from game_server import GameServer

PROGRAM = Path(__file__).parent / "support" / "interrupted_program.py"
TWICE = PROGRAM.with_name("twice_interrupted_program.py")

counts = pytest.mark.parametrize(
    "count",
    [pytest.param(10, id="some"), pytest.param(1_000, id="thousand", marks=pytest.mark.exhaustive)],
)
operations = pytest.mark.parametrize("operation", ["reset", "step"])
kinds = pytest.mark.parametrize("kind", ["sync", "awaited", "vector"])


def run(url, name, kind, operation, count, folder):
    """Return the report of the program, which ends normally."""
    ended = programs.run(
        [sys.executable, str(PROGRAM), url, name, kind, operation, str(count), "0"],
        capture_output=True,
        text=True,
        env=programs.environment(TMPDIR=str(folder)),
        timeout=3000,
    )
    assert ended.returncode == 0, ended.stderr
    report = json.loads(ended.stdout)
    assert report["hits"] == count
    return report


@pytest.mark.slow
@counts
@operations
@kinds
def test_on_a_quick_server(started, tmp_path, kind, operation, count):
    server = started(GameServer())
    report = run(server.url, "TextCraft", kind, operation, count, tmp_path)
    assert report["wrong"] == []
    assert set(server.open) == set()


@pytest.mark.slow
@counts
@pytest.mark.parametrize(
    ("kind", "operation"),
    [
        *(("sync", "reset"), ("awaited", "step"), ("vector", "reset")),
        *(
            pytest.param(kind, operation, marks=pytest.mark.exhaustive)
            for kind, operation in (("sync", "step"), ("awaited", "reset"), ("vector", "step"))
        ),
    ],
)
def test_on_a_local_server(textcraft_url, tmp_path, kind, operation, count):
    with FaultyProxy(textcraft_url, share=0.0) as proxy:
        report = run(proxy.url, "TextCraft", kind, operation, count, tmp_path)
    assert report["wrong"] == []
    assert [made for made in proxy.journal.created if not made.closed] == []


@pytest.mark.slow
@counts
def test_a_vector_that_gets_a_second_ctrl_c_while_the_first_cancels_is_not_in_use(started, tmp_path, count):
    server = started(GameServer())
    ended = programs.run(
        [sys.executable, str(TWICE), server.url, str(20 * count), "0"],
        capture_output=True,
        text=True,
        env=programs.environment(TMPDIR=str(tmp_path)),
        timeout=3000,
    )
    assert (ended.returncode, ended.stdout) == (0, "{}\n"), ended.stderr
    assert set(server.open) == set()
