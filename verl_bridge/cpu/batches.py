"""Requests that come one by one and are answered many at once. Knows neither verl nor Ray."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, TypeVar

if TYPE_CHECKING:
    from verl_bridge.cpu.generator import Request

GATHER_S = 0.005
"""How long the first of the waiting requests waits for others to be generated with it, in seconds."""

T = TypeVar("T")


@dataclass(frozen=True)
class _Waiting(Generic[T]):
    request: Request
    reply: asyncio.Future[T]


class Batches(Generic[T]):
    """Puts the requests that wait together into one batch after another.

    Args:
        answer: answers a batch; called in the thread.
        size: most requests in one batch.
        thread: where it is called. A pool of one thread answers one batch after another.
    """

    def __init__(self, answer: Callable[[list[Request]], Sequence[T]], size: int, thread: Executor) -> None:
        self._batch_answer = answer
        self._size = size
        self._thread = thread
        self._waiting: list[_Waiting[T]] = []
        self._answering: asyncio.Task[None] | None = None

    async def answer(self, request: Request) -> T:
        """Answer one request; an error of its batch is raised for each that is in it."""
        waiting: _Waiting[T] = _Waiting(request, asyncio.get_running_loop().create_future())
        self._waiting.append(waiting)
        if self._answering is None or self._answering.done():
            self._answering = asyncio.create_task(self._answer_all())
        return await waiting.reply

    async def _answer_all(self) -> None:
        while self._waiting:
            await asyncio.sleep(GATHER_S)
            batch, self._waiting = self._waiting[: self._size], self._waiting[self._size :]
            batch = [waiting for waiting in batch if not waiting.reply.done()]  # a caller may have gone
            if not batch:
                continue
            requests = [waiting.request for waiting in batch]
            try:
                replies = await asyncio.get_running_loop().run_in_executor(
                    self._thread, self._batch_answer, requests
                )
            except Exception as error:  # noqa: BLE001 -- told to each that waits, who would wait for ever
                for waiting in batch:
                    if not waiting.reply.done():
                        waiting.reply.set_exception(error)
            else:
                for waiting, reply in zip(batch, replies, strict=True):
                    if not waiting.reply.done():
                        waiting.reply.set_result(reply)
