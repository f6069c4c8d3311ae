"""The audit finds each defect of resources, and none in a sound environment."""

from __future__ import annotations

import pytest

from agentgym_gym.testing import audit
from audit_programs import check_found, id_of

pytestmark = pytest.mark.slow  # they play for half a minute a file

PROPERTIES = ("leaks", "instances")

DEFECTS = [
    ("Remembers", "leaks", "bytes of memory, allocated in audit_envs_contract.py"),
    ("OpenFiles", "leaks", "file descriptors"),
    ("LeavesThread", "instances", "threads open"),
]


@pytest.mark.parametrize(("name", "of_property", "text"), DEFECTS)
def test_defect_is_found(name, of_property, text):
    check_found(name, of_property, text)


@pytest.mark.parametrize("name", ["Sound", "Awaited"])
def test_sound_environment_passes(name):
    result = audit(id_of(name), only=PROPERTIES, budget=8)
    assert not result.failed("warning"), result.failed("warning")
