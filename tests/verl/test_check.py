"""`agentgym verl check` beside the verl that is installed: each mistake of the docs, and nothing else."""

from __future__ import annotations

import importlib.util
import json
import re
import shlex
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import pytest

import command_line
import inside_bridge
import needs
import programs
from check_mistakes import MISTAKES, MORE_MISTAKES, config, external, loop, make_folder

pytest.importorskip("verl", reason=needs.reason("verl"))

from verl_bridge.recipes import VERSIONS, Finding
from verl_run import compose, compose_all

MINOR = ".".join(metadata.version("verl").split(".")[:2])
pytestmark = pytest.mark.skipif(MINOR not in VERSIONS, reason="recipes are not written for this version")

OF_VERSION = [each for each in (*MISTAKES, *MORE_MISTAKES) if each.version in {"", MINOR}]
HERE = [each for each in OF_VERSION if each.needs_verl]
# The other checks do not depend on verl; tests/cli/test_verl_check.py has them find all mistakes without it.
WITH_VERL = {"sizes", "trainer", "credit", "groups", "model", "import"}
ANYWHERE = [each for each in OF_VERSION if each not in HERE and (each.with_verl or each.check in WITH_VERL)]
MODULE = """
from verl.trainer.ppo.core_algos import register_adv_est

@register_adv_est("own_estimator")
def compute(*args, **kwargs):
    raise NotImplementedError
"""


def findings_of(folder):
    """Return the findings of `agentgym verl check`."""
    ended = command_line.run("verl", "check", folder, "--json")
    return [Finding(**finding) for finding in json.loads(ended.stdout)["findings"]]


@pytest.fixture(scope="module")
def composed(request, tmp_path_factory, textcraft_url):
    """What verl makes of a folder without a mistake, with each of HERE, and with each other selected one."""
    place = tmp_path_factory.mktemp("mistakes")
    folders = {"": make_folder(place / "right", textcraft_url, MINOR)}
    tests = (getattr(item, "callspec", None) for item in request.session.items if item.path == request.path)
    selected = [test.params.get("mistake") for test in tests if test]
    for number, mistake in enumerate([*HERE, *(each for each in ANYWHERE if each in selected)]):
        folder = folders[mistake.text] = place / str(number)
        make_folder(folder, textcraft_url, MINOR, interaction=mistake.interaction)
        mistake.make_in(folder)
    answers = compose_all(folders)
    for text, (_, answer) in answers.items():
        if "triner" not in text:
            answer["external"] = {}  # of another folder in this process
    return answers


@pytest.fixture
def find(monkeypatch, composed):
    """Returns the findings about the folder of a mistake, with what the one process made of it."""

    def check_folder(text):
        folder, answer = composed[text]
        inside_bridge.take_composed(monkeypatch, {folder: answer})
        return findings_of(folder)

    return check_folder


@pytest.mark.parametrize(
    "mistake",
    [*HERE, *(pytest.param(each, marks=pytest.mark.slow) for each in ANYWHERE)],
    ids=lambda mistake: mistake.text,
)
def test_a_mistake_is_found(find, mistake):
    mistake.beside_verl().assert_found(find(mistake.text))


def test_a_separate_process_composes_the_settings(tmp_path, textcraft_url, monkeypatch):
    """As everywhere else, it imports verl."""
    inside_bridge.compose_by(monkeypatch, subprocess.run)
    folder = make_folder(tmp_path / "run", textcraft_url, MINOR)
    HERE[0].make_in(folder)
    HERE[0].beside_verl().assert_found(findings_of(folder))


def test_nothing_is_wrong_without_a_mistake(find):
    findings = find("")
    assert not [each for each in findings if each.status in {"problem", "warning"}]
    assert [each.status for each in findings if each.check == "values"] == ["ok"]


def test_a_wrong_value_is_named_with_all_that_is_allowed(composed):
    _, answer = composed["`adv_estimator: gprpo`"]
    (wrong,) = answer["values"]["wrong"]
    assert (wrong["key"], wrong["value"], wrong["used"]) == ("algorithm.adv_estimator", "gprpo", True)
    assert {"gae", "grpo", "rloo", "remax", "reinforce_plus_plus"} <= set(wrong["allowed"])


