"""Ids of environments in recipes and rows: gymnasium's may contain colons."""

from __future__ import annotations

from pathlib import Path

import gymnasium
import pytest

from counting_env import Count, Instructed, opened
from verl_bridge.recipes import EnvChoice, Evaluation, RlRecipe, SftRecipe, own_prompt, seeded, write_sft


@pytest.fixture
def instructed(monkeypatch):
    """The name of an environment whose id has a colon."""
    spec = gymnasium.envs.registration.EnvSpec("game:Count-v0", lambda: Instructed(Count()))
    monkeypatch.setitem(gymnasium.registry, spec.id, spec)
    return f"counting_env:{spec.id}"


def test_a_row_of_an_id_with_a_colon(instructed):
    others = set(opened)  # that a test before this one is still closing
    prompt = own_prompt(instructed, {})
    assert prompt == Instructed.system_prompt
    (row,) = seeded(instructed, [3], prompt)
    assert (row["data_source"], row["prompt"]) == (
        "game:Count-v0",
        [{"role": "system", "content": Instructed.system_prompt}],
    )
    assert row["extra_info"]["interaction_kwargs"]["env_id"] == instructed
    assert opened <= others


def test_an_error_names_the_environment():
    for env_id, kwargs, reason in (
        ("counting_env:bridge/Count-v0", {"nonsense": 1}, "env_kwargs do not fit"),
        ("counting_env:bridge/Count-v0", {"faults": ["make"]}, "RuntimeError: broken at make"),
        ("no_such_module:game:Count-v0", {}, "cannot import 'no_such_module'"),
    ):
        bare = env_id.partition(":")[2]
        with pytest.raises(ValueError, match=f"cannot create {bare}: .*{reason}"):
            own_prompt(env_id, kwargs)


@pytest.mark.parametrize(
    ("env_id", "bare"),
    [
        ("my_package:game:Guess-v0", "game:Guess-v0"),
        ("my.package:my:games/Guess:easy-v0", "my:games/Guess:easy-v0"),
        ("my_package:my/Env-v0", "my/Env-v0"),
        ("my/Env-v0", "my/Env-v0"),
    ],
)
def test_a_recipe_takes_ids_with_colons(env_id, bare):
    assert EnvChoice(env_id).id == bare
    assert RlRecipe(env_id=env_id).env_id == env_id


@pytest.mark.parametrize("env_id", ["", "my env", "my_package:", "a/b/c", "$(x):Env-v0"])
def test_an_invalid_id_is_an_error(env_id):
    with pytest.raises(ValueError, match="is not the id of"):
        EnvChoice(env_id)


def test_published_settings_are_found_by_the_id_without_the_module():
    paper = RlRecipe("agentgym_gym:agentgym/WebShop-v0", like="gigpo").published
    assert paper is not None
    assert paper == RlRecipe("agentgym/WebShop-v0", like="gigpo").published
    with pytest.raises(ValueError, match="published no settings for game:Web"):
        RlRecipe("my_package:game:WebShop-v0", like="gigpo")


def test_the_folder_of_an_evaluation_has_no_colon(tmp_path):
    evaluations = [Evaluation("my_package:game:Guess-v0"), Evaluation("agentgym/Maze-v0")]
    write_sft(SftRecipe(evaluations=evaluations), Path(tmp_path))
    script = (tmp_path / "run.sh").read_text()
    assert "eval my_package:game:Guess-v0 " in script
    assert "--out eval/game_Guess-v0/" in script
    assert "--out eval/Maze-v0/" in script
