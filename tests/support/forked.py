"""Programs that are forks of a process, because its imports take most of their start.

`run` forks a process that has imported only gymnasium, and `run_module` one that has imported verl.
"""

from __future__ import annotations

import atexit
import functools
import json
import os
import signal
import socket
import subprocess
import sys
import textwrap
from collections.abc import Iterable, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import IO, Any, NoReturn, TypeAlias

LIMIT_S = 500
"""Time limit of a program in seconds."""

Files: TypeAlias = "tuple[IO[str], IO[str]]"
"""Two files of a process that forks: for programs, and for their exit statuses."""

_kept: list[Files] = []

MODULE = """
import os, runpy, sys, warnings
sys.path[:0] = os.environ["PYTHONPATH"].split(os.pathsep) if "PYTHONPATH" in os.environ else []
warnings.simplefilter("ignore")  # such as of a module that is imported already
del sys.argv[0]
runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
"""


def run(
    program: str, *arguments: object, env: Mapping[str, str] = {}, cwd: Path | None = None
) -> subprocess.CompletedProcess[str]:
    """Run a program, in which warnings are errors, to its end.

    Args:
        program: Its text, which may be indented.
        arguments: The items of `sys.argv` after the name "-c".
        env: Environment variables in addition to this process's.
        cwd: Its working directory; by default this process's.
    """
    return _run(_with_gymnasium(), textwrap.dedent(program), arguments, {**os.environ, **env}, cwd)


def run_module(command: list[str], **options: Any) -> subprocess.CompletedProcess[str]:
    """Run `python -m`, as `subprocess.run` does with captured text; in a new process before `keep`.

    Args:
        command: This interpreter, ``-m``, a module, and its arguments.
        options: ``env``, ``check``, and others that only a new process uses.
    """
    if not _kept:
        return subprocess.run(command, **{"capture_output": True, "text": True, **options})  # noqa: PLW1510
    assert command[:2] == [sys.executable, "-m"]
    ended = _run(_kept[0], MODULE, command[2:], options.get("env") or os.environ, None)
    if options.get("check"):
        ended.check_returncode()
    return ended


def keep() -> None:
    """Keep a copy of this process for `run_module`, which later tests do not change."""
    ours, its = socket.socketpair()
    if os.fork() == 0:
        ours.close()
        _serve_and_exit(its)
    its.close()
    _kept.append((ours.makefile("w"), ours.makefile("r")))


@functools.cache
def _with_gymnasium() -> Files:
    # One thread: a fork would lose the threads of a library for algebra.
    variables = {**os.environ, "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
    command = [sys.executable, "-W", "error", __file__]
    server = subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=variables
    )
    assert server.stdin is not None
    assert server.stdout is not None
    atexit.register(server.__exit__, None, None, None)  # closes its input, which ends it
    return server.stdin, server.stdout


def _run(
    parent: Files, program: str, arguments: Iterable[object], env: Mapping[str, str], cwd: Path | None
) -> subprocess.CompletedProcess[str]:
    requests, statuses = parent
    argv = ["-c", *map(str, arguments)]
    with TemporaryDirectory() as folder:
        request = {
            "program": program,
            "argv": argv,
            "env": dict(env),
            "cwd": str(cwd or Path.cwd()),
            "folder": folder,
        }
        requests.write(json.dumps(request) + "\n")
        requests.flush()
        status = int(statuses.readline())
        stdout, stderr = (Path(folder, number).read_text("utf-8") for number in "12")
    return subprocess.CompletedProcess(argv, status, stdout, stderr)


def _serve(requests: IO[str], statuses: IO[str]) -> None:
    """Fork for each request; a fork runs its program and returns."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    for line in requests:
        child = os.fork()
        if child == 0:
            return _become(**json.loads(line))
        statuses.write(f"{os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])}\n")
        statuses.flush()
    return None


def _become(program: str, argv: list[str], env: dict[str, str], cwd: str, folder: str) -> None:
    """Run a program in place of this process."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.alarm(LIMIT_S)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    for number, name in enumerate(("stdout", "stderr"), 1):
        os.dup2(os.open(f"{folder}/{number}", os.O_WRONLY | os.O_CREAT), number)
        setattr(sys, name, os.fdopen(number, "w", buffering=1, closefd=False))
    os.chdir(cwd)
    os.environ.clear()
    os.environ.update(env)
    sys.argv = argv
    exec(compile(program, "<program>", "exec"), {"__name__": "__main__"})  # noqa: S102 - of a test


def _serve_and_exit(connection: socket.socket) -> NoReturn:
    """Serve in a copy of a process whose other work must not go on, and exit as an interpreter does."""
    code: Any = None
    try:
        _serve(connection.makefile("r"), connection.makefile("w"))
    except SystemExit as ended:
        code = ended.code
    except BaseException:  # noqa: BLE001
        sys.excepthook(*sys.exc_info())
        code = 1
    if isinstance(code, str):
        sys.stderr.write(f"{code}\n")
    sys.stdout.flush()
    os._exit(code if isinstance(code, int) else int(code is not None))


if __name__ == "__main__":
    import gymnasium  # noqa: F401

    sys.path[0] = ""  # as of a program by "-c"
    _serve(sys.stdin, sys.stdout)
