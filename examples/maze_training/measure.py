"""Success of a model over all 25 starts of Maze, at temperature 1: ``python measure.py MODEL URL SEED``."""

from __future__ import annotations

import asyncio
import json
import sys
from typing import Any

from recipe import EPISODES_A_START, REPLY_TOKENS, SYSTEM, TURNS

from verl_bridge.cpu.generator import Generator, Request
from verl_bridge.cpu.sampling import Sampling
from verl_bridge.episodes import Episode, Task
from verl_bridge.tokens import Conversation

ENV_ID = "agentgym_gym:agentgym/Maze-v0"
STARTS = range(25)
BATCH = 64


def env_kwargs(url: str) -> dict[str, Any]:
    """Return how the environment is made: a reply that is not one move, and nothing else, costs its turn."""
    return {
        "server": url,
        "action_format": "bare",
        "parser": "default",
        "on_unknown": "refuse",
        "max_turns": TURNS,
    }


async def measure(model: str, url: str, seed: int) -> dict[str, Any]:
    """Play every start `EPISODES_A_START` times; return the mean of success and of invalid replies."""
    from transformers import AutoTokenizer  # noqa: PLC0415 - slow to import

    generator = Generator.load(model)
    conversation = Conversation(AutoTokenizer.from_pretrained(model))
    tasks = [Task(ENV_ID, env_kwargs(url), {"task_id": s}) for s in STARTS for _ in range(EPISODES_A_START)]
    episodes = [await Episode.begin(task) for task in tasks]
    said = [
        conversation.prompt(
            [{"role": "system", "content": SYSTEM}, {"role": "user", "content": episode.observation}]
        )
        for episode in episodes
    ]
    sampling = Sampling(temperature=1.0, max_tokens=REPLY_TOKENS)
    for turn in range(TURNS):
        going = [place for place, episode in enumerate(episodes) if not episode.over]
        for start in range(0, len(going), BATCH):
            places = going[start : start + BATCH]
            requests = [
                Request(tuple(said[place]), sampling, seed * 1_000_003 + turn * 1_009 + place)
                for place in places
            ]
            for place, reply in zip(places, generator.generate(requests), strict=True):
                played = await episodes[place].step(conversation.text(reply.token_ids))
                said[place] += reply.token_ids
                said[place] += conversation.after(reply.token_ids, played.observation)
    records = [episode.record() for episode in episodes]
    for episode in episodes:
        await episode.end()
    faults = sum(record["fault"] for record in records)
    if faults:
        raise RuntimeError(f"{faults:g} episodes failed: {next(e.fault for e in episodes if e.fault)}")
    by_start = [
        sum(record["success"] for record in records[at : at + EPISODES_A_START]) / EPISODES_A_START
        for at in range(0, len(records), EPISODES_A_START)
    ]
    replies = sum(record["turns"] for record in records)
    return {
        "episodes": len(records),
        "success": round(sum(by_start) / len(by_start), 4),
        "invalid": round(sum(record["invalid_actions"] for record in records) / replies, 4),
        "by_start": by_start,
    }


if __name__ == "__main__":
    print(json.dumps(asyncio.run(measure(sys.argv[1], sys.argv[2], int(sys.argv[3])))))
