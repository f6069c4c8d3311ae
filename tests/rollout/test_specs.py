"""Tests of the environment that an id names: MODULE:ID is one that the module registered, or an error."""

from __future__ import annotations

import importlib
import os
import subprocess
import sys
import textwrap
import threading
from pathlib import Path

import gymnasium
import pytest

import agentgym_gym
import inside
from agentgym_gym.errors import UnknownEnvironment
from agentgym_gym.rollout import Unregistered, find_spec, split_id

ROOT = Path(agentgym_gym.__file__).resolve().parents[1]
CARTPOLE = "gymnasium.envs.classic_control:CartPoleEnv"
AGENTGYM = "agentgym_gym.env:AgentGymEnv"
OWN = """
from agentgym_gym import register
from agentgym_gym.catalogue import find, replace

register(replace(find("Maze"), name="Labyrinth", namespace="own", aliases=("Warren",)))
"""


@pytest.fixture(autouse=True)
def _as_before(monkeypatch):
    """Removes the modules, environments and records that a test adds, and what other tests left."""
    monkeypatch.setattr(sys, "path", [*sys.path])
    inside.forget_registrations(monkeypatch)
    modules, registry = dict(sys.modules), dict(gymnasium.registry)
    for env_id, spec in registry.items():
        if not str(spec.entry_point).startswith(("gymnasium.", "agentgym_gym.")):
            del gymnasium.registry[env_id]
    yield
    for mapping, before in ((sys.modules, modules), (gymnasium.registry, registry)):
        for key in set(mapping) - set(before):
            del mapping[key]
        mapping.update(before)


@pytest.fixture
def write(tmp_path, monkeypatch):
    """Writes modules that can be imported; a name with a slash is a file of a package."""
    monkeypatch.syspath_prepend(tmp_path)

    def files(sources=(), /, **modules):
        for name, source in {**dict(sources), **modules}.items():
            file = tmp_path / f"{name}.py"
            if file.parent != tmp_path:
                file.parent.mkdir(exist_ok=True)
            file.write_text(textwrap.dedent(source))
        importlib.invalidate_caches()

    return files


def registering(env_id, entry_point=None):
    """Return a module that registers an environment; by default, one with its own class."""
    return f"""
        import gymnasium

        class Env(gymnasium.Env):
            pass

        gymnasium.register({env_id!r}, {entry_point!r} or Env)
    """


def message_of(env_id):
    with pytest.raises(Unregistered) as caught:
        find_spec(env_id)
    return str(caught.value)


# The parts of an id


@pytest.mark.parametrize(
    ("env_id", "parts"),
    [
        ("CartPole-v1", (None, "CartPole-v1")),
        ("my_module:my/Env-v0", ("my_module", "my/Env-v0")),
        ("my_package.my_module:Env", ("my_package.my_module", "Env")),
        ("my_module:game:Guess-v0", ("my_module", "game:Guess-v0")),
        ("my_module:game:easy/Guess-v0", ("my_module", "game:easy/Guess-v0")),
        (":Env-v0", ("", "Env-v0")),
    ],
)
def test_an_id_is_split_at_the_first_colon(env_id, parts):
    assert split_id(env_id) == parts


def test_a_registered_id_with_a_colon_has_no_module():
    gymnasium.register("game:Guess-v2", CARTPOLE)
    gymnasium.register("game:Guess-v10", CARTPOLE)
    assert split_id("game:Guess-v2") == (None, "game:Guess-v2")
    assert split_id("game:Guess") == (None, "game:Guess")
    assert split_id("game:Guess-v1") == ("game", "Guess-v1")
    assert find_spec("game:Guess").id == "game:Guess-v10"


def test_ids_with_colons_are_found_in_their_module(write):
    write(colons=registering("game:Guess-v0"), game=registering("game:Draw-v0"))
    assert find_spec("colons:game:Guess-v0").id == "game:Guess-v0"
    assert find_spec("colons:game:Guess").id == "game:Guess-v0"
    for _ in range(2):  # the second time the text is registered before the module is imported
        assert find_spec("game:Draw-v0").id == "game:Draw-v0"
    assert find_spec("game:game:Draw-v0").id == "game:Draw-v0"


# Ids without a module


def test_an_id_without_a_module_is_as_registered():
    assert find_spec("CartPole-v0").id == "CartPole-v0"
    assert find_spec("CartPole").id == "CartPole-v1"
    assert find_spec("agentgym/Maze").id == "agentgym/Maze-v0"


@pytest.mark.parametrize("env_id", ["mine/Nope-v0", "Nope", "CartPole-v9", "Maze", "two words", "", "a/b/c"])
def test_an_id_that_is_not_registered_needs_a_module(env_id):
    advice = f"put the module that registers it before a colon, as in my_package:{env_id}"
    assert message_of(env_id) == f"{env_id!r} is not registered: {advice}"


