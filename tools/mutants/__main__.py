"""The command line: draws mutants, tries each, prints which no test noticed."""

from __future__ import annotations

import argparse
import difflib
import json
import os
import sys
import time
from collections.abc import Iterator
from itertools import accumulate
from pathlib import Path
from typing import Any

from mutants.copies import copy_tree, planted
from mutants.covering import VERL_TESTS, WITH_VERL, Covering
from mutants.sites import Mutant, drawn
from mutants.trial import Outcome, import_libraries, run_tests

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "build" / "mutants"
TREE = FOLDER / "tree"
TARGETS = [
    "agentgym_gym/_http",
    "agentgym_gym/_leasing",
    "agentgym_gym/_remote_episode.py",
    "agentgym_gym/_base_env.py",
    "agentgym_gym/vector.py",
    "agentgym_gym/aio.py",
    "agentgym_gym/rollout",
    "agentgym_gym/formats",
    "agentgym_gym/evaluate/_figures",
    "agentgym_servers/sqlgym",
    "verl_bridge/agent_loop.py",
]
LOOP_TESTS = [f"tests/verl/test_{name}.py" for name in ("agent_loop", "tokens", "written")]
ENOUGH = 60  # tests for the first try of a mutant
SECONDS = 120.0  # that the tests of its second try took together when they were measured
CAUGHT = ("caught", "timeout")


def write(line: str) -> None:
    """Print a line at once."""
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def main() -> None:
    """Draw mutants, try those that an earlier run has not tried, and print which survived."""
    parser = argparse.ArgumentParser(prog="make mutants", description=__doc__)
    parser.add_argument("--count", type=int, default=400, help="mutants to draw")
    parser.add_argument("--seed", type=int, default=1, help="seed of the draw")
    parser.add_argument("--fresh", action="store_true", help="measure again which tests run which lines")
    parser.add_argument(
        "--cover", nargs="*", default=[], metavar="FILE", help="measure these test files again"
    )
    parser.add_argument("--again", action="store_true", help="try again the mutants that no test noticed")
    parser.add_argument("--processes", type=int, default=2, help="processes that measure")
    parser.add_argument(
        "--only", default="", metavar="PATH", help="try only mutants of paths that begin with it"
    )
    parser.add_argument(
        "--verl", type=Path, default=ROOT / ".nox/verl-0-9/bin/python", help="Python with verl"
    )
    args = parser.parse_args()
    copy_tree(ROOT, TREE)
    if args.fresh:
        for name in ("coverage", "durations.json"):
            (FOLDER / name).unlink(missing_ok=True)
    covering = Covering(FOLDER, ROOT)
    cover = [test for test in args.cover if not test.startswith(VERL_TESTS)]
    if not covering.read() or cover:
        covering.measure(cover, args.processes)
    python = str(args.verl) if args.verl.exists() else None
    if python is None:
        write("without verl, none is planted in the agent loop: run `make verl`, or name a Python by --verl")
    elif len(cover) < len(args.cover) or not any(test.startswith(VERL_TESTS) for test in covering.durations):
        covering.measure(LOOP_TESTS, 1, python)
    import_libraries()
    results = Results(FOLDER / f"{args.seed}.jsonl", again=args.again)
    targets = [target for target in TARGETS if python or not target.startswith(WITH_VERL)]
    mutants = [
        each for each in drawn(ROOT, targets, args.count, args.seed) if each.file.startswith(args.only)
    ]
    trials = Trials(covering, results, python)
    for number, mutant in enumerate(mutants, 1):
        if mutant.key not in results.rows:
            trials.first(mutant)
            write(f"{number}/{len(mutants)} {_line(results.rows[mutant.key])}")
    for mutant in mutants:
        if results.rows[mutant.key]["verdict"] == "limited":
            trials.second(mutant)
            write(f"again: {_line(results.rows[mutant.key])}")
    print_summary([results.rows[mutant.key] for mutant in mutants])


