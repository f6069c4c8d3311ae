"""A program in place of an engine: it takes the engine's command line; ``FAKE_ENGINE`` sets how it behaves.

The ids of its processes are appended to the file ``FAKE_ENGINE_PIDS``, its arguments and some variables are
written to ``FAKE_ENGINE_SEEN``.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import sys
import time

VERSIONS = {"sglang": "0.5.23", "vllm": "0.33.0", "transformers": "5.23.0"}

MODULES = {
    "sglang": ["sglang/launch_server", "torch"],
    "vllm": ["vllm/entrypoints/cli/main", "vllm/entrypoints/openai/api_server", "torch"],
    "transformers": [
        "transformers/cli/transformers",
        *("torch", "accelerate", "fastapi", "uvicorn", "openai", "pydantic"),
    ],
}


def install(folder, kind, *, version=None, without=()):
    """Make an engine that can be imported from a folder, which runs this file.

    Args:
        folder: The folder.
        kind: The engine.
        version: Its version; "" for a build that is installed under another name.
        without: Modules that it lacks.
    """
    for module in MODULES[kind]:
        *packages, name = module.split("/")
        if module in without:
            continue
        for depth in range(len(packages)):
            package = folder.joinpath(*packages[: depth + 1])
            package.mkdir(parents=True, exist_ok=True)
            (package / "__init__.py").touch()
        runs = f"import runpy\nrunpy.run_path({__file__!r}, run_name='__main__')\n" if packages else ""
        folder.joinpath(*packages, f"{name}.py").write_text(runs)
    if version == "":
        return
    version = version or VERSIONS[kind]
    info = folder / f"{kind}-{version}.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {kind}\nVersion: {version}\n")


def note_pid():
    with open(os.environ["FAKE_ENGINE_PIDS"], "a") as file:  # noqa: PTH123
        file.write(f"{os.getpid()}\n")


def pids():
    with open(os.environ["FAKE_ENGINE_PIDS"]) as file:  # noqa: PTH123
        return file.read().split()


def serve(port, answer):
    with socket.create_server(("127.0.0.1", port)) as listener:
        while True:
            connection, _ = listener.accept()
            with connection:
                connection.recv(4096)
                answer(connection)


def ready(connection):
    connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")


def loading(connection):
    connection.sendall(b"HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\n\r\n")


def drip(connection):
    """Send a byte now and then, never a line."""
    try:
        while True:
            connection.sendall(b"H")
            time.sleep(0.02)
    except OSError:
        pass


def leave_others():
    """Start processes that outlive their parents: one in a separate session, whose parent ends at once."""
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
            note_pid()
            time.sleep(60)
        os._exit(0)
    os.wait()
    if os.fork() == 0:
        note_pid()
        time.sleep(60)
        os._exit(0)
    while len(pids()) < 3:
        time.sleep(0.01)


def main():
    note_pid()
    port = int(sys.argv[sys.argv.index("--port") + 1])
    variables = {
        name: value for name, value in os.environ.items() if name.startswith(("VLLM", "HF_", "MINE"))
    }
    with open(os.environ["FAKE_ENGINE_SEEN"], "w") as file:  # noqa: PTH123
        json.dump({"arguments": sys.argv[1:], "variables": variables, "stdin": sys.stdin.read()}, file)
    behaviour = os.environ.get("FAKE_ENGINE", "serve")
    sys.stderr.write("loading the model\n")
    if behaviour == "fail":
        sys.stderr.write(f"\x1b[31mboom\x1b[0m at http://user:word@there, key {os.environ['MINE_API_KEY']}\n")
        sys.exit(3)
    if behaviour == "taken once" and len(pids()) == 1:
        sys.exit("OSError: [Errno 98] Address already in use")
    if behaviour == "stubborn":
        leave_others()
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    if behaviour == "killed":
        leave_others()
        os.kill(os.getpid(), signal.SIGKILL)
    if behaviour == "hang":
        time.sleep(60)
    serve(port, {"loading": loading, "drip": drip}.get(behaviour, ready))


if __name__ == "__main__":
    main()