# Ids of a module


@pytest.mark.parametrize("entry_point", [None, "plugin:Env", CARTPOLE, AGENTGYM, "elsewhere:Env"])
def test_environments_registered_by_the_import_are_found(write, entry_point):
    write(plugin=registering("mine/Env-v3", entry_point))
    for name in ("plugin:mine/Env-v3", "plugin:mine/Env", "plugin:mine/Env-v3"):
        assert find_spec(name) is gymnasium.registry["mine/Env-v3"]


def test_functions_and_partial_functions_are_entry_points(write):
    write(
        plugin="""
            import functools
            import gymnasium

            gymnasium.register("mine/Lambda-v0", lambda: None)
            gymnasium.register("mine/Partial-v0", functools.partial(lambda size: None, 3))
        """
    )
    importlib.import_module("plugin")
    for env_id in ("mine/Lambda-v0", "mine/Partial-v0"):
        assert find_spec(f"plugin:{env_id}").id == env_id
        assert f"{env_id} is registered by plugin" in message_of(f"json:{env_id}")


def test_a_submodule_is_a_module_too(write):
    write({"pack/__init__": "", "pack/games": registering("mine/Game-v0", CARTPOLE)})
    assert find_spec("pack.games:mine/Game-v0").id == "mine/Game-v0"
    assert find_spec("pack:mine/Game-v0").id == "mine/Game-v0"


def test_the_highest_version_is_of_the_module(write):
    write(older=registering("shared/Env-v2"), newer=registering("shared/Env-v10"))
    assert find_spec("newer:shared/Env").id == "shared/Env-v10"
    assert find_spec("older:shared/Env").id == "shared/Env-v2"
    assert find_spec("shared/Env").id == "shared/Env-v10"


@pytest.mark.parametrize("name", ["agentgym_gym:agentgym/Maze-v0", "agentgym_gym:agentgym/BIRD"])
def test_agentgym_s_own(name):
    assert find_spec(name).id.startswith("agentgym/")


def test_a_module_that_imports_agentgym_registers_its_own(write):
    write(plugin="import agentgym_gym\n" + textwrap.dedent(registering("mine/Maze-v0")), own=OWN)
    assert find_spec("plugin:mine/Maze-v0").id == "mine/Maze-v0"
    assert find_spec("own:own/Labyrinth-v0").id == "own/Labyrinth-v0"
    assert find_spec("own:own/Warren").id == "own/Warren-v0"
    for module in ("plugin", "own"):
        assert "write agentgym_gym:agentgym/Maze-v0" in message_of(f"{module}:agentgym/Maze-v0")


# Never an environment of another package


@pytest.mark.parametrize(
    ("env_id", "advice"),
    [
        ("textarena:Wordle-v0", "textarena registers arena/Chess-v0; use one of these ids"),
        ("textarena:Maze", "textarena registers arena/Chess-v0; use one of these ids"),
        ("textarena:CartPole-v1", "textarena registers arena/Chess-v0; use one of these ids; CartPole-v1 is"),
        (
            "textarena:agentgym/Maze",
            "textarena registers arena/Chess-v0; use one of these ids; agentgym/Maze-",
        ),
        ("json:Maze", "json registers no environment; name the module that registers 'Maze'"),
        (
            "json:agentgym/Maze-v0",
            "json registers no environment; agentgym/Maze-v0 is registered by agentgym_gym: write agentgym",
        ),
        (
            "json:CartPole-v1",
            "json registers no environment; CartPole-v1 is registered by gymnasium: write gymnasium:Cart",
        ),
        ("agentgym_gym:CartPole-v1", "agentgym_gym registers agentgym/"),
        ("json:", "json registers no environment; name the module that registers ''"),
    ],
)
@pytest.mark.parametrize("before", [False, True])
def test_another_package_s_environment_is_an_error(write, env_id, advice, before):
    write(textarena="import agentgym_gym\n" + textwrap.dedent(registering("arena/Chess-v0", "arena:Chess")))
    if before:
        importlib.import_module("textarena")
        advice = advice.replace("textarena registers", "textarena may have registered")
    assert message_of(env_id).startswith(f"{env_id!r} is not registered: {advice}")


@pytest.mark.parametrize(("count", "more"), [(10, ""), (11, " and 1 more"), (40, " and 30 more")])
def test_an_error_lists_the_ten_closest_ids(write, count, more):
    write(
        many=f"""
            import gymnasium
            for number in range({count}):
                gymnasium.register(f"many/Game{{number}}-v0", "many:Env")
        """
    )
    text = message_of("many:many/Game3-v1")
    assert "many/Game3-v0" in text
    assert text.count("many/Game") == 11  # with the one that failed
    assert text.endswith(f"{more}; use one of these ids")


