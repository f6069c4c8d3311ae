"""A run of some tests, with a mutant or none, in a forked process that has the libraries imported already."""

from __future__ import annotations

import contextlib
import gc
import importlib
import os
import select
import signal
import sys
import time
import traceback
from dataclasses import dataclass
from pathlib import Path

import pytest

LIBRARIES = (
    "fastapi",
    "gymnasium",
    "httptools",
    "httpx",
    "hypothesis",
    "numpy",
    "pyarrow",
    "typer",
    "uvicorn",
)
QUIET = ("-W", "ignore::pytest.PytestAssertRewriteWarning")  # those that are plugins of pytest too
START_S = 60.0  # to import and collect, on a busy machine
TEST_S = 20.0  # beside five times what a test took under coverage


@dataclass(frozen=True)
class Outcome:
    """The result of a run of tests.

    Args:
        verdict: ``survived``, ``caught`` or ``timeout``.
        test: the one that failed, or was running when its time was over; empty where importing failed.
    """

    verdict: str
    test: str = ""


def import_libraries() -> None:
    """Import what the forked processes need."""
    for name in LIBRARIES:
        importlib.import_module(name)


def run_tests(tree: Path, tests: dict[str, float], python: str | None = None) -> Outcome:
    """Run tests in the copy of the repository, in the given order, until one fails or takes too long.

    Args:
        tree: the copy.
        tests: the seconds that each took without a mutant.
        python: the interpreter, if it is not this one.
    """
    reading, writing = os.pipe()
    mark = f"MUTANTS_TRIAL={os.getpid()}.{time.monotonic_ns()}"
    sys.stdout.flush()
    gc.collect()  # in the copy, a finalizer that warns would fail the test that runs by then
    child = os.fork()
    if child == 0:
        os.close(reading)
        _be_child(tree, list(tests), writing, mark, python)
    os.close(writing)
    try:
        return _follow(reading, tests)
    finally:
        os.close(reading)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(child, signal.SIGKILL)
        os.waitpid(child, 0)
        _kill_marked(mark)


def _follow(reading: int, tests: dict[str, float]) -> Outcome:
    """Read which test begins, fails, and that all have passed; the child writes a line for each."""
    limit, running, text = START_S, "", b""
    while select.select([reading], [], [], limit)[0]:
        data = os.read(reading, 65536)
        *lines, text = (text + data).split(b"\n")
        for line in lines:
            kind, _, test = line.decode().partition(" ")
            if kind == "passed":
                return Outcome("survived")
            if kind == "failed":
                return Outcome("caught", test)
            running, limit = test, TEST_S + 5 * tests.get(test, 0.0)
        if not data:  # the process has ended, with its tests or before them
            return Outcome("caught", running)
    return Outcome("timeout", running)


def _be_child(tree: Path, tests: list[str], writing: int, mark: str, python: str | None) -> None:
    try:
        os.setpgid(0, 0)
        quiet = os.open(tree.parent / "output.txt", os.O_RDWR | os.O_CREAT | os.O_TRUNC, 0o644)
        for descriptor in (0, 1, 2):
            os.dup2(quiet, descriptor)
        name, _, value = mark.partition("=")
        os.environ |= {name: value, "PYTHONPATH": str(tree)}
        os.chdir(tree)
        if python is None:
            sys.path.insert(0, str(tree))
            be_pytest(writing, tests)
        else:
            os.environ["PYTHONPATH"] += os.pathsep + str(Path(__file__).parents[1])
            os.set_inheritable(writing, True)
            code = (
                "import sys; from mutants.trial import be_pytest; be_pytest(int(sys.argv[1]), sys.argv[2:])"
            )
            os.execv(python, [python, "-c", code, str(writing), *tests])  # noqa: S606 - no text for a shell
    except BaseException:  # noqa: BLE001 - nothing of the parent's may go on here
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(0)


def be_pytest(writing: int, tests: list[str]) -> None:
    """Run tests, and write what becomes of them to a pipe."""
    files = list(dict.fromkeys(test.partition("::")[0] for test in tests))
    options = ["-x", "-n0", "-m", "", "-q", "--tb=no", "-p", "no:cacheprovider", *QUIET]
    status = pytest.main([*options, *files], plugins=[_Reporter(tests, writing)])
    passed = status in (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED)
    os.write(writing, b"passed\n" if passed else b"failed \n")


class _Reporter:
    """A plugin of pytest: chooses the tests, and writes what becomes of them."""

    def __init__(self, tests: list[str], writing: int) -> None:
        self._rank = {test: rank for rank, test in enumerate(tests)}
        self._writing = writing

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        chosen = [item for item in items if item.nodeid in self._rank]
        items[:] = sorted(chosen, key=lambda item: self._rank[item.nodeid])

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        os.write(self._writing, f"begins {nodeid}\n".encode())

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            os.write(self._writing, f"failed {report.nodeid}\n".encode())


def _kill_marked(mark: str) -> None:
    """End the servers and workers that tests have left running, where the system lists processes in /proc."""
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if mark.encode() in (process / "environ").read_bytes().split(b"\0"):
                os.kill(int(process.name), signal.SIGKILL)
