"""The soak's proxy, in its own process: ``FaultyProxy`` with commands on standard input.

``quiet`` ends the faults, ``report`` prints the counts, and the end of the input ends the process.
"""

from __future__ import annotations

import json
import random
import selectors
import sys

from agentgym_gym.testing import FaultyProxy, Kind

KINDS: tuple[Kind, ...] = ("reset", "lost", "truncate", "error", "delay")
IN_TIME, TOO_LATE = 0.2, 3.0  # seconds of a delay: the client waits for two
TOO_LATE_SHARE = 0.25
SHARE = 0.05


def main(server: str, seed: int) -> None:
    """Serve until standard input ends."""
    draw = random.Random(seed)  # noqa: S311 - not a secret
    with FaultyProxy(server, share=SHARE, kinds=KINDS, seed=seed, delay=IN_TIME) as proxy:
        print(json.dumps(proxy.url), flush=True)
        with selectors.DefaultSelector() as selector:
            selector.register(sys.stdin, selectors.EVENT_READ)
            while True:
                if not selector.select(0.05):
                    proxy.faults.delay = TOO_LATE if draw.random() < TOO_LATE_SHARE else IN_TIME
                    continue
                word = sys.stdin.readline().strip()
                if not word:
                    break
                if word == "quiet":
                    proxy.faults.share = 0.0
                print(json.dumps(proxy.report()), flush=True)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
