"""What `check` finds in the settings of a folder on a machine without verl."""

from __future__ import annotations

import importlib.util
import shutil
from pathlib import Path

import pytest

from check_mistakes import asynchronous_trainers, config, make_folder
from checked import checked, write_settings, write_tasks
from verl_bridge.recipes import RlRecipe, check, write

TEXTCRAFT = "agentgym_gym:agentgym/TextCraft-v0"


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """The folder of the mistakes without tasks, so that no environment is played; tests copy it."""
    folder = tmp_path_factory.mktemp("made") / "folder"
    make_folder(folder, "http://127.0.0.1:1")
    for file in (folder / "data").iterdir():
        file.unlink()
    return folder


@pytest.fixture
def without_data(made, tmp_path):
    return Path(shutil.copytree(made, tmp_path / "folder"))


@pytest.mark.parametrize(
    ("key", "value", "text", "advice"),
    [
        ("actor_rollout_ref.actor.ppo_epochs", "many", "an integer from 1", "to an integer from 1"),
        ("actor_rollout_ref.actor.ppo_epochs", [3], "an integer from 1", "ppo_epochs: 3"),
        ("data.train_batch_size", "many", "an integer from 1", "train_batch_size: 8, as agentgym verl init"),
        ("data.train_batch_size", "8", "an integer from 1", "train_batch_size: 8"),
        ("data.max_response_length", None, "an integer from 1", "max_response_length: 6144, as agentgym"),
        ("actor_rollout_ref.rollout.n", 0, "an integer from 1", "rollout.n: 2, as agentgym verl init"),
        ("trainer.nnodes", 0, "an integer from 1", "to an integer from 1"),
        ("trainer.save_freq", "never", "or -1 for never", "save_freq: -1, as agentgym verl init"),
        ("actor_rollout_ref.actor.optim.lr", "fast", "a number", "lr: 5.0e-07, as agentgym verl init"),
        ("actor_rollout_ref.actor.use_kl_loss", "true", "true or false", "use_kl_loss: true"),
        ("actor_rollout_ref.rollout.name", ["vllm"], "a text", 'name: "vllm"'),
        ("algorithm", 5, "a group of settings", "to a group of settings"),
    ],
)
def test_the_advice_for_a_wrong_type_fits_the_setting(without_data, key, value, text, advice):
    config({key: value})(without_data)
    found, *data = (each for each in checked(without_data) if each.status == "problem")
    assert found.text.startswith(f"{key}=")
    assert text in found.text
    assert advice in found.advice
    assert {each.check for each in data} == {"data"}


@pytest.mark.parametrize("mistake", [*asynchronous_trainers()], ids=lambda mistake: mistake.text)
def test_settings_that_contradict_the_trainer_are_found(without_data, mistake):
    mistake.make(without_data)
    (found,) = (each for each in checked(without_data, "trainer") if mistake.finding in each.text)
    assert found.status == mistake.status
    assert found.advice


# credit by turn


def credit(folder, algorithm, arguments, *, interaction=False):
    loop = {"env_id": "bridge/Count-v0", **arguments}
    write_settings(folder, loop, interaction=interaction, algorithm=algorithm)
    return [(finding.status, finding.text) for finding in checked(folder, "credit")]


@pytest.mark.parametrize("algorithm", [{}, {"adv_estimator": "grpo"}, {"adv_estimator": "own"}])
def test_without_credit_by_turn_there_is_no_finding(tmp_path, algorithm):
    assert credit(tmp_path, algorithm, {"turn_rewards": False}) == []


@pytest.mark.parametrize("settings", [{}, {"gamma": 1, "gym_gigpo_omega": 0}, {"gym_gigpo_omega": None}])
def test_gigpo_with_numbers_is_right(tmp_path, settings):
    ((status, text),) = credit(tmp_path, {"adv_estimator": "gym_gigpo", **settings}, {})
    assert status == "ok"
    assert "gym_gigpo compares turns of the same state" in text


@pytest.mark.parametrize("estimator", ["gae", "grpo"])
def test_interactions_pass_no_turn_rewards(tmp_path, estimator):
    ((status, text),) = credit(
        tmp_path, {"adv_estimator": estimator}, {"turn_rewards": True}, interaction=True
    )
    assert (status, "no turn_rewards" in text) == ("problem", True)


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
