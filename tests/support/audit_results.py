"""Audits one property of a small environment, and runs the program of its defect."""

from __future__ import annotations

from typing import TYPE_CHECKING

import audit_envs_replay as envs
from agentgym_gym.testing import audit
from audit_programs import run_program

if TYPE_CHECKING:
    from agentgym_gym.testing import PropertyResult

__all__ = ["check_defect", "result_of"]


def result_of(env: type, name: str) -> PropertyResult:
    """Return the result of one property."""
    (result,) = audit(env, only=[name], budget=5).results
    return result


def check_defect(name: str, env: type, text: str) -> None:
    """Check that a defect is found; its program fails with it, and passes in the sound environment."""
    result = result_of(env, name)
    assert result.status == "failed", result
    defect = result.defects[0]
    assert text in defect.text
    assert defect.advice
    assert len(defect.program.splitlines()) <= 10
    assert "AssertionError" in run_program(defect.program)[1]
    repaired = envs.SoundGrid if env is envs.LiveGrid else envs.Walk
    assert run_program(defect.program.replace(env.__name__, repaired.__name__))[1] == ""
