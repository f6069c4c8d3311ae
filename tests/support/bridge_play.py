"""Playing an episode from its beginning to its end."""

from __future__ import annotations

import asyncio

from verl_bridge.episodes import Episode


def play(task, *replies, timeout=None):
    async def work():
        episode = await Episode.begin(task, timeout=timeout)
        try:
            return episode, [await episode.step(reply) for reply in replies]
        finally:
            await episode.end()

    return asyncio.run(work())
