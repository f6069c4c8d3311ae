"""What modules say they export is there, in order, and is all that they define for others."""

from __future__ import annotations

import importlib
import inspect
import pkgutil

import pytest

import agentgym_gym
import agentgym_servers

MODULES = sorted(
    name
    for package in (agentgym_gym, agentgym_servers)
    for _, name, _ in pkgutil.walk_packages(package.__path__, f"{package.__name__}.")
    if not name.endswith(".__main__")
)


def load(name):
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] in {"agentgym_gym", "agentgym_servers"}:
            raise
        return pytest.skip(f"needs {error.name}")


@pytest.mark.parametrize("name", ["agentgym_gym", *MODULES])
def test_all_names_what_there_is(name):
    module = load(name)
    assert module.__doc__, "what is it?"
    exported = getattr(module, "__all__", None)
    if exported is None:
        assert not defined_in(module), "a module that defines something says what of it is for others"
        return
    assert len(exported) == len(set(exported))
    # As ruff sorts them: constants, then classes, then the rest.
    assert exported == sorted(exported, key=rank)
    for each in exported:
        assert hasattr(module, each), each
    assert defined_in(module) <= set(exported), "what is not exported is private"


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
