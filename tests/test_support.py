"""What the tests are helped by."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

import programs
from interrupts import Point, interrupted, points_of, spread

ROOT = Path(__file__).resolve().parents[1]


@pytest.mark.parametrize("here", [signal.SIG_IGN, signal.SIG_DFL, signal.default_int_handler])
def test_a_program_is_ended_by_ctrl_c_however_the_tests_were_started(here):
    before = signal.signal(signal.SIGINT, here)
    try:
        ended = programs.run(
            [sys.executable, "-Sc", "import signal; signal.raise_signal(signal.SIGINT)"], stderr=-3
        )
        assert signal.getsignal(signal.SIGINT) is here
    finally:
        signal.signal(signal.SIGINT, before)
    assert ended.returncode == -signal.SIGINT


def test_a_ctrl_c_can_come_after_each_call_but_not_between_a_with_and_its_exit():
    lock, done = threading.Lock(), []

    def operation():
        with lock:
            done.append(1)
        done.append(2)

    here = str(Path(__file__))
    points = points_of(operation, within=here)
    assert {each.function.rpartition(".")[2] for each in points} == {"operation"}
    assert {each.line - points[0].line for each in points} >= {0, 1, 2}
    states = []
    for point in points:
        done.clear()
        assert interrupted(operation, point)
        assert not lock.locked()
        states.append(tuple(done))
    assert sorted(set(states)) == [(), (1,), (1, 2)]
    assert not interrupted(operation, points[0]._replace(visit=2))


def test_a_ctrl_c_can_come_between_a_call_and_the_assignment_of_its_result():
    kept = []

    def operation():
        kept.append(next(iter([1])))

    points = points_of(operation, within=str(Path(__file__)))
    lost = []
    for point in points:
        kept.clear()
        interrupted(operation, point)
        lost.append(not kept)
    assert lost == sorted(lost, reverse=True)
    assert len(points) >= 4  # at the start, and after each of three calls
    assert lost[-1] is False


def test_points_are_taken_evenly():
    points = [Point("a.py", "run", line, 0, 1) for line in range(1, 12)]
    assert [point.line for point in spread(points, 3)] == [1, 6, 11]
    assert spread(points, 11) == spread(points, 12) == points


MARKED = """
import os
import pytest
from agentgym_gym.local_servers import available

def test_unmarked():
    assert "Chromium" in available("webarena")

@pytest.mark.needs("chromium")
def test_that_needs_it():
    assert available("webarena") is None

@pytest.mark.may_use("chromium")
def test_that_may_use_it():
    assert (available("webarena") is None) == (os.environ["INSTALLED"] == "yes")

@pytest.mark.needs("java")
def test_of_another_program():
    assert "Chromium" in available("webarena")

def test_that_skips():
    pytest.skip("no fork here: a: b")

@pytest.mark.skipif(True, reason="no fork here: a: b")
def test_that_is_skipped():
    pass
"""


def run_marked(folder, text=MARKED, **variables):
    """Run tests with the conftest of this suite, in a process with other variables."""
    file = folder / "test_marked.py"
    file.write_text(text, "utf-8")
    command = [
        "-c",
        "pyproject.toml",
        "-n0",
        "-q",
        "-p",
        "no:cacheprovider",
        "-p",
        "tests.conftest",
        str(file),
    ]
    return subprocess.run(
        [sys.executable, "-m", "pytest", *command],
        cwd=ROOT,
        env=programs.environment(**variables),
        capture_output=True,
        text=True,
        check=False,
        timeout=100,
    )


@pytest.mark.slow
@pytest.mark.needs("playwright")
def test_only_a_test_with_the_marker_finds_a_program(tmp_path):
    java = tmp_path / "bin" / "java"
    java.parent.mkdir()
    java.write_text("")
    java.chmod(0o755)
    installed = {"AGENTGYM_CHROMIUM": sys.executable, "JAVA_HOME": str(tmp_path), "INSTALLED": "yes"}
    done = run_marked(tmp_path, **installed)
    assert (done.returncode, "4 passed, 2 skipped" in done.stdout) == (0, True), done.stdout
    missing = {"AGENTGYM_CHROMIUM": "/nowhere", "JAVA_HOME": "/nowhere", "INSTALLED": "no"}
    done = run_marked(tmp_path, **missing)
    assert (done.returncode, "2 passed, 4 skipped" in done.stdout) == (0, True), done.stdout
    assert re.search(r"^Chromium +1 test +apt-get install chromium$", done.stdout, re.MULTILINE)
    assert re.search(r"^Java +1 test +apt-get install \S+$", done.stdout, re.MULTILINE)
    assert re.search(r"^ +2 tests +no fork here: a: b$", done.stdout, re.MULTILINE)  # other reasons


@pytest.mark.slow
def test_a_need_that_is_not_in_the_table_is_an_error(tmp_path):
    text = "import pytest\n\n@pytest.mark.needs('chromum')\ndef test_it():\n    pass\n"
    done = run_marked(tmp_path, text)
    assert done.returncode == pytest.ExitCode.USAGE_ERROR
    assert "test_it names the need 'chromum'" in done.stderr


def test_programs_and_packages_are_looked_for_only_by_the_table():
    """Another skip would have other words, and no command."""
    table, here = ROOT / "tests" / "support" / "needs.py", Path(__file__).resolve()
    found = [
        f"{file.relative_to(ROOT)}: {line}"
        for file in (ROOT / "tests").rglob("*.py")
        if file not in {table, here}
        for line in file.read_text("utf-8").splitlines()
        if "shutil.which(" in line or ("importorskip(" in line and "needs.reason(" not in line)
    ]
    assert found == []
