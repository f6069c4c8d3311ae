"""What `agentgym verl init` writes for each choice; `check` finds nothing wrong with it without verl."""

from __future__ import annotations

import functools
import subprocess

import pytest
import yaml

from checked import checked
from recipe_choices import CHOICES, GROUPED, TEXTCRAFT, WEBSHOP, versions
from verl_bridge.recipes import (
    ALGORITHMS,
    INTEGRATIONS,
    PRESETS,
    SFT_PRESETS,
    VERSIONS,
    RlRecipe,
    SftRecipe,
    write,
    write_sft,
)


def combinations(choices):
    """Return the newest version with each preset, and each other version with the preset train."""
    *older, newest = versions(choices)
    return [(newest, preset) for preset in PRESETS] + [(version, "train") for version in older]


def written():
    """Yield each choice in its combinations, of which one is quick."""
    for choices in CHOICES:
        first, *others = combinations(choices)
        yield pytest.param(choices, *first)
        marks = [] if choices == CHOICES[0] else [pytest.mark.slow]
        for each in others:
            yield pytest.param(choices, *each, marks=marks)


def read(file):
    return yaml.safe_load(file.read_text("utf-8"))


@functools.cache
def is_script(text):
    """Whether a shell can read a text; most folders have the same script."""
    return subprocess.run(["bash", "-n"], input=text.encode(), check=False).returncode == 0  # noqa: S607


@pytest.mark.parametrize(("choices", "version", "preset"), [*written()], ids=str)
def test_check_finds_nothing_in_folders_of_init(tmp_path, choices, version, preset):
    recipe = RlRecipe(verl=version, preset=preset, **{"env_id": TEXTCRAFT, **choices})
    write(recipe, tmp_path)
    findings = checked(tmp_path)
    wrong = {finding.check for finding in findings if finding.status in {"problem", "warning"}}
    assert wrong <= {"data"}, findings  # which is not written here
    trainer = [finding.status for finding in findings if finding.check == "trainer"]
    assert trainer == ["ok"] * ("trainer" in choices)
    assert is_script((tmp_path / "run.sh").read_text("utf-8"))


@pytest.mark.parametrize("integration", INTEGRATIONS)
@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_the_settings_are_of_the_algorithm_and_of_the_preset(tmp_path, algorithm, integration):
    choices = {"algorithm": algorithm, "integration": integration}
    if choices not in CHOICES:
        with pytest.raises(ValueError, match=f"(?i){algorithm}"):
            RlRecipe(WEBSHOP, verl=VERSIONS[0], **choices)
        return
    for version, preset in combinations(choices):
        write(RlRecipe(WEBSHOP, verl=version, preset=preset, **choices), tmp_path, force=True)
        config = read(tmp_path / "config.yaml")
        actor, rollout = config["actor_rollout_ref"]["actor"], config["actor_rollout_ref"]["rollout"]
        assert config["algorithm"]["adv_estimator"] == ALGORITHMS[algorithm]
        assert actor["optim"]["lr"] == (1e-6 if preset == "train" else 5e-7)
        alone = preset == "train" and algorithm not in GROUPED  # 256 episodes, each of another task
        assert config["data"]["train_batch_size"] == PRESETS[preset].batch * (8 if alone else 1)
        assert rollout["n"] == ({"train": 8, "test": 2, "full": 4}[preset] if algorithm in GROUPED else 1)
        (loop,) = read(tmp_path / "agent_loop.yaml")
        assert loop["name"] == "gym_env"
        if integration == "interaction":
            (entry,) = read(tmp_path / "interaction.yaml")["interaction"]
            loop = entry["config"]
            limits = rollout["multi_turn"]
            assert (limits["max_assistant_turns"], limits["max_user_turns"]) == (26, 25)
        else:
            assert not (tmp_path / "interaction.yaml").exists()
        assert (loop["max_turns"], loop["env_id"]) == (25, WEBSHOP)
        if algorithm == "gigpo":
            assert (config["algorithm"]["gamma"], config["algorithm"]["gym_gigpo_omega"]) == (0.95, 1.0)
        script = (tmp_path / "run.sh").read_text("utf-8")
        assert 'VERL_USE_EXTERNAL_MODULES="verl_bridge.trainer${VERL_USE_EXTERNAL_MODULES:+,' in script
        assert (tmp_path / "README.md").is_file()


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("preset", SFT_PRESETS)
def test_check_finds_nothing_in_folders_of_sft(tmp_path, preset, version):
    choices = {"offload": True} if version != VERSIONS[0] else {}
    write_sft(SftRecipe(verl=version, preset=preset, validation=True, max_length=20_000, **choices), tmp_path)
    findings = checked(tmp_path)
    assert {finding.check for finding in findings if finding.status in {"problem", "warning"}} <= {"data"}
    assert is_script((tmp_path / "run.sh").read_text("utf-8"))
