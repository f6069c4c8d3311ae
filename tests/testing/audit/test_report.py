"""The result of an audit in Python: text, page, notebook, and in tests."""

from __future__ import annotations

import ast
import importlib.metadata
import json
import os
import re
import subprocess
import sys
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import pytest

import agentgym_gym
import audit_envs_command
import forked
from agentgym_gym import testing
from agentgym_gym.errors import BadOption
from agentgym_gym.testing import PROPERTIES, AuditFailed, Defect, PropertyResult, audit
from audit_envs_command import MARKUP, BrokenDice, SeededDice
from doc_blocks import blocks_of


@pytest.fixture(scope="module")
def sound():
    return audit(SeededDice, only=["replay"], budget=5)


@pytest.fixture(scope="module")
def unsound():
    """An audit whose texts contain markup."""
    return audit("audit_envs_command:audits/Unseeded-v0", {"text": MARKUP}, only=["replay"], budget=5)


@pytest.fixture(scope="module")
def several(unsound):
    """The audit, with results of other properties as a check returns them."""
    defects = tuple(Defect(f"{name} {MARKUP}", known=known) for name, known in (("a", ""), ("b", MARKUP)))
    more = (
        PropertyResult("seeds", "warning", "failed", defects=defects, measured={"share": 0.123456}),
        PropertyResult("splits", "error", "skipped", f"no splits: {MARKUP}\nnone"),
        PropertyResult("speed", "warning", "passed", "left out: task 3", measured={"median": 1e-5}),
    )
    return replace(unsound, results=(*unsound.results, *more))


def test_check_passes_a_sound_environment(sound):
    sound.check()
    sound.check("warning", only=["replay"])
    assert sound.passed
    assert sound.text().splitlines()[0].split()[:2] == ["replay", "passed"]


def test_check_raises_an_assertion_error_with_the_defects(unsound):
    with pytest.raises(AssertionError) as raised:
        unsound.check()
    assert isinstance(raised.value, AuditFailed)
    assert "audits/Unseeded-v0 is not sound\n\n1. replay (error): played twice" in str(raised.value)
    assert "\nassert " in str(raised.value)


def test_check_counts_the_severity_and_the_properties_that_are_given(several):
    with pytest.raises(AuditFailed, match="replay") as raised:
        several.check()
    assert "seeds" not in str(raised.value)
    with pytest.raises(AuditFailed, match="seeds"):
        several.check("warning")
    replace(several, results=several.results[1:]).check(only=["replay"])
    with pytest.raises(BadOption, match="replai"):
        several.check(only=["replai"])


def test_an_audit_that_checked_nothing_fails():
    result = audit(BrokenDice, only=["replay"], budget=5)
    assert not result.checked
    with pytest.raises(AuditFailed, match="replay: no episode can be started: RuntimeError: no dice"):
        result.check()


def test_errors_come_first_and_documented_defects_last(several):
    headings = [line for line in several.text().splitlines() if line[:1].isdigit()]
    assert [heading.partition(":")[0] for heading in headings] == [
        "1. replay (error)",
        "2. seeds (warning)",
        "3. seeds (documented)",
    ]
    lines = {line.split()[0]: " ".join(line.split()[1:]) for line in several.text().splitlines()[:4]}
    assert lines["seeds"].startswith("warning 0.0 s 2 defects; 1 documented; share 0.1235")
    assert lines["splits"].startswith("skipped 0.0 s no splits: ")
    assert lines["splits"].endswith(" none")
    assert lines["speed"].endswith("left out: task 3")
    assert several.text().endswith(
        f"1 passed, 1 failed, 1 failed with a warning, 1 skipped, in {several.seconds:.0f} s."
    )


def test_the_results_are_json(several):
    found = json.loads(json.dumps(several.to_json()))
    assert [each["status"] for each in found["results"]] == ["failed", "failed", "skipped", "passed"]
    assert found["about"]["env_kwargs"] == {"text": MARKUP}


