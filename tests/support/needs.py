"""Programs, packages and files that tests need, each with one reason to skip and the command that brings it.

The marker ``needs("chromium")`` skips a test without Chromium; ``may_use("chromium")`` is for a test that
runs with and without it. No other test finds the programs of the library's servers, even if installed. A test
that uses one without its marker therefore fails on every machine, not only where the program is missing.
"""

from __future__ import annotations

import contextlib
import functools
import importlib.util
import os
import re
import shutil
import subprocess
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from agentgym_gym.local_servers import server_kind
from agentgym_servers._browser.executable import VARIABLE, find_chromium
from agentgym_servers.sciworld._java import find_java

__all__ = [
    "NEEDS",
    "OTHER_PROGRAMS",
    "RECORDINGS",
    "Need",
    "mark_by_fixtures",
    "names_in",
    "needs_of_server",
    "path_of",
    "programs_for",
    "reason",
    "skip_without",
    "table_of_skips",
    "with_needs",
]

RECORDINGS = Path(os.environ.get("AGENTGYM_WIRE") or Path(__file__).resolve().parents[3] / "shared" / "wire")
"""The folder with exchanges recorded from AgentGym's own servers, which are not part of this repository."""

OTHER_PROGRAMS = {"miniwob": "chromium", "sciworld": "java", "webarena": "chromium"}
"""The servers that start another program."""

_NOWHERE = "/nowhere"


@dataclass(frozen=True)
class Need:
    """A program, a package or a folder.

    Attributes:
        name: Its name in messages.
        remedy: The command that brings it.
        find: Returns its path, or a false value.
        hidden_by: The environment variable that keeps the library from finding it.
    """

    name: str
    remedy: str
    find: Callable[[], object]
    hidden_by: str | None = None


def _which(program: str) -> str | None:
    """Return the path of a program, also from ``sbin`` next to a ``bin`` on the PATH, as Debian has nginx."""
    folders = [Path(folder) for folder in os.get_exec_path()]
    return shutil.which(
        program, path=os.pathsep.join(map(str, [*folders, *(each.with_name("sbin") for each in folders)]))
    )


def _find_container_engine() -> str | None:
    engine = _which("docker") or _which("podman")
    if engine is None or subprocess.run([engine, "info"], capture_output=True, check=False).returncode:
        return None
    return engine


def _find_agentgym() -> bool:
    return Path(os.environ.get("AGENTGYM") or _NOWHERE, "agentenv", "agentenv").is_dir()


def _find_webarena() -> bool:
    return Path(os.environ.get("WEBARENA") or _NOWHERE, "evaluation_harness").is_dir()


def _find_punkt() -> object:
    if importlib.util.find_spec("nltk") is None:
        return None
    from nltk import data

    with contextlib.suppress(LookupError):
        return data.find("tokenizers/punkt_tab/english")
    return None


_DEV = "pip install -e '.[dev]'"
_PACKAGES = {
    _DEV: "basedpyright fastapi furo gymnasium h2 httpx minigrid miniwob myst_parser nltk numpy playwright "
    "proxy psutil py4j pyarrow requests rich scienceworld sphinx sphinx_copybutton tomli tomllib typer "
    "uvicorn yaml",
    f"{_DEV} with Python 3.11 or newer": "check_jsonschema httpx2 ipykernel matplotlib nbclient openai",
    "make verl": "inspect_ai jinja2 ray tokenizers torch transformers verl",
    "make libraries": "gem reasoning_gym textarena textworld textworld_express",
    "nox -s engine-parsers": "sglang vllm",
}

NEEDS: Mapping[str, Need] = {
    "chromium": Need("Chromium", "apt-get install chromium", find_chromium, VARIABLE),
    "java": Need("Java", "apt-get install default-jre-headless", find_java, "JAVA_HOME"),
    "git": Need("git", "apt-get install git", functools.partial(_which, "git")),
    "nginx": Need("nginx", "apt-get install nginx-light", functools.partial(_which, "nginx")),
    "systemd-analyze": Need(
        "systemd-analyze", "apt-get install systemd", functools.partial(_which, "systemd-analyze")
    ),
    "engine": Need("a container engine that runs", "apt-get install podman", _find_container_engine),
    "recordings": Need("AgentGym's recordings", "AGENTGYM_WIRE=FOLDER make test", RECORDINGS.is_dir),
    "agentgym": Need("a checkout of AgentGym", "make agentgym AGENTGYM=../AgentGym", _find_agentgym),
    "webarena": Need("a checkout of WebArena", "make webarena WEBARENA=../webarena", _find_webarena),
    "punkt": Need("nltk's English model", "python -m nltk.downloader punkt_tab", _find_punkt),
    **{
        module: Need(f"the package {module}", remedy, functools.partial(importlib.util.find_spec, module))
        for remedy, modules in _PACKAGES.items()
        for module in modules.split()
    },
}
"""What a test can need, by the name in its marker; a package has its module's name."""

