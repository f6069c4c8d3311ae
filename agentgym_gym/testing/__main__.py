"""``python -m agentgym_gym.testing URL`` runs a `FaultyProxy` in a separate process.

It prints its address as a line of JSON once it serves, and its counts as another line when it stops.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import signal
import stat
import sys
import threading
from typing import Any

from agentgym_gym.errors import AgentGymError
from agentgym_gym.testing._faults import KINDS, STAGES
from agentgym_gym.testing._proxy import FaultyProxy


def main() -> int:
    """Run the command and return the exit status: 0 after a normal stop, 2 if the proxy cannot start."""
    parser = argparse.ArgumentParser(
        prog="python -m agentgym_gym.testing",
        description="Run a proxy that injects faults into a share of the calls to a server. It stops at "
        "SIGINT, SIGTERM or, if standard input is a pipe, the end of input.",
    )
    parser.add_argument("server", metavar="URL", help="URL of the server")
    parser.add_argument(
        "--share", type=float, default=0.05, help="share of calls with a fault, 0 to 1 (default: %(default)s)"
    )
    parser.add_argument(
        "--kinds", nargs="+", default=KINDS, metavar="KIND", help=f"kinds of faults: {', '.join(KINDS)}"
    )
    parser.add_argument(
        "--stages", nargs="+", default=STAGES, metavar="STAGE", help=f"calls with faults: {', '.join(STAGES)}"
    )
    parser.add_argument("--seed", type=int, default=0, help="seed of the faults (default: %(default)s)")
    parser.add_argument("--delay", type=float, default=1.0, help="seconds of a delay (default: %(default)s)")
    parser.add_argument("--port", type=int, default=0, help="port to listen on (default: any free one)")
    stop = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stop.set())
    if _is_pipe():
        threading.Thread(target=_at_end_of_input, args=(stop,), daemon=True).start()
    _allow_many_connections()
    try:
        with FaultyProxy(**vars(parser.parse_args())) as proxy:
            _print({"url": proxy.url})
            stop.wait()
    except AgentGymError as error:
        sys.stderr.write(f"error: {error}\n")
        return 2
    _print(proxy.report())
    return 0


def _print(value: dict[str, Any]) -> None:
    with contextlib.suppress(BrokenPipeError):
        sys.stdout.write(json.dumps(value) + "\n")
        sys.stdout.flush()


def _is_pipe() -> bool:
    """Return whether standard input ends with the parent process; /dev/null, used by services, is at EOF."""
    try:
        mode = os.fstat(0).st_mode
    except OSError:
        return False
    return stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode)


def _at_end_of_input(stop: threading.Event) -> None:
    # Not `sys.stdin`: Python aborts at exit if a thread has the lock of its buffer.
    with contextlib.suppress(OSError):
        while os.read(0, 4096):
            pass
    stop.set()


def _allow_many_connections() -> None:
    """Raise the limit of open files to its maximum: each client needs two."""
    with contextlib.suppress(ImportError, OSError, ValueError):
        import resource  # noqa: PLC0415 - not on every system

        _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


if __name__ == "__main__":
    sys.exit(main())