def test_an_environment_of_another_library_is_an_error(write):
    write(one=registering("one/Env-v0", "missing:Env"), two=registering("two/Env-v0", "missing:Env"))
    find_spec("one:one/Env-v0")
    assert "one/Env-v0 is registered by one: write one:one/Env-v0" in message_of("two:one/Env-v0")
    assert "one/Env-v0 is registered by one" in message_of("json:one/Env-v0")
    assert find_spec("two:two/Env-v0").id == "two/Env-v0"


def test_a_replaced_environment_belongs_to_the_replacing_module(write):
    write(one=registering("shared/Env-v0", CARTPOLE), two=registering("shared/Env-v0", AGENTGYM))
    find_spec("one:shared/Env-v0")
    with pytest.warns(UserWarning, match="Overriding"):
        find_spec("two:shared/Env-v0")
    assert "registered by two" in message_of("one:shared/Env-v0")


# Modules that were imported before


@pytest.mark.parametrize("entry_point", [None, "plugin.deeper:Env", "elsewhere:Env"])
def test_a_module_may_have_been_imported_before(write, entry_point):
    write(plugin=registering("mine/Env-v0", entry_point))
    importlib.import_module("plugin")
    assert find_spec("plugin:mine/Env-v0").id == "mine/Env-v0"


@pytest.mark.parametrize("entry_point", [CARTPOLE, AGENTGYM])
def test_an_entry_point_in_gymnasium_does_not_prove_an_earlier_module(write, entry_point):
    write(plugin=registering("mine/Env-v0", entry_point))
    importlib.import_module("plugin")
    owner = entry_point.partition(".")[0]
    assert f"mine/Env-v0 is registered by {owner}" in message_of("plugin:mine/Env-v0")
    assert find_spec("mine/Env-v0").id == "mine/Env-v0"


def test_an_earlier_import_does_not_own_environments_of_another_module(write):
    write(plugin="import gymnasium", one=registering("one/Env-v0", "missing:Env"))
    importlib.import_module("plugin")
    find_spec("one:one/Env-v0")
    assert "registered by one" in message_of("plugin:one/Env-v0")


@pytest.mark.parametrize("statement", ["import helpers", "from helpers import make", "from helpers import *"])
@pytest.mark.parametrize("order", [[], ["helpers"], ["helpers", "plugin"], ["other"]])
def test_environments_of_imported_packages_are_found_in_any_order(write, statement, order):
    write(
        helpers="import gymnasium\ndef make(): ...\ngymnasium.register('help/Env-v0', 'helpers:make')",
        plugin=statement,
        other="import helpers",
    )
    for module in order:
        importlib.import_module(module)
    if "other" in order:
        find_spec("other:help/Env-v0")
    assert find_spec("plugin:help/Env-v0").id == "help/Env-v0"


@pytest.mark.parametrize("package", [gymnasium, agentgym_gym])
def test_gymnasium_and_agentgym_do_not_count_as_owners(write, monkeypatch, package):
    write(helpers="import gymnasium\ndef make(): ...\ngymnasium.register('help/Env-v0', 'helpers:make')")
    monkeypatch.setattr(package, "helpers", importlib.import_module("helpers"), raising=False)
    assert "help/Env-v0 is registered by helpers" in message_of(f"{package.__name__}:help/Env-v0")


def test_environments_of_imported_submodules_are_found(write):
    write(
        {"pack/__init__": "from . import games", "pack/games": "from helpers import make"},
        helpers="import gymnasium\ndef make(): ...\ngymnasium.register('help/Env-v0', 'helpers:make')",
    )
    importlib.import_module("helpers")
    assert find_spec("pack:help/Env-v0").id == "help/Env-v0"
    assert find_spec("pack.games:help/Env-v0").id == "help/Env-v0"


@pytest.mark.parametrize(
    "imports",
    [
        "import own, agentgym_gym",
        pytest.param("import agentgym_gym, own", marks=pytest.mark.slow),
        pytest.param("import agentgym_gym", marks=pytest.mark.slow),
        pytest.param("import plugin, agentgym_gym", marks=pytest.mark.slow),
    ],
)
def test_the_order_of_imports_does_not_matter(write, tmp_path, imports):
    write(own=OWN, plugin=registering("mine/Env-v0"))
    program = f"""
        {imports}
        from agentgym_gym.rollout import Unregistered, find_spec
        for name in ("own:own/Labyrinth", "plugin:mine/Env", "gymnasium:CartPole"):
            print(find_spec(name).id)
        for name in ("own:Taxi", "own:agentgym/Maze", "own:mine/Env", "plugin:own/Warren", "json:mine/Env"):
            try:
                print(find_spec(name))
            except Unregistered:
                print("refused")
    """
    ended = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)],
        env={**os.environ, "PYTHONPATH": f"{ROOT}{os.pathsep}{tmp_path}"},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert ended.returncode == 0, ended.stderr[-3_000:]
    assert ended.stdout.split() == ["own/Labyrinth-v0", "mine/Env-v0", "CartPole-v1", *["refused"] * 5]


