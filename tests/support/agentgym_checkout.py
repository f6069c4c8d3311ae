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

import needs

__all__ = ["import_or_skip"]


def import_or_skip(module: str) -> ModuleType:
    """Return a module of AgentGym's package ``agentenv``; skip the tests of the importing file without it."""
    needs.skip_without("agentgym", "torch", "transformers", "openai", "requests", "numpy")
    folder = Path(os.environ["AGENTGYM"], "agentenv").resolve()
    if str(folder) not in sys.path:
        sys.path.insert(0, str(folder))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the warnings of torch and transformers concern AgentGym only
        return importlib.import_module(module)
