"""No training row is a task for evaluation: each environment, preset, paper and algorithm."""

from __future__ import annotations

import json

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

import agentgym_gym
import needs
from agentgym_gym._cli import app
from verl_bridge.recipes import ALGORITHMS, LIKE, PRESETS, published_by

parquet = pytest.importorskip("pyarrow.parquet", reason=needs.reason("pyarrow"))

PAPERS = [(None, each.name) for each in agentgym_gym.environments()] + [
    (like, env_id) for like in LIKE for env_id in published_by(like)
]
CHOICES = [
    (env, like, preset, algorithm) for like, env in PAPERS for preset in PRESETS for algorithm in ALGORITHMS
]
LARGE = "searchqa"
"""Writing its 170,000 rows takes seconds."""


def written(folder, *options):
    """The numbers of the tasks that a command writes, by ``train`` and ``val``."""
    result = CliRunner().invoke(app, [*options, "--out", str(folder), "--force"])
    assert result.exit_code == 0, (options, result.output)
    found = {}
    for part in ("train", "val"):
        file = folder / "data" / f"{part}.parquet"
        rows = parquet.read_table(file if file.exists() else folder / f"{part}.parquet").to_pylist()
        options = (json.loads(row["extra_info"]["interaction_kwargs"]["reset_options"]) for row in rows)
        found[part] = [each["task_id"] for each in options]
    return found


def check(tmp_path, choice):
    env, like, preset, algorithm = choice
    paper = ["--like", like] if like else []
    command = ["verl", "init", "--env", env, *paper, "--preset", preset, "--algorithm", algorithm]
    tasks = written(tmp_path, *command)
    environment = agentgym_gym.find(env)
    train = set(environment.splits["train"])
    assert set(tasks["train"]) <= train
    assert not set(tasks["train"]) & set(tasks["val"])
    allowed = set(environment.splits.get("dev", train))
    assert set(tasks["val"]) <= allowed
    assert not environment.unwinnable.keys() & set(tasks["train"])


@settings(max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    choice=st.sampled_from([each for each in CHOICES if LARGE not in each[0].lower() or each[2] == "test"])
)
def test_any_recipe_trains_on_train(tmp_path, choice):
    check(tmp_path, choice)


@pytest.mark.exhaustive
@pytest.mark.parametrize("choice", CHOICES, ids=lambda choice: "-".join(map(str, choice)))
def test_every_recipe_trains_on_train(tmp_path, choice):
    check(tmp_path, choice)
