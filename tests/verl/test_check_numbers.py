"""The rules about numbers beside the verl that is installed: they compare the settings that it composes."""

from __future__ import annotations

from importlib import metadata

import pytest

import inside_bridge
import needs
from number_mistakes import NUMBER_MISTAKES

pytest.importorskip("verl", reason=needs.reason("verl"))

from sft_number_mistakes import SFT_MISTAKES
from verl_bridge.recipes import VERSIONS, check
from verl_run import compose_all

MISTAKES = (*NUMBER_MISTAKES, *SFT_MISTAKES)
MINOR = ".".join(metadata.version("verl").split(".")[:2])
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(MINOR not in VERSIONS, reason="recipes are not written for this version"),
]


@pytest.fixture(scope="module")
def composed(tmp_path_factory):
    """What verl makes of the folder of each mistake; one process composes all."""
    place = tmp_path_factory.mktemp("numbers")
    folders = {str(each): each.make(place / str(number), MINOR) for number, each in enumerate(MISTAKES)}
    return compose_all(folders)


@pytest.mark.parametrize("mistake", MISTAKES, ids=str)
def test_a_mistake_is_found_among_the_composed_settings(composed, monkeypatch, mistake):
    folder, answer = composed[str(mistake)]
    inside_bridge.take_composed(monkeypatch, {folder: answer})
    findings, _ = check(folder, timeout=1)
    found = [each for each in findings if each.check == "numbers"]
    assert any((each.status, mistake.finding in each.text) == (mistake.status, True) for each in found), found
    assert answer["unknown"] == []


def test_verl_itself_rejects_none_of_these_mistakes(composed):
    """Except for LoRA where vLLM is not installed."""
    rejected = {text: answer["refused"] for text, (_, answer) in composed.items() if answer["refused"]}
    assert all("vllm version" in error for error in rejected.values()), rejected
