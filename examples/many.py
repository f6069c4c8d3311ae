"""Play a hundred TextCraft tasks, twenty of them at once, in one event loop.

Run it with ``python examples/many.py``; it starts a local server itself. With ``server=[URL, URL]`` the
environments are distributed over several servers.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import Any

from agentgym_gym import AsyncAgentGymEnv, find
from agentgym_gym.errors import Fault
from agentgym_gym.evaluate import load_oracle


async def play(task_id: int, slots: asyncio.Semaphore) -> str:
    """Play a task with the environment's oracle; return its outcome."""
    oracle: Any = load_oracle(find("TextCraft"))  # replace it by a model
    async with slots, AsyncAgentGymEnv("TextCraft", max_turns=10) as env:
        try:
            observation, info = await env.reset(options={"task_id": task_id})
        except Fault as fault:  # the environment failed, so there is no score for the agent
            return fault.kind
        oracle.reset(env, observation, info)
        done = False
        while not done:
            observation, _, terminated, truncated, info = await env.step(oracle.act(observation, info))
            done = terminated or truncated
        if "fault" in info:
            return str(info["fault"]["kind"])
        return "solved" if info["success"] else "not solved"


async def main() -> None:
    """Play all tasks, and count the outcomes."""
    slots = asyncio.Semaphore(20)
    endings = await asyncio.gather(*(play(task_id, slots) for task_id in range(100)))
    print(dict(Counter(endings)))


if __name__ == "__main__":
    asyncio.run(main())
