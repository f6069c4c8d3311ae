"""What a pool can tell before it has made an environment."""

from __future__ import annotations

import pytest

import counting_env
from agentgym_gym.rollout import Pool


@pytest.mark.parametrize("env", ["counting_env:bridge/Count-v0", "bridge/Count-v0"])
def test_the_id_of_its_environments(env):
    assert Pool(env).env_id == "bridge/Count-v0"


def test_a_function_has_no_id():
    assert Pool(counting_env.Count).env_id == ""
