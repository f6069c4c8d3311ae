"""Runs what needs verl or inspect_ai in environments of its own: ``nox -s verl-0.9 inspect`` for some tests.

verl's versions cannot share an environment: 0.7.1 needs transformers 4 and numpy 1. Each takes some minutes
and 2 GB to make (more where torch comes with what GPUs need); ``nox -r`` uses it again. The pinned versions
are there for Python 3.11 and 3.12.
"""

from __future__ import annotations

import sys

import nox

TORCH = "torch==2.13.0"

nox.options.sessions = ["verl-0.9", "verl-0.8", "verl-0.7", "inspect"]


def _install(session: nox.Session, version: str) -> None:
    if not (3, 11) <= sys.version_info[:2] <= (3, 12):
        session.skip(
            f"the pins of verl {version} are for Python 3.11 and 3.12: start make with PYTHON=python3.12"
        )
    pins = f"constraints/verl-{version}.txt"
    # By itself and first: what is built against torch finds it, and one that is there already is kept.
    session.install(TORCH)
    session.install(
        "--constraint", pins, "--requirement", pins, "ray[default]", "--editable", ".[cli,data,servers]"
    )


def _test(session: nox.Session, version: str) -> None:
    _install(session, version)
    # A file at a time to each of two processes: some share a run of verl among their tests.
    session.run("pytest", "-n2", "--dist=loadfile", "--durations=15", "tests/verl", *session.posargs)


@nox.session(name="verl-0.9")
def verl_09(session: nox.Session) -> None:
    """Run the bridge's tests with the newest verl."""
    _test(session, "0.9")


@nox.session(name="verl-0.8")
def verl_08(session: nox.Session) -> None:
    """Run the bridge's tests with the verl between."""
    _test(session, "0.8")


@nox.session(name="verl-0.7")
def verl_07(session: nox.Session) -> None:
    """Run the bridge's tests with the oldest verl that is supported."""
    _test(session, "0.7")


@nox.session
def inspect(session: nox.Session) -> None:
    """Run the tests with inspect_ai, and with its viewer in Chromium where there is one."""
    if sys.version_info < (3, 11):
        session.skip("inspect_ai needs Python 3.11: start make with PYTHON=python3.12")
    pins = "constraints/inspect.txt"
    session.install("--constraint", pins, "--requirement", pins, "--editable", ".[cli,servers,inspect]")
    session.run("pytest", "-n2", "--dist=loadfile", "--durations=15", "tests/inspect", *session.posargs)


@nox.session(name="train-demo")
def train_demo(session: nox.Session) -> None:
    """Let a tiny model learn Maze: ``nox -s train-demo -- --seed 0``."""
    _install(session, "0.9")
    session.run("python", "examples/maze_training/train.py", *session.posargs)
