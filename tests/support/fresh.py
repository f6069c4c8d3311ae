"""Run programs as fresh processes that have imported nothing but gymnasium, which takes most of their start.

Each is forked from a process that has only imported it, which one worker of the tests starts once.
"""

from __future__ import annotations

import atexit
import functools
import json
import os
import subprocess
import sys
import textwrap
from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory

SERVER = """
import json, os, signal, sys
import gymnasium

for line in sys.stdin:
    request = json.loads(line)
    child = os.fork()
    if not child:
        break
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
else:
    sys.exit()

signal.alarm(120)  # no program of a test takes as long
os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
for number in (1, 2):
    os.dup2(os.open(f"{request['folder']}/{number}", os.O_WRONLY | os.O_CREAT), number)
os.chdir(request["cwd"])
os.environ.clear()
os.environ.update(request["env"])
sys.argv = request["argv"]
exec(compile(request["program"], "<program>", "exec"), {"__name__": "__main__"})
"""


@functools.cache
def _server() -> subprocess.Popen[str]:
    # One thread: those of a library for algebra would be lost in a fork.
    variables = {**os.environ, "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
    server = subprocess.Popen(
        [sys.executable, "-W", "error", "-c", SERVER],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=variables,
    )
    atexit.register(server.__exit__, None, None, None)  # closes its input, which ends it
    return server


def run(
    program: str, *arguments: object, env: Mapping[str, str] = {}, cwd: Path | None = None
) -> subprocess.CompletedProcess[str]:
    """Run a program, in which warnings are errors, to its end.

    Args:
        program: Its text, which may be indented.
        arguments: What follows in `sys.argv` after the name "-c".
        env: Environment variables beside those of this process.
        cwd: Its working directory; by default that of this process.
    """
    argv = ["-c", *map(str, arguments)]
    with TemporaryDirectory() as folder:
        request = {
            "program": textwrap.dedent(program),
            "argv": argv,
            "env": {**os.environ, **env},
            "cwd": str(cwd or Path.cwd()),
            "folder": folder,
        }
        server = _server()
        assert server.stdin is not None
        assert server.stdout is not None
        print(json.dumps(request), file=server.stdin, flush=True)
        code = int(server.stdout.readline())
        stdout, stderr = (Path(folder, number).read_text("utf-8") for number in "12")
    return subprocess.CompletedProcess(argv, code, stdout, stderr)
