"""Playing an episode of a task from its beginning to its end."""

from __future__ import annotations

import asyncio


async def begin(task, *, timeout=None):
    """Begin an episode; the caller ends it."""
    return await task.episode(timeout=timeout).begin()


def play(task, *replies, timeout=None):
    async def work():
        async with task.episode(timeout=timeout) as episode:
            return episode, [await episode.step(reply) for reply in replies]

    return asyncio.run(work())