def test_one_import_is_observed_for_all_threads(write):
    write(slow="import time\ntime.sleep(0.2)\n" + textwrap.dedent(registering("slow/Env-v0", CARTPOLE)))
    found, barrier = [], threading.Barrier(8)

    def find():
        barrier.wait()
        found.append(find_spec("slow:slow/Env-v0").id)

    threads = [threading.Thread(target=find) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(10)
    assert found == ["slow/Env-v0"] * 8


def test_imports_at_the_same_time_are_kept_apart(write):
    """Each thread waits in its import, while the other module registers its environment."""
    source = "import time\ntime.sleep(0.2)\n{}\ntime.sleep(0.2)"
    for name in ("left", "right"):
        write({name: source.format(textwrap.dedent(registering(f"{name}/Env-v0", CARTPOLE)))})
    threads = [
        threading.Thread(target=find_spec, args=[f"{name}:{name}/Env-v0"]) for name in ("left", "right")
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(10)
    assert find_spec("left:left/Env-v0").id == "left/Env-v0"
    assert "left registers left/Env-v0; use one of these ids" in message_of("left:right/Env-v0")
    assert "right registers right/Env-v0; use one of these ids" in message_of("right:left/Env-v0")


# Modules that cannot be imported


@pytest.mark.parametrize(
    ("env_id", "message"),
    [
        (
            "absent:Env-v0",
            "ModuleNotFoundError: No module named 'absent'; install it, or run the command in the",
        ),
        (
            "absent.deep:Env-v0",
            "ModuleNotFoundError: No module named 'absent'; install it, or run the command",
        ),
        (
            "broken:Env-v0",
            "ZeroDivisionError: division by zero; python -c 'import broken' should succeed first",
        ),
        ("lacks:Env-v0", "No module named 'absent'; python -c 'import lacks' should succeed first"),
        ("ends:Env-v0", "SystemExit: 3; python -c 'import ends' should succeed first"),
        ("panics:Env-v0", "Panic: out of bounds; python -c 'import panics' should succeed first"),
        ("broken.py:Env-v0", "write the module as an import does, without .py and with dots for slashes"),
        ("./broken.py:Env-v0", "write the module as an import does"),
        ("two words:Env-v0", "write the module as an import does"),
        ("..:Env-v0", "write the module as an import does"),
        (":Env-v0", "write the module as an import does"),
    ],
)
def test_an_import_that_fails(write, env_id, message):
    write(
        broken="1 / 0",
        lacks="import absent",
        ends="raise SystemExit(3)",
        panics="class Panic(BaseException): ...\nraise Panic('out of bounds')",
    )
    text = message_of(env_id)
    assert text.startswith(f"cannot import {env_id.partition(':')[0]!r}, the module of {env_id!r}: ")
    assert message in text


def test_an_interrupt_is_not_a_failed_import(write):
    write(interrupted="raise KeyboardInterrupt")
    with pytest.raises(KeyboardInterrupt):
        find_spec("interrupted:Env-v0")


def test_a_failed_module_can_be_imported_again(write):
    write(plugin=textwrap.dedent(registering("mine/Env-v0", CARTPOLE)) + "\n1 / 0")
    assert "ZeroDivisionError" in message_of("plugin:mine/Env-v0")
    write(plugin=registering("mine/Env-v0", CARTPOLE) + "\n\n")
    with pytest.warns(UserWarning, match="Overriding"):
        assert find_spec("plugin:mine/Env-v0").id == "mine/Env-v0"


def test_the_error_is_not_worth_a_retry():
    assert issubclass(Unregistered, ValueError)
    assert Unregistered.transient is False


# The catalogue


def test_the_catalogue_records_who_registered_an_environment(write):
    write(own=OWN)
    importlib.import_module("own")
    assert agentgym_gym.find("own:labyrinth").id == "own/Labyrinth-v0"
    assert agentgym_gym.find("agentgym_gym:Maze").id == "agentgym/Maze-v0"
    for name in ("own:Maze", "textarena:Wordle-v0", "json:labyrinth"):
        with pytest.raises(UnknownEnvironment, match=f"there is no environment '{name}'"):
            agentgym_gym.find(name)


def test_a_replaced_environment_of_agentgym_belongs_to_its_module(write):
    write(
        plugin="""
            from agentgym_gym import register
            from agentgym_gym.catalogue import find, replace
            register(replace(find("Maze"), max_turns=3))
        """
    )
    assert find_spec("plugin:agentgym/Maze-v0").id == "agentgym/Maze-v0"
    assert agentgym_gym.find("plugin:Maze").max_turns == 3
