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
from check_mistakes import EXTERNAL, MISTAKES, config, loop, make_folder, replace

pytest.importorskip("verl", reason=needs.reason("verl"))

from verl_bridge.recipes import VERSIONS, Finding
from verl_run import compose

MINOR = ".".join(metadata.version("verl").split(".")[:2])
pytestmark = pytest.mark.skipif(MINOR not in VERSIONS, reason="recipes are not written for this version")

HERE = [each for each in MISTAKES if each.needs in {"verl", MINOR}]
ANYWHERE = [each for each in MISTAKES if not each.needs]
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


def compose_each(place, url, mistakes):
    """Return the folder of each mistake, and of none, with what verl makes of it."""
    folders = {"": make_folder(place / "right", url, MINOR)}
    for number, mistake in enumerate(mistakes):
        folders[mistake.text] = folder = make_folder(place / str(number), url, MINOR)
        mistake.make(folder)
    answers = compose(*folders.values())
    for folder, answer in answers.items():
        if "triner" not in (folder / "run.sh").read_text():
            answer["external"] = {}  # of another folder in this process
    return {text: (folder, answers[folder]) for text, folder in folders.items()}


@pytest.fixture(scope="module")
def results(tmp_path_factory, textcraft_url):
    """What verl makes of the folder of each mistake that is found with its help, and of one without."""
    return compose_each(tmp_path_factory.mktemp("mistakes"), textcraft_url, HERE)


@pytest.fixture(scope="module")
def others(tmp_path_factory, textcraft_url):
    """What verl makes of the folders of the other mistakes."""
    return compose_each(tmp_path_factory.mktemp("others"), textcraft_url, ANYWHERE)


@pytest.fixture
def find(monkeypatch):
    """Checks a folder with what the one process made of it."""

    def check_folder(folder, answer):
        inside_bridge.take_composed(monkeypatch, {folder: answer})
        return findings_of(folder)

    return check_folder


def hold_found(mistake, findings):
    found = [each for each in findings if mistake.finding in each.text]
    assert mistake.status in {each.status for each in found}, findings
    assert all(each.advice for each in found if each.status == mistake.status)


@pytest.mark.parametrize("mistake", HERE, ids=lambda each: each.text)
def test_a_mistake_is_found(results, find, mistake):
    hold_found(mistake, find(*results[mistake.text]))


@pytest.mark.slow  # tests/cli/test_verl_check.py has them without verl
@pytest.mark.parametrize("mistake", ANYWHERE, ids=lambda each: each.text)
def test_so_is_one_that_is_found_without_verl(others, find, mistake):
    hold_found(mistake, find(*others[mistake.text]))


def test_nothing_is_wrong_without_a_mistake(results, find):
    findings = find(*results[""])
    assert not [each for each in findings if each.status in {"problem", "warning"}]
    assert [each.status for each in findings if each.check == "values"] == ["ok"]


def test_a_wrong_value_is_named_with_all_that_is_allowed(results):
    _, answer = results["`adv_estimator: gprpo`"]
    (wrong,) = answer["values"]["wrong"]
    assert (wrong["key"], wrong["value"], wrong["used"]) == ("algorithm.adv_estimator", "gprpo", True)
    assert {"gae", "grpo", "rloo", "remax", "reinforce_plus_plus"} <= set(wrong["allowed"])


def test_no_choice_is_left_unchecked(results):
    assert {text: answer["values"].get("unchecked", []) for text, (_, answer) in results.items()} == {
        text: [] for text in results
    }


def test_the_accepted_names_are_those_of_verl(tmp_path, textcraft_url):
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

