"""Names of environments and models as parts of a run's name and of its folder; names of options."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path

__all__ = ["env_part", "model_part", "option_of"]

_NOT_IN_NAMES = re.compile(r"[^\w.-]")


def env_part(env_id: str) -> str:
    """Return an id without AgentGym's own namespace."""
    return _NOT_IN_NAMES.sub("_", env_id.removeprefix("agentgym/").replace("/", "--"))


def model_part(model: str) -> str:
    """Return the name of a model; a hash distinguishes folders of one name, whose paths may be long."""
    if not Path(model).is_absolute():
        return _NOT_IN_NAMES.sub("_", model.replace("/", "--"))
    digest = hashlib.sha256(model.encode()).hexdigest()[:6]
    return f"{_NOT_IN_NAMES.sub('_', Path(model).name)}-{digest}"


def option_of(field: str) -> str:
    """Return the option of ``agentgym verl`` for a field of a recipe."""
    return f"--{field.replace('_', '-')}"
