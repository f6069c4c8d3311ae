"""Which tests run a line, and how long each takes: one run of the suite under coverage."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from coverage import CoverageData

from mutants.copies import copy_tree

if TYPE_CHECKING:
    from mutants.sites import Mutant

WITH_VERL, VERL_TESTS = "verl_bridge/", "tests/verl/"  # run by an interpreter of their own, which has verl

# Processes that a test starts are counted too, each for the test in which it was started.
SETTINGS = """\
[run]
source = {tree}/agentgym_gym, {tree}/agentgym_servers, {tree}/verl_bridge
data_file = {data}
parallel = true
sigterm = true
context = ${{PYTEST_CURRENT_TEST-}}
"""


class Covering:
    """The tests of each line, kept in a folder.

    Args:
        folder: where ``coverage`` and ``durations.json`` are, or will be, and the copy that was measured.
        root: the repository as it is now, with no mutant in it.
    """

    def __init__(self, folder: Path, root: Path) -> None:
        self._folder = folder
        self._root = root
        self._tree = folder / "measured"
        self._data: CoverageData | None = None
        self.durations: dict[str, float] = {}

    def measure(self, tests: list[str], processes: int, python: str = sys.executable) -> None:
        """Run these test files under coverage, all if none is named, and add them to the rest.

        The slow tests are among them, as in ``make suite``.

        Another interpreter, which need not have coverage, measures only how long they take.
        """
        copy_tree(self._root, self._tree)
        data = self._folder / "new"
        settings = self._folder / "coveragerc"
        settings.write_text(SETTINGS.format(tree=self._tree, data=data), encoding="utf-8")
        environ = {
            **os.environ,
            "PYTHONPATH": os.pathsep.join([str(self._tree), str(Path(__file__).parents[1])]),
            "MUTANTS_COVERAGE": str(settings),
            "MUTANTS_DURATIONS": str(self._folder / "new.json"),
        }
        options = [
            f"-n{processes}",
            "-m",
            "not exhaustive",
            "-q",
            "-p",
            "no:cacheprovider",
            "-p",
            "mutants.measuring",
        ]
        coverage = ["--cov", f"--cov-config={settings}", "--cov-context=test", "--cov-report="]
        if python != sys.executable:
            coverage = []
        command = [python, "-m", "pytest", *options, *coverage, *tests]
        subprocess.run(command, cwd=self._tree, env=environ, check=False)
        for file in self._folder.glob("new*"):
            if file.suffix == ".json":
                self.durations |= json.loads(file.read_text(encoding="utf-8"))
            else:
                measured = CoverageData(str(file))
                measured.read()
                self._coverage().update(measured)
            file.unlink()
        self._coverage().write()
        self._write("durations.json", self.durations)
        sources = {path: _digest(self._tree / path) for path in self._paths() if (self._tree / path).exists()}
        # Of files that have changed since, the lines of the other tests are those of before.
        self._write("sources.json", sources | self._sources() if tests else sources)

    def read(self) -> bool:
        """Read what an earlier run has measured. False if there is none."""
        if not (self._folder / "durations.json").exists():
            return False
        self.durations = self._read("durations.json")
        return True

    def tests_of(self, mutant: Mutant) -> list[str]:
        """List the tests that run the mutant's line, those of its own package first, then the quickest.

        If none does in pytest's own process, or the file has changed since, these are the tests that run any
        line of the file: a process that is killed does not report its lines.

        At the end are the other tests that have the module or its package in their name: they may use
        what was made only once, by the first test that needed it.
        """
        tests = self._reaching(mutant)
        changed = self._sources().get(mutant.file) != _digest(self._root / mutant.file)
        if changed or not self._reaching(mutant, here=True):
            tests = {_test_of(each) for line in self._contexts_by_line(mutant.file).values() for each in line}
        near = {test for test in self.durations if nearness(test, mutant.file) > 0}
        with_verl = mutant.file.startswith(WITH_VERL)
        if with_verl:
            near = set(self.durations)
        known = [
            test for test in (tests | near) & set(self.durations) if test.startswith(VERL_TESTS) == with_verl
        ]

        def rank(test: str) -> tuple[bool, int, float, str]:
            return test not in tests, -nearness(test, mutant.file), self.durations[test], test

        return sorted(known, key=rank)

    def covers(self, mutant: Mutant) -> bool:
        """Whether a test runs the mutant's line in a process that was measured."""
        return bool(self._reaching(mutant))

    def _reaching(self, mutant: Mutant, *, here: bool = False) -> set[str]:
        """Return the tests that run a line; with ``here`` those that do so in pytest's own process."""
        first, last = mutant.lines
        return {
            _test_of(context)
            for line, contexts in self._contexts_by_line(mutant.file).items()
            if first <= line <= last
            for context in contexts
            if not here or not context.endswith(")")
        }

    @cache  # noqa: B019 - lives as long as the program
    def _contexts_by_line(self, file: str) -> dict[int, list[str]]:
        lines = self._coverage().contexts_by_lineno(self._paths().get(file, file))
        return {line: [context for context in contexts if context] for line, contexts in lines.items()}

    def _coverage(self) -> CoverageData:
        if self._data is None:
            self._data = CoverageData(str(self._folder / "coverage"))
            self._data.read()
        return self._data

    def _paths(self) -> dict[str, str]:
        """Return the paths of the measured files, maybe of another checkout, by those in this one."""
        return {path.partition("/measured/")[2]: path for path in self._coverage().measured_files()}

    def _sources(self) -> dict[str, str]:
        return dict(self._read("sources.json")) if (self._folder / "sources.json").exists() else {}

    def _write(self, name: str, value: object) -> None:
        (self._folder / name).write_text(json.dumps(value), encoding="utf-8")

    def _read(self, name: str) -> Any:
        return json.loads((self._folder / name).read_text(encoding="utf-8"))


def nearness(test: str, file: str) -> int:
    """Count the names on the path of a module that are on the path of a test too."""
    names = {name.removesuffix(".py").strip("_") for name in file.split("/")[1:]}
    path = test.partition("::")[0]
    return sum(name in path for name in names - {"init"})


def _test_of(context: str) -> str:
    """``id|run`` in pytest's own process, ``id (call)`` in those that it started."""
    if context.endswith(")"):
        return context.rpartition(" (")[0]
    return context.rpartition("|")[0]


def _digest(file: Path) -> str:
    return hashlib.sha256(file.read_bytes()).hexdigest()
