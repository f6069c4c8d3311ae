"""What `agentgym doctor` makes of each server, played by one that answers out of a recording."""

from __future__ import annotations

import json

import pytest

import agentgym_gym
from command_line import run

OF_AGENTGYM = [each for each in agentgym_gym.environments() if each.of_agentgym]

each_environment = pytest.mark.parametrize(
    "environment", OF_AGENTGYM, ids=lambda environment: environment.name
)

# One server plays both games of LMRL-Gym, by routes of their own.
TOGETHER = {"Maze", "Wordle"}
# Servers with the same greeting, fields and routes.
ALIKE = {"Weather", "Movie", "Academia", "Sheet", "TODOList"}


@pytest.mark.parametrize(
    "environment",
    [
        pytest.param(each, marks=pytest.mark.slow if number % 3 else ())
        for number, each in enumerate(OF_AGENTGYM)
    ],
    ids=lambda environment: environment.name,
)
def test_doctor_distinguishes_the_servers(environment, replay):
    url = replay(environment)[0]
    result = run("doctor", url, "--json")
    assert result.exit_code == 0
    found = json.loads(result.stdout)
    names = {each.removeprefix("agentgym/").removesuffix("-v0") for each in found["environments"]}
    expected = next((names for names in (TOGETHER, ALIKE) if environment.name in names), {environment.name})
    assert names == expected
    assert found["ambiguous"] == (environment.name in ALIKE)


@pytest.mark.parametrize("name", ["TextCraft", "Maze", "Weather"])
def test_doctor_reports_when_it_cannot(name, replay):
    shown = " ".join(run("doctor", replay(agentgym_gym.find(name))[0]).stdout.split())
    assert ("give the same responses" in shown) == (name in ALIKE)


@pytest.mark.slow
@each_environment
def test_no_environment_is_played_on_the_server_of_another(environment, replay):
    """Except where nothing distinguishes them."""
    urls = replay(environment)
    alike = next((names for names in (TOGETHER, ALIKE) if environment.name in names), {environment.name})
    for other in agentgym_gym.environments():
        if other.name not in alike:
            env = agentgym_gym.AgentGymEnv(other.name, server=urls)
            with pytest.raises(agentgym_gym.errors.WrongServer):
                env.reset(seed=0)
            env.close()
