"""Importing the library is cheap: what is used later is imported later."""

from __future__ import annotations

import ast
import importlib
import sys
from pathlib import Path

import pytest

import agentgym_gym
import forked
from agentgym_gym.catalogue import BUILT_IN

HEAVY = [
    *("torch", "verl", "ray", "transformers", "sglang", "vllm", "pyarrow", "pandas", "datasets"),
    *("fastapi", "starlette", "uvicorn", "pydantic", "textcraft", "aiohttp"),
    *("rich", "typer", "click", "hypothesis", "pytest", "matplotlib", "PIL"),
]
NAMES = ("_deprecated", "_imports", "_version", "catalogue", "errors")
EAGER = {"agentgym_gym", *(f"agentgym_gym.{name}" for name in NAMES)}
"""All that the import adds to gymnasium's modules: the names, old and new, and the registration."""


def run(program: str) -> str:
    ended = forked.run(program)
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


def test_no_environment_is_imported_before_its_first_use():
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


def test_the_import_loads_these_modules_only():
    """Of this library, of the standard library and of other packages."""
    assert modules("import agentgym_gym") - modules("import gymnasium") == EAGER


def test_the_import_compiles_no_pattern():
    output = run("""
        import gymnasium
        import re

        compiler = re._compiler if hasattr(re, "_compiler") else re.sre_compile  # before Python 3.11
        compile_pattern, patterns = compiler.compile, []

        def recorded(pattern, flags=0):
            patterns.append(pattern)
            return compile_pattern(pattern, flags)

        compiler.compile = recorded
        re.purge()  # or a pattern that gymnasium compiles too would not be compiled again

        import agentgym_gym
        print(patterns)
        re.compile("control")
        print(patterns)
    """)
    assert output == "[]\n['control']\n"


def lazy_names():
    """Yield each name that the package imports for type checkers only, with its module."""
    tree = ast.parse(Path(agentgym_gym.__file__).read_text("utf-8"))
    (block,) = (
        node for node in tree.body if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
    )
    for node in block.body:
        yield from ((alias.name, node.module) for alias in node.names)


def test_type_checkers_and_programs_find_the_same_names():
    names = dict(lazy_names())
    assert len(names) > 20
    assert names.keys() <= set(agentgym_gym.__all__)
    for name, module in names.items():
        assert getattr(agentgym_gym, name) is getattr(importlib.import_module(module), name)


MODULES = sorted({module for _, module in lazy_names() if "._" not in module})


def test_the_names_are_listed_before_they_are_imported():
    listed = run("import agentgym_gym; print(*dir(agentgym_gym))").split()
    assert set(listed) >= {*agentgym_gym.__all__, *(module.rpartition(".")[2] for module in MODULES)}


@pytest.mark.parametrize("module", MODULES)
def test_a_public_module_is_there_after_the_import_of_the_package(module):
    assert run(f"import agentgym_gym; print({module}.__name__)") == f"{module}\n"


def test_all_names_can_be_imported_at_once():
    output = run("""
        from agentgym_gym import *
        import agentgym_gym
        print(all(globals()[name] is getattr(agentgym_gym, name) for name in agentgym_gym.__all__))
    """)
    assert output == "True\n"


def test_a_name_that_does_not_exist_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no attribute 'AgentGymEnw'"):
        _ = agentgym_gym.AgentGymEnw
    with pytest.raises(ImportError, match="cannot import name 'AgentGymEnw'"):
        from agentgym_gym import AgentGymEnw  # noqa: F401


def test_help_lists_the_lazy_names():
    output = run("import agentgym_gym, pydoc; print(pydoc.plain(pydoc.render_doc(agentgym_gym)))")
    assert "class AgentGymEnv(" in output
    assert "class ToolCall(" in output


def test_threads_can_import_the_same_names_at_once():
    output = run("""
        import threading
        import agentgym_gym

        start, found = threading.Barrier(8), []

        def load(name):
            start.wait()
            found.append(getattr(agentgym_gym, name))

        names = ["AgentGymEnv", "AgentGymVectorEnv", "AsyncAgentGymEnv", "FORMATS"] * 2
        threads = [threading.Thread(target=load, args=(name,)) for name in names]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        print(len(found), len(set(map(id, found))))
    """)
    assert output == "8 4\n"


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
    for way in ("server=", "AGENTGYM_TEXTCRAFT_URL", "pip install '.[servers]", "agentgym serve textcraft"):
        assert way in no_server
    assert "pip install '.[testing]" in no_hypothesis


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
    assert "pip install '.[testing]" in output


@pytest.mark.slow
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
    assert "pip install '.[servers]" in output


def test_making_an_env_by_its_prefix_imports_the_library():
    program = """
        import gymnasium
        env = gymnasium.make("agentgym_gym:agentgym/TextCraft-v0", server="http://games.test")
        print(type(env.unwrapped).__name__)
        env.close()
    """
    assert run(program) == "AgentGymEnv\n"


def test_making_an_env_without_the_import_is_refused_by_gymnasium():
    program = """
        import gymnasium
        try:
            gymnasium.make("agentgym/TextCraft-v0")
        except gymnasium.error.NamespaceNotFound as error:
            print(error)
        import agentgym_gym
        gymnasium.make("agentgym/TextCraft-v0", server="http://games.test").close()
    """
    assert run(program).startswith("Namespace agentgym not found.")


def test_the_bridge_does_not_import_this_library():
    """And the other way round: either can be used without the other."""
    assert "agentgym_gym" not in loaded("import verl_bridge")
    assert "verl_bridge" not in loaded("import agentgym_gym")
