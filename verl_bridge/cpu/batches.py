"""Collect single requests into batches. Independent of verl and Ray."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, TypeVar

if TYPE_CHECKING:
    from verl_bridge.cpu.generator import Request

GATHER_S = 0.005
"""Seconds that the first waiting request waits for others to join its batch."""

T = TypeVar("T")


@dataclass(frozen=True)
class _Waiting(Generic[T]):
    request: Request
    reply: asyncio.Future[T]


class Batches(Generic[T]):
    """Combines waiting requests into one batch after another.

    Args:
        answer: generates the replies to a batch; called in the thread.
        size: maximum number of requests in a batch.
        thread: the executor that calls it. A pool of one thread handles one batch after another.
    """

    def __init__(self, answer: Callable[[list[Request]], Sequence[T]], size: int, thread: Executor) -> None:
        self._batch_answer = answer
        self._size = size
        self._thread = thread
        self._waiting: list[_Waiting[T]] = []
        self._answering: asyncio.Task[None] | None = None

    async def answer(self, request: Request) -> T:
        """Return the reply to one request; an error in a batch is raised for each of its requests."""
        waiting: _Waiting[T] = _Waiting(request, asyncio.get_running_loop().create_future())
        self._waiting.append(waiting)
        if self._answering is None or self._answering.done():
            self._answering = asyncio.create_task(self._answer_all())
        return await waiting.reply

    async def _answer_all(self) -> None:
        while self._waiting:
            await asyncio.sleep(GATHER_S)
            batch, self._waiting = self._waiting[: self._size], self._waiting[self._size :]
            batch = [waiting for waiting in batch if not waiting.reply.done()]  # skip cancelled requests
            if not batch:
                continue
            requests = [waiting.request for waiting in batch]
            try:
                replies = await asyncio.get_running_loop().run_in_executor(
                    self._thread, self._batch_answer, requests
                )
            except Exception as error:  # noqa: BLE001 -- passed to every waiting request
                for waiting in batch:
                    if not waiting.reply.done():
                        waiting.reply.set_exception(error)
            else:
                for waiting, reply in zip(batch, replies, strict=True):
                    if not waiting.reply.done():
                        waiting.reply.set_result(reply)
