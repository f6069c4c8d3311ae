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
        description="A proxy before one server that makes a share of the calls go wrong. It runs until "
        "SIGINT, SIGTERM or, where standard input is a pipe, the end of that.",
    )
    parser.add_argument("server", metavar="URL", help="the server")
    parser.add_argument(
        "--share", type=float, default=0.05, help="how many calls go wrong, 0 to 1 (default: %(default)s)"
    )
    parser.add_argument("--kinds", nargs="+", default=KINDS, metavar="KIND", help=f"how: {', '.join(KINDS)}")
    parser.add_argument(
        "--stages", nargs="+", default=STAGES, metavar="STAGE", help=f"which calls: {', '.join(STAGES)}"
    )
    parser.add_argument("--seed", type=int, default=0, help="the seed of the draws (default: %(default)s)")
    parser.add_argument(
        "--delay", type=float, default=1.0, help="the seconds of a delay (default: %(default)s)"
    )
    parser.add_argument("--port", type=int, default=0, help="the port to listen on (default: any free one)")
    told = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: told.set())
    if _is_pipe():
        threading.Thread(target=_at_end_of_input, args=(told,), daemon=True).start()
    _allow_many_connections()
    try:
        with FaultyProxy(**vars(parser.parse_args())) as proxy:
            _say({"url": proxy.url})
            told.wait()
    except AgentGymError as error:
        sys.stderr.write(f"error: {error}\n")
        return 2
    _say(proxy.report())
    return 0


def _say(value: dict[str, Any]) -> None:
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


def _at_end_of_input(told: threading.Event) -> None:
    # Not `sys.stdin`: Python aborts at exit if a thread holds the lock of its buffer.
    with contextlib.suppress(OSError):
        while os.read(0, 4096):
            pass
    told.set()


def _allow_many_connections() -> None:
    """Raise the limit of open files to its maximum: each client needs two."""
    with contextlib.suppress(ImportError, OSError, ValueError):
        import resource  # noqa: PLC0415 - not on every system

        _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


if __name__ == "__main__":
    sys.exit(main())
