"""Programs that are copies of a process in which verl is imported, as importing it takes ten seconds."""

from __future__ import annotations

import json
import os
import runpy
import signal
import socket
import subprocess
import sys
import tempfile
import warnings
from pathlib import Path
from typing import Any, NoReturn, TextIO

import programs

LIMIT_S = 500
"""Seconds after which a program is ended."""

_requests: TextIO | None = None
_answers: TextIO | None = None


def start() -> None:
    """Keep a copy of this process, of which programs are copies; tests that follow do not change it."""
    global _requests, _answers
    ours, its = socket.socketpair()
    if os.fork() == 0:
        ours.close()
        _serve(its)
    its.close()
    _requests, _answers = ours.makefile("w"), ours.makefile("r")


def run(command: list[str], **options: Any) -> subprocess.CompletedProcess[str]:
    """Run `python -m`, as `subprocess.run` does with text that is captured.

    Args:
        command: This interpreter, ``-m``, a module, and its arguments.
        options: ``env``, ``check``, and others that only a process from the start takes, where none is kept.
    """
    if _requests is None or _answers is None:
        return programs.run(command, **{"capture_output": True, "text": True, **options})
    assert command[:2] == [sys.executable, "-m"]
    with tempfile.TemporaryDirectory() as folder:
        environment = dict(options.get("env") or os.environ)
        request = {"arguments": [*map(str, command[2:])], "environment": environment, "folder": folder}
        _requests.write(json.dumps(request) + "\n")
        _requests.flush()
        code = int(_answers.readline())
        output, errors = (Path(folder, name).read_text("utf-8") for name in ("stdout", "stderr"))
    if options.get("check") and code:
        raise subprocess.CalledProcessError(code, command, output, errors)
    return subprocess.CompletedProcess(command, code, output, errors)


def _serve(connection: socket.socket) -> NoReturn:
    """Run programs, one after another, until the process that asks for them has ended."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with connection.makefile("r") as requests, connection.makefile("w") as answers:
        for request in requests:
            process = os.fork()
            if process == 0:
                _become(**json.loads(request))
            _, status = os.waitpid(process, 0)
            answers.write(f"{os.waitstatus_to_exitcode(status)}\n")
            answers.flush()
    os._exit(0)


def _become(arguments: list[str], environment: dict[str, str], folder: str) -> NoReturn:
    """Run a module as a program in this process, and end it."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.alarm(LIMIT_S)
    for number, name in enumerate(("stdout", "stderr"), 1):
        file = os.open(Path(folder, name), os.O_WRONLY | os.O_CREAT)
        os.dup2(file, number)
        setattr(sys, name, os.fdopen(number, "w"))
    os.environ.clear()
    os.environ.update(environment)
    sys.path[:0] = environment.get("PYTHONPATH", "").split(os.pathsep)
    sys.argv = arguments
    warnings.simplefilter("ignore")  # such as of a module that is imported already
    code: Any = 0
    try:
        runpy.run_module(arguments[0], run_name="__main__", alter_sys=True)
    except SystemExit as ended:
        code = ended.code
    except BaseException:  # noqa: BLE001 - as an interpreter does
        sys.excepthook(*sys.exc_info())
        code = 1
    if isinstance(code, str):
        sys.stderr.write(f"{code}\n")
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code if isinstance(code, int) else int(code is not None))