class Results:
    """The result of each mutant: a file of JSON lines, where the last line of a mutant counts."""

    def __init__(self, file: Path, *, again: bool = False) -> None:
        self._file = file
        self.rows: dict[str, dict[str, Any]] = {}
        if file.exists():
            for line in file.read_text(encoding="utf-8").splitlines():
                row = json.loads(line)
                self.rows[row["key"]] = row
        if again:
            self.rows = {key: row for key, row in self.rows.items() if row["verdict"] in CAUGHT}

    def add(self, mutant: Mutant, outcome: Outcome, tests: int, seconds: float) -> None:
        """Keep what became of a mutant, with the number of tests that ran and their seconds."""
        row = {
            "file": mutant.file,
            "line": mutant.line,
            "operator": mutant.operator,
            "before": mutant.before,
            "after": mutant.after,
            "verdict": outcome.verdict,
            "test": outcome.test,
            "tests": tests,
            "seconds": round(seconds, 1),
            "key": mutant.key,
        }
        self.rows[mutant.key] = row
        with self._file.open("a", encoding="utf-8") as lines:
            lines.write(json.dumps(row) + "\n")


class Trials:
    """Tries mutants. A test counts if it fails twice with the mutant, and passes without one."""

    def __init__(self, covering: Covering, results: Results, verl: str | None = None) -> None:
        self._covering = covering
        self._verl = verl
        self._results = results
        self._passes: dict[str, bool] = {}

    def first(self, mutant: Mutant) -> None:
        """Try a mutant with the nearest tests; if they are not all, a survivor waits as ``limited``."""
        tests = self._covering.tests_of(mutant)
        self._try(mutant, tests[:ENOUGH], "limited" if tests[ENOUGH:] else self._alive(mutant))

    def second(self, mutant: Mutant) -> None:
        """Try a mutant with the other tests, the quickest first, as many as there is time for."""
        durations = self._covering.durations
        tests = sorted(self._covering.tests_of(mutant)[ENOUGH:], key=durations.__getitem__)
        ends = accumulate(durations[test] for test in tests)
        in_time = [test for test, end in zip(tests, ends, strict=True) if end <= SECONDS]
        self._try(mutant, in_time, self._alive(mutant))

    def _alive(self, mutant: Mutant) -> str:
        return "survived" if self._covering.covers(mutant) else "not covered"

    def _try(self, mutant: Mutant, tests: list[str], alive: str) -> None:
        started = time.monotonic()
        left = sorted(tests, key=self._covering.durations.__getitem__)
        outcome = Outcome(alive)
        while left:
            with planted(mutant, TREE):
                found = self._run(left)
                named = found.verdict == "caught" and found.test
                by_chance = named and self._run([found.test]).verdict == "survived"
            if found.verdict == "survived":
                break
            if not found.test or (not by_chance and self._passes_alone(found.test)):
                outcome = found
                break
            left = left[left.index(found.test) + 1 :]
        self._results.add(mutant, outcome, len(tests), time.monotonic() - started)

    def _run(self, tests: list[str]) -> Outcome:
        python = self._verl if tests[0].startswith(VERL_TESTS) else None
        return run_tests(TREE, {test: self._covering.durations[test] for test in tests}, python)

    def _passes_alone(self, test: str) -> bool:
        if test not in self._passes:
            self._passes[test] = self._run([test]).verdict == "survived"
        return self._passes[test]


def print_summary(rows: list[dict[str, Any]]) -> None:
    """Print the survivors, each with its change, and the share that was caught."""
    alive = [row for row in rows if row["verdict"] not in CAUGHT]
    for row in sorted(alive, key=lambda row: (row["file"], row["line"])):
        write(f"\n{_line(row)}")
        write("\n".join(_diff(row)))
    low, high = wilson(len(rows) - len(alive), len(rows))
    share = (len(rows) - len(alive)) / len(rows)
    caught = f"{len(rows) - len(alive)} of {len(rows)} caught: {share:.1%}"
    write(f"\n{caught} (95 % interval {low:.1%} to {high:.1%})")


def wilson(successes: int, trials: int) -> tuple[float, float]:
    """The 95 % interval of a share; written out here, as the library's own is among what is mutated."""
    z = 1.959964
    share = successes / trials
    middle = share + z * z / (2 * trials)
    spread = z * (share * (1 - share) / trials + z * z / (4 * trials * trials)) ** 0.5
    whole = 1 + z * z / trials
    return (middle - spread) / whole, (middle + spread) / whole


def _line(row: dict[str, Any]) -> str:
    return (
        f"{row['file']}:{row['line']} {row['operator']}: {row['verdict']} {row['test']} ({row['seconds']} s)"
    )


def _diff(row: dict[str, Any]) -> Iterator[str]:
    lines = difflib.ndiff(row["before"].splitlines(), row["after"].splitlines())
    return (line for line in lines if not line.startswith("?"))


if __name__ == "__main__":
    os.chdir(ROOT)
    main()
