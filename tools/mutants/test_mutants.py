"""The tool behind `make mutants`: the faults it plants, those it leaves out, and that it can be resumed."""

from __future__ import annotations

import ast
import random
import shutil
import textwrap
from pathlib import Path

import pytest

import forked
from mutants.__main__ import TARGETS, Results, wilson
from mutants.copies import copy_tree, planted
from mutants.covering import nearness
from mutants.sites import drawn, mutants_of
from mutants.trial import Outcome

ROOT = Path(__file__).parents[2]

needs_git = pytest.mark.skipif(shutil.which("git") is None, reason="git is not on the PATH")


def changes(code):
    code = textwrap.dedent(code).strip() + "\n"
    return {(each.operator, each.before, each.after) for each in mutants_of("module.py", code.encode())}


@pytest.mark.parametrize(
    ("code", "change"),
    [
        ("a < b", ("comparison", "a < b", "a <= b")),
        ("a == b", ("comparison", "a == b", "a != b")),
        ("a not  in b", ("comparison", "a not  in b", "a in b")),
        ("a is b", ("comparison", "a is b", "a is not b")),
        ("a <= b < c", ("comparison", "b < c", "b <= c")),
        ("a and (b) and c", ("boolean", "a and (b) and c", "a or (b) or c")),
        ("x = not (a or b)", ("boolean", "not (a or b)", "(a or b)")),
        ("x = (a + b) * (c)", ("arithmetic", "a + b) * (c", "a + b) / (c")),
        ("x -= 2", ("arithmetic", "x -= 2", "x += 2")),
        ("x = 2", ("constant", "2", "3")),
        ("x = True", ("constant", "True", "False")),
        ("f(x=None)", ("constant", "None", "True")),
        ("é(1)\n", ("statement", "é(1)", "pass")),
        ("async def f():\n    await g()", ("statement", "await g()", "pass")),
        ("a.b = c", ("statement", "a.b = c", "pass")),
        ("del a[b]", ("statement", "del a[b]", "pass")),
        ("def f():\n    return a", ("statement", "return a", "return None")),
        ("if a:\n    b", ("condition", "a", "True")),
        ("if a:\n    b", ("condition", "a", "False")),
        ("while a:\n    b", ("condition", "a", "False")),
        ("[a for a in b if c]", ("condition", "c", "False")),
        ("try:\n    a\nexcept E:\n    b\n    c", ("handler", "b\n    c", "pass")),
        ("try:\n    a\nfinally:\n    b", ("release", "b", "pass")),
        (
            "with a(\n    b\n) as c:\n    d",
            ("release", "with a(\n    b\n) as c", "if [c := (a(\n    b\n)).__enter__()]"),
        ),
        ("for a in b:\n    break", ("break", "break", "continue")),
    ],
)
def test_each_kind_of_fault_is_planted(code, change):
    assert change in changes(code)


@pytest.mark.parametrize(
    "code",
    [
        "logger.info(1)",
        "_log.warning('x', 1)",
        "raise_ = f'{1 + 2}'",
        "x = 'text'",
        "def f(x: Callable[[], None]) -> None:\n    'Text.'",
        "x: Callable[[], None]",
        "Made = dict[str, None]",
        "def f(a, *, timeout=1, seconds_left=None):\n    x",
        "WAIT_SECONDS = 3",
        "x = f(timeout=2)",
        "x = time.sleep(1)",
        "if TYPE_CHECKING:\n    x = 1",
        "def __repr__(self):\n    return 1 + 2",
        "__all__ = [1]",
        "@dataclass(frozen=True)\nclass A:\n    x",
        "assert a == b",
    ],
)
def test_texts_logs_annotations_and_time_limits_are_left_alone(code):
    assert changes(code) == set()


@pytest.mark.slow
def test_what_is_planted_is_python_and_another_program():
    every = drawn(ROOT, TARGETS, 1_000_000, seed=1)
    assert len(every) > 5000
    assert len({mutant.key for mutant in every}) == len(every)
    for mutant in random.sample(every, 100):
        source = (ROOT / mutant.file).read_bytes()
        planted_in = mutant.apply(source)
        assert ast.dump(ast.parse(planted_in)) != ast.dump(ast.parse(source)), mutant


@pytest.mark.slow
def test_a_seed_draws_the_same_and_a_longer_draw_keeps_them():
    files = ["agentgym_gym/_http"]
    assert drawn(ROOT, files, 20, seed=7) == drawn(ROOT, files, 30, seed=7)[:20]
    assert drawn(ROOT, files, 20, seed=7) != drawn(ROOT, files, 20, seed=8)