OPTIONS = {
    "engine vllm": ["--engine", "vllm"],
    "adapters with vllm": ["--engine", "vllm", "--lora", "16", "--offload"],
    "adapters": ["--lora", "16"],
    "critic": ["--algorithm", "ppo", "--engine", "vllm"],
    "leave one out": ["--algorithm", "rloo", "--rollout-correction", "--seed", "3"],
    "turns": ["--algorithm", "gigpo", "--preset", "full", "--engine", "vllm"],
    "no reference": ["--algorithm", "reinforce_plus_plus", "--kl-coef", "0", "--preset", "train"],
    "functions": ["--tools", "native", "--engine", "vllm"],
    "hidden thoughts": ["--thinking", "hide", "--model", "Qwen/Qwen3-4B"],
    "no thoughts": ["--thinking", "off", "--model", "Qwen/Qwen3-4B", "--turns", "5,10"],
    "paper": ["--like", "agentgym-rl", "--engine", "vllm"],
    "several": ["--env", "Maze", "--isolate", "Maze=thread"],
}
OF_VERSION = {
    "0.7": {"interaction": ["--integration", "interaction"]},
    "0.8": {"greedy baseline": ["--algorithm", "remax"]},
    "0.9": {
        "colocated": ["--trainer", "colocate_async", "--engine", "vllm", "--lora", "8"],
        "separate": ["--trainer", "separate_async", "--engine", "vllm"],
    },
}


def written(folder, *options):
    arguments = ("verl", "init", "--env", "TextCraft", "--verl", MINOR, *options)
    preset = [] if "--preset" in options else ["--preset", "test"]
    made = command_line.run(*arguments, *preset, "--out", folder)
    assert made.exit_code == 0, made.output
    return folder


def test_a_right_folder_has_no_problem_without_the_engine(tmp_path, textcraft_url, monkeypatch):
    """Whatever `init` writes: what needs the engine is skipped, with the engine's name."""
    absent = {name for name in ("vllm", "sglang", "cupy") if importlib.util.find_spec(name) is None}
    if not absent:
        pytest.skip("the engines are installed here")
    wanted = OPTIONS | OF_VERSION.get(MINOR, {})
    if MINOR == "0.7":
        wanted = {name: options for name, options in wanted.items() if name != "adapters"}
    folders = {name: written(tmp_path / name, *options) for name, options in wanted.items()}
    inside_bridge.take_composed(monkeypatch, compose(*folders.values()))
    monkeypatch.setenv("AGENTGYM_TEXTCRAFT_URL", textcraft_url)
    skipped = {}
    for name, folder in folders.items():
        findings = findings_of(folder)
        assert [each for each in findings if each.status == "problem"] == [], name
        assert "verl is not installed here" not in str(findings)
        assert any("composes them and has each one" in each.text for each in findings)
        skipped[name] = {
            each.text.split(" is not installed")[0]
            for each in findings
            if each.status == "skipped" and "is not installed here" in each.text
        }
    assert skipped["adapters with vllm"] == {"vllm"} & absent
    if MINOR == "0.9":
        assert skipped["separate"] == {"cupy"} & absent


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
    replace("run.sh", EXTERNAL, 'MODULES="own_parts,verl_bridge.trainer')(folder)
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


TYPES = {
    "actor_rollout_ref.actor.ppo_epochs": ("many", "1, verl's default"),
    "actor_rollout_ref.rollout.agent.num_workers": (0, "8, verl's default"),
    "actor_rollout_ref.actor.use_kl_loss": ("no", "false"),
    "actor_rollout_ref.rollout.temperature": ([0.7], "0.7"),
    "data.train_batch_size": ("large", "8, as agentgym verl init writes it"),
    "actor_rollout_ref.rollout.val_kwargs": (3, "to a group of settings"),
    "algorithm.adv_estimator": (["grpo"], '"grpo"'),
}


def test_a_value_of_another_type_is_named_with_one_that_fits(tmp_path, textcraft_url, monkeypatch):
    folders = {}
    for number, (key, (value, _)) in enumerate(TYPES.items()):
        folders[key] = make_folder(tmp_path / str(number), textcraft_url, MINOR)
        config({key: value})(folders[key])
    inside_bridge.take_composed(monkeypatch, compose(*folders.values()))
    for key, folder in folders.items():
        (wrong,) = (each for each in findings_of(folder) if each.status == "problem")
        assert wrong.text.startswith(f"{key}=")
        assert wrong.advice.endswith(TYPES[key][1])
