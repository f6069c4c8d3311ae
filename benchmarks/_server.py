"""A server of TextCraft's wire with slow steps. It does little else, so that it is not the bottleneck.

It is also a model server of OpenAI's chat protocol, whose completions take as long as a step.

Arguments: the median seconds of a step; for steps of varying length, also the sigma of their lognormal
distribution, and the minimum and maximum number of steps in an episode. Random numbers depend only on the
task's id and the number of the step, so they are the same for every client. It prints its port, and exits
when its input ends.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import math
import random
import select
import selectors
import sys
from typing import Any

_ids = itertools.count()
_median = float(sys.argv[1])
_sigma, _fewest, _most = (
    (float(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4])) if sys.argv[2:] else (0.0, 0, 0)
)
_tasks: dict[int, int] = {}  # by environment
_steps: dict[int, int] = {}


_OBSERVATION = "Goal: craft a."
_COMPLETION = {
    "id": "1",
    "object": "chat.completion",
    "created": 0,
    "model": "m",
    "choices": [
        {
            "index": 0,
            "message": {"role": "assistant", "content": "Thought:\nI look.\n\nAction:\ninventory"},
            "finish_reason": "stop",
        }
    ],
    "usage": {"prompt_tokens": 1000, "completion_tokens": 10, "total_tokens": 1010},
}


def _respond(path: bytes, content: bytes) -> tuple[float, object]:
    """Return the delay of a response, and the response."""
    if path == b"/":
        return 0.0, "This is environment TextCraft."
    if path == b"/create":
        return 0.0, {"id": next(_ids)}
    if path.startswith(b"/observation"):  # requested over a new connection
        return 0.0, _OBSERVATION
    request: dict[str, Any] = json.loads(content)
    response = {"id": request["id"], "observation": _OBSERVATION, "reward": 0, "done": False}
    if path == b"/reset":
        _tasks[request["id"]], _steps[request["id"]] = request["data_idx"], 0
    if path != b"/step":
        return 0.0, response
    if not _sigma:
        return _median, response
    _steps[request["id"]] += 1
    task, step = _tasks[request["id"]], _steps[request["id"]]
    taken = random.Random(f"{task} {step}").lognormvariate(math.log(_median), _sigma)  # noqa: S311
    last = random.Random(f"{task}").randint(_fewest, _most)  # noqa: S311
    return taken, {**response, "done": step >= last}


class _Connection(asyncio.Protocol):
    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport: Any = transport
        self._loop = asyncio.get_running_loop()
        self._data = b""

    def data_received(self, data: bytes) -> None:
        self._data += data
        head, separator, content = self._data.partition(b"\r\n\r\n")
        lines = head.lower().split(b"\r\n")
        size = sum(int(line[15:]) for line in lines if line.startswith(b"content-length:"))
        if not separator or len(content) < size:
            return
        self._data = b""
        path = head.split()[1]
        chat = path == b"/v1/chat/completions"
        seconds, response = (_median, _COMPLETION) if chat else _respond(path, content)
        body, kind = json.dumps(response).encode(), b"Content-Type: application/json\r\n" if chat else b""
        reply = b"HTTP/1.1 200 OK\r\n%bContent-Length: %d\r\n\r\n%b" % (kind, len(body), body)
        if seconds:
            self._loop.call_later(seconds, self._transport.write, reply)
        else:
            self._transport.write(reply)


async def _main() -> None:
    loop = asyncio.get_running_loop()
    server = await loop.create_server(_Connection, "127.0.0.1", 0, backlog=2048)
    print(server.sockets[0].getsockname()[1], flush=True)
    await loop.run_in_executor(None, sys.stdin.read)


class _Selector(selectors.DefaultSelector):
    """The system's selector for any number of connections, epoll on Linux, with exact waits.

    epoll itself rounds waits up to milliseconds. So this waits for epoll's descriptor with `select.select`,
    which rounds nothing and handles a single descriptor well.
    """

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if timeout is None or timeout > 0:
            select.select([self.fileno()], [], [], timeout)
        return super().select(0)


if __name__ == "__main__":
    asyncio.SelectorEventLoop(_Selector()).run_until_complete(_main())
