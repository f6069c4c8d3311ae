"""The agent of examples/pipeline that plays with a checkpoint."""

from __future__ import annotations

from pathlib import Path

import pytest

import needs
from agentgym_gym.errors import BadOption

pytest.importorskip("torch", reason=needs.reason("torch"))

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "pipeline"


@pytest.mark.parametrize("folder", ["", "no/such/folder"])
def test_a_folder_without_a_model_is_named(monkeypatch, folder):
    monkeypatch.syspath_prepend(EXAMPLE)
    from checkpoint import model

    monkeypatch.setenv("CHECKPOINT", folder)
    with pytest.raises(BadOption, match=f"CHECKPOINT='{folder}' has no config.json: set it to the folder"):
        model()