def test_no_choice_is_left_unchecked(composed):
    assert [text for text, (_, answer) in composed.items() if answer["values"].get("unchecked")] == []


def test_the_accepted_names_equal_verls(tmp_path, textcraft_url):
    """Each name of the table that verl's own functions and registries accept, and no other."""
    folder = make_folder(tmp_path, textcraft_url, MINOR)
    wrong = {
        "algorithm.use_kl_in_reward": True,
        "algorithm.kl_penalty": "k4",
        "algorithm.kl_ctrl.type": "adaptiv",
        "actor_rollout_ref.actor.policy_loss.loss_mode": "x",
        "reward.reward_manager.name": "naiv",
        "actor_rollout_ref.actor.fsdp_config.model_dtype": "fp23",
    }
    config(wrong)(folder)
    answer = compose(folder)[folder]
    found = {each["key"]: each["allowed"] for each in answer["values"]["wrong"]}
    assert set(found) == set(wrong) - {"algorithm.use_kl_in_reward"}
    core = importlib.import_module("verl.trainer.ppo.core_algos")
    assert found["actor_rollout_ref.actor.policy_loss.loss_mode"] == sorted(core.POLICY_LOSS_REGISTRY)
    assert found["algorithm.kl_ctrl.type"] == ["adaptive", "fixed"]
    assert {"kl", "k1", "abs", "mse", "k2", "low_var_kl", "k3"} <= set(found["algorithm.kl_penalty"])
    assert "naive" in found["reward.reward_manager.name"]


def test_an_estimator_of_a_module_in_the_script_is_known(tmp_path, textcraft_url):
    (tmp_path / "own_estimators.py").write_text(MODULE)
    folder = make_folder(tmp_path / "run", textcraft_url, MINOR)
    path = f"{tmp_path}:{programs.environment()['PYTHONPATH']}"
    estimator = ["algorithm.adv_estimator=own_estimator"]
    before = compose(folder, overrides=estimator, PYTHONPATH=path)[folder]
    assert [each["value"] for each in before["values"]["wrong"]] == ["own_estimator"]
    external = {"VERL_USE_EXTERNAL_MODULES": "own_estimators"}
    named = compose(folder, overrides=estimator, PYTHONPATH=path, **external)[folder]
    script = folder / "run.sh"
    script.write_text(
        script.read_text().replace('="verl_bridge.trainer', '="own_estimators,verl_bridge.trainer')
    )
    scripted = compose(folder, overrides=estimator, PYTHONPATH=path)[folder]
    for answer in (named, scripted):
        assert (answer["external"], answer["values"]["wrong"]) == ({}, [])


def test_a_package_of_a_logger_is_missing(tmp_path, textcraft_url):
    folder = make_folder(tmp_path, textcraft_url, MINOR)
    answer = compose(folder, overrides=["trainer.logger=[console,swanlab]"])[folder]
    assert answer["values"]["wrong"] == []
    assert [each["package"] for each in answer["skipped"]] == ["swanlab"]


LOOPS = """
from verl.experimental.agent_loop.agent_loop import AgentLoopBase
from verl_bridge.agent_loop import GymAgentLoop

class Ours(GymAgentLoop):
    def __init__(self, *args, colour="red", **kwargs):
        super().__init__(*args, **kwargs)

class Theirs(AgentLoopBase):
    def __init__(self, *args, temperature=1.0, **kwargs):
        super().__init__(*args, **kwargs)
"""


def test_arguments_of_other_loops(tmp_path, textcraft_url):
    (tmp_path / "own_loops.py").write_text(LOOPS)
    path = f"{tmp_path}:{programs.environment()['PYTHONPATH']}"
    folder = make_folder(tmp_path / "run", textcraft_url, MINOR)
    (folder / "agent_loop.yaml").write_text(
        "- {name: gym_env, _target_: own_loops.Ours, color: blue, max_turns: 0}\n"
        "- {name: other, _target_: own_loops.Theirs, temperatur: 2}\n"
    )
    answer = compose(folder, PYTHONPATH=path)[folder]
    assert answer["loops"] == [
        "Ours has no argument color; did you mean colour?",
        "max_turns=0 should be an integer from 1, or null: write max_turns: null for no limit",
        "Theirs has no argument temperatur; did you mean temperature?",
    ]


