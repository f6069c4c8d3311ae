"""Audits of the environments of `audit_envs_contract`, and runs of the programs that they print."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from agentgym_gym.testing import audit

REPAIRED = {"Blocks": "Awaited", "OverPromised": "Limited", "Serial": "Waits"}
REPAIRED |= dict.fromkeys(["NumbersOutside", "NumbersNaN", "NumbersLate"], "Numbers")


def id_of(name):
    return f"audit_envs_contract:contract/{name}-v0"


VARIABLES = {**os.environ, "PYTHONPATH": os.pathsep.join([str(Path(__file__).parent), *sys.path])}
"""The variables of programs, read before an audited environment may change them."""


def run_program(program):
    """Run a program of an audit as a user would; return its exit code and its errors."""
    done = subprocess.run(
        [sys.executable, "-c", program],
        env=VARIABLES,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    return done.returncode, done.stderr


def check_found(name, of_property, text, budget=6):
    """Check that an audit finds a defect, with a program that passes when it is repaired."""
    (result,) = audit(id_of(name), only=[of_property], budget=budget).results
    assert result.status == "failed", result
    defects = [defect for defect in result.defects if text in defect.text]
    assert defects, result.defects
    program = defects[0].program
    assert 0 < len(program.splitlines()) <= 10
    code, errors = run_program(program)
    assert code == 1
    assert "AssertionError" in errors
    code, errors = run_program(program.replace(id_of(name), id_of(REPAIRED.get(name, "Sound"))))
    assert code == 0, errors
