"""What `check` finds in settings that are right, and where packages are not installed.

Mistakes are in `check_mistakes`.
"""

from __future__ import annotations

import importlib.util

import pytest

from checked import checked, write_settings, write_tasks
from verl_bridge.recipes import RlRecipe, check, write

TEXTCRAFT = "agentgym_gym:agentgym/TextCraft-v0"


# credit by turn


def credit(folder, algorithm, arguments):
    loop = {"env_id": "bridge/Count-v0", **arguments}
    write_settings(folder, loop, algorithm=algorithm)
    return [(finding.status, finding.text) for finding in checked(folder, "credit")]


@pytest.mark.parametrize("algorithm", [{}, {"adv_estimator": "grpo"}, {"adv_estimator": "own"}])
def test_without_credit_by_turn_there_is_no_finding(tmp_path, algorithm):
    assert credit(tmp_path, algorithm, {"turn_rewards": False}) == []


@pytest.mark.parametrize(
    ("estimator", "settings", "text"),
    [
        ("gym_gigpo", {}, "gym_gigpo compares turns of the same state"),
        ("gym_gigpo", {"gamma": 1, "gym_gigpo_omega": 0}, "gym_gigpo compares turns of the same state"),
        ("gym_gigpo", {"gym_gigpo_omega": None}, "gym_gigpo compares turns of the same state"),
        ("gae", {}, "gae gets each turn's reward"),
        ("reinforce_plus_plus", {}, "reinforce_plus_plus gets each turn's reward"),
    ],
)
def test_credit_by_turn_that_is_right(tmp_path, estimator, settings, text):
    rewards = {"turn_rewards": estimator != "gym_gigpo"}
    ((status, found),) = credit(tmp_path, {"adv_estimator": estimator, **settings}, rewards)
    assert (status, text in found) == ("ok", True)


# the model


def test_a_model_in_the_folder_is_found_from_anywhere(tmp_path):
    """As run.sh does, which changes to the folder."""
    folder = write_settings(tmp_path / "run", {"env_id": "bridge/Count-v0"})
    (folder / "model").mkdir()
    for name in ("tokenizer.json", "model.safetensors"):
        (folder / "model" / name).touch()
    (folder / "model/config.json").write_text('{"max_position_embeddings": 1000}')
    (found,) = checked(folder, "model", overrides=["actor_rollout_ref.model.path=model"])
    assert (found.status, "its context has 1000 tokens" in found.text) == ("problem", True)


# packages that are not installed


@pytest.mark.parametrize(
    ("hydra", "reason"),
    [
        pytest.param("raise RuntimeError('no such key')", "could not be composed", marks=pytest.mark.slow),
        ("import package_of_another_machine", "package_of_another_machine is not installed"),
    ],
)
def test_settings_that_are_not_composed_have_the_true_reason(tmp_path, monkeypatch, hydra, reason):
    """Beside a verl whose hydra cannot be imported."""
    modules = tmp_path / "modules"
    (modules / "verl").mkdir(parents=True)
    (modules / "verl/__init__.py").touch()
    (modules / "hydra.py").write_text(hydra)
    monkeypatch.syspath_prepend(modules)
    folder = tmp_path / "run"
    write(RlRecipe(TEXTCRAFT), folder)
    findings, _ = check(folder)
    skipped = {each.check: each.text for each in findings if each.status == "skipped"}
    assert reason in skipped["settings"]
    assert reason in skipped["import"]
    assert "verl is not installed here" not in str(findings)


@pytest.mark.parametrize(
    ("text", "package"),
    [
        ("No module named 'flash_attn'", "flash_attn"),
        ("vllm version None not supported and SGLang also not Found", "vllm"),
        ("SGLang is not installed", "sglang"),
        ("libcudart.so.12: cannot open shared object file: No such file", "libcudart.so.12"),
        ("vllm needs a gpu_memory_utilization below 1", None),
        ("No module named 'json.decodr'", None),
    ],
)
def test_an_error_is_of_a_package_that_is_not_installed(tmp_path, text, package):
    if package is not None and importlib.util.find_spec(package.partition(".")[0]) is not None:
        pytest.skip(f"{package} is installed here")
    folder = write_tasks(tmp_path, "nasty_envs:nasty/Fails-v0", env_kwargs={"text": text})
    (found,) = checked(folder, "environment")
    if package is None:
        assert (found.status, text in found.text) == ("problem", True)
    else:
        assert (found.status, found.text.split(" is not")[0]) == ("skipped", package)


def test_a_module_of_the_folder_s_own_that_cannot_be_imported_is_a_problem(tmp_path):
    """Its name may be wrong."""
    (found,) = checked(write_tasks(tmp_path, "own_nowhere.part:own/Env-v0"), "environment")
    assert (found.status, "own_nowhere" in found.text) == ("problem", True)
