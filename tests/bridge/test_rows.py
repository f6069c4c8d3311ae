"""The task of a row of data."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest

from verl_bridge.tasks import EnvTask

COUNT = "counting_env:bridge/Count-v0"


def kwargs_row(**given):
    return {"extra_info": {"index": 0, "interaction_kwargs": {"name": "gym_env", **given}}}


def test_a_row_is_read_and_completed():
    row = kwargs_row(
        env_kwargs='{"goal": null, "a": 1}', reset_options={"task_id": np.int64(4), "b": None}, seed=3.0
    )
    task = EnvTask.of(row, env_id=COUNT, env_kwargs={"goal": 2, "c": [1]}, reset_options='{"b": 5}')
    assert task == EnvTask(COUNT, {"goal": None, "a": 1, "c": [1]}, {"task_id": 4, "b": 5}, 3)
    assert type(task.options["task_id"]) is int
    json.dumps(dict(task.env_kwargs))


def test_a_row_that_names_another_environment_gets_none_of_the_arguments():
    assert EnvTask.of(kwargs_row(env_id="b"), env_id="a", env_kwargs={"x": 1}) == EnvTask("b")
    assert EnvTask.of(kwargs_row(env_id="b"), env_kwargs={"x": 1}) == EnvTask("b", {"x": 1})


@pytest.mark.parametrize("seed", [None, math.nan, np.nan])
def test_no_seed(seed):
    assert EnvTask.of(kwargs_row(env_id="a", seed=seed)).seed is None


def nested(depth):
    """Return lists in lists."""
    value = []
    for _ in range(depth):
        value = [value]
    return value


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({}, "env_id=None should be the id"),
        ({"env_id": 3}, "env_id=3 should be the id"),
        ({"env_id": "a", "env_kwargs": "{"}, "env_kwargs='{' is not JSON"),
        ({"env_id": "a", "env_kwargs": "[" * 100_000}, "is not JSON"),
        ({"env_id": "a", "env_kwargs": {"a": nested(5_000)}}, "is nested too deep"),
        ({"env_id": "a", "env_kwargs": "[1]"}, r"env_kwargs=\[1\] should be a mapping"),
        ({"env_id": "a", "reset_options": 3}, "reset_options=3 should be a mapping"),
        ({"env_id": "a", "seed": "x"}, "seed='x' should be an integer"),
        ({"env_id": "a", "seed": -1}, "seed=-1 should be an integer"),
        ({"env_id": "a", "seed": True}, "seed=True should be an integer"),
        ({"env_id": "a", "env_kwarg": {}}, r"unknown keys \['env_kwarg'\]"),
    ],
)
def test_a_wrong_row_is_reported(given, message):
    with pytest.raises(ValueError, match=message):
        EnvTask.of(kwargs_row(**given))
