"""``python -m agentgym_servers NAME``: run a server; requires only the extra ``servers``."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from agentgym_gym.errors import AgentGymError
from agentgym_gym.local_servers import servers
from agentgym_servers import serve


def main() -> int:
    """Run the command line; return the exit status: 0 after a stop signal, 2 when the server cannot start."""
    parser = argparse.ArgumentParser(
        prog="python -m agentgym_servers", description="Run a server until SIGINT or SIGTERM."
    )
    parser.add_argument("name", metavar="NAME", help=f"environment: {', '.join(servers())}, or all")
    parser.add_argument("--host", default="127.0.0.1", help="address to listen on (default: %(default)s)")
    parser.add_argument("--port", type=int, default=0, help="port to listen on (default: any free one)")
    parser.add_argument("--exit-with-parent", action="store_true", help="stop also when standard input ends")
    parser.add_argument("--max-envs", type=int, help="maximum number of concurrent environments")
    parser.add_argument("--seed", type=int, help="seed of the generated world")
    parser.add_argument("--data", type=Path, metavar="DIR", help="folder with a user-supplied world")
    parser.add_argument(
        "--allow-host",
        action="append",
        default=[],
        dest="allow_hosts",
        metavar="NAME",
        help="host name that requests may have in Host; may be repeated",
    )
    parser.add_argument(
        "--twin", action="store_true", help="reproduce AgentGym's server exactly, bugs included"
    )
    parser.add_argument("--judge", metavar="URL", help="chat endpoint that judges answers by meaning")
    parser.add_argument("--judge-model", metavar="NAME", help="model of the judge")
    parser.add_argument("--simplifications", metavar="NAMES", help="ScienceWorld's, such as easy")
    try:
        serve(**vars(parser.parse_args()))
    except AgentGymError as error:
        sys.stderr.write(f"error: {error}\n")
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