def test_most_of_a_draw_stays_when_code_above_it_changes(tmp_path):
    code = (ROOT / "agentgym_gym/_http/limits.py").read_bytes()
    (tmp_path / "a.py").write_bytes(code)
    before = [mutant.key for mutant in drawn(tmp_path, ["a.py"], 20, seed=1)]
    (tmp_path / "a.py").write_bytes(b"def unrelated():\n    return 5\n\n" + code)
    after = [mutant.key for mutant in drawn(tmp_path, ["a.py"], 20, seed=1)]
    assert len(set(before) & set(after)) >= 18


def test_results_are_read_again_and_what_no_test_noticed_can_be_tried_again(tmp_path):
    first, second = mutants_of("module.py", b"x = a < 1\n")[:2]
    results = Results(tmp_path / "1.jsonl")
    results.add(first, Outcome("limited"), 60, 1.0)
    results.add(first, Outcome("caught", "tests/test_a.py::test_b"), 400, 1.0)
    results.add(second, Outcome("survived"), 3, 1.0)
    assert {key: row["verdict"] for key, row in Results(tmp_path / "1.jsonl").rows.items()} == {
        first.key: "caught",
        second.key: "survived",
    }
    assert list(Results(tmp_path / "1.jsonl", again=True).rows) == [first.key]


TESTS = {
    "test_module.py": """
        import time
        import module

        def test_passes():
            assert True

        def test_finds():
            assert module.double(2) == 4

        def test_waits():
            while module.double(3) != 6:
                time.sleep(.01)
    """,
    "module.py": "def double(x):\n    return x * 2\n",
}


@pytest.fixture
def tree(tmp_path):
    tree = tmp_path / "tree"
    tree.mkdir()
    for name, code in TESTS.items():
        (tree / name).write_text(textwrap.dedent(code), encoding="utf-8")
    (tree / "pytest.ini").write_text("[pytest]\n", encoding="utf-8")
    return tree


TRIAL = """
import sys
from pathlib import Path

sys.path.insert(0, sys.argv[1])
from mutants import trial

{before}
print(trial.run_tests(Path(sys.argv[2]), dict.fromkeys(sys.argv[3:], 0.01)))
"""
GARBAGE = """
import gc, os, warnings
this = os.getpid()

class Garbage:
    def __init__(self):
        self.itself = self

    def __del__(self):
        if os.getpid() != this:
            warnings.warn("not closed", ResourceWarning, stacklevel=2)

gc.disable()
Garbage()
"""


def tried(tree, *names, before=""):
    """Run tests as `make mutants` does: in a copy of a process without threads, which that of a test has."""
    tests = [f"test_module.py::test_{name}" for name in names]
    run = forked.run(TRIAL.format(before=before), Path(__file__).parents[1], tree, *tests)
    assert run.returncode == 0, run.stderr
    return run.stdout.strip()


@pytest.fixture
def halved(tree):
    """The mutant that halves instead of doubling."""
    (mutant,) = (
        each for each in mutants_of("module.py", (tree / "module.py").read_bytes()) if each.after == "x / 2"
    )
    return mutant


@pytest.mark.slow
def test_a_mutant_is_caught_by_the_test_that_fails_and_is_taken_out_again(tree, halved):
    with planted(halved, tree):
        assert tried(tree, "passes", "finds") == str(Outcome("caught", "test_module.py::test_finds"))
    assert tried(tree, "passes", "finds") == str(Outcome("survived"))


@pytest.mark.slow
def test_garbage_of_the_process_fails_no_test(tree):
    assert tried(tree, "finds", before=GARBAGE) == str(Outcome("survived"))


@pytest.mark.slow
def test_a_mutant_under_which_a_test_hangs_is_caught(tree, halved):
    with planted(halved, tree):
        assert tried(tree, "waits", before="trial.TEST_S = 0.2") == str(
            Outcome("timeout", "test_module.py::test_waits")
        )


@pytest.mark.slow
@needs_git
def test_the_copy_follows_the_repository(tmp_path):
    copy_tree(ROOT, tmp_path)
    file = tmp_path / "agentgym_gym/vector.py"
    assert file.read_bytes() == (ROOT / "agentgym_gym/vector.py").read_bytes()
    (tmp_path / "agentgym_gym/gone.py").write_text("", encoding="utf-8")
    file.write_text("changed", encoding="utf-8")
    copy_tree(ROOT, tmp_path)
    assert file.read_bytes() == (ROOT / "agentgym_gym/vector.py").read_bytes()
    assert not (tmp_path / "agentgym_gym/gone.py").exists()


def test_tests_with_the_module_s_names_are_nearest():
    file = "agentgym_gym/_leasing/slots.py"
    assert nearness("tests/_leasing/test_slots.py::test_a", file) == 2
    assert nearness("tests/_leasing/test_pool.py::test_slots", file) == 1
    assert nearness("tests/test_env.py::test_slots", file) == 0


def test_the_interval_is_wilson_s():
    assert wilson(8, 10) == pytest.approx((0.490162, 0.943318), abs=1e-5)
    assert wilson(0, 10)[0] == pytest.approx(0)
