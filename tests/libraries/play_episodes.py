"""Play the validation rows of a folder of ``agentgym verl init`` at once by the agent loop, without verl.

    PYTHONPATH=envs:../support python play_episodes.py FOLDER POLICY [ISOLATE]

prints a JSON object for each row: seed, messages, rewards and fault. ISOLATE is the option of the agent loop.
"""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path
from uuid import uuid4

import yaml
from pyarrow import parquet

import library_policies as policies
from loop_without_verl import agent_loop, messages_of


async def play(folder, policy, **more):
    (options,) = yaml.safe_load((folder / "agent_loop.yaml").read_text("utf-8"))
    options = {name: value for name, value in options.items() if name not in ("name", "_target_")}
    options |= {"fault_budget": 0, **more}
    loop = agent_loop(policy, folder=folder, **options)
    rows = parquet.read_table(folder / "data/val.parquet").to_pylist()
    played = [loop.run({}, raw_prompt=row["prompt"], uid=uuid4().hex, **row) for row in rows]
    for row, output in zip(rows, await asyncio.gather(*played), strict=True):
        text = loop.tokenizer.decode([*output.prompt_ids, *output.response_ids])
        yield {
            "seed": row["extra_info"]["interaction_kwargs"]["seed"],
            "messages": messages_of(text),
            "rewards": output.extra_fields["turn_scores"],
            "fault": output.extra_fields["env_fault"],
        }


async def main():
    folder, policy, *isolate = sys.argv[1:]
    more = {"isolate": isolate[0]} if isolate else {}
    async for episode in play(Path(folder), getattr(policies, policy), **more):
        print(json.dumps(episode))  # noqa: T201 - it is the output


if __name__ == "__main__":
    asyncio.run(main())
