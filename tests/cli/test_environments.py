"""An environment as a command is to play it."""

import pytest

from agentgym_gym import find
from agentgym_gym._cli.environments import PlannedEnvironment
from agentgym_gym._cli.plans import EnvironmentPlan


@pytest.mark.parametrize(("own_limit", "own", "others"), [(None, None, 2), (3, 3, 2)])
def test_the_capacity_is_agentgyms_on_its_own_servers_alone(
    own_limit, own, others, textcraft_url, counted, monkeypatch
):
    monkeypatch.setattr(type(find("TextCraft").wire), "capacity", 2)
    more = {} if own_limit is None else {"max_envs_per_server": own_limit}

    def capacity(url):
        return PlannedEnvironment(
            EnvironmentPlan("TextCraft", server=url, env_kwargs=more), {}
        ).shared_servers.capacity

    assert (capacity(textcraft_url), capacity(counted().url)) == (own, others)