_FIXTURES: Mapping[str, tuple[str, ...]] = {
    "browser": ("playwright", "chromium"),
    "nginx": ("nginx",),
    "passing_host": ("nginx",),
    "proxy": ("proxy",),
    "recordings": ("recordings",),
    "replicas": ("nginx",),
}

_HIDING = {need.hidden_by: os.environ.get(need.hidden_by) for need in NEEDS.values() if need.hidden_by}


@functools.cache
def path_of(name: str) -> Any:
    """Return the path of a program, or other evidence of a package or folder; None without it."""
    with programs_for(name):
        return NEEDS[name].find() or None


def reason(name: str) -> str:
    """Return why a test is skipped without a program, or without a package or one of its modules."""
    need = NEEDS[name.partition(".")[0]]
    return f"needs {need.name}: {need.remedy}"


def skip_without(*names: str) -> None:
    """Skip the running test, or the module that is being imported, unless all are there."""
    for name in names:
        if path_of(name) is None:
            pytest.skip(reason(name), allow_module_level=True)


@functools.cache
def needs_of_server(name: str) -> tuple[str, ...]:
    """Return the packages and the program that a local server needs in addition to every server's."""
    program = OTHER_PROGRAMS.get(name.lower())
    return (*server_kind(name).needs, program) if program else ()


def with_needs(environments: Iterable[Any], *, slow: bool = False) -> list[Any]:
    """Return environments, or names, as parameters with the needs of their local servers.

    Args:
        environments: The environments or names.
        slow: Whether those whose server starts another program, which takes seconds, are slow.
    """
    parameters = []
    for each in environments:
        name = getattr(each, "name", each)
        names = needs_of_server(name)
        marks = [pytest.mark.needs(*names), *([pytest.mark.slow] if slow else [])] if names else []
        parameters.append(pytest.param(each, marks=marks))
    return parameters


def mark_by_fixtures(items: Iterable[pytest.Item]) -> None:
    """Give tests the needs of the fixtures that they request.

    Raises:
        pytest.UsageError: A marker names a need that is not in the table.
    """
    for item in items:
        for fixture in _FIXTURES.keys() & set(getattr(item, "fixturenames", ())):
            item.add_marker(pytest.mark.needs(*_FIXTURES[fixture]))
        for name in names_in(item, "needs", "may_use"):
            if name not in NEEDS:
                raise pytest.UsageError(
                    f"{item.name} names the need {name!r}: add it to {Path(__file__).name}"
                )


def names_in(item: pytest.Item, *markers: str) -> list[str]:
    """Return the names in a test's markers of these kinds."""
    return [name for marker in markers for mark in item.iter_markers(marker) for name in mark.args]


@contextlib.contextmanager
def programs_for(*names: str) -> Iterator[None]:
    """Let this process and its children find these programs of the library's servers, and no other."""
    before = {variable: os.environ.get(variable) for variable in _HIDING}
    shown = {NEEDS[name].hidden_by for name in names}
    _set_variables({name: value if name in shown else _NOWHERE for name, value in _HIDING.items()})
    try:
        yield
    finally:
        _set_variables(before)


def _set_variables(variables: Mapping[str, str | None]) -> None:
    for name, value in variables.items():
        os.environ.pop(name, None)
        if value is not None:
            os.environ[name] = value


def table_of_skips(reports: Iterable[pytest.TestReport | pytest.CollectReport]) -> list[str]:
    """Return the lines of a table: what was missing, how many tests that skipped, and what brings it.

    Args:
        reports: The reports of skipped tests, and of files that were skipped as a whole.
    """
    counts: dict[str, Counter[str]] = {}
    for report in reports:
        why = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
        kind = "file" if isinstance(report, pytest.CollectReport) else "test"
        counts.setdefault(why.removeprefix("Skipped: "), Counter())[kind] += 1
    rows = []
    for why, count in counts.items():
        need = re.fullmatch(r"needs ([^:]+): (.+)", why)
        number = " and ".join(f"{n} {kind}{'s' * (n > 1)}" for kind, n in sorted(count.items(), reverse=True))
        rows.append((*need.groups()[:1], number, need[2]) if need else ("", number, why))
    rows.sort(key=lambda row: (not row[0], row))
    rows.insert(0, ("missing", "skipped", "what brings it, or the reason"))
    widths = [max(len(row[column]) for row in rows) for column in range(2)]
    return [f"{name:{widths[0]}}  {number:{widths[1]}}  {remedy}" for name, number, remedy in rows]
