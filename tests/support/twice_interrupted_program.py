"""A vector that gets two Ctrl-Cs within milliseconds, many times, and is reset after each.

``python twice_interrupted_program.py URL COUNT SEED`` prints a line of JSON: how often a reset raised which
error. The server shows what stays open.
"""

from __future__ import annotations

import json
import os
import random
import signal
import sys
import threading
import time
from collections import Counter

from agentgym_gym import AgentGymVectorEnv

SIZE = 8


def interrupt(begin: float, between: float) -> None:
    """Send two signals."""
    for seconds in (begin, between):
        time.sleep(seconds)
        os.kill(os.getpid(), signal.SIGINT)


def main() -> int:
    """Run the program."""
    url, count, seed = sys.argv[1:]
    moments, raised = random.Random(int(seed)), Counter[str]()  # noqa: S311 - no secret
    vector = AgentGymVectorEnv(SIZE, "TextCraft", server=url)
    for _ in range(int(count)):
        pauses = moments.uniform(0.001, 0.03), moments.choice([0, 0.0002, 0.001, 0.003])
        sending = threading.Thread(target=interrupt, args=pauses)
        try:
            sending.start()
            while True:
                vector.reset()
                vector.step(["Action: inventory"] * SIZE)
        except KeyboardInterrupt:
            pass
        while sending.is_alive():
            try:
                vector.reset()
                sending.join()
                time.sleep(0.01)  # the second signal may come only now
            except KeyboardInterrupt:
                pass
            except Exception as error:  # noqa: BLE001 - it is the finding
                raised[repr(error)] += 1
        try:
            vector.reset()
        except KeyboardInterrupt:
            pass
        except Exception as error:  # noqa: BLE001 - the same
            raised[repr(error)] += 1
    vector.close()
    sys.stdout.write(json.dumps(raised) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
