"""Success of models over some starts of Maze, at temperature 1: a line of JSON for each of them.

``python measure.py URL SEED EPISODES_A_START TURNS STARTS MODEL...``, with starts such as 2,7;
``--until SUCCESS`` stops it after the first model that reaches it. ``--history turns:2`` plays as with a row
for each turn: each prompt is the chat template's rendering of the messages that the history keeps.
"""

from __future__ import annotations

import argparse
import asyncio
import json
from collections.abc import Sequence
from typing import Any

from recipe import REPLY_TOKENS, SYSTEM, env_kwargs

from agentgym_gym.rollout import Conversation, History
from verl_bridge.cpu.generator import Generator, Request
from verl_bridge.cpu.sampling import Sampling
from verl_bridge.numbers import numbers_of
from verl_bridge.tasks import EnvTask
from verl_bridge.tokens import TokenizedChat

ENV_ID = "agentgym_gym:agentgym/Maze-v0"
BATCH = 64


async def measure(
    model: str,
    url: str,
    seed: int,
    samples: int,
    turns: int,
    starts: Sequence[int],
    history: str | None = None,
) -> dict[str, Any]:
    """Play each start several times; return the mean of success and of invalid replies.

    Raises:
        RuntimeError: An episode faulted.
    """
    from transformers import AutoTokenizer  # noqa: PLC0415 - slow to import

    generator, tokenizer = Generator.load(model), AutoTokenizer.from_pretrained(model)
    chat = TokenizedChat(tokenizer)
    made = env_kwargs(url, turns)
    episodes = [
        await EnvTask(ENV_ID, made, {"task_id": start}).episode().begin()
        for start in starts
        for _ in range(samples)
    ]
    heads = [
        [{"role": "system", "content": SYSTEM}, {"role": "user", "content": episode.observation}]
        for episode in episodes
    ]
    tokens = [chat.prompt(head) for head in heads]
    kept = [Conversation(History.parse(history or "all"), [*head]) for head in heads]
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
                text = chat.text(reply.token_ids)
                played = await episodes[index].step(text)
                if history is None:
                    tokens[index] += reply.token_ids
                    tokens[index] += chat.after(reply.token_ids, played.observation)
                    continue
                kept[index].add_reply({"role": "assistant", "content": text})
                kept[index].add_answer([{"role": "user", "content": played.observation}], played.info)
                tokens[index] = tokenizer.apply_chat_template(
                    kept[index].to_send(), add_generation_prompt=True, return_dict=False
                )
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
    parser.add_argument("--history", metavar="POLICY")
    parser.add_argument("--until", type=float, default=float("inf"), metavar="SUCCESS")
    args = parser.parse_args()
    for model in args.models:
        measured = asyncio.run(
            measure(model, args.url, args.seed, args.samples, args.turns, args.starts, args.history)
        )
        print(json.dumps({"model": model, **measured}), flush=True)
        if measured["success"] >= args.until:
            break


if __name__ == "__main__":
    main()
