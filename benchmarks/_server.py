"""A server of TextCraft's wire whose steps take their time: on asyncio alone, so that it is not what is slow.

Arguments: the median seconds of a step, and, where steps are not all alike, the sigma of their lognormal
distribution with the fewest and the most steps of an episode. Draws are made from the task's id and the
number of the step alone, so they are the same whoever plays. It prints its port, and ends with its input.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import math
import random
import sys

_ids = itertools.count()
_median = float(sys.argv[1])
_sigma, _fewest, _most = (
    (float(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4])) if sys.argv[2:] else (0.0, 0, 0)
)
_tasks: dict[int, int] = {}  # by environment
_steps: dict[int, int] = {}


async def _step(content: bytes) -> bool:
    """Take as long as a step takes; return whether it was the episode's last."""
    if not _sigma:
        await asyncio.sleep(_median)
        return False
    env_id = json.loads(content)["id"]
    _steps[env_id] += 1
    task, step = _tasks[env_id], _steps[env_id]
    seconds = random.Random(f"{task} {step}").lognormvariate(math.log(_median), _sigma)  # noqa: S311
    await asyncio.sleep(seconds)
    return step >= random.Random(f"{task}").randint(_fewest, _most)  # noqa: S311


async def _answer(path: bytes, content: bytes) -> object:
    if path == b"/":
        return "This is environment TextCraft."
    if path == b"/reset":
        asked = json.loads(content)
        _tasks[asked["id"]], _steps[asked["id"]] = asked["data_idx"], 0
    done = path == b"/step" and await _step(content)
    return {"id": next(_ids), "observation": "Goal: craft a.", "reward": 0, "done": done}


async def _serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while True:
        try:
            head = await reader.readuntil(b"\r\n\r\n")
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()
            return
        lines = head.lower().split(b"\r\n")
        size = sum(int(line[15:]) for line in lines if line.startswith(b"content-length:"))
        content = await reader.readexactly(size)
        body = json.dumps(await _answer(head.split()[1], content)).encode()
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%b" % (len(body), body))


async def _main() -> None:
    server = await asyncio.start_server(_serve, "127.0.0.1", 0, backlog=512)
    print(server.sockets[0].getsockname()[1], flush=True)
    await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)


if __name__ == "__main__":
    asyncio.run(_main())
