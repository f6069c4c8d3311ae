"""The tiny model that the real engines serve."""

from __future__ import annotations

import json

import pytest


@pytest.fixture(scope="session")
def model(tmp_path_factory):
    """A model of random weights, which samples on request."""
    from verl_bridge.cpu.tiny import make_tiny

    folder = make_tiny(tmp_path_factory.mktemp("tiny"), ["Find the goal. You are at 5, 6. move up"] * 20)
    file = folder / "generation_config.json"
    # Else transformers answers greedily at any temperature.
    file.write_text(json.dumps({**json.loads(file.read_text()), "do_sample": True}))
    return folder
