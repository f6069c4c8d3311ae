"""Success of models over some starts of Maze, at temperature 1: a line of JSON for each of them.

``python measure.py URL SEED EPISODES_A_START TURNS STARTS MODEL...``, with starts such as 2,7;
``--until SUCCESS`` stops it after the first model that reaches it.
"""

from __future__ import annotations

import argparse
import asyncio
import json
from collections.abc import Sequence
from typing import Any

from recipe import REPLY_TOKENS, SYSTEM, env_kwargs

from verl_bridge.cpu.generator import Generator, Request
from verl_bridge.cpu.sampling import Sampling
from verl_bridge.numbers import numbers_of
from verl_bridge.tasks import EnvTask
from verl_bridge.tokens import TokenizedChat

ENV_ID = "agentgym_gym:agentgym/Maze-v0"
BATCH = 64


async def measure(
    model: str, url: str, seed: int, samples: int, turns: int, starts: Sequence[int]
) -> dict[str, Any]:
    """Play each start several times; return the mean of success and of invalid replies.

    Raises:
        RuntimeError: An episode faulted.
    """
    from transformers import AutoTokenizer  # noqa: PLC0415 - slow to import

    generator = Generator.load(model)
    conversation = TokenizedChat(AutoTokenizer.from_pretrained(model))
    made = env_kwargs(url, turns)
    episodes = [
        await EnvTask(ENV_ID, made, {"task_id": start}).episode().begin()
        for start in starts
        for _ in range(samples)
    ]
    tokens = [
        conversation.prompt(
            [{"role": "system", "content": SYSTEM}, {"role": "user", "content": episode.observation}]
        )
        for episode in episodes
    ]
    sampling = Sampling(temperature=1.0, max_tokens=REPLY_TOKENS)
    for turn in range(turns):
        running = [index for index, episode in enumerate(episodes) if not episode.over]
        for first in range(0, len(running), BATCH):
            indices = running[first : first + BATCH]
            requests = [
                Request(tuple(tokens[index]), sampling, seed * 1_000_003 + turn * 1_009 + index)
                for index in indices
            ]
            for index, reply in zip(indices, generator.generate(requests), strict=True):
                played = await episodes[index].step(conversation.text(reply.token_ids))
                tokens[index] += reply.token_ids
                tokens[index] += conversation.after(reply.token_ids, played.observation)
    records = [numbers_of(episode) for episode in episodes]
    for episode in episodes:
        await episode.end()
    if any(record["fault"] for record in records):
        raise RuntimeError(f"an episode failed: {next(e.fault for e in episodes if e.fault)}")
    by_start = [
        sum(record["success"] for record in records[at : at + samples]) / samples
        for at in range(0, len(records), samples)
    ]
    replies = sum(record["turns"] for record in records)
    return {
        "episodes": len(records),
        "success": round(sum(by_start) / len(by_start), 4),
        "invalid": round(sum(record["invalid_actions"] for record in records) / replies, 4),
        "by_start": dict(zip(starts, by_start, strict=True)),
    }


def main() -> None:
    """Measure the models named on the command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("url")
    parser.add_argument("seed", type=int)
    parser.add_argument("samples", type=int, metavar="EPISODES_A_START")
    parser.add_argument("turns", type=int)
    parser.add_argument("starts", type=lambda text: [int(start) for start in text.split(",")])
    parser.add_argument("models", nargs="+", metavar="MODEL")
    parser.add_argument("--until", type=float, default=float("inf"), metavar="SUCCESS")
    args = parser.parse_args()
    for model in args.models:
        measured = asyncio.run(measure(model, args.url, args.seed, args.samples, args.turns, args.starts))
        print(json.dumps({"model": model, **measured}), flush=True)
        if measured["success"] >= args.until:
            break


if __name__ == "__main__":
    main()