@pytest.mark.slow
def test_the_recipe_of_the_cpu_page_passes(tmp_path, textcraft_url):
    """As the page writes and checks it, with a server that is running and a model of a few texts."""
    page = (Path(__file__).resolve().parents[2] / "docs/training/cpu.md").read_text("utf-8")
    (block,) = (each for each in page.split("```console\n") if "verl check runs/tiny" in each)
    block = block.split("```")[0].replace("\\\n", " ").replace("http://127.0.0.1:36001", textcraft_url)
    lines = [line for line in block.splitlines() if "agentgym serve" not in line and "run.sh" not in line]
    assert len(lines) == 3
    script = "\n".join(lines).replace("agentgym verl", "python -m agentgym_gym verl")
    script = script.replace("python ", f"{shlex.quote(sys.executable)} ")
    python = re.search(r"```python\n(.*?)```", page, re.DOTALL)
    assert python is not None
    script = f"{shlex.quote(sys.executable)} -c {shlex.quote(python[1])}\n{script}"
    ended = subprocess.run(
        ["bash", "-euc", script],  # noqa: S607
        capture_output=True,
        text=True,
        check=False,
        timeout=400,
        cwd=tmp_path,
        env=programs.environment() | {"AGENTGYM_TEXTCRAFT_URL": textcraft_url},
    )
    assert ended.returncode == 0, ended.stdout[-3_000:] + ended.stderr[-2_000:]
    assert f"verl {metadata.version('verl')} composes them and has each one" in ended.stdout
    assert "ok       values:" in ended.stdout
    assert "problem" not in ended.stdout


# What is not installed here

BLOCKER = """
import sys

class Blocker:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == {package!r}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)

sys.meta_path.insert(0, Blocker())
"""


@pytest.mark.parametrize(
    "package",
    ["torch", "hydra", *(pytest.param(each, marks=pytest.mark.slow) for each in ("ray", "tensordict"))],
)
def test_a_package_that_verl_needs_is_named(package, tmp_path, textcraft_url, monkeypatch):
    folder = make_folder(tmp_path / "run", textcraft_url, MINOR)
    (tmp_path / "sitecustomize.py").write_text(BLOCKER.format(package=package))
    monkeypatch.syspath_prepend(tmp_path)
    inside_bridge.compose_by(monkeypatch, subprocess.run)  # not a copy of a process that has imported it
    findings = findings_of(folder)
    assert not [each for each in findings if each.status == "problem"]
    (found,) = (each for each in findings if each.check == "settings")
    assert (found.status, found.text.startswith(f"{package} is not installed here")) == ("skipped", True)
    assert any(each.check == "environment" and each.status == "ok" for each in findings)
    assert "verl is not installed here" not in str(findings)


def test_a_module_that_needs_a_package_is_skipped(tmp_path, textcraft_url, monkeypatch):
    (tmp_path / "own_parts.py").write_text("import package_of_another_machine\n\nclass Loop:\n    pass\n")
    folder = make_folder(tmp_path / "run", textcraft_url, MINOR)
    external("own_parts,verl_bridge.trainer")(folder)
    config({"algorithm.adv_estimator": "own_estimator"})(folder)
    loop({"_target_": "own_parts.Loop"})(folder)
    path = f"{tmp_path}:{programs.environment()['PYTHONPATH']}"
    inside_bridge.take_composed(monkeypatch, compose(folder, PYTHONPATH=path))
    findings = findings_of(folder)
    assert [each for each in findings if each.status == "problem"] == []
    texts = [each.text for each in findings if each.status == "skipped"]
    assert sum("package_of_another_machine is not installed here" in text for text in texts) == 2
    assert any("own_parts may register it" in text for text in texts)


def test_a_failed_composition_is_not_a_missing_verl(tmp_path, textcraft_url, monkeypatch):
    folder = make_folder(tmp_path, textcraft_url, MINOR)
    config({"data.train_files": "${foldr}/data/train.parquet"})(folder)
    inside_bridge.take_composed(monkeypatch, compose(folder))
    findings = findings_of(folder)
    assert any(each.status == "problem" and "foldr" in each.text for each in findings)
    assert any(each.status == "skipped" and "could not be composed" in each.text for each in findings)
    assert "not installed here" not in " ".join(
        each.text for each in findings if each.check in {"settings", "values", "import"}
    )