class Elements(HTMLParser):
    """The elements of a page and its text."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[str] = []
        self.text = ""
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += [name for name, _ in attrs]

    def handle_data(self, data: str) -> None:
        self.text += data


@pytest.mark.parametrize("view", ["page", "_repr_html_"])
def test_all_texts_of_html_are_escaped(several, view):
    html = getattr(several, view)()
    read = Elements(html)
    assert not {"script", "img", "link", "iframe"} & set(read.tags)
    assert not {"src", "href", "onclick", "onerror"} & set(read.attributes)
    assert not {"\x1b", "\u202e"} & set(html)
    assert "<script>alert(1)</script>" in read.text
    for result in several.results:
        assert result.name in read.text


def test_the_page_is_whole_and_allows_no_script(several):
    page = several.page()
    read = Elements(page)
    assert page.startswith("<!doctype html>")
    assert "default-src 'none'; style-src 'sha256-" in page.replace("&#x27;", "'")
    (program,) = (defect.program for result in several.results for defect in result.defects if defect.program)
    assert ast.parse(program)
    assert program.splitlines()[-1] in read.text
    assert PROPERTIES[0].claim in read.text


def test_the_names_are_loaded_when_they_are_used():
    program = """
        import sys
        import agentgym_gym.testing as testing
        print(sorted(name for name in sys.modules if "_audit" in name or name == "hypothesis"))
        print({"audit", "PROPERTIES"} <= set(dir(testing)), len(testing.PROPERTIES) > 0)
        print("hypothesis" in sys.modules)
    """
    assert forked.run(program).stdout == "[]\nTrue True\nFalse\n"
    with pytest.raises(AttributeError, match="no attribute 'audits'"):
        _ = testing.audits


def test_the_extra_of_an_audit_has_hypothesis():
    required = importlib.metadata.requires("agentgym-gym") or []
    assert any(each.startswith("hypothesis") and "testing" in each for each in required)


ROOT = Path(agentgym_gym.__file__).resolve().parents[1]
PAGE, PLAN = ROOT / "docs" / "audit.md", ROOT / "docs" / "plans" / "49.md"


@pytest.mark.slow
@pytest.mark.parametrize(("name", "failed"), [("Seeded", False), ("Unseeded", True)])
def test_the_tests_on_the_page_are_tests(tmp_path, name, failed):
    """Each of the two, with a smaller budget."""
    tests = [code for code in blocks_of(PAGE.read_text("utf-8"), "python") if "\ndef test_" in code]
    assert len(tests) == 2
    for number, code in enumerate(tests):
        quick = code.replace("my_module:my/Env-v0", f"audit_envs_command:audits/{name}-v0")
        quick = quick.replace("budget=60", 'budget=5, only=["replay"]')
        (tmp_path / f"test_{number}.py").write_text(quick, "utf-8")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--tb=line", str(tmp_path)]
    support = str(Path(audit_envs_command.__file__).parent)
    paths = os.pathsep.join([support, *filter(None, [os.environ.get("PYTHONPATH")])])
    ended = subprocess.run(
        command,
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": paths},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == int(failed), ended.stdout
    assert ("\n2 failed" in ended.stdout) is failed


def test_the_page_has_each_test_of_openenv_and_names_properties():
    rows = re.findall(r"^\| (\d+) [^|]+ \| ([^|]+) \|$", PAGE.read_text("utf-8"), re.MULTILINE)
    assert [int(number) for number, _ in rows] == list(range(1, 45))
    states = ("covered by `", "in part: ", "not applicable: ", "open")
    assert [text for _, text in rows if not text.startswith(states)] == []
    plan = re.findall(r"^\| `([\w-]+)` \| (?:error|warning) ", PLAN.read_text("utf-8"), re.MULTILINE)
    named = {name for _, text in rows for name in re.findall(r"(?<!\[)`([a-z][a-z-]+)`", text)}
    assert named - {*plan, *(each.name for each in PROPERTIES)} == set()
