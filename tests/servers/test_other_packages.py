"""Servers of other packages, and this library without this project's servers."""

from __future__ import annotations

import subprocess
import sys
import textwrap

import pytest

pytestmark = pytest.mark.slow

SERVER = """
from agentgym_gym.local_servers import ServerKind

SERVER = ServerKind("Bell", "bell_servers:create_app", takes=("seed",))

def create_app(options):
    from fastapi import FastAPI

    app = FastAPI()

    @app.get("/")
    async def greet():
        return f"Bell {options.seed}, {options.max_envs} at most"

    return app
"""


@pytest.fixture
def bell(tmp_path):
    """A folder in which a package is installed that brings a server."""
    (tmp_path / "bell_servers.py").write_text(SERVER)
    about = tmp_path / "bell_servers-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: bell-servers\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text("[agentgym.servers]\nbell = bell_servers:SERVER\n")
    return tmp_path


def run(code, *, path=None):
    program = f"import sys\nsys.path[:0] = {[str(path)] if path else []}\n" + textwrap.dedent(code)
    return subprocess.run(
        [sys.executable, "-W", "error", "-c", program],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )


def test_a_server_of_another_package(bell, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", str(bell), prepend=":")
    code = """
        import httpx
        from agentgym_gym.local_servers import LocalServer, available, servers

        assert servers()["bell"] == "bell_servers:SERVER" and "textcraft" in servers()
        server = LocalServer("Bell")
        print(available("bell"), httpx.get(server.start()).json())
        server.stop()
        both = LocalServer("all")
        print("bell" in httpx.get(both.start()).json()["servers"], httpx.get(f"{both.url}/bell/").json())
        both.stop()
    """
    ended = run(code, path=bell)
    assert (ended.stderr, ended.returncode) == ("", 0)
    assert ended.stdout == "None Bell 0, 4096 at most\nTrue Bell 0, 4096 at most\n"


def test_missing_modules_of_another_packages_server_are_named(bell):
    code = """
        import importlib.util
        from agentgym_gym.errors import SetupError
        from agentgym_gym.local_servers import available, server_kind

        found = importlib.util.find_spec
        importlib.util.find_spec = lambda name: None if name == "uvicorn" else found(name)
        print(available("bell"))
        for wrong in ("bell_servers:create_app", "no_such_package:SERVER"):
            try:
                server_kind(wrong)
            except SetupError as error:
                print(error)
    """
    ended = run(code, path=bell)
    assert (ended.stderr, ended.returncode) == ("", 0)
    assert ended.stdout.splitlines() == [
        "the local Bell server needs the module uvicorn: install it",
        "bell_servers:create_app should be a ServerKind, not function",
        "the server 'no_such_package:SERVER' needs the package no_such_package, which is not installed",
    ]


WITHOUT = """
    import importlib.abc

    class Without(importlib.abc.MetaPathFinder):
        def find_spec(self, name, path=None, target=None):
            if name.partition(".")[0] == "agentgym_servers":
                raise ModuleNotFoundError(name)

    import importlib.util
    found = importlib.util.find_spec
    importlib.util.find_spec = lambda name, *more: None if name == "agentgym_servers" else found(name, *more)
    sys.meta_path.insert(0, Without())
"""


def test_the_library_works_without_the_servers(textcraft_url):
    code = f"""{WITHOUT}
    import gymnasium
    import agentgym_gym
    import verl_bridge
    from agentgym_gym.errors import NoServer
    from agentgym_gym.evaluate import RandomAgent, evaluate

    env = gymnasium.make("agentgym/TextCraft-v0", server={textcraft_url!r})
    print([record.fault for record in evaluate(env, RandomAgent(0), range(2))])
    env.close()
    try:
        gymnasium.make("agentgym/Maze-v0").reset()
    except NoServer as error:
        print(error)
    from agentgym_gym.__main__ import main
    for command in ("envs", "serve maze"):
        sys.argv = ["agentgym", *command.split()]
        try:
            main()
        except SystemExit as end:
            print("status", end.code)
    """
    ended = run(code)
    assert ended.stdout.startswith("[None, None]\n")
    assert "which is not installed" in ended.stdout
    assert "WebShop-v0" in ended.stdout
    assert ended.stdout.endswith("status 2\n")
    assert "agentgym_servers, which is not installed" in ended.stderr
