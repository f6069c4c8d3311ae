"""What `verl check` reports where a package is not installed."""

from __future__ import annotations

import importlib.util

import pytest

from check_mistakes import make_folder
from verl_bridge.recipes import check
from verl_bridge.recipes._absent import absent_package
from verl_bridge.recipes._view import View


@pytest.mark.parametrize(
    ("result", "reason"),
    [
        ({"error": "InterpolationKeyError: foldr"}, "could not be composed"),
        ({"skipped": [{"check": "settings", "package": "ray", "text": "left out"}]}, "ray is not installed"),
    ],
)
def test_settings_that_are_not_composed_have_the_true_reason(
    tmp_path, textcraft_url, monkeypatch, result, reason
):
    nothing = {"config": None, "error": None, "skipped": []}
    monkeypatch.setattr(View, "_compose", lambda view: setattr(view, "result", nothing | result))
    monkeypatch.setattr("verl_bridge.recipes._view.importlib.util.find_spec", lambda _: True)
    monkeypatch.setattr("verl_bridge.recipes._check_tasks.play_first_turns", lambda *_: ([], []))
    findings, _ = check(make_folder(tmp_path, textcraft_url))
    skipped = {each.check: each.text for each in findings if each.status == "skipped"}
    assert reason in skipped["settings"]
    assert reason in skipped["import"]
    assert "verl is not installed here" not in str(findings)


@pytest.mark.parametrize(
    ("error", "package"),
    [
        (ModuleNotFoundError("No module named 'flash_attn'"), "flash_attn"),
        (ValueError("vllm version None not supported and SGLang also not Found"), "vllm"),
        (AssertionError("SGLang is not installed"), "sglang"),
        (ImportError("libcudart.so.12: cannot open shared object file: No such file"), "libcudart.so.12"),
        (ValueError("vllm needs a gpu_memory_utilization below 1"), None),
        (ModuleNotFoundError("No module named 'own.part'"), None),
        (ModuleNotFoundError("No module named 'json.decodr'"), None),
    ],
)
def test_an_error_is_of_a_package_that_is_not_installed(error, package):
    if package is not None and importlib.util.find_spec(package.partition(".")[0]) is not None:
        pytest.skip(f"{package} is installed here")
    assert absent_package(error, named="own.part.Loop") == package
