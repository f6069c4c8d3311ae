"""Fixtures of the servers' tests."""

from __future__ import annotations

import gzip
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Recordings = Callable[[str], list[dict[str, Any]]]


@pytest.fixture(scope="session")
def recordings() -> Recordings:
    """Exchanges recorded from AgentGym's own servers, by file name.

    They are not part of this repository: they are looked for in the folder that AGENTGYM_WIRE names, else in
    ``shared/wire`` beside the checkout, and a test that wants them is skipped where they are absent.
    """
    beside = Path(__file__).resolve().parents[3] / "shared" / "wire"
    folder = Path(os.environ.get("AGENTGYM_WIRE") or beside)

    def read(name: str) -> list[dict[str, Any]]:
        file = folder / name
        if not file.is_file():
            pytest.skip(f"no recording {file}; AGENTGYM_WIRE can name the folder that holds it")
        with gzip.open(file, "rt") if file.suffix == ".gz" else file.open() as lines:
            return [json.loads(line) for line in lines]

    return read
