"""The exports of modules exist, are in order, and are all that they define for others."""

from __future__ import annotations

import importlib
import inspect
import pkgutil

import agentgym_gym
import agentgym_servers

MODULES = sorted(
    name
    for package in (agentgym_gym, agentgym_servers)
    for _, name, _ in pkgutil.walk_packages(package.__path__, f"{package.__name__}.")
    if not name.endswith(".__main__")
)


def test_every_module_names_what_it_exports():
    assert {name: wrong for name in ["agentgym_gym", *MODULES] if (wrong := wrong_in(name))} == {}


def wrong_in(name):
    """Return the errors of a module, unless it needs a package that is not installed."""
    try:
        module = importlib.import_module(name)
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] in {"agentgym_gym", "agentgym_servers"}:
            raise
        return []
    defined, exported = defined_in(module), getattr(module, "__all__", None)
    undocumented = ["no docstring"] * (not module.__doc__)
    if exported is None:
        # A module with definitions lists what of it is for others.
        return undocumented + sorted(defined)
    wrong = [each for each in exported if not hasattr(module, each)]
    wrong += sorted(defined - set(exported))  # what is not exported is private
    # As ruff sorts them: constants, then classes, then the rest.
    in_order = exported == sorted(set(exported), key=rank)
    return undocumented + wrong + ["order"] * (not in_order)


def rank(name):
    return (0 if name.isupper() else 1 if name[:1].isupper() else 2, name)


def defined_in(module):
    return {
        name
        for name, value in vars(module).items()
        if not name.startswith("_")
        and (inspect.isclass(value) or inspect.isfunction(value))
        and value.__module__ == module.__name__
    }


def test_the_root_has_the_environment_and_its_errors():
    assert agentgym_gym.__version__
    assert agentgym_gym.AgentGymEnv.__module__ == "agentgym_gym.env"
    assert agentgym_gym.errors.__name__ == "agentgym_gym.errors"
