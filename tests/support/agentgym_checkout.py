"""AgentGym's own package ``agentenv``, imported from a checkout of AgentGym.

The checkout is not part of this repository: the variable ``AGENTGYM`` names it. ``make agentgym
AGENTGYM=../AgentGym`` installs what the package imports and runs the tests that use it.
"""

from __future__ import annotations

import importlib
import importlib.util
import os
import sys
import warnings
from pathlib import Path
from types import ModuleType

import pytest

__all__ = ["import_or_skip"]

_REQUIRED = ("torch", "transformers", "openai", "requests", "numpy")


def import_or_skip(module: str) -> ModuleType:
    """Return a module of AgentGym's package ``agentenv``; skip the tests of the importing file without it."""
    variable = os.environ.get("AGENTGYM", "")
    folder = Path(variable, "agentenv").resolve()
    if not variable or not (folder / "agentenv").is_dir():
        reason = f"AGENTGYM={variable!r} names no checkout of AgentGym: make agentgym AGENTGYM=../AgentGym"
        pytest.skip(reason, allow_module_level=True)
    for name in _REQUIRED:
        if importlib.util.find_spec(name) is None:
            pytest.skip(
                f"{name} is not installed: make agentgym AGENTGYM=../AgentGym", allow_module_level=True
            )
    if str(folder) not in sys.path:
        sys.path.insert(0, str(folder))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the warnings of torch and transformers concern AgentGym only
        return importlib.import_module(module)
